"""The blueprint of one table: the search's layout as names, templates, requests and reasons."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stator.design.capacity_units import MONTH_SECONDS
from stator.design.declaration import Declaration
from stator.design.entities.conditions import Condition
from stator.design.entities.entity import Entity, info
from stator.design.patterns.filter_writer import (
    FilterWriter,
)
from stator.design.patterns.pattern import Param, Pattern
from stator.design.plan import key_text as keys
from stator.design.plan.plan import (
    EntityPlan,
    IndexPlan,
    KeyConditionPart,
    PatternPlan,
    Step,
    TablePlan,
)
from stator.design.plan.templates import Filter, Template, text
from stator.design.planner.access_paths import AccessPath, ServedNeed
from stator.design.planner.assignment import EntityLayout
from stator.design.planner.blueprint.example_calls import example_call
from stator.design.planner.blueprint.key_conditions import (
    Slot,
    condition_for,
    group_partition,
    key_attributes,
)
from stator.design.planner.blueprint.reasons import (
    base_reasons,
    entity_warnings,
    group_reasons,
    index_reason,
    latency_of,
    latency_warnings,
    read_reasons,
    read_warnings,
    runner_up,
)
from stator.design.planner.blueprint.slot_names import SlotNames, numbered
from stator.design.planner.blueprint.ttl_attribute import ttl_attribute
from stator.design.planner.choices import EntityChoices
from stator.design.planner.cost_model import CostModel, Placement
from stator.design.planner.key_labels import KeyLabels
from stator.design.planner.key_parts import (
    partition_parts,
    reaches,
    same_partition,
    same_stretch,
    sort_parts,
)
from stator.design.planner.needs import Need, key_encoding
from stator.design.planner.search import GroupLayout, TableLayout
from stator.design.planner.weights import (
    READ_UNIT_DOLLARS,
    STORAGE_BYTE_DOLLARS,
    WRITE_UNIT_DOLLARS,
)
from stator.errors import DesignError
from stator.model.limits import READ_UNIT_BYTES


@dataclass(frozen=True)
class TableBlueprint:
    """One table of the plan, with its entities and reads, and what the search said of it."""

    table: TablePlan
    entities: list[EntityPlan]
    patterns: list[PatternPlan]
    opened: dict[str, tuple[Placement, ...]]
    dollars: float
    proven: bool


def write_blueprint(
    name: str,
    design: Declaration,
    choices: list[EntityChoices],
    found: TableLayout,
    costs: CostModel,
    labels: KeyLabels,
    reads: Iterable[Pattern[..., Any]],
    taken: frozenset[str],
) -> TableBlueprint:
    """Write out the layout of a table. ``taken`` are the names of its indexes in the lock."""
    return _BlueprintWriter(
        name, design, choices, found, costs, labels, {each.name: each for each in reads}, taken
    ).draw()


class _BlueprintWriter:
    def __init__(
        self,
        name: str,
        design: Declaration,
        choices: list[EntityChoices],
        found: TableLayout,
        costs: CostModel,
        labels: KeyLabels,
        reads: dict[str, Pattern[..., Any]],
        taken: frozenset[str],
    ) -> None:
        self.own_names = design.names
        self.declared_writes = design.declared_writes
        self.name = self._named(name)
        self.choices = choices
        self.found = found
        self.costs = costs
        self.labels = labels
        self.reads = reads
        self.layouts: dict[type[Entity], EntityLayout] = {
            entity: each
            for component in found.components
            for entity, each in component.entities.items()
        }
        self.groups = [group for component in found.components for group in component.groups]
        held = {placement: name for each in choices for name, placement in each.held.items()}
        names = SlotNames(found, self.layouts, self.own_names, held, taken)
        self.base_slots, self.slots = names.base, names.slots
        self.discriminator = self._named("_type") if len(choices) > 1 else None
        self._check_names()

    def _named(self, generic: str) -> str:
        return self.own_names.get(generic, generic)

    # -- names

    def _check_names(self) -> None:
        slots = [*self.base_slots.values(), *self.slots.values()]
        generic = {name for slot in slots if not slot.native for name in slot.sort}
        generic |= {
            name
            for slot in slots
            if not slot.native and slot.kind != "LSI"
            for name in slot.partition
        }
        generic |= {self.discriminator} if self.discriminator else set()
        for choices in self.choices:
            for field in info(choices.entity).fields:
                if field in generic:
                    raise DesignError(
                        f"{choices.name}.{field} has the same name as a key attribute",
                        hint="rename the key attribute: "
                        f'Design(..., names={{"{field}": "_{field}"}})',
                    )

    # -- the table and its indexes

    def draw(self) -> TableBlueprint:
        entities = [self._entity(choices) for choices in self.choices]
        reads = [
            self._read(choices, at) for choices in self.choices for at in range(len(choices.needs))
            if not choices.needs[at].only_key
        ]  # fmt: skip
        reads += [self._group(group) for group in self.groups]
        opened = {choices.name: self.layouts[choices.entity].opened for choices in self.choices}
        dollars = self.found.dollars + sum(
            self.costs.fixed_dollars(choices.entity) for choices in self.choices
        )
        return TableBlueprint(self._table(), entities, reads, opened, dollars, self.found.proven)

    def _table(self) -> TablePlan:
        first = next(iter(self.base_slots.values()))
        indexes = self._indexes()
        attributes = self._attributes(first)
        used = {
            first.partition[0],
            *first.sort,
            *(name for each in indexes for name in (*each.partition, *each.sort)),
        }
        return TablePlan(
            self.name,
            first.partition[0],
            first.sort[0] if first.sort else None,
            tuple(sorted((name, kind) for name, kind in attributes.items() if name in used)),
            tuple(indexes),
            tuple(choices.name for choices in self.choices),
            round(sum(map(self._storage_dollars, self.choices)), 4),
            round(sum(map(self._other_dollars, self.choices)), 4),
            ttl_attribute(self.name, [each.entity for each in self.choices]),
        )

    def _storage_dollars(self, choices: EntityChoices) -> float:
        layout = self.layouts[choices.entity]
        kept = sum(map(self.costs.storage_bytes, (layout.base, *layout.opened)))
        return self.costs.items_dollars(choices.entity) + kept * STORAGE_BYTE_DOLLARS

    def _other_dollars(self, choices: EntityChoices) -> float:
        layout, costs = self.layouts[choices.entity], self.costs
        units = costs.base_write_units(choices.entity) + sum(
            map(costs.write_units_of_item, layout.opened)
        )
        writes = (
            self.declared_writes.get(choices.entity, 0.0)
            * units
            * MONTH_SECONDS
            * WRITE_UNIT_DOLLARS
        )
        lookups = [
            choices.use_dollars[placement][at] or 0.0
            for at, placement in enumerate(layout.assigned)
            if placement is not None and choices.needs[at].only_key
        ]
        return writes + sum(lookups)

    def _attributes(self, base: Slot) -> dict[str, str]:
        kinds: dict[str, str] = {}
        slots = [
            (self.choices[0].entity, base),
            *((each.path.entity, slot) for each, slot in self.slots.items()),
        ]
        for entity, slot in slots:
            for name in (*slot.partition, *slot.sort):
                encoding = key_encoding(info(entity), name) if slot.native else None
                kinds.setdefault(name, encoding.native if encoding and encoding.native else "S")
        return kinds

    def _indexes(self) -> list[IndexPlan]:
        by_name: dict[str, list[Placement]] = {}
        for placement, slot in self.slots.items():
            by_name.setdefault(str(slot.index), []).append(placement)
        found = []
        generic = {own: name for name, own in self.own_names.items()}
        for name, placements in sorted(
            by_name.items(), key=lambda each: numbered(generic.get(each[0], each[0]))
        ):
            placements.sort(key=lambda each: each.rank)
            slot, first = self.slots[placements[0]], placements[0]
            patterns = tuple(sorted({name for each in placements for name in self._users(each)}))
            found.append(
                IndexPlan(
                    name,
                    "LSI" if slot.kind == "LSI" else "GSI",
                    slot.partition,
                    slot.sort,
                    first.projection,
                    first.included,
                    tuple(dict.fromkeys(info(each.path.entity).name for each in placements)),
                    patterns,
                    slot.native,
                    round(sum(map(self.costs.billed_dollars, placements)), 4),
                    index_reason(placements, patterns, self.costs),
                )
            )
        return found

    def _users(self, placement: Placement) -> list[str]:
        choices, layout = self._choices(placement.path.entity), self.layouts[placement.path.entity]
        found = [
            need.name for need, each in zip(choices.needs, layout.assigned) if each == placement
        ]
        return found + [group.group.name for group in self.groups if placement in group.placements]

    def _choices(self, entity: type[Entity]) -> EntityChoices:
        return next(each for each in self.choices if each.entity is entity)

    # -- entities

    def _entity(self, choices: EntityChoices) -> EntityPlan:
        layout = self.layouts[choices.entity]
        attributes = key_attributes(layout.base, self.base_slots[choices.entity], self.labels)
        for placement in layout.opened:
            attributes += key_attributes(placement, self.slots[placement], self.labels)
        lookup = next(
            (
                self.slots[each].index
                for need, each in zip(choices.needs, layout.assigned)
                if need.only_key and each is not None and not each.is_base
            ),
            None,
        )
        base = layout.base.path
        return EntityPlan(
            choices.name,
            self.name,
            info(choices.entity).identity,
            self.discriminator,
            tuple(attributes),
            base.shards,
            round(float(self.costs.estimates.volume(choices.entity)), 2),
            round(float(self.costs.item_bytes(choices.entity)), 2),
            tuple(
                base_reasons(
                    layout,
                    self._users(layout.base),
                    str(Template(partition_parts(base, self.labels))),
                )
            ),
            tuple(entity_warnings(choices, layout, lookup, self.costs)),
        )

    # -- reads

    def _read(self, choices: EntityChoices, at: int) -> PatternPlan:
        need, placement = choices.needs[at], self.layouts[choices.entity].assigned[at]
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
        )

    def _strangers(self, placement: Placement, slot: Slot) -> list[tuple[type[Entity], AccessPath]]:
        """Other entities that a query of the placement may find.

        KeyLabels keep made keys apart; those written by hand may be alike.
        """
        if slot.native or slot.kind == "LSI" or placement.projection != "ALL":
            return []
        sort = sort_parts(placement.path, self.labels)
        return [
            (entity, path)
            for entity, path in self._in_partition(
                placement.path, slot.index, {placement.path.entity}
            )
            if same_stretch(sort, sort_parts(path, self.labels))
        ]

    def _in_partition(
        self, path: AccessPath, index: str | None, wanted: set[type[Entity]]
    ) -> list[tuple[type[Entity], AccessPath]]:
        """Other entities that may have items in the same partition of the table or index."""
        partition = partition_parts(path, self.labels)
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
                    if same_partition(partition, partition_parts(each, self.labels))
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
        writer = FilterWriter()
        left = [need.equal_tests[name] for name in served.left_equal if name in need.equal_tests]
        left += [test for span in served.left_spans for test in span.tests]
        for each in (*left, *condition.filters, *need.filters):
            writer.add(each, info(entity))
        is_get = (
            placement.is_base
            and served.whole_key
            and not others
            and not writer.done()
            and not need.is_count
        )
        if is_get:
            return Step(
                "GetItem", self.name, (info(entity).name,), key=condition.tests,
                consistent=need.consistent, units=round(units, 4),
            )  # fmt: skip
        if strangers:
            assert self.discriminator is not None
            writer.add_type(self.discriminator, [info(entity).name])
            units = max(units, self.costs.crowded_units(served, placement, strangers))
        covered = placement.is_base or placement.projection == "ALL" or need.is_count
        return Step(
            "Query",
            self.name,
            (info(entity).name,),
            index=slot.index,
            key=condition.tests,
            filter=writer.done(),
            forward=self._forward(need, placement.path),
            limit=need.limit if isinstance(need.limit, int) else None,
            limit_param=need.limit.name if isinstance(need.limit, Param) else None,
            consistent=need.consistent,
            is_count=need.is_count,
            shards=condition.shards,
            fetch=() if covered else self._fetch_keys(entity),
            units=round(units, 4),
            alternatives=tuple(each.tests for each in others),
            order=need.order,
        )

    def _forward(self, need: Need, path: AccessPath) -> bool:
        return need.descending == path.inverted

    def _fetch_keys(self, entity: type[Entity]) -> tuple[str, ...]:
        slot = self.base_slots[entity]
        return (*slot.partition, *slot.sort)

    def _scan(self, choices: EntityChoices, at: int) -> PatternPlan:
        need = choices.needs[at]
        writer = FilterWriter()
        tests: list[Condition] = [
            *need.equal_tests.values(),
            *(test for span in need.spans for test in span.tests),
        ]
        for each in (*tests, *need.filters):
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
            self.name,
            (choices.name,),
            filter=writer.done(),
            consistent=need.consistent,
            is_count=need.is_count,
            limit=need.limit if isinstance(need.limit, int) else None,
            limit_param=need.limit.name if isinstance(need.limit, Param) else None,
            units=round(units, 4),
        )
        dollars = units * need.rps * MONTH_SECONDS * READ_UNIT_DOLLARS
        warning = (
            f"SCAN: every call reads the whole table, {units:,.0f} read units, "
            f"${dollars:,.2f} a month"
        )
        reasons = ["allow_scan=True, and no key serves it at a lower price"]
        return self._pattern(need.name, (step,), reasons, [warning], "")

    # -- several entities at once

    def _group(self, placed: GroupLayout) -> PatternPlan:
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
            self.name,
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
        return self._pattern(group.name, (step,), reasons, warnings, "")

    def _group_filter(
        self, placed: GroupLayout, paths: tuple[AccessPath, ...], only_types: bool
    ) -> Filter | None:
        writer = FilterWriter()
        assert self.discriminator is not None
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
        """The sort keys from the first to the last wanted label, and the other entities inside."""
        if not neighbours or any(path.handwritten for path in wanted):
            return (), neighbours
        labels = sorted(self.labels.entity(path.entity) for path in wanted)
        low, high = labels[0], labels[-1] + keys.AFTER
        inside = [
            each for each in neighbours if reaches(sort_parts(each[1], self.labels), low, high)
        ]
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
            warnings=(*warnings, *latency_warnings(pattern.traffic.within_ms, steps)),
            runner_up=second,
        )
