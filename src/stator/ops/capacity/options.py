"""The ways to pay for a table, each replayed: dollars a month, and what would be refused.

``capacity_options`` tries on-demand, on-demand with a maximum, fixed units, and auto scaling at
several targets with and without a schedule. It replays each under the best and the worst delays
that AWS's documentation allows (``SCENARIOS``), so every figure is a range. If an option would be
cheaper in the Infrequent Access class, it is listed in both classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Final, Literal

from stator.design.cost.prices import RegionPrices
from stator.model.heat.limits import ON_DEMAND_PARTITIONS, PARTITION_UNITS
from stator.model.limits import TABLE_READ_UNITS, TABLE_WRITE_UNITS
from stator.model.scaling.target_tracking import (
    USUAL_TARGET_PERCENT,
    CapacityBounds,
    TargetTracking,
    target_warning,
)
from stator.ops.capacity.bill import MonthlyBill, monthly_bill
from stator.ops.capacity.policies import (
    SCENARIOS,
    FixedPolicy,
    OnDemandPolicy,
    Policies,
    Policy,
    ScaledPolicy,
    TableClass,
)
from stator.ops.capacity.replay import DimensionReplay, Replay, hours_of, replay
from stator.ops.capacity.use_series import MINUTE, Dimension, TableHistory, UseSeries
from stator.ops.capacity.week.schedule import WeekSchedule, week_needs, week_schedule

OptionKind = Literal["now", "on_demand", "capped", "fixed", "scaled", "scheduled"]

TARGETS: Final = (50, 60, 70, 80, 90)
SCHEDULE_TARGET: Final = int(USUAL_TARGET_PERCENT)
SCHEDULE_DAYS: Final = 7
"""A schedule needs the use of a whole week."""
_CAP: Final = 1.25
"""A maximum for on-demand leaves a quarter above the highest minute of the history."""
_CEILING: Final = 3.0
"""Scaling may go up to three times what the highest minute needs."""
_LEAST_CEILING: Final = 10
"""What is not used yet may still grow a little."""
_QUOTAS: Final = {"read": TABLE_READ_UNITS, "write": TABLE_WRITE_UNITS}
_TRIED_SHARE: Final = 0.01
"""Least units are chosen that refuse less than this; whether that is acceptable is advice."""
_MINIMA: Final = (0.0, 0.5, 0.8, 0.95)
"""The least units that are tried for scaling: shares of minutes whose needs they cover."""


@dataclass(frozen=True, slots=True)
class FigureRange:
    """A figure under the best and the worst assumptions."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """The mean of the best and the worst case."""
        return (self.low + self.high) / 2

    @classmethod
    def of(cls, values: Iterable[float]) -> FigureRange:
        """Return the range from the smallest to the largest value."""
        found = list(values)
        return cls(min(found), max(found))


@dataclass(frozen=True, slots=True)
class CapacityOption:
    """One way to pay for a table, and what the history would have met under it.

    ``policies`` has one policy for each dimension; it is empty for what was measured ("now").
    ``bills`` and ``replays`` belong to the scenarios, the best first. ``throttled`` counts units
    that were asked for and refused, over the whole history.
    """

    name: str
    kind: OptionKind
    policies: Policies
    replays: tuple[Replay, ...]
    bills: tuple[MonthlyBill, ...]
    table_class: TableClass = "standard"
    schedules: tuple[tuple[Dimension, WeekSchedule], ...] = field(default=())

    @property
    def dollars(self) -> FigureRange:
        """Dollars a month, storage included."""
        return FigureRange.of(bill.total for bill in self.bills)

    @property
    def throttled_units(self) -> FigureRange:
        """The units that programs asked for and did not get, over the whole history."""
        return FigureRange.of(each.throttled_units for each in self.replays)

    @property
    def throttled_share(self) -> FigureRange:
        """Refused units as a share of what programs asked for."""
        return FigureRange.of(each.throttled_share for each in self.replays)

    @property
    def throttled_minutes(self) -> FigureRange:
        """How many minutes had any refusal."""
        return FigureRange.of(float(len(each.throttled_minutes())) for each in self.replays)

    @property
    def longest_run(self) -> int:
        """The most minutes in a row with refusals, in the worst scenario."""
        return max(each.longest_run for each in self.replays)

    @property
    def worst(self) -> Replay:
        """The replay that refuses most."""
        return max(self.replays, key=lambda each: each.throttled_units)

    @property
    def warning(self) -> str:
        """The warning of ``stator scale`` about an unusual target, or ''."""
        targets = {
            each.tracking.target_percent
            for each in self.policies.values()
            if isinstance(each, ScaledPolicy)
        }
        return next(filter(None, map(target_warning, sorted(targets))), "")

    @property
    def is_eligible(self) -> bool:
        """Whether the option may be recommended.

        On-demand with a maximum may not: it costs the same, and whether to have a maximum is the
        user's choice. Nor may a target that brings a warning.
        """
        return self.kind != "capped" and not self.warning

    @property
    def is_provisioned(self) -> bool:
        """Whether units are bought by the hour rather than by the request."""
        return any(each.capacity for each in self.replays[0].dimensions)


@dataclass(frozen=True, slots=True)
class OptionSearch:
    """The input of the options: a history, prices, and the share that may be refused.

    ``most_throttled`` is the share of the demanded units that may be refused. ``warm`` is the
    table's warm throughput, ``table_class`` its present class, and ``maxima`` the on-demand maxima
    that it has now. ``is_provisioned_now`` is its present billing mode, None if it is not known.
    """

    history: TableHistory
    prices: RegionPrices
    timezone: str = "UTC"
    most_throttled: float = 0.0001
    warm: tuple[float, float] = (0.0, 0.0)
    table_class: TableClass = "standard"
    is_provisioned_now: bool | None = None
    fixed: dict[Dimension, int] = field(default_factory=dict)
    progress: Callable[[float], None] = lambda share: None

    @property
    def dimensions(self) -> list[Dimension]:
        """The reads and writes of the table and of each index in the history."""
        return [each.dimension for each in self.history.series]

    @property
    def was_otherwise(self) -> bool:
        """Whether the table has another billing mode now than in the history."""
        return self.is_provisioned_now not in (None, self.history.was_provisioned)

    @property
    def least_warm(self) -> tuple[float, float]:
        """The read and write units that the table can certainly take at once.

        Its warm throughput only ever rises: a table that was provisioned with more units, or is
        on-demand, can take at least as many.
        """
        read, write = self.warm
        if not self.history.was_provisioned:
            known = [ON_DEMAND_PARTITIONS * units for units in PARTITION_UNITS]
            return max(read, known[0]), max(write, known[1])
        most = {each.dimension: max(each.provisioned, default=0.0) for each in self.history.series}
        return (
            max(read, most[Dimension(None, "read")]),
            max(write, most[Dimension(None, "write")]),
        )

    def option(
        self,
        name: str,
        kind: OptionKind,
        policies: Policies,
        schedules: tuple[tuple[Dimension, WeekSchedule], ...] = (),
    ) -> CapacityOption:
        """Replay an option under each scenario."""
        replays = tuple(
            replay(self.history, policies, scenario, warm=self.least_warm) for scenario in SCENARIOS
        )
        return self._billed(name, kind, policies, replays, schedules)

    def observed(self) -> CapacityOption:
        """Return the present capacity as an option, with the refusals that were measured."""
        found = Replay(tuple(_observed(each, self.history) for each in self.history.series))
        kind = "provisioned" if self.history.was_provisioned else "on-demand"
        when = "in the history" if self.was_otherwise else "now"
        return self._billed(f"{kind} ({when})", "now", {}, (found,), ())

    def _billed(
        self,
        name: str,
        kind: OptionKind,
        policies: Policies,
        replays: tuple[Replay, ...],
        schedules: tuple[tuple[Dimension, WeekSchedule], ...],
    ) -> CapacityOption:
        bills = tuple(
            monthly_bill(self.history, each, self.prices, self.table_class) for each in replays
        )
        return CapacityOption(name, kind, policies, replays, bills, self.table_class, schedules)

    def in_class(self, option: CapacityOption, table_class: TableClass) -> CapacityOption:
        """Return the same option in another table class."""
        bills = tuple(
            monthly_bill(self.history, each, self.prices, table_class) for each in option.replays
        )
        named = {"infrequent_access": "Infrequent Access", "standard": "Standard"}[table_class]
        return CapacityOption(
            f"{option.name}, {named}", option.kind, option.policies, option.replays, bills,
            table_class, option.schedules,
        )  # fmt: skip


def capacity_options(search: OptionSearch) -> list[CapacityOption]:
    """Return every option of a table. The first is the present capacity."""
    steps = list(_options(search))
    found = []
    for done, step in enumerate(steps):
        search.progress(done / len(steps))
        option = step()
        if option is not None:
            found.append(option)
    return found + _other_class(search, found)


def _options(search: OptionSearch) -> Iterable[Callable[[], CapacityOption | None]]:
    dimensions = search.dimensions
    yield search.observed
    if search.history.was_provisioned:
        yield lambda: search.option(
            "on-demand", "on_demand", dict.fromkeys(dimensions, OnDemandPolicy())
        )
    yield lambda: _capped(search)
    yield lambda: _fixed(search, "fixed, highest minute", 1.0)
    yield lambda: _fixed(search, "fixed, p99 minute", 0.99)
    if search.fixed:
        yield lambda: search.option(
            "fixed, as given",
            "fixed",
            {
                each: FixedPolicy(search.fixed.get(each) or _highest(search, each))
                for each in dimensions
            },
        )
    minima: dict[Dimension, int] = {}
    for target in TARGETS:
        yield lambda target=target: _scaled(search, target, minima)  # type: ignore[misc]
    yield lambda: _scheduled(search, minima)


def _capped(search: OptionSearch) -> CapacityOption:
    caps = {each: ceil(max(1.0, _rate(search, each, 1.0) * _CAP)) for each in search.dimensions}
    shown = {each.kind: cap for each, cap in caps.items() if each.index is None}
    name = f"on-demand, max {shown['read']:,}/{shown['write']:,}"
    return search.option(name, "capped", {each: OnDemandPolicy(cap) for each, cap in caps.items()})


def _highest(search: OptionSearch, dimension: Dimension) -> int:
    return max(1, ceil(_rate(search, dimension, 1.0)))


def _fixed(search: OptionSearch, name: str, share: float) -> CapacityOption:
    units = {each: max(1, ceil(_rate(search, each, share))) for each in search.dimensions}
    return search.option(name, "fixed", {each: FixedPolicy(value) for each, value in units.items()})


def _scaled(search: OptionSearch, target: int, minima: dict[Dimension, int]) -> CapacityOption:
    _find_minima(search, minima)
    policies = {
        each: scaled_policy(search, each, target, ceil(minima[each] * SCHEDULE_TARGET / target))
        for each in search.dimensions
    }
    return search.option(f"auto scaling {target} %", "scaled", policies)


def scaled_policy(
    search: OptionSearch, dimension: Dimension, target: float, least: int
) -> ScaledPolicy:
    """Return a scaling policy with bounds that leave room above the history's highest minute."""
    quota = _QUOTAS[dimension.kind]
    highest = _rate(search, dimension, 1.0) * 100.0 / target
    least = least if highest else 1
    most = min(quota, max(least, ceil(highest * _CEILING), _LEAST_CEILING))
    start = min(max(least, ceil(_first_need(search, dimension, target))), most)
    return ScaledPolicy(TargetTracking(target), CapacityBounds(min(least, most), most), start=start)


