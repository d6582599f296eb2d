"""The plans of reads: the requests for one need, or for several needs that are read together.

Each plan has its reasons, warnings and price.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from typing import Any

from stator.design.capacity_units import MONTH_SECONDS
from stator.design.entities.conditions import Condition
from stator.design.entities.entity import Entity, info
from stator.design.patterns.filter_writer import (
    FilterWriter,
)
from stator.design.patterns.param import Param
from stator.design.patterns.pattern import Pattern
from stator.design.plan import key_text as keys
from stator.design.plan.guard_text import GUARD, guard_prefix
from stator.design.plan.own_table import own_table
from stator.design.plan.plan import (
    GuardLookup,
    KeyConditionPart,
    PatternPlan,
    Step,
)
from stator.design.plan.templates import Filter, Part, Template, text
from stator.design.planner.assignment import EntityLayout
from stator.design.planner.blueprint.key_conditions import (
    Slot,
    condition_for,
    group_partition,
    partitions_natively,
)
from stator.design.planner.blueprint.reasons import (
    group_reasons,
    latency_of,
    latency_warnings,
    read_reasons,
    read_warnings,
    runner_up,
)
from stator.design.planner.blueprint.slot_names import SlotNames
from stator.design.planner.choices import EntityChoices
from stator.design.planner.cost_model import CostModel, Placement
from stator.design.planner.distinct_values import Guess
from stator.design.planner.keys.key_labels import KeyLabels
from stator.design.planner.keys.key_parts import (
    field_part,
    partition_parts,
    reaches,
    same_partition,
    same_stretch,
    sort_parts,
)
from stator.design.planner.needs.need import Need, TogetherGroup, looked_up_by_guard
from stator.design.planner.paths.access_path import AccessPath
from stator.design.planner.paths.served_need import ServedNeed, with_order
from stator.design.planner.search import GroupLayout
from stator.design.planner.weights import (
    READ_UNIT_DOLLARS,
)
from stator.model.limits import READ_UNIT_BYTES
from stator.model.quantities import cents


class ReadPlans:
    """Writes the plans of the reads of one table."""

    def __init__(
        self,
        table: str,
        choices: list[EntityChoices],
        layouts: dict[type[Entity], EntityLayout],
        names: SlotNames,
        costs: CostModel,
        labels: KeyLabels,
        reads: dict[str, Pattern[..., Any]],
        discriminator: str | None,
        guard_table: str,
    ) -> None:
        self.table = table
        self.guard_table = guard_table
        self.choices = choices
        self.layouts = layouts
        self.base_slots, self.slots = names.base, names.slots
        self.costs = costs
        self.labels = labels
        self.reads = reads
        self.discriminator = discriminator
        self._partitions: dict[AccessPath, tuple[Part, ...]] = {}
        self._sorts: dict[AccessPath, tuple[Part, ...]] = {}

    def _partition_parts(self, path: AccessPath) -> tuple[Part, ...]:
        """Return the parts of a path's partition key, computed once for each path."""
        if path not in self._partitions:
            self._partitions[path] = partition_parts(path, self.labels)
        return self._partitions[path]

    def _sort_parts(self, path: AccessPath) -> tuple[Part, ...]:
        if path not in self._sorts:
            self._sorts[path] = sort_parts(path, self.labels)
        return self._sorts[path]

    # -- one entity

    def need(self, choices: EntityChoices, at: int) -> PatternPlan:
        need, placement = choices.needs[at], self.layouts[choices.entity].assigned[at]
        if placement is None and self.costs.guard_units(need) is not None:
            return self._guard(need)
        if placement is None:
            return self._scan(choices, at)
        served = choices.serve(placement, need)
        assert served is not None
        slot = self.base_slots[choices.entity] if placement.is_base else self.slots[placement]
        strangers = self._strangers(placement, slot)
        step = self._step(served, placement, slot, [path for _, path in strangers])
        return self._pattern(
            need.name,
            (step,),
            read_reasons(served, placement, step, self.costs),
            read_warnings(served, placement, step, self.costs, [entity for entity, _ in strangers]),
            runner_up(choices, self.layouts[choices.entity], at),
            self.costs.guesses(served),
        )

    def _strangers(self, placement: Placement, slot: Slot) -> list[tuple[type[Entity], AccessPath]]:
        """Return the other entities whose items a query of this placement may also find.

        Each entity is paired with its path. Generated keys of two entities differ in their labels,
        but handwritten keys may overlap.
        """
        if placement.projection != "ALL":
            return []
        if placement.path.handwritten is None and (slot.native or slot.kind == "LSI"):
            return []
        sort = self._sort_parts(placement.path)
        return [
            (entity, path)
            for entity, path in self._in_partition(
                placement.path, slot.index, {placement.path.entity}
            )
            if same_stretch(sort, self._sort_parts(path))
        ]

    def _in_partition(
        self, path: AccessPath, index: str | None, wanted: set[type[Entity]]
    ) -> list[tuple[type[Entity], AccessPath]]:
        """Return the entities other than ``wanted`` whose items may be in the same partition.

        Each entity is paired with its path. ``index`` is None for the table itself.
        """
        partition = self._partition_parts(path)
        found = []
        for entity, layout in self.layouts.items():
            held = (
                [layout.base]
                if index is None
                else [one for one in layout.opened if self.slots[one].index == index]
            )
            if entity not in wanted:
                paths = [one.path for one in held]
                found += [
                    (entity, each)
                    for each in paths
                    if partitions_natively(path)
                    or partitions_natively(each)
                    or same_partition(partition, self._partition_parts(each))
                ]
        return sorted(found, key=lambda each: info(each[0]).name)

    def _step(
        self, served: ServedNeed, placement: Placement, slot: Slot, strangers: list[AccessPath]
    ) -> Step:
        need, entity = served.need, served.need.entity
        units = self.costs.read_units(served, placement) or 0.0
        base = self.layouts[entity].base
        condition, *others = [
            condition_for(each, slot, base, self.labels) for each in served.one_by_one()
        ]
        early, late = self.costs.unkeyed(served, placement)
        writer, afterwards = FilterWriter(), FilterWriter()
        for each in early.conditions:
            writer.add(each, info(entity))
        for each in late.conditions:
            afterwards.add(each, info(entity))
        is_get = (
            placement.is_base
            and served.whole_key
            and not others
            and not self._lists(served)
            and not writer.done()
            and not need.is_count
        )
        if is_get:
            return Step(
                "GetItem", self.table, (info(entity).name,), key=condition.tests,
                consistent=need.consistent, units=round(units, 4),
            )  # fmt: skip
        if strangers:
            if self.discriminator is not None:  # otherwise the reader tells them by their keys
                writer.add_type(self.discriminator, [info(entity).name])
            units = max(units, self.costs.crowded_units(served, placement, strangers))
        covered = self.costs.covers(placement, need) and not late
        return Step(
            "Query",
            self.table,
            (info(entity).name,),
            index=slot.index,
            key=condition.tests,
            filter=writer.done(),
            forward=served.in_memory or self._forward(need, placement.path),
            limit=need.limit if isinstance(need.limit, int) else None,
            limit_param=need.limit.name if isinstance(need.limit, Param) else None,
            consistent=need.consistent,
            is_count=need.is_count,
            shards=condition.shards,
            fetch=() if covered else self._fetch_keys(entity),
            units=round(units, 4),
            alternatives=tuple(each.tests for each in others),
            order=need.order,
            then=need.then,
            lists=self._lists(served),
            in_memory=served.in_memory,
            descending=need.descends if served.in_memory or need.is_mixed else (),
            fetched_filter=afterwards.done(),
        )

    @staticmethod
    def _lists(served: ServedNeed) -> tuple[str, ...]:
        """Return the names of the list arguments in the key condition."""
        fields = (*served.path.partition, *served.prefix)
        equal = served.need.equal
        sources = [equal[name] for name in fields if name in equal]
        return tuple(str(each.param) for each in sources if each.listed)

    def _forward(self, need: Need, path: AccessPath) -> bool:
        if not need.sequence:
            return need.descending == path.inverted
        first = need.sequence[0]
        return (first in need.descends) == path.turns(first)

    def _fetch_keys(self, entity: type[Entity]) -> tuple[str, ...]:
        slot = self.base_slots[entity]
        return (*slot.partition, *slot.sort)

    def _guard(self, need: Need) -> PatternPlan:
        """Return the plan of a lookup by a unique field: its guard, and then the item."""
        field = looked_up_by_guard(need)
        assert field is not None
        known, own = info(need.entity), own_table("")
        prefix = guard_prefix(known.name, field)
        value = replace(
            field_part(need.entity, field), kind="param", value=str(need.equal[field].param)
        )
        step = Step(
            "GetItem",
            self.table,
            (known.name,),
            key=(
                KeyConditionPart(own.partition, "=", (Template((text(prefix), value)),)),
                KeyConditionPart(str(own.sort), "=", (Template((text(GUARD),)),)),
            ),
            consistent=need.consistent,
            fetch=self._fetch_keys(need.entity),
            units=round(self.costs.guard_units(need) or 0.0, 4),
            guard=GuardLookup(self.guard_table, field, prefix),
        )
        reason = (
            f"{known.name}.{field} is unique: its guard names the item, so no index is needed; "
            f"the item is fetched afterwards"
        )
        return self._pattern(need.name, (step,), [reason], [], "")

    def _scan(self, choices: EntityChoices, at: int) -> PatternPlan:
        need = choices.needs[at]
        writer = FilterWriter()
        tests: list[Condition] = [
            *need.equal_tests.values(),
            *(test for span in need.spans for test in span.tests),
        ]
        for each in (*tests, *need.filters, *with_order(need)):
            writer.add(each, info(need.entity))
        if self.discriminator:
            writer.add_type(self.discriminator, [choices.name])
        total = sum(
            self.costs.estimates.volume(each.entity) * self.costs.item_bytes(each.entity)
            for each in self.choices
        )
        units = total / READ_UNIT_BYTES * (1.0 if need.consistent else 0.5)
        step = Step(
            "Scan",
            self.table,
            (choices.name,),
            filter=writer.done(),
            consistent=need.consistent,
            is_count=need.is_count,
            limit=need.limit if isinstance(need.limit, int) else None,
            limit_param=need.limit.name if isinstance(need.limit, Param) else None,
            units=round(units, 4),
            order=need.sequence[0] if need.sequence else None,
            then=need.sequence[1:],
            in_memory=bool(need.sequence),
            descending=need.descends,
        )
        dollars = units * need.rps * MONTH_SECONDS * READ_UNIT_DOLLARS
        warning = (
            f"SCAN: every call reads the whole table, {units:,.0f} read units, "
            f"${cents(dollars)} a month"
        )
        reasons = ["allow_scan=True, and no key serves it at a lower price"]
        guesses = [
            guess
            for each in self.choices
            for guess in self.costs.estimates.volume_guess(each.entity)
        ]
        return self._pattern(need.name, (step,), reasons, [warning], "", guesses)

    # -- several entities at once

    def group(self, placed: GroupLayout) -> PatternPlan:
        group = placed.group
        paths = tuple(each.path for each in placed.placements)
        slot = (
            self.base_slots[paths[0].entity] if placed.in_base else self.slots[placed.placements[0]]
        )
        first = group.members[0]
        partition = group_partition(paths[0], first, self.labels)
        neighbours = self._in_partition(paths[0], slot.index, {path.entity for path in paths})
        sort, inside = self._label_range(slot, paths, neighbours)
        strangers = list(dict.fromkeys(entity for entity, _ in inside))
        units = self.costs.group_units(group, paths, consistent=first.consistent)
        if inside:
            units = max(
                units, self.costs.crowded_group_units(group, paths, [path for _, path in inside])
            )
        ask = group.pattern.trace()
        step = Step(
            "Query",
            self.table,
            tuple(info(path.entity).name for path in paths),
            index=slot.index,
            key=(KeyConditionPart(slot.partition[0], "=", (Template(partition),)), *sort),
            filter=self._group_filter(placed, paths, bool(strangers)),
            forward=ask.descending == any(path.inverted for path in paths),
            limit=ask.limit if isinstance(ask.limit, int) else None,
            limit_param=ask.limit.name if isinstance(ask.limit, Param) else None,
            consistent=first.consistent,
            shards=paths[0].shards,
            units=round(units, 4),
            order=next(
                (member.order for member in group.members if member.order is not None), None
            ),
        )
        reasons, warnings = group_reasons(placed, step, strangers)
        guesses = self.costs.group_guesses(group, paths)
        return self._pattern(group.name, (step,), reasons, warnings, "", guesses)

    def _group_filter(
        self, placed: GroupLayout, paths: tuple[AccessPath, ...], only_types: bool
    ) -> Filter | None:
        writer = FilterWriter()
        if self.discriminator is None:
            return None  # the reader tells entities apart by their keys
        if only_types:
            writer.add_type(self.discriminator, [info(path.entity).name for path in paths])
        for member, path in zip(placed.group.members, paths):
            left = [test for name, test in member.equal_tests.items() if name not in path.partition]
            left += [test for span in member.spans for test in span.tests]
            conditions: list[Condition] = [*left, *member.filters]
            if conditions:
                known = info(member.entity)
                writer.add_unless_other(self.discriminator, known.name, conditions, known)
        return writer.done()

    def _label_range(
        self,
        slot: Slot,
        wanted: tuple[AccessPath, ...],
        neighbours: list[tuple[type[Entity], AccessPath]],
    ) -> tuple[tuple[KeyConditionPart, ...], list[tuple[type[Entity], AccessPath]]]:
        """Return the range of sort keys from the first to the last label of ``wanted``.

        Also returns the ``neighbours`` whose items lie in that range: entities that the query reads
        although the pattern does not ask for them.
        """
        if not neighbours or any(path.handwritten for path in wanted):
            return (), neighbours
        labels = sorted(self.labels.entity(path.entity) for path in wanted)
        low, high = labels[0], labels[-1] + keys.AFTER
        inside = [each for each in neighbours if reaches(self._sort_parts(each[1]), low, high)]
        test = KeyConditionPart(
            slot.sort[0], "BETWEEN", (Template((text(low),)), Template((text(high),)))
        )
        return (test,), inside

    # -- what they have in common

    def _pattern(
        self,
        name: str,
        steps: tuple[Step, ...],
        reasons: list[str],
        warnings: list[str],
        second: str,
        guesses: Iterable[Guess] = (),
    ) -> PatternPlan:
        pattern = self.reads[name]
        units = sum(step.units for step in steps)
        monthly = units * pattern.traffic.rps * MONTH_SECONDS
        return PatternPlan(
            name,
            "read",
            steps,
            tuple(pattern.parameters),
            pattern.traffic.rps,
            round(units, 4),
            round(monthly, 2),
            round(monthly * READ_UNIT_DOLLARS, 4),
            latency_of(steps),
            example_call(pattern, steps),
            reasons=tuple(reasons),
            warnings=(
                *warnings,
                *latency_warnings(pattern.traffic.within_ms, steps),
                *_adaptive_warnings(pattern, steps),
            ),
            runner_up=second,
            guesses=tuple(dict.fromkeys(map(str, guesses))),
        )


