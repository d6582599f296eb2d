"""Checks the definition of an alarm, and reads its rule and its queries."""

from __future__ import annotations

import re
from math import isfinite
from typing import Any, Final

from stator.engine.companions.cloudwatch.alarms.alarm import ACTIONS_OF
from stator.engine.companions.cloudwatch.alarms.evaluation import (
    BANDS,
    COMPARISONS,
    MISSING_TREATMENTS,
    AlarmRule,
)
from stator.engine.companions.cloudwatch.expressions.syntax import MathCall
from stator.engine.companions.cloudwatch.metric_fields import (
    INVALID_COMBINATION,
    MISSING,
    VALIDATION,
    read_metric,
)
from stator.engine.companions.cloudwatch.metric_queries import (
    MetricDataQuery,
    MetricStat,
    read_queries,
)
from stator.engine.companions.cloudwatch.statistics import SIMPLE, parse_statistic
from stator.errors import CompanionRefused
from stator.model.scope import Scope

_UNSUPPORTED: Final = (
    "EvaluationWindow",
    "WarmUpConfiguration",
    "EvaluationCriteria",
    "EvaluationInterval",
    "ActionConfiguration",
)
_OF_ONE_METRIC: Final = (
    "MetricName",
    "Namespace",
    "Statistic",
    "ExtendedStatistic",
    "Dimensions",
    "Period",
    "Unit",
)
_SHORT_PERIODS: Final = (10, 20, 30)
_MOST_QUERIES: Final = 20
_DAY: Final = 86_400
_ARN: Final = re.compile(r"arn:[\w-]+:[\w-]+:[^:]*:[^:]*:.+")


def check_definition(scope: Scope, definition: dict[str, Any]) -> None:
    """Raise CompanionRefused if the definition of an alarm is not valid."""
    for member in _UNSUPPORTED:
        if member in definition:
            raise _invalid(f"Stator does not support the parameter {member}.")
    _check_comparison(definition)
    treatment = definition.get("TreatMissingData", "missing")
    if treatment not in MISSING_TREATMENTS:
        raise _invalid(f"Option {treatment} for TreatMissingData is not supported.")
    if definition.get("EvaluateLowSampleCountPercentile", "evaluate") not in ("evaluate", "ignore"):
        raise _invalid("EvaluateLowSampleCountPercentile must be evaluate or ignore.")
    if definition.get("DatapointsToAlarm", 1) > definition["EvaluationPeriods"]:
        raise _invalid("DatapointsToAlarm must be at most EvaluationPeriods.")
    for member in ACTIONS_OF.values():
        for arn in definition.get(member, []):
            if _ARN.fullmatch(arn) is None:
                raise _invalid(f"Invalid arn syntax: {arn}")
    _check_source(scope, definition)


def _check_comparison(definition: dict[str, Any]) -> None:
    """Check that there is either a threshold, or a band with a comparison for bands."""
    with_band = "ThresholdMetricId" in definition
    needed = "ThresholdMetricId" if with_band else "Threshold"
    for member in ("EvaluationPeriods", "ComparisonOperator", needed):
        if member not in definition:
            raise CompanionRefused(MISSING, f"The parameter {member} is required.")
    if with_band and "Threshold" in definition:
        raise CompanionRefused(
            INVALID_COMBINATION,
            "The parameters Threshold and ThresholdMetricId are mutually exclusive.",
        )
    comparison = definition["ComparisonOperator"]
    if comparison not in (BANDS if with_band else COMPARISONS):
        other = "an alarm without ThresholdMetricId" if with_band else "anomaly detection"
        raise _invalid(f"The ComparisonOperator {comparison} is for {other}.")
    if not isfinite(definition.get("Threshold", 0.0)):
        raise _invalid(f"The Threshold must be a number, not {definition['Threshold']}.")
    if with_band and "Metrics" not in definition:
        raise _invalid("ThresholdMetricId must be the Id of an element of Metrics.")


