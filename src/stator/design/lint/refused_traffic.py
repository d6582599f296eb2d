"""The rule about traffic that will be throttled. It simulates the declared traffic.

Most designs have enough room, and a minute of simulation shows it. If a key or a limit is too small
for the declared rates, an hour is simulated, to see whether splits and growth help.

A hot key that ST101, ST102, ST104 or ST502 reports is not reported again.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from stator.design.declaration import Declaration
from stator.design.lint.facts import Facts
from stator.design.lint.finding import Finding
from stator.design.lint.partition_keys import hot_places
from stator.design.lint.writes import unsharded_counter
from stator.design.simulation import PatternHeat, Simulation, TrafficShape, simulate
from stator.design.table_settings import ProvisionedCapacity
from stator.model.heat.limits import QUOTA_UNITS
from stator.model.heat.throttle_cause import KEY_RANGE
from stator.model.quantities import amount

_QUICK: Final = TrafficShape(minutes=1)
_HOUR: Final = TrafficShape(minutes=60)
_MOST_UNITS: Final = 10 * QUOTA_UNITS
"""Read and write units a second above which nothing is simulated: no account has such quotas."""


def throttled(facts: Facts) -> Iterator[Finding]:
    asked = (each.units_per_call * each.requests_per_second for each in facts.plan.patterns)
    if sum(asked) > _MOST_UNITS:
        return
    design = _scaled(facts.design)
    quick = simulate(design, _QUICK, plan=facts.plan, cures=False)
    if not any(_is_short(each) for each in quick.patterns):
        return
    found = simulate(design, _HOUR, plan=facts.plan)
    known = hot_places(facts)
    counters = {finding.subject.partition(".")[0] for finding in unsharded_counter(facts)}
    for pattern in found.patterns:
        if pattern.healthy_after_minutes is not None or _is_reported(pattern, known, counters):
            continue
        yield _finding(facts, pattern, found)


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


def _finding(facts: Facts, pattern: PatternHeat, found: Simulation) -> Finding:
    reason = max(pattern.reasons, key=lambda each: pattern.reasons[each])
    message = (
        f"{pattern.name} is refused {pattern.steady_refused:.0%} of its {_calls(pattern)} even "
        f"after {found.minutes:g} minutes: {reason}"
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
