"""A table of the embedded engine that Application Auto Scaling steers, minute by minute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import SlowDown
from stator.model.scope import DEFAULT_ACCOUNT, DEFAULT_REGION, Scope
from stator.ops.capacity.policies import ScaledPolicy
from stator.ops.capacity.use_series import Dimension

from .histories import MONDAY

INDEX = "by-g"
_SCOPE = Scope(DEFAULT_ACCOUNT, DEFAULT_REGION)
_MINUTE = 60


@dataclass
class Course:
    """What became of one dimension: units admitted and units in force in each minute."""

    admitted: list[int] = field(default_factory=list)
    capacity: list[int] = field(default_factory=list)
    # The end and the units of each scaling activity, in minutes after the start.
    changes: list[tuple[int, int]] = field(default_factory=list)


class ScaledTable:
    """A table with a target and a policy for each scaled dimension.

    Its units change ``update_minutes`` after they were asked for.
    """

    def __init__(self, policies: dict[Dimension, ScaledPolicy], update_minutes: int = 1) -> None:
        self.policies = policies
        self.clock = VirtualClock(float(MONDAY))
        self.engine = Engine.open(clock=self.clock, throughput="enforced", metrics=True)
        self.has_index = any(each.index for each in policies)
        self._written = 0
        self._create()
        self.engine.lifecycle.delay_seconds = float(update_minutes * _MINUTE)
        for dimension, policy in policies.items():
            self._steer(dimension, policy)
        self.courses = {dimension: Course() for dimension in policies}

    def _units(self, index: str | None) -> dict[str, int]:
        found = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
        for dimension, policy in self.policies.items():
            if dimension.index == index:
                start = policy.bounds.least if policy.start is None else policy.start
                found[f"{dimension.kind.capitalize()}CapacityUnits"] = start
        return found

    def _create(self) -> None:
        attributes = [{"AttributeName": "p", "AttributeType": "S"}]
        request: dict[str, Any] = {
            "TableName": "orders",
            "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
            "AttributeDefinitions": attributes,
            "ProvisionedThroughput": self._units(None),
        }
        if self.has_index:
            attributes.append({"AttributeName": "g", "AttributeType": "S"})
            request["GlobalSecondaryIndexes"] = [
                {
                    "IndexName": INDEX,
                    "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                    "ProvisionedThroughput": self._units(INDEX),
                }
            ]
        self.engine.call("CreateTable", request)

    def scale(self, operation: str, **request: Any) -> dict[str, Any]:
        return self.engine.call_companion("application-autoscaling", operation, request)

    def _steer(self, dimension: Dimension, policy: ScaledPolicy) -> None:
        target, tracking = _target(dimension), policy.tracking
        bounds = {"MinCapacity": policy.bounds.least, "MaxCapacity": policy.bounds.most}
        self.scale("RegisterScalableTarget", **target, **bounds)
        kind = dimension.kind.capitalize()
        configuration = {
            "TargetValue": tracking.target_percent,
            "ScaleOutCooldown": int(tracking.scale_out_cooldown_seconds),
            "ScaleInCooldown": int(tracking.scale_in_cooldown_seconds),
            "DisableScaleIn": not tracking.can_scale_in,
            "PredefinedMetricSpecification": {
                "PredefinedMetricType": f"DynamoDB{kind}CapacityUtilization"
            },
        }
        self.scale(
            "PutScalingPolicy",
            **target,
            PolicyName="steady",
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration=configuration,
        )
        for number, action in enumerate(policy.actions):
            members = {
                "Schedule": action.schedule,
                "Timezone": action.timezone,
                "StartTime": action.start,
                "EndTime": action.end,
                "ScalableTargetAction": {"MinCapacity": action.least, "MaxCapacity": action.most},
            }
            name = f"action-{number}"
            self.scale("PutScheduledAction", **target, ScheduledActionName=name, **members)

    # -- the minutes

    def run(self, writes: Sequence[int], reads: Sequence[int] = ()) -> None:
        """Send so many units in each minute, evenly over its seconds."""
        for minute, units in enumerate(writes):
            self._note_capacity()
            self._minute(units, reads[minute] if reads else 0)
            self.engine.sweep()
        for dimension, course in self.courses.items():
            course.changes = self._changes(dimension)

    def _note_capacity(self) -> None:
        self.engine.call("DescribeTable", {"TableName": "orders"})  # completes what is due
        table = self.engine.database.catalog.get(_SCOPE, "orders")
        found = self.engine.database.meter.of(table)
        for dimension, course in self.courses.items():
            resource = found.resource if dimension.index is None else found.indexes[dimension.index]
            assert resource.settings.units is not None
            course.capacity.append(int(resource.settings.units[dimension.kind == "write"]))

    def _minute(self, writes: int, reads: int) -> None:
        admitted = {"write": 0, "read": 0}
        for second in range(_MINUTE):
            for kind, units in (("read", reads), ("write", writes)):
                each, rest = divmod(units, _MINUTE)
                send = self._read if kind == "read" else self._write
                admitted[kind] += sum(send() for _ in range(each + (second < rest)))
            self.clock.advance(1.0)
        for dimension, course in self.courses.items():
            course.admitted.append(admitted[dimension.kind])

    def _write(self) -> bool:
        self._written += 1
        item = {name: {"S": f"{self._written}"} for name in ("p", "g")}
        return self._passes("PutItem", {"Item": item})

    def _read(self) -> bool:
        self._written += 1
        return self._passes("GetItem", {"Key": {"p": {"S": f"{self._written}"}}})

    def _passes(self, operation: str, request: dict[str, Any]) -> bool:
        consistent = {"ConsistentRead": True} if operation == "GetItem" else {}
        try:
            self.engine.call(operation, {"TableName": "orders", **request, **consistent})
        except SlowDown:
            return False
        return True

    def _changes(self, dimension: Dimension) -> list[tuple[int, int]]:
        """Return when which units came into force, from the scaling activities."""
        found = []
        for activity in self.activities(dimension):
            words = activity["Description"].rstrip(".").split()
            if words[1] == dimension.kind and activity["StatusCode"] == "Successful":
                found.append((int(activity["EndTime"] - MONDAY) // _MINUTE, int(words[-1])))
        return sorted(found)

    def activities(self, dimension: Dimension) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        token: dict[str, str] = {}
        while True:
            page = self.scale("DescribeScalingActivities", **_target(dimension), **token)
            found += page["ScalingActivities"]
            if "NextToken" not in page:
                return found
            token = {"NextToken": page["NextToken"]}


def _target(dimension: Dimension) -> dict[str, str]:
    holder = "table" if dimension.index is None else "index"
    return {
        "ServiceNamespace": "dynamodb",
        "ResourceId": "table/orders" + (f"/index/{dimension.index}" if dimension.index else ""),
        "ScalableDimension": f"dynamodb:{holder}:{dimension.kind.capitalize()}CapacityUnits",
    }