def _check_source(scope: Scope, definition: dict[str, Any]) -> None:
    if "Metrics" in definition:
        given = [member for member in _OF_ONE_METRIC if member in definition]
        if given:
            raise CompanionRefused(
                INVALID_COMBINATION,
                f"The parameters Metrics and {given[0]} are mutually exclusive.",
            )
        if not 0 < len(definition["Metrics"]) <= _MOST_QUERIES:
            raise _invalid(f"The collection Metrics must have a size of 1 to {_MOST_QUERIES}.")
    else:
        read_metric(scope, definition)
        if "Period" not in definition:
            raise CompanionRefused(MISSING, "The parameter Period is required.")
        _check_statistic(definition)
    queries, returned = alarm_queries(scope, definition)
    period = alarm_period(queries, returned)
    if period not in _SHORT_PERIODS and period % 60:
        raise _invalid(
            f"The period of an alarm must be 10, 20, 30 or a multiple of 60, not {period}."
        )
    longest = 7 * _DAY if period >= 3600 else _DAY
    if period * definition["EvaluationPeriods"] > longest:
        raise _invalid(
            f"Metrics cannot be checked across more than {longest // _DAY} day(s): "
            "EvaluationPeriods * Period is too large."
        )


def _check_statistic(definition: dict[str, Any]) -> None:
    extended = definition.get("ExtendedStatistic")
    if ("Statistic" in definition) == (extended is not None):
        raise CompanionRefused(
            INVALID_COMBINATION, "An alarm needs either a Statistic or an ExtendedStatistic."
        )
    if extended is not None and (extended in SIMPLE or parse_statistic(extended) is None):
        raise _invalid(f"The value {extended} for parameter ExtendedStatistic is not supported.")


def alarm_queries(
    scope: Scope, definition: dict[str, Any]
) -> tuple[list[MetricDataQuery], MetricDataQuery]:
    """Return the queries of an alarm, and the query whose points are compared."""
    if "Metrics" in definition:
        queries = read_queries(scope, definition["Metrics"], "Metrics")
    else:
        statistic = definition.get("Statistic") or definition["ExtendedStatistic"]
        metric = read_metric(scope, definition)
        stat = MetricStat(metric, statistic, definition["Period"], definition.get("Unit"))
        queries = [MetricDataQuery("m1", stat, None, True, 0)]
    band = definition.get("ThresholdMetricId")
    if band is not None:
        _check_band(queries, band)
    returned = [query for query in queries if query.is_returned and query.id != band]
    if len(returned) != 1:
        raise _invalid("Exactly one element of Metrics must return data (ReturnData).")
    return queries, returned[0]


def _check_band(queries: list[MetricDataQuery], band: str) -> None:
    source = next((query.source for query in queries if query.id == band), None)
    if not isinstance(source, MathCall) or source.function != "ANOMALY_DETECTION_BAND":
        raise _invalid(
            f"ThresholdMetricId {band} must be the Id of an ANOMALY_DETECTION_BAND expression."
        )


def alarm_period(queries: list[MetricDataQuery], returned: MetricDataQuery) -> int:
    """Return the period of an alarm: its metric's, or the longest of its expression's metrics."""
    if isinstance(returned.source, MetricStat):
        return returned.source.period
    stats = [query.source for query in queries]
    periods = [each.period for each in stats if isinstance(each, MetricStat)]
    return returned.period or max(periods, default=60)


def alarm_rule(definition: dict[str, Any]) -> AlarmRule:
    periods = definition["EvaluationPeriods"]
    return AlarmRule(
        periods,
        definition.get("DatapointsToAlarm", periods),
        definition["ComparisonOperator"],
        float(definition.get("Threshold", 0.0)),
        definition.get("TreatMissingData", "missing"),
    )


def _invalid(message: str) -> CompanionRefused:
    return CompanionRefused(VALIDATION, message)
