"""Alarms as requests of CloudWatch's PutMetricAlarm, which all its tools are built on.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

from stator.ops.dashboards.panels import NAMESPACE, CloudMetric
from stator.ops.dashboards.planned_alarm import CloudWatchCondition, PlannedAlarm
from stator.ops.dashboards.runbooks import runbook_address

_MOST_NAME: Final = 255
BAND_WIDTH: Final = 3
"""The width of the band of the usual, in standard deviations."""


def cloudwatch_alarms(
    name: str, alarms: Iterable[PlannedAlarm], runbooks: str
) -> list[dict[str, Any]]:
    """Return one request for each alarm that CloudWatch can watch. The actions are left open."""
    return [_request(alarm, name, runbooks) for alarm in alarms if alarm.cloudwatch is not None]


def _request(alarm: PlannedAlarm, name: str, runbooks: str) -> dict[str, Any]:
    condition = alarm.cloudwatch
    assert condition is not None
    return {
        "AlarmName": _alarm_name(alarm, name),
        "AlarmDescription": f"{alarm.summary}. {runbook_address(alarm.runbook, runbooks)}",
        "EvaluationPeriods": condition.periods,
        "DatapointsToAlarm": condition.datapoints,
        # Most metrics of DynamoDB have data only when something happens.
        "TreatMissingData": "notBreaching",
        **_compared(condition),
    }


def _alarm_name(alarm: PlannedAlarm, name: str) -> str:
    found = " ".join(part for part in (f"stator {name}", alarm.runbook, alarm.about) if part)
    if len(found) <= _MOST_NAME:
        return found
    return f"{found[: _MOST_NAME - 9]} {hashlib.sha256(found.encode()).hexdigest()[:8]}"


def _compared(condition: CloudWatchCondition) -> dict[str, Any]:
    query = condition.query
    if condition.threshold is None:
        metrics = _stats(query.metrics, query.period_seconds, returned=True)
        band = {
            "Id": "usual",
            "Expression": f"ANOMALY_DETECTION_BAND(m1, {BAND_WIDTH})",
            "Label": "usual",
            "ReturnData": True,
        }
        return {
            "ComparisonOperator": "GreaterThanUpperThreshold",
            "ThresholdMetricId": "usual",
            "Metrics": [*metrics, band],
        }
    limit = {"ComparisonOperator": "GreaterThanThreshold", "Threshold": condition.threshold}
    if query.expression is not None:
        metrics = _stats(query.metrics, query.period_seconds, returned=False)
        result = {"Id": "result", "Expression": query.expression, "ReturnData": True}
        return {**limit, "Metrics": [*metrics, result]}
    [metric] = query.metrics
    percentile = metric.statistic.startswith("p")
    return {
        **limit,
        "Namespace": NAMESPACE,
        "MetricName": metric.name,
        "Dimensions": _dimensions(metric),
        "Period": query.period_seconds,
        ("ExtendedStatistic" if percentile else "Statistic"): metric.statistic,
    }


def _stats(
    metrics: tuple[CloudMetric, ...], period: int, *, returned: bool
) -> list[dict[str, Any]]:
    return [
        {
            "Id": f"m{at}",
            "MetricStat": {
                "Metric": {
                    "Namespace": NAMESPACE,
                    "MetricName": metric.name,
                    "Dimensions": _dimensions(metric),
                },
                "Period": period,
                "Stat": metric.statistic,
            },
            "ReturnData": returned,
        }
        for at, metric in enumerate(metrics, 1)
    ]


def _dimensions(metric: CloudMetric) -> list[dict[str, str]]:
    return [{"Name": name, "Value": value} for name, value in metric.dimensions]