def apart_plan(group: TogetherGroup, legs: list[PatternPlan]) -> PatternPlan:
    """Return the plan of a pattern that sends one request for each entity."""
    plan = reduce(PatternPlan.joined, legs)
    names = " and ".join(info(member.entity).name for member in group.members)
    reason = f"one request for each of {names}, side by side: cheaper than one partition for all"
    return replace(plan, reasons=(reason, *plan.reasons), runner_up="")


# --- examples -------------------------------------------------------------------------------------


def example_arguments(pattern: Pattern[..., Any], steps: tuple[Step, ...]) -> dict[str, Any]:
    """Return an example value for each argument of a pattern.

    The example has the annotated type, or the key's type if the annotation is of another one.
    """
    tests = [test for step in steps for each in step.conditions for test in each]
    parts = [part for test in tests for bound in test.bounds for part in bound.parts]
    parts += [each for part in parts for each in part.of]
    encodings = {part.value: part.encoding for part in reversed(parts) if part.kind == "param"}
    every_filter = [each for step in steps for each in step.filters]
    values = [each for one in every_filter for each in one.values]
    encodings |= {str(each.param): each.encoding for each in values if keys.is_part(each.encoding)}
    found: dict[str, Any] = {}
    listed = [*(step.lists for step in steps), *(each.lists for each in every_filter)]
    lists = {name for each in listed for name in each}
    for at, (name, annotation) in enumerate(pattern.parameters.items()):
        found[name] = keys.example_argument(encodings.get(name, "str"), name, annotation, at)
        if name in lists:
            found[name] = [found[name]]
    return found


def example_call(pattern: Pattern[..., Any], steps: tuple[Step, ...]) -> str:
    """Return the key conditions of the steps as text, with example values."""
    arguments = example_arguments(pattern, steps)
    arguments |= {name: arguments[name][0] for step in steps for name in step.lists}
    shown = []
    for condition in (each for step in steps for each in step.conditions):
        terms = []
        for test in condition:
            values = []
            for bound in test.bounds:
                filled = bound.fill(arguments, 0) or {"NULL": True}
                [(kind, content)] = filled.items()
                values.append(f'"{content}"' if kind == "S" else str(content))
            terms.append(test.written(test.attribute, values))
        shown.append(" AND ".join(terms))
    return "; ".join(shown)


def _adaptive_warnings(pattern: Pattern[..., Any], steps: Iterable[Step]) -> list[str]:
    """Return a warning if ``shards="adaptive"`` has no effect."""
    if pattern.traffic.shards is None or any(step.is_adaptive for step in steps):
        return []
    warning = (
        'shards="adaptive" has no effect here: no global index with a key of its own serves the '
        "pattern with one value, and the shards of a table's key are fixed by the identity"
    )
    return [warning]
