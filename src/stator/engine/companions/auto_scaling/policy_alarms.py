"""The four alarms of a policy in CloudWatch.

AlarmHigh and AlarmLow watch the consumed units: their thresholds are those of
``stator.model.scaling``. ProvisionedCapacityHigh and -Low ring if the provisioned units differ from
those for which the thresholds were made, as after a change by hand; the thresholds then follow.
Statistic, periods and thresholds are those of public captures of AWS.
"""

from __future__ import annotations

from typing import Any

from stator.engine.companions.auto_scaling.scaling_policy import (
    ALARM_KINDS,
    HIGH,
    LOW,
    PROVISIONED_HIGH,
    PROVISIONED_LOW,
    ScalingPolicy,
)
from stator.engine.companions.auto_scaling.target_capacity import metric_dimensions
from stator.engine.companions.cloudwatch.cloudwatch import CloudWatch
from stator.engine.companions.companion import CompanionCall
from stator.model.scaling.target_tracking import HIGH_MINUTES, LOW_MINUTES

_ABOVE, _BELOW = "GreaterThanThreshold", "LessThanThreshold"


def put_alarms(cloudwatch: CloudWatch, policy: ScalingPolicy, now: float) -> None:
    """Create the alarms of a policy, or give them the thresholds of its ``alarm_units``."""
    units, tracking = policy.alarm_units, policy.tracking
    used = f"Consumed{policy.key.kind.capitalize()}CapacityUnits"
    held = f"Provisioned{policy.key.kind.capitalize()}CapacityUnits"
    high, low = tracking.high_threshold(units), tracking.low_threshold(units)
    rules = {
        HIGH: (used, "Sum", 60, HIGH_MINUTES, _ABOVE, high),
        LOW: (used, "Sum", 60, LOW_MINUTES, _BELOW, low),
        PROVISIONED_HIGH: (held, "Average", 300, 3, _ABOVE, float(units)),
        PROVISIONED_LOW: (held, "Average", 300, 3, _BELOW, float(units)),
    }
    put = cloudwatch.operations["PutMetricAlarm"]
    for kind, (metric, statistic, period, periods, comparison, threshold) in rules.items():
        definition: dict[str, Any] = {
            "AlarmName": policy.alarm_name(kind),
            "AlarmDescription": f"DO NOT EDIT OR DELETE. For TargetTrackingScaling policy "
            f"{policy.arn}.",
            "ActionsEnabled": True,
            "AlarmActions": [policy.arn],
            "Namespace": "AWS/DynamoDB",
            "MetricName": metric,
            "Dimensions": [
                {"Name": name, "Value": value}
                for name, value in metric_dimensions(policy.key).items()
            ],
            "Statistic": statistic,
            "Period": period,
            "EvaluationPeriods": periods,
            "ComparisonOperator": comparison,
            "Threshold": threshold,
        }
        put(CompanionCall(policy.key.scope, now), definition)


def delete_alarms(cloudwatch: CloudWatch, policy: ScalingPolicy, now: float) -> None:
    """Delete those alarms of a policy that a user has not deleted."""
    names = [policy.alarm_name(kind) for kind in ALARM_KINDS]
    call = CompanionCall(policy.key.scope, now)
    shown = cloudwatch.operations["DescribeAlarms"](call, {"AlarmNames": names})
    left = [alarm["AlarmName"] for alarm in shown["MetricAlarms"]]
    if left:
        cloudwatch.operations["DeleteAlarms"](call, {"AlarmNames": left})
