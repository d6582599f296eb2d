"""A scalable target: the bounds of a capacity, and what scaling has done to it last."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final

from stator.engine.companions.auto_scaling.target_key import TargetKey
from stator.model.scaling.target_tracking import CapacityBounds, Direction
from stator.model.scope import Scope

SUSPENSIONS: Final = (
    "DynamicScalingInSuspended",
    "DynamicScalingOutSuspended",
    "ScheduledScalingSuspended",
)


@dataclass(frozen=True, slots=True)
class CapacityChange:
    """A change of units in progress. Until the table is ACTIVE again, the former units apply."""

    activity: str
    units: int
    direction: Direction


@dataclass(slots=True)
class ScalableTarget:
    """A target. Times are epoch seconds.

    ``owed`` says that the bounds have changed while the table could not. Units outside the bounds
    must still be moved inside. ``suspended`` has the members of SuspendedState that are true.
    """

    key: TargetKey
    arn: str
    created: float
    least: int
    most: int
    role_arn: str
    suspended: list[str] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)
    last_out: float | None = None
    last_in: float | None = None
    change: CapacityChange | None = None
    owed: bool = False

    @property
    def bounds(self) -> CapacityBounds:
        return CapacityBounds(self.least, self.most)

    def described(self) -> dict[str, Any]:
        """Return the target as DescribeScalableTargets shows it."""
        return {
            **self.key.identity,
            "MinCapacity": self.least,
            "MaxCapacity": self.most,
            "RoleARN": self.role_arn,
            "CreationTime": self.created,
            "SuspendedState": {name: name in self.suspended for name in SUSPENSIONS},
            "ScalableTargetARN": self.arn,
        }

    def to_json(self) -> dict[str, Any]:
        return {"version": 1, **asdict(self), "key": key_to_json(self.key)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ScalableTarget:
        members = {name: value for name, value in data.items() if name != "version"}
        members["key"] = key_from_json(data["key"])
        if data["change"] is not None:
            members["change"] = CapacityChange(**data["change"])
        return cls(**members)


def key_to_json(key: TargetKey) -> dict[str, Any]:
    return {**asdict(key), "scope": list(key.scope)}


def key_from_json(data: dict[str, Any]) -> TargetKey:
    return TargetKey(**{**data, "scope": Scope(*data["scope"])})
