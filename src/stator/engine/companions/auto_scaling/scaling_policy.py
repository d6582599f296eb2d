"""A target-tracking policy, and the names of its four alarms."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from stator.engine.companions.auto_scaling.scalable_target import key_from_json, key_to_json
from stator.engine.companions.auto_scaling.target_key import TargetKey
from stator.engine.companions.cloudwatch.alarms.alarm import alarm_arn
from stator.model.scaling.target_tracking import TargetTracking

HIGH: Final = "AlarmHigh"
LOW: Final = "AlarmLow"
PROVISIONED_HIGH: Final = "ProvisionedCapacityHigh"
PROVISIONED_LOW: Final = "ProvisionedCapacityLow"
ALARM_KINDS: Final = (HIGH, LOW, PROVISIONED_HIGH, PROVISIONED_LOW)


@dataclass(slots=True)
class ScalingPolicy:
    """A policy of a target. ``alarm_ids`` has an id for each kind of alarm.

    ``alarm_units`` are the units from which the alarms' thresholds were computed.
    """

    key: TargetKey
    name: str
    arn: str
    created: float
    configuration: dict[str, Any]
    alarm_ids: dict[str, str]
    alarm_units: int

    @property
    def tracking(self) -> TargetTracking:
        """The policy as ``stator.model.scaling`` takes it."""
        configuration = self.configuration
        return TargetTracking(
            configuration["TargetValue"],
            float(configuration.get("ScaleOutCooldown", 0)),
            float(configuration.get("ScaleInCooldown", 0)),
            not configuration.get("DisableScaleIn", False),
        )

    def alarm_name(self, kind: str) -> str:
        return f"TargetTracking-{self.key.resource_id}-{kind}-{self.alarm_ids[kind]}"

    @property
    def alarms(self) -> list[dict[str, str]]:
        """The alarms as answers list them."""
        names = [self.alarm_name(kind) for kind in ALARM_KINDS]
        return [{"AlarmName": name, "AlarmARN": alarm_arn(self.key.scope, name)} for name in names]

    def described(self) -> dict[str, Any]:
        """Return the policy as DescribeScalingPolicies shows it."""
        return {
            "PolicyARN": self.arn,
            "PolicyName": self.name,
            **self.key.identity,
            "PolicyType": "TargetTrackingScaling",
            "TargetTrackingScalingPolicyConfiguration": self.configuration,
            "Alarms": self.alarms,
            "CreationTime": self.created,
        }

    def to_json(self) -> dict[str, Any]:
        return {"version": 1, **asdict(self), "key": key_to_json(self.key)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ScalingPolicy:
        members = {name: value for name, value in data.items() if name != "version"}
        members["key"] = key_from_json(data["key"])
        return cls(**members)
