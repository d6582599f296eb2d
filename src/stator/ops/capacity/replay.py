"""The replay: what a history would have cost, and how much of it DynamoDB would have refused.

``replay`` runs a table's history, minute by minute, against a policy for each dimension. It knows
what a spreadsheet leaves out:

- Each table and index has a token bucket of 300 seconds for reads and one for writes, as in
  ``stator.model.heat``. A partition serves no more than 3,000 read and 1,000 write units a second.
- Auto scaling sees only what was served, hears of it late, and needs time to change units
  (``Scenario``). ``stator.model.scaling`` makes its decisions. While a table or an index changes,
  it takes no second change; while a table changes, neither do its indexes. Decreases have their
  daily limit, which reads and writes share.
- If a global index has no write units left, writes to the table are refused.
- An on-demand table serves at first what its partitions serve, and twice its peak half an hour
  after that peak.

What it assumes: traffic is even over the keys, and over the seconds of a minute, or over a share of
them if ``peak_factor`` is above 1. Refused requests are not tried again. Each write puts entries
into each index, in proportion to the units of the minute.

Under these assumptions the result equals what the embedded engine admits, unit for unit, also if
its own Application Auto Scaling changes the units (``test_replay_and_engine.py`` and
``test_replay_and_scaling.py`` in tests/ops/capacity).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from stator.model.heat.limits import (
    GROWTH_SECONDS,
    PARTITION_UNITS,
    QUOTA_UNITS,
    READ,
    WRITE,
)
from stator.model.scaling.target_tracking import (
    LOW_MINUTES,
    ScalingDecision,
    decide,
    pull_inside,
)
from stator.ops.capacity.policies import (
    OnDemandPolicy,
    Policies,
    Scenario,
)
from stator.ops.capacity.replay_lane import (
    NOTHING,
    ReplayLane,
    ReplayPlace,
    needed_partitions,
    open_lane,
    open_place,
    units_of,
)
from stator.ops.capacity.use_series import MINUTE, Dimension, TableHistory

_HOUR_MINUTES = 60


@dataclass(frozen=True, slots=True)
class DimensionReplay:
    """The outcome of a replay for one dimension.

    Throttled units include those refused for an index's sake.

    ``capacity`` has the units a second in force in each minute; it is empty for on-demand.
    ``hours`` has a pair for each clock hour: the most units in force, which AWS bills, and the
    share of the hour that the history covers.
    """

    dimension: Dimension
    demanded_units: float
    served_units: float
    throttled: Sequence[float]
    capacity: Sequence[int] = ()
    hours: Sequence[tuple[int, float]] = ()

    @property
    def throttled_units(self) -> float:
        """The refused units of all minutes."""
        return sum(self.throttled)


@dataclass(frozen=True, slots=True)
class Replay:
    """A replay of one table's history: an outcome for each dimension."""

    dimensions: tuple[DimensionReplay, ...]
    changes: int = 0

    def of(self, dimension: Dimension) -> DimensionReplay:
        """Return the outcome for one dimension."""
        return next(each for each in self.dimensions if each.dimension == dimension)

    @property
    def front(self) -> tuple[DimensionReplay, ...]:
        """The dimensions that programs ask for units of: all but the writes to indexes."""
        return tuple(each for each in self.dimensions if each.dimension.is_front)

    @property
    def demanded_units(self) -> float:
        """The units that programs asked for."""
        return sum(each.demanded_units for each in self.front)

    @property
    def throttled_units(self) -> float:
        """The units that programs asked for and did not get."""
        return sum(each.throttled_units for each in self.front)

    @property
    def throttled_share(self) -> float:
        """Refused units as a share of what programs asked for."""
        demanded = self.demanded_units
        return self.throttled_units / demanded if demanded else 0.0

    def throttled_minutes(self) -> list[int]:
        """Return the minutes in which anything was refused, counted from the start."""
        found = {
            minute
            for each in self.front
            for minute, units in enumerate(each.throttled)
            if units > NOTHING
        }
        return sorted(found)

    @property
    def longest_run(self) -> int:
        """The most minutes in a row in which anything was refused."""
        longest = run = 0
        before = -2
        for minute in self.throttled_minutes():
            run = run + 1 if minute == before + 1 else 1
            longest, before = max(longest, run), minute
        return longest


