"""The state of a replay: the buckets, the lanes of a table and its indexes, and how they begin.

A *lane* is one dimension while the replay runs. A *place* is a table or an index: its two lanes
share partitions, changes and the limit of decreases. ``replay`` moves them, minute by minute.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import Final

from stator.model.heat.even_demand import serve_evenly
from stator.model.heat.limits import (
    BURST_SECONDS,
    ON_DEMAND_PARTITIONS,
    PARTITION_UNITS,
    QUOTA_UNITS,
    READ,
    WRITE,
)
from stator.model.scaling.decrease_budget import DecreaseRecord
from stator.model.scaling.scheduled_action import due_actions
from stator.model.scaling.target_tracking import (
    CapacityBounds,
    ScalingDecision,
    ScalingState,
    TargetTracking,
)
from stator.ops.capacity.policies import (
    FixedPolicy,
    OnDemandPolicy,
    Policy,
    ScaledPolicy,
    Scenario,
)
from stator.ops.capacity.use_series import MINUTE, Dimension, TableHistory

KIND_NUMBERS: Final = {"read": READ, "write": WRITE}
NOTHING: Final = 1e-6
"""Served units are sums of floats; less than this is not a refusal."""
_WEEK_SECONDS: Final = 7 * 86_400


@dataclass(slots=True)
class ReplayLimit:
    """A token bucket as plain numbers, for speed: a replay asks it millions of times."""

    rate: float
    size: float
    level: float

    def resize(self, rate: float) -> None:
        """Change the rate of a bucket that holds 300 seconds of unused units. The level stays."""
        self.rate, self.size = rate, rate * BURST_SECONDS
        self.level = min(self.level, self.size)

    def renew(self, rate: float) -> None:
        """Change the rate of a limit that keeps no unused units."""
        self.rate = self.size = self.level = rate


@dataclass(slots=True)
class ReplayLane:
    """One dimension while the replay runs."""

    dimension: Dimension
    policy: Policy
    demand: list[float]
    kind: int
    limits: list[ReplayLimit]
    served: list[float] = field(default_factory=list)
    throttled: list[float] = field(default_factory=list)
    capacity: list[int] = field(default_factory=list)
    state: ScalingState | None = None
    tracking: TargetTracking | None = None
    bounds: CapacityBounds | None = None
    actions: list[tuple[int, CapacityBounds]] = field(default_factory=list)

    def has_plenty(self, units: float, seconds: int) -> bool:
        """Whether no second of the minute asks for more than any limit gains in a second."""
        asked = units / seconds + 1.0
        for limit in self.limits:  # noqa: SIM110 - a generator would take twice as long
            if asked > limit.rate or asked > limit.level:
                return False
        return True

    def serve_all(self, units: float) -> None:
        """Charge a minute for which ``has_plenty`` is true: the buckets only fill."""
        for limit in self.limits:
            level = limit.level + MINUTE * limit.rate - units
            limit.level = min(limit.size, level)

    def serve(self, units: float, seconds: int) -> float:
        """Serve and charge the units that every limit lets pass. The rest of the minute is idle.

        What one limit lets pass is what the next is asked for. Only the last has a memory.
        """
        if self.has_plenty(units, seconds):
            self.serve_all(units)
            return units
        idle = MINUTE - seconds
        served = units
        for limit in self.limits:
            served, level = serve_evenly(limit.level, limit.rate, limit.size, served, seconds)
            limit.level = min(limit.size, level + idle * limit.rate)
        return served

    def can_serve(self, units: float, seconds: int) -> bool:
        return all(
            serve_evenly(limit.level, limit.rate, limit.size, units, seconds)[0] >= units - NOTHING
            for limit in self.limits
        )


@dataclass(slots=True)
class ReplayPlace:
    """A table or an index.

    Its read and write lanes share partitions, changes and the limit of decreases.
    """

    lanes: list[ReplayLane]
    partitions: int
    # The most units that were ever provisioned, and the warm throughput at the start.
    highest: list[float]
    warm: tuple[float, float]
    decreases: DecreaseRecord = field(default_factory=DecreaseRecord)
    # The change under way: the minute from which it is in force, whose it is, and what.
    pending: tuple[int, ReplayLane, ScalingDecision] | None = None
    peak: list[float] = field(default_factory=lambda: [0.0, 0.0])
    growth: list[tuple[int, int]] = field(default_factory=list)

    @property
    def is_on_demand(self) -> bool:
        return any(isinstance(lane.policy, OnDemandPolicy) for lane in self.lanes)


# --- how a replay begins --------------------------------------------------------------------------


def open_lane(
    history: TableHistory,
    dimension: Dimension,
    policy: Policy,
    scenario: Scenario,
    factor: float,
) -> ReplayLane:
    """Return the lane of a dimension at the start of a replay, without its limits."""
    demand = history.of(dimension).demand()
    if factor != 1.0:
        demand = [units * factor for units in demand]
    lane = ReplayLane(dimension, policy, demand, KIND_NUMBERS[dimension.kind], [])
    if isinstance(policy, ScaledPolicy):
        lane.tracking = policy.tracking
        lane.bounds = policy.bounds
        lane.actions = _bounds_by_minute(policy, history)
        while lane.actions and lane.actions[-1][0] < 0:  # they ran before the history began
            lane.bounds = lane.actions.pop()[1]
        start = lane.bounds.least if policy.start is None else policy.start
        lane.state = ScalingState(lane.bounds.clamp(start))
    return lane


def _bounds_by_minute(
    policy: ScaledPolicy, history: TableHistory
) -> list[tuple[int, CapacityBounds]]:
    """Return when scheduled actions change the bounds, latest first.

    Changes in the week before the history began have negative minutes.
    """
    found, bounds, start = [], policy.bounds, history.start
    for at, action in due_actions(policy.actions, start - _WEEK_SECONDS, history.end):
        bounds = action.bounds_after(bounds)
        # An action within a minute counts from the next one: units change at whole minutes.
        found.append((ceil((at - start) / MINUTE), bounds))
    return found[::-1]


def open_place(
    lanes: list[ReplayLane], scenario: Scenario, warm: tuple[float, float]
) -> ReplayPlace:
    """Return a table or an index at the start of a replay, and set the limits of its lanes."""
    place = ReplayPlace(lanes, 1, [0.0, 0.0], warm)
    for lane in lanes:
        place.highest[lane.kind] = float(units_of(lane))
    kept = ceil(max(warm[kind] / PARTITION_UNITS[kind] for kind in (READ, WRITE)))
    least = ON_DEMAND_PARTITIONS if place.is_on_demand else needed_partitions(place)
    place.partitions = max(least, kept)
    for lane in lanes:
        lane.limits = _limits(place, lane, scenario)
    return place


def _limits(place: ReplayPlace, lane: ReplayLane, scenario: Scenario) -> list[ReplayLimit]:
    rate = place.partitions * PARTITION_UNITS[lane.kind]
    if isinstance(lane.policy, OnDemandPolicy):
        rate = min(rate, QUOTA_UNITS)
        limits = [ReplayLimit(rate, rate, rate)]
        if lane.policy.maximum is not None:
            most = float(lane.policy.maximum)
            saved = max(1.0, most * (scenario.saved_seconds - 1.0))
            limits.append(ReplayLimit(most, most * BURST_SECONDS, saved))
        return limits
    units = float(units_of(lane))
    return [
        ReplayLimit(rate, rate, rate),
        ReplayLimit(units, units * BURST_SECONDS, units * scenario.saved_seconds),
    ]


def units_of(lane: ReplayLane) -> int:
    """Return the units in force, 0 for on-demand."""
    if isinstance(lane.policy, FixedPolicy):
        return lane.policy.units
    return 0 if lane.state is None else lane.state.units


def needed_partitions(place: ReplayPlace) -> int:
    """Return how many partitions the highest units so far need."""
    parts = sum(place.highest[kind] / PARTITION_UNITS[kind] for kind in (READ, WRITE))
    return max(1, ceil(parts - 1e-9))
