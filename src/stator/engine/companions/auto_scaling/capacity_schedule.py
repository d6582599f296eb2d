"""A scheduled action of a target: it changes the target's bounds at the times of an expression."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from stator.engine.companions.auto_scaling.scalable_target import key_from_json, key_to_json
from stator.engine.companions.auto_scaling.target_key import TargetKey
from stator.model.scaling.scheduled_action import ScheduledAction


@dataclass(slots=True)
class CapacitySchedule:
    """A scheduled action. ``checked`` is the time up to which it has run whenever it was due."""

    key: TargetKey
    name: str
    arn: str
    created: float
    checked: float
    schedule: str
    timezone: str | None = None
    start: float | None = None
    end: float | None = None
    least: int | None = None
    most: int | None = None

    @property
    def action(self) -> ScheduledAction:
        """The action as ``stator.model.scaling`` takes it.

        Without a start time, the intervals of a ``rate(...)`` schedule count from the creation of
        the action.
        """
        is_rate = self.schedule.startswith("rate")
        start = self.created if self.start is None and is_rate else self.start
        return ScheduledAction(
            self.schedule, self.least, self.most, self.timezone or "UTC", start, self.end, self.name
        )

    @property
    def sets(self) -> str:
        """The bounds that the action sets, as the activity names them."""
        bounds = (("min", self.least), ("max", self.most))
        return " and ".join(
            f"{name} capacity to {units}" for name, units in bounds if units is not None
        )

    def described(self) -> dict[str, Any]:
        """Return the action as DescribeScheduledActions shows it."""
        bounds = {"MinCapacity": self.least, "MaxCapacity": self.most}
        optional = {"Timezone": self.timezone, "StartTime": self.start, "EndTime": self.end}
        return {
            "ScheduledActionName": self.name,
            "ScheduledActionARN": self.arn,
            **self.key.identity,
            "Schedule": self.schedule,
            **{name: value for name, value in optional.items() if value is not None},
            "ScalableTargetAction": {
                name: value for name, value in bounds.items() if value is not None
            },
            "CreationTime": self.created,
        }

    def to_json(self) -> dict[str, Any]:
        return {"version": 1, **asdict(self), "key": key_to_json(self.key)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> CapacitySchedule:
        members = {name: value for name, value in data.items() if name != "version"}
        members["key"] = key_from_json(data["key"])
        return cls(**members)