def replay(
    history: TableHistory,
    policies: Policies,
    scenario: Scenario | None = None,
    *,
    factor: float = 1.0,
    warm: tuple[float, float] = (0.0, 0.0),
) -> Replay:
    """Replay a history against a policy for each of its dimensions.

    ``factor`` multiplies the demand. ``warm`` is the table's warm throughput, in read and write
    units a second; 0 is what a new table has.
    """
    return _Run(history, policies, scenario or Scenario(), factor, warm).result()


class _Run:
    def __init__(
        self,
        history: TableHistory,
        policies: Policies,
        scenario: Scenario,
        factor: float,
        warm: tuple[float, float],
    ) -> None:
        self.history = history
        self.scenario = scenario
        self.seconds = max(1, MINUTE // scenario.peak_factor)
        self.changes = 0
        self.lanes = [
            open_lane(history, each.dimension, policies[each.dimension], scenario, factor)
            for each in history.series
        ]
        self.places = [
            open_place(
                [lane for lane in self.lanes if lane.dimension.index == index], scenario, warm
            )
            for index in (None, *history.indexes)
        ]
        writes = [lane for lane in self.lanes if lane.dimension.kind == "write"]
        # The table's writes first: what an index refuses, the table refuses.
        writes.sort(key=lambda lane: lane.dimension.index is not None)
        self.writes = writes
        self.reads = [lane for lane in self.lanes if lane.dimension.kind == "read"]

    # -- the minutes

    def result(self) -> Replay:
        for minute in range(self.history.minutes):
            self._steer(minute)
            for lane in self.reads:
                units = lane.demand[minute]
                self._note(lane, units, lane.serve(units, self.seconds))
            self._write(minute)
            self._grow(minute)
        return Replay(tuple(self._outcome(lane) for lane in self.lanes), self.changes)

    def _write(self, minute: int) -> None:
        lanes = self.writes
        if len(lanes) == 1 or all(
            lane.has_plenty(lane.demand[minute], self.seconds)
            or lane.can_serve(lane.demand[minute], self.seconds)
            for lane in lanes
        ):
            for lane in lanes:
                units = lane.demand[minute]
                self._note(lane, units, lane.serve(units, self.seconds))
            return
        asked = [lane.demand[minute] for lane in lanes]
        for lane, units, served in zip(lanes, asked, self._write_together(lanes, asked)):
            self._note(lane, units, served)

    def _write_together(self, lanes: list[ReplayLane], asked: list[float]) -> list[float]:
        """Serve the writes of a table and its indexes second by second.

        In each second, the tightest of their limits decides which share of the writes passes.
        """
        served = [0.0] * len(lanes)
        seconds = self.seconds
        shares = [divmod(units, seconds) for units in asked]
        # A limit that saves nothing up and is never reached does not matter.
        limits = [
            (at, limit)
            for at, lane in enumerate(lanes)
            for limit in lane.limits
            if limit.size > limit.rate or shares[at][0] + 1.0 > limit.rate
        ]
        for second in range(seconds):
            now = [each + min(1.0, max(0.0, rest - second)) for each, rest in shares]
            passing = 1.0
            for at, limit in limits:
                if now[at] > limit.level:
                    passing = min(passing, limit.level / now[at])
            for at, limit in limits:
                limit.level = min(limit.size, limit.level - now[at] * passing + limit.rate)
            for at, units in enumerate(now):
                served[at] += units * passing
        for _, limit in limits:
            limit.level = min(limit.size, limit.level + (MINUTE - seconds) * limit.rate)
        return served

    def _note(self, lane: ReplayLane, units: float, served: float) -> None:
        refused = units - served
        lane.served.append(served)
        lane.throttled.append(refused if refused > NOTHING else 0.0)
        if not isinstance(lane.policy, OnDemandPolicy):
            lane.capacity.append(units_of(lane))

    def _grow(self, minute: int) -> None:
        """Let an on-demand table grow to twice its peak, half an hour after the peak."""
        for place in self.places:
            if not place.is_on_demand:
                continue
            if place.growth and place.growth[0][0] <= minute:
                place.partitions = max(place.partitions, place.growth.pop(0)[1])
                for lane in place.lanes:
                    rate = min(place.partitions * PARTITION_UNITS[lane.kind], QUOTA_UNITS)
                    lane.limits[0].renew(rate)
            is_higher = False
            for lane in place.lanes:
                average = lane.served[minute] / MINUTE
                if average > place.peak[lane.kind]:
                    place.peak[lane.kind] = average
                    is_higher = True
            if is_higher:
                wanted = ceil(
                    max(2 * place.peak[kind] / PARTITION_UNITS[kind] for kind in (READ, WRITE))
                    - 1e-9
                )
                known = place.growth[-1][1] if place.growth else place.partitions
                if wanted > known:
                    place.growth.append((minute + 1 + int(GROWTH_SECONDS) // MINUTE, wanted))

    # -- auto scaling

    def _steer(self, minute: int) -> None:
        table = self.places[0]
        for place in self.places:
            self._finish(place, minute)
            self._run_actions(place, minute)
            # An UPDATING table refuses every UpdateTable, those for its indexes included.
            if place.pending is None and table.pending is None:
                self._ask(place, minute)
                self._finish(place, minute)

    def _finish(self, place: ReplayPlace, minute: int) -> None:
        if place.pending is None or place.pending[0] > minute:
            return
        at, lane, decision = place.pending
        place.pending = None
        assert lane.state is not None
        lane.state = lane.state.after(decision, self._time(at))
        lane.limits[1].resize(float(decision.units))
        place.highest[lane.kind] = max(place.highest[lane.kind], float(decision.units))
        wanted = needed_partitions(place)
        if wanted > place.partitions:
            place.partitions = wanted
            for each in place.lanes:
                each.limits[0].renew(wanted * PARTITION_UNITS[each.kind])

    def _run_actions(self, place: ReplayPlace, minute: int) -> None:
        for lane in place.lanes:
            while lane.actions and lane.actions[-1][0] <= minute:
                lane.bounds = lane.actions.pop()[1]

    def _ask(self, place: ReplayPlace, minute: int) -> None:
        """Begin the change that is wanted now. A table or index changes one thing at a time."""
        now = self._time(minute)
        found: list[tuple[ReplayLane, ScalingDecision]] = []
        for lane in place.lanes:
            decision = self._decision(place, lane, minute, now)
            if decision is not None and decision.not_before <= now:
                found.append((lane, decision))
        if not found:
            return
        lane, decision = min(found, key=lambda each: each[1].direction == "in")
        self.changes += 1
        if decision.direction == "in":
            place.decreases = place.decreases.after(now)
        is_new = decision.units > max(place.highest[lane.kind], place.warm[lane.kind])
        delay = self.scenario.growth_minutes if is_new else self.scenario.update_minutes
        place.pending = (minute + delay, lane, decision)

    def _decision(
        self, place: ReplayPlace, lane: ReplayLane, minute: int, now: float
    ) -> ScalingDecision | None:
        if lane.state is None or lane.tracking is None or lane.bounds is None:
            return None
        units = lane.state.units
        if not lane.bounds.least <= units <= lane.bounds.most:
            return pull_inside(lane.bounds, units, now, place.decreases)
        # The minutes known by now. What the last of them says decides quickly in most minutes.
        known = minute - self.scenario.alarm_minutes
        if known < 1:
            return None
        last = lane.served[known - 1]
        if last <= lane.tracking.high_threshold(units) and (
            units == lane.bounds.least or last >= lane.tracking.low_threshold(units)
        ):
            return None
        used = lane.served[max(0, known - LOW_MINUTES) : known]
        return decide(lane.tracking, lane.bounds, lane.state, used, now, place.decreases)

    def _time(self, minute: int) -> float:
        return float(self.history.start + minute * MINUTE)

    # -- the outcome

    def _outcome(self, lane: ReplayLane) -> DimensionReplay:
        return DimensionReplay(
            lane.dimension,
            sum(lane.demand),
            sum(lane.served),
            lane.throttled,
            lane.capacity,
            hours_of(lane.capacity, self.history.start),
        )


def hours_of(capacity: Sequence[int], start: int) -> list[tuple[int, float]]:
    """Return the highest capacity of each clock hour, and the share of the hour in the history."""
    hours: list[tuple[int, float]] = []
    at = 0
    while at < len(capacity):
        left = _HOUR_MINUTES - (start // MINUTE + at) % _HOUR_MINUTES
        part = capacity[at : at + left]
        hours.append((max(part), len(part) / _HOUR_MINUTES))
        at += left
    return hours
