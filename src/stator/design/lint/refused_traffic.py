"""The rule about traffic that will be throttled. It simulates the declared traffic.

Most designs have enough room, and a minute of simulation shows it. If a key or a limit is too small
for the declared rates, an hour is simulated, to see whether splits and growth help. Each window of
a pattern is simulated from its start, for an hour at most: what ends with it was not cured.

A hot key that ST101, ST102, ST104 or ST502 reports is not reported again.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from stator.design.declaration import Declaration, Layout
from stator.design.lint.facts import Facts
from stator.design.lint.finding import Finding
from stator.design.lint.partition_keys import hot_places
from stator.design.lint.writes import unsharded_counter
from stator.design.patterns.daily_window import DAY_SECONDS, DailyWindow
from stator.design.plan.plan import TablePlan
from stator.design.planner.planner import plan as planned
from stator.design.simulation import PatternHeat, Simulation, TrafficShape, simulate
from stator.design.table_settings import ProvisionedCapacity
from stator.errors import DesignError
from stator.model.heat.limits import QUOTA_UNITS
from stator.model.heat.throttle_cause import ACCOUNT_LIMIT, KEY_RANGE
from stator.model.quantities import about_dollars, amount

_QUICK: Final = TrafficShape(minutes=1)
_MOST_UNITS: Final = 10 * QUOTA_UNITS
"""Read and write units a second above which nothing is simulated: no account has such quotas."""


def throttled(facts: Facts) -> Iterator[Finding]:
    asked = (each.units_per_call * each.requests_per_second for each in facts.plan.patterns)
    if sum(asked) > _MOST_UNITS:
        return
    design = _scaled(facts.design)
    known = hot_places(facts)
    counters = {finding.subject.partition(".")[0] for finding in unsharded_counter(facts)}
    told = set[str]()
    busy: list[_BusyPlace] | None = None
    for start in sorted({0, *(each.start for each in design.windows.values())}):
        quick = simulate(design, replace(_QUICK, start=start), plan=facts.plan, cures=False)
        if not any(_is_short(each) for each in quick.patterns):
            continue
        if busy is None:
            busy = [each for place in facts.plan.tables for each in _busy_places(facts, place)]
            for place in busy:
                yield _above_quota(facts, place)
        opened = {name: each for name, each in design.windows.items() if each.start == start}
        shares = [each.share * DAY_SECONDS / 60 for each in opened.values()]
        minutes = max(1.0, min([60.0, *shares]))
        found = simulate(design, TrafficShape(minutes=minutes, start=start), plan=facts.plan)
        for pattern in found.patterns:
            is_told = pattern.name in told or _is_reported(pattern, known, counters)
            if is_told or pattern.healthy_after_minutes is not None:
                continue
            if busy and _main_reason(pattern).endswith(ACCOUNT_LIMIT):
                continue  # one cause, one finding
            told.add(pattern.name)
            yield _finding(facts, pattern, found, opened)


@dataclass(frozen=True, slots=True)
class _BusyPlace:
    """A table or an index that is asked for more units than the quota of a table."""

    table: TablePlan
    index: str | None
    kind: Literal["read", "write"]
    units: dict[str, float]
    """The units that each entity takes, the busiest first."""

    @property
    def name(self) -> str:
        return self.table.name if self.index is None else f"{self.table.name}/{self.index}"


def _busy_places(facts: Facts, table: TablePlan) -> Iterator[_BusyPlace]:
    settings = facts.design.settings
    if settings is not None and settings.capacity is not None:
        return  # the quota bounds what is provisioned
    for index in (None, *(each.name for each in table.indexes if each.kind == "GSI")):
        writes, reads = dict[str, float](), dict[str, float]()
        for use in facts.plan.uses:
            if (use.table, use.index) == (table.name, index):
                found = writes if use.kind == "write" else reads
                found[use.entity] = found.get(use.entity, 0.0) + use.units
        for _, plan in facts.planned_reads():
            for step in plan.steps:
                if (step.table, step.index) == (table.name, index):
                    name = " and ".join(step.entities)
                    units = step.units * plan.requests_per_second
                    reads[name] = reads.get(name, 0.0) + units
        kinds: list[tuple[Literal["read", "write"], dict[str, float]]] = [
            ("write", writes), ("read", reads),
        ]  # fmt: skip
        for kind, found in kinds:
            if sum(found.values()) > QUOTA_UNITS:
                busiest = sorted(found.items(), key=lambda each: (-each[1], each[0]))
                yield _BusyPlace(table, index, kind, dict(busiest))


def _above_quota(facts: Facts, place: _BusyPlace) -> Finding:
    shown = [f"{name} {amount(units)}" for name, units in place.units.items() if units >= 1]
    fix = f"ask AWS for a higher quota of {place.name}"
    layout = _fitting_layout(facts, place)
    if layout is not None:
        fix = f"{layout}; or {fix}"
    return facts.of(
        "table",
        "ST107",
        "warning",
        place.name,
        f"{place.name} is asked for {amount(sum(place.units.values()))} {place.kind} units a "
        f"second ({', '.join(shown[:4])}), and the quota of a table or index is "
        f"{QUOTA_UNITS:,.0f}: the rest is refused",
        fix,
    )


def _fitting_layout(facts: Facts, place: _BusyPlace) -> str | None:
    """Return the layout that divides a table so that each part stays below the quota, in words."""
    if place.index is not None or len(place.table.entities) < 2:
        return None
    layouts: tuple[Layout, ...] = ("aggregate", "table-per-entity")
    for layout in layouts:
        other = copy.copy(facts.design)
        other.layout, other.lock = layout, None
        try:
            plan = planned(other)
        except DesignError:
            continue
        if any(
            True for table in plan.tables for _ in _busy_places(replace(facts, plan=plan), table)
        ):
            continue
        change = plan.dollars_per_month - facts.plan.dollars_per_month
        price = (
            "the same"
            if abs(change) < 1
            else (f"{about_dollars(abs(change))} {'more' if change > 0 else 'less'}")
        )
        return (
            f'divide it with layout="{layout}", whose {len(plan.tables)} tables each stay below '
            f"the quota and cost {price} a month together"
        )
    return None


def _main_reason(pattern: PatternHeat) -> str:
    return max(pattern.reasons, key=lambda each: pattern.reasons[each])


def _is_short(pattern: PatternHeat) -> bool:
    """Whether calls are refused for a reason that splits of partitions do not remove.

    That is a limit of a table or index, or one key that gets more units than a partition serves.
    """
    if any(not reason.endswith(KEY_RANGE) for reason in pattern.reasons):
        return True
    return pattern.hottest is not None and pattern.hottest.units > pattern.hottest.limit


def _is_reported(
    pattern: PatternHeat, known: set[tuple[str, str | None]], counters: set[str]
) -> bool:
    if not all(reason.endswith(KEY_RANGE) for reason in pattern.reasons):
        return False
    key = pattern.hottest
    if key is not None and (key.table, key.index) in known:
        return True
    return pattern.cure is not None and pattern.cure.entity in counters


def _finding(
    facts: Facts, pattern: PatternHeat, found: Simulation, opened: Mapping[str, DailyWindow]
) -> Finding:
    """``opened`` has the windows that begin with the simulation."""
    reason = _main_reason(pattern)
    when = f"even after {found.minutes:g} minutes"
    if opened:
        windows = " and ".join(f"{name} ({window})" for name, window in opened.items())
        when = f"in the window of {windows}, {when}"
    message = (
        f"{pattern.name} is refused {pattern.steady_refused:.0%} of its {_calls(pattern)} "
        f"{when}: {reason}"
    )
    key = pattern.hottest
    if reason.endswith(KEY_RANGE) and key is not None:
        message += (
            f", because {key.key} gets {amount(key.units)} {key.kind} units a second, and a "
            f"partition serves {key.limit:,.0f}"
        )
    entity = pattern.name.removeprefix("writes of ")
    if entity in facts.by_name:
        return facts.on_entity("ST107", "warning", facts.by_name[entity], message, pattern.advice)
    return facts.on_pattern("ST107", "warning", pattern.name, message, pattern.advice)


def _calls(pattern: PatternHeat) -> str:
    return f"{amount(pattern.calls_per_second)} calls a second"


def _scaled(design: Declaration) -> Declaration:
    """Return the design with capacity set to the maximum that auto scaling may reach."""
    settings = design.settings
    if settings is None or settings.capacity is None:
        return design
    found = copy.copy(design)
    found.settings = replace(settings, capacity=_most(settings.capacity))
    return found


def _most(capacity: ProvisionedCapacity) -> ProvisionedCapacity:
    return replace(
        capacity,
        read_units=capacity.most_read_units or capacity.read_units,
        write_units=capacity.most_write_units or capacity.write_units,
        indexes={name: _most(own) for name, own in capacity.indexes.items()},
    )
