"""The three layouts of a design side by side: what each costs, and what else differs.

*single-table* puts all entities into one table. *aggregate* puts entities that are read together
into one table. *table-per-entity* gives each entity its own table. Lock files are ignored: each
layout is planned from scratch.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Final

from stator.design.declaration import Declaration, Layout
from stator.design.plan.plan import Plan
from stator.design.planner.planner import plan
from stator.errors import DesignError
from stator.model.quantities import about_dollars

_SHOWN: Final = 3
_NOTED: Final = 0.05
"""The share by which the size of items must differ to be shown."""
CONSEQUENCES: Final[dict[Layout, tuple[str, ...]]] = {
    "single-table": (
        "one table to create, watch, back up and restore; a restore brings back everything",
        "one stream with the changes of all entities, which every consumer reads and filters",
        "one table policy: teams are kept apart by the leading keys of their items",
        "all entities share one TTL attribute, one table class and one capacity",
    ),
    "aggregate": (
        "a table for each group of entities that is read together, with its own backups and stream",
        "IAM policies, capacity, table class and TTL attribute by group",
        "a team that owns a group can change it without the others",
    ),
    "table-per-entity": (
        "a table for each entity, with its own backups, stream, policy, capacity and TTL attribute",
        "entities that are read together need one request each",
        "most tables to create, watch and restore to the same moment",
    ),
}


@dataclass(frozen=True, slots=True)
class LayoutOption:
    """A design planned in one layout. ``plan`` is None if the layout is impossible."""

    layout: Layout
    plan: Plan | None
    refused: str
    """Why the layout is impossible; empty if it is possible."""

    @property
    def consequences(self) -> tuple[str, ...]:
        return CONSEQUENCES[self.layout]

    @property
    def tables(self) -> int:
        return 0 if self.plan is None else len(self.plan.tables)

    @property
    def indexes(self) -> int:
        return 0 if self.plan is None else sum(len(each.indexes) for each in self.plan.tables)

    @property
    def several_requests(self) -> tuple[str, ...]:
        """The read patterns that take more than one request for each call."""
        if self.plan is None:
            return ()
        reads = [each for each in self.plan.patterns if each.kind == "read"]
        return tuple(each.name for each in reads if len(each.steps) > 1)


def differences(own: Plan, other: Plan) -> tuple[str, ...]:
    """Return where the money of another layout differs, in words: item sizes and patterns.

    The patterns that differ most come first. Items differ in size because a table that holds one
    entity needs no copies of fields in generic keys.
    """
    before, after = ({each.name: each for each in plan.patterns} for plan in (own, other))
    changes = {
        name: after[name].dollars_per_month - before[name].dollars_per_month
        for name in sorted(before.keys() & after.keys())
    }
    largest = sorted(changes, key=lambda name: (-abs(changes[name]), name))[:_SHOWN]
    found = [
        f"{each.name}: items of {each.item_bytes:,.0f} instead of "
        f"{own.entity(each.name).item_bytes:,.0f} bytes"
        for each in other.entities
        if abs(each.item_bytes / own.entity(each.name).item_bytes - 1) >= _NOTED
        and any(each.name in step.entities for name in largest for step in after[name].steps)
    ]
    found += [
        f"{name}: {about_dollars(abs(changes[name]))} {'more' if changes[name] > 0 else 'less'}"
        for name in largest
        if abs(changes[name]) >= max(1.0, own.dollars_per_month * _NOTED / 10)
    ]
    return tuple(found)


def layout_options(design: Declaration) -> tuple[LayoutOption, ...]:
    """Return the design planned in each layout, the design's own first."""
    layouts = sorted(CONSEQUENCES, key=lambda each: each != design.layout)
    return tuple(_option(design, layout) for layout in layouts)


def _option(design: Declaration, layout: Layout) -> LayoutOption:
    other = copy.copy(design)
    other.layout, other.lock = layout, None
    try:
        return LayoutOption(layout, plan(other), "")
    except DesignError as error:
        return LayoutOption(layout, None, error.message)
