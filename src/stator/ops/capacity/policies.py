"""How the capacity of a dimension may be managed, and the delays under which a replay runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from stator.model.heat.limits import BURST_SECONDS, INITIAL_BURST_SECONDS
from stator.model.scaling.scheduled_action import ScheduledAction
from stator.model.scaling.target_tracking import CapacityBounds, TargetTracking
from stator.ops.capacity.use_series import Dimension

TableClass = Literal["standard", "infrequent_access"]


@dataclass(frozen=True, slots=True)
class OnDemandPolicy:
    """Pay for each request. ``maximum`` is a maximum of units a second, or None."""

    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class FixedPolicy:
    """Always the same provisioned units."""

    units: int


@dataclass(frozen=True, slots=True)
class ScaledPolicy:
    """Provisioned units that Application Auto Scaling changes. ``start`` are the first units."""

    tracking: TargetTracking
    bounds: CapacityBounds
    actions: tuple[ScheduledAction, ...] = ()
    start: int | None = None


Policy = OnDemandPolicy | FixedPolicy | ScaledPolicy
Policies = Mapping[Dimension, Policy]


@dataclass(frozen=True, slots=True)
class Scenario:
    """What AWS does not promise, and a replay must assume.

    A minute's use is known ``alarm_minutes`` after its end; a change is in force ``update_minutes``
    after it was asked for, or ``growth_minutes`` if the table never had as many units.
    ``peak_factor`` is how much higher than its mean the rate within a minute is. ``saved_seconds``
    is the burst that a bucket has at the start: a new table has a second, a table in use up to 300.
    """

    alarm_minutes: int = 1
    update_minutes: int = 1
    growth_minutes: int = 5
    peak_factor: int = 1
    saved_seconds: float = INITIAL_BURST_SECONDS


SCENARIOS: Final = (
    Scenario(1, 1, 5, 1, BURST_SECONDS),
    Scenario(3, 3, 15, 3, BURST_SECONDS),
)
"""The best case and the worst case.

The history is of a table in use, so it begins with a full burst.
"""
