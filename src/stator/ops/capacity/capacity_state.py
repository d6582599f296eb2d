"""The capacity settings of a table as one value: billing mode, units, maxima, class and scaling.

What a table has and what it should have are both a ``CapacityState``. ``staged_change`` finds the
calls that lead from one to the other, so a change and its undoing are the same code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stator.errors import ConfigurationError
from stator.model.scaling.scheduled_action import ScheduledAction
from stator.model.scaling.target_tracking import CapacityBounds, TargetTracking
from stator.ops.capacity.policies import TableClass
from stator.ops.capacity.use_series import KINDS, Dimension


@dataclass(frozen=True, slots=True)
class ScaledDimension:
    """Auto scaling of one dimension: its bounds, its policy if it has one, and its schedule.

    ``policy_name`` is the name of the policy on AWS; an empty name is replaced by one of ours.
    """

    bounds: CapacityBounds
    tracking: TargetTracking | None = None
    actions: tuple[ScheduledAction, ...] = ()
    policy_name: str = ""

    def to_data(self) -> dict[str, Any]:
        """Return the settings as JSON-ready data."""
        tracking = self.tracking
        return {
            "least": self.bounds.least,
            "most": self.bounds.most,
            "policy_name": self.policy_name,
            "tracking": None
            if tracking is None
            else {
                "target": tracking.target_percent,
                "scale_out_cooldown": tracking.scale_out_cooldown_seconds,
                "scale_in_cooldown": tracking.scale_in_cooldown_seconds,
                "scale_in": tracking.can_scale_in,
            },
            "actions": [
                {
                    "name": each.name, "schedule": each.schedule, "least": each.least,
                    "most": each.most, "timezone": each.timezone, "start": each.start,
                    "end": each.end,
                }
                for each in self.actions
            ],
        }  # fmt: skip

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> ScaledDimension:
        """Return the settings that ``to_data`` wrote."""
        tracking = data["tracking"]
        return cls(
            CapacityBounds(data["least"], data["most"]),
            None
            if tracking is None
            else TargetTracking(
                tracking["target"],
                tracking["scale_out_cooldown"],
                tracking["scale_in_cooldown"],
                tracking["scale_in"],
            ),
            tuple(ScheduledAction(**each) for each in data["actions"]),
            data["policy_name"],
        )


@dataclass(frozen=True, slots=True)
class CapacityState:
    """The capacity settings of a table. ``units`` is empty for on-demand, see ``LiveTable``."""

    table: str
    units: Mapping[Dimension, int]
    maxima: Mapping[Dimension, int] = field(default_factory=dict)
    table_class: TableClass = "standard"
    scaling: Mapping[Dimension, ScaledDimension] = field(default_factory=dict)

    @property
    def is_provisioned(self) -> bool:
        """Whether units are bought by the hour rather than by the request."""
        return bool(self.units)

    def to_data(self) -> dict[str, Any]:
        """Return the state as JSON-ready data."""
        return {
            "table": self.table,
            "units": [_entry(each, units) for each, units in self.units.items()],
            "maxima": [_entry(each, units) for each, units in self.maxima.items()],
            "table_class": self.table_class,
            "scaling": [_entry(each, own.to_data()) for each, own in self.scaling.items()],
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> CapacityState:
        """Return the state that ``to_data`` wrote. Raises ConfigurationError if it is malformed."""
        try:
            return cls(
                data["table"],
                {_dimension(each): int(each["value"]) for each in data["units"]},
                {_dimension(each): int(each["value"]) for each in data["maxima"]},
                data["table_class"],
                {
                    _dimension(each): ScaledDimension.from_data(each["value"])
                    for each in data["scaling"]
                },
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(
                f"the record of a table's capacity is damaged: {error}",
                hint="name a file that stator advise --apply or stator scale --apply wrote",
            ) from None


def _entry(dimension: Dimension, value: object) -> dict[str, Any]:
    return {"index": dimension.index, "kind": dimension.kind, "value": value}


def _dimension(entry: Mapping[str, Any]) -> Dimension:
    if entry["kind"] not in KINDS:
        raise ValueError(f"{entry['kind']!r} is neither read nor write")
    return Dimension(entry["index"], entry["kind"])