def _first_need(search: OptionSearch, dimension: Dimension, target: float) -> float:
    """Return the units that the first minutes need, as if scaling had begun before the history."""
    first = search.history.of(dimension).demand()[:15]
    return sum(first) / max(1, len(first)) / MINUTE * 100.0 / target


def _find_minima(search: OptionSearch, minima: dict[Dimension, int]) -> None:
    """Find the least units of each dimension that cost least and refuse little."""
    for each in search.dimensions:
        if each not in minima:
            minima[each] = _minimum(search, each)


def _minimum(search: OptionSearch, dimension: Dimension) -> int:
    """Try least units from low to high, alone and in the worst scenario."""
    series = search.history.of(dimension)
    if not any(series.consumed) and not any(series.throttles):
        return 1
    alone = _alone(search.history, series)
    candidates = sorted(
        {
            max(1, ceil(_rate(search, dimension, share) * 100.0 / SCHEDULE_TARGET))
            for share in _MINIMA
        }
    )
    best = candidates[-1]
    cheapest = float("inf")
    for least in candidates:
        policies: dict[Dimension, Policy] = {
            each.dimension: scaled_policy(search, dimension, SCHEDULE_TARGET, least)
            if each.dimension == dimension
            else FixedPolicy(1)
            for each in alone.series
        }
        found = replay(alone, policies, SCENARIOS[-1], warm=search.least_warm).of(dimension)
        held = sum(units * share for units, share in found.hours)
        share = found.throttled_units / max(found.demanded_units, 1e-9)
        if share <= max(_TRIED_SHARE, search.most_throttled) and held < cheapest:
            best, cheapest = least, held
    return best


def _alone(history: TableHistory, series: UseSeries) -> TableHistory:
    """Return a history in which nothing but one dimension is used."""
    quiet = [0.0] * history.minutes
    place = series.dimension.index
    kept = tuple(
        each if each is series else UseSeries(each.dimension, quiet, quiet, quiet)
        for each in history.series
        if each.dimension.index in (None, place)
    )
    return TableHistory(history.table, history.start, kept, history.source_seconds)


def _scheduled(search: OptionSearch, minima: dict[Dimension, int]) -> CapacityOption | None:
    """Return scaling with a schedule for each dimension whose week has a shape, or None."""
    if search.history.days < SCHEDULE_DAYS:
        return None
    _find_minima(search, minima)
    policies: dict[Dimension, Policy] = {}
    schedules = []
    for each in search.dimensions:
        needs = week_needs(search.history, each, SCHEDULE_TARGET, search.timezone)
        schedule = week_schedule(needs, search.timezone)
        least = minima[each] if schedule.is_flat else schedule.base
        policy = scaled_policy(search, each, SCHEDULE_TARGET, least)
        if not schedule.is_flat:
            schedules.append((each, schedule))
            policy = ScaledPolicy(policy.tracking, policy.bounds, schedule.actions(), policy.start)
        policies[each] = policy
    if not schedules:
        return None
    name = f"scheduled scaling {SCHEDULE_TARGET} %"
    return search.option(name, "scheduled", policies, tuple(schedules))


def _other_class(search: OptionSearch, found: Sequence[CapacityOption]) -> list[CapacityOption]:
    """Return the options that cost less in the other table class, in that class."""
    other: TableClass = "infrequent_access" if search.table_class == "standard" else "standard"
    if other == "infrequent_access" and "ia_storage_gb_month" not in search.prices:
        return []
    changed = [search.in_class(each, other) for each in found]
    return [new for old, new in zip(found, changed) if new.dollars.high < old.dollars.low]


def _rate(search: OptionSearch, dimension: Dimension, share: float) -> float:
    """Return the units a second that cover a share of the minutes' demand."""
    ordered = sorted(search.history.of(dimension).demand())
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] / MINUTE


def _observed(series: UseSeries, history: TableHistory) -> DimensionReplay:
    each = series.units_per_request
    refused = [events * each for events in series.throttles]
    capacity: list[int] = []
    if history.was_provisioned:  # a time on-demand before that counts as the first units
        first = next((units for units in series.provisioned if units), 1.0)
        capacity = [round(units or first) for units in series.provisioned]
    return DimensionReplay(
        series.dimension,
        sum(series.consumed) + sum(refused),
        sum(series.consumed),
        refused,
        capacity,
        hours_of(capacity, history.start),
    )
