"""The blueprint of one table: the search's layout as names, templates, requests and reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from stator.design.capacity_units import ITEM_OVERHEAD_BYTES, MONTH_SECONDS
from stator.design.declaration import Declaration
from stator.design.entities.entity import Entity, info
from stator.design.entities.entity_versions import VERSION_ATTRIBUTE
from stator.design.entities.shapes import Choice, Coded, Maybe, Scalar, Shape
from stator.design.patterns.pattern import Pattern
from stator.design.plan.own_table import own_table
from stator.design.plan.plan import (
    EntityPlan,
    IndexPlan,
    PatternPlan,
    TablePlan,
)
from stator.design.plan.stored_shape import stored_fields
from stator.design.plan.templates import Template
from stator.design.plan.usage import StoredItems, UnitUse
from stator.design.planner.assignment import EntityLayout
from stator.design.planner.blueprint.key_conditions import (
    Slot,
    key_attributes,
)
from stator.design.planner.blueprint.layout_bytes import layout_bytes
from stator.design.planner.blueprint.read_plans import ReadPlans, apart_plan
from stator.design.planner.blueprint.reasons import (
    base_reasons,
    entity_warnings,
    index_reason,
    long_read,
    shard_reasons,
)
from stator.design.planner.blueprint.slot_names import SlotNames, numbered
from stator.design.planner.blueprint.write_usage import Opened, guarded_shares
from stator.design.planner.choices import EntityChoices
from stator.design.planner.cost_model import GUARD_BYTES, CostModel, LayoutBytes, Placement
from stator.design.planner.keys.key_labels import KeyLabels
from stator.design.planner.keys.key_parts import (
    partition_parts,
)
from stator.design.planner.needs.need import key_encoding
from stator.design.planner.search import GroupLayout, TableLayout
from stator.design.planner.weights import (
    READ_UNIT_DOLLARS,
    STORAGE_BYTE_DOLLARS,
    WRITE_UNIT_DOLLARS,
)
from stator.errors import DesignError


@dataclass(frozen=True)
class TableBlueprint:
    """One table of the plan, with its entities and reads, and the results of the search."""

    table: TablePlan
    entities: list[EntityPlan]
    patterns: list[PatternPlan]
    opened: dict[str, Opened]
    lookups: list[UnitUse]
    stored: list[StoredItems]
    sizes: LayoutBytes
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
    """Return the blueprint of a table.

    ``taken`` has the names of the table's indexes in the lock file.
    """
    return _BlueprintWriter(
        name, design, choices, found, costs, labels, {each.name: each for each in reads}, taken
    ).write()


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
        self.design_name = design.name
        self.name = self._named(name)
        self.reads = reads
        self.choices = choices
        self.found = found
        self.searched = costs
        self.labels = labels
        self.layouts: dict[type[Entity], EntityLayout] = {
            entity: each
            for component in found.components
            for entity, each in component.entities.items()
        }
        self.groups = [group for component in found.components for group in component.groups]
        held = {placement: name for each in choices for name, placement in each.held.items()}
        names = SlotNames(found, self.layouts, self.own_names, held, taken)
        self.base_slots, self.slots = names.base, names.slots
        self.discriminator = self._type_name(name) if len(choices) > 1 else None
        self._check_names()
        self.sizes = layout_bytes(
            self.layouts, self.slots, self.base_slots, self.discriminator, costs
        )
        self.costs = replace(costs, known=self.sizes)
        self.read_plans = ReadPlans(
            self.name, choices, self.layouts, names, self.costs, labels, reads, self.discriminator,
            own_table(design.name).name,
        )  # fmt: skip

    def _named(self, generic: str) -> str:
        return self.own_names.get(generic, generic)

    # -- names

    def _type_name(self, table: str) -> str | None:
        """Return the attribute that names the entity of an item.

        ``names={"orders/_type": "kind"}`` sets it for one table. An empty name means that items
        have no such attribute: their keys tell them apart.
        """
        return self.own_names.get(f"{table}/_type", self._named("_type")) or None

    def _check_names(self) -> None:
        generic = {self.discriminator} if self.discriminator else set()
        native: dict[type[Entity], set[str]] = {}
        for entity, slot, placement in self._all_slots():
            own = _native_names(slot, placement)
            generic |= {*slot.partition, *slot.sort} - own
            native.setdefault(entity, set()).update(own)
        for choices in self.choices:
            for field in info(choices.entity).fields:
                if field in generic and field not in native[choices.entity]:
                    raise DesignError(
                        f"{choices.name}.{field} has the same name as an attribute that the table "
                        "uses for its keys or for the type",
                        hint="rename the table's attribute: "
                        f'Design(..., names={{"{field}": "_{field}"}})',
                    )
        self._check_agreement()

    def _all_slots(self) -> Iterator[tuple[type[Entity], Slot, Placement]]:
        for entity, layout in self.layouts.items():
            yield entity, self.base_slots[entity], layout.base
        for placement, slot in self.slots.items():
            yield placement.path.entity, slot, placement

    def _check_agreement(self) -> None:
        """Refuse handwritten keys that name different attributes for one table or index."""
        seen: dict[str | None, tuple[str, tuple[object, ...]]] = {}
        kinds: dict[str, tuple[str, str]] = {}
        for entity, slot, placement in self._all_slots():
            name, by_hand = info(entity).name, placement.path.handwritten
            included = () if by_hand is None else by_hand.included
            form = (slot.kind, slot.partition, slot.sort, placement.projection, included)
            if slot.index is None or by_hand is not None:
                other, theirs = seen.setdefault(slot.index, (name, form))
                if theirs != form:
                    where = f"index {slot.index}" if slot.index else f"the key of {self.name}"
                    raise DesignError(
                        f"{other} and {name} write {where} with different attributes or options",
                        hint="name the same attributes, kind and projection in both",
                    )
            for attribute, kind in _kinds(entity, slot, placement).items():
                other, its = kinds.setdefault(attribute, (name, kind))
                if its != kind:
                    raise DesignError(
                        f"the key attribute {attribute} has type {its} in {other}, and {kind} in "
                        f"{name}",
                        hint="use fields of the same type in both keys",
                    )

    # -- the table and its indexes

    def _read(self, choices: EntityChoices, at: int) -> PatternPlan:
        """Return the plan of one pattern. An error names the pattern and its place."""
        try:
            return self.read_plans.need(choices, at)
        except DesignError as error:
            name = choices.needs[at].name
            where = f"{self.reads[name].where}: " if name in self.reads else ""
            raise DesignError(
                f"{where}{name}: {error.message}",
                hint="compare with values of the field's type, and remove a condition that "
                "contradicts another one on the same field",
            ) from None

    def write(self) -> TableBlueprint:
        entities = [self._entity(choices) for choices in self.choices]
        reads = [
            self._read(choices, at)
            for choices in self.choices
            for at in range(len(choices.needs))
            if not choices.needs[at].only_key and choices.needs[at].leg_of is None
        ]
        reads += [self._group(group) for group in self.groups]
        opened = {
            choices.name: tuple(
                (each, str(self.slots[each].index)) for each in self.layouts[choices.entity].opened
            )
            for choices in self.choices
        }
        dollars = self.found.dollars + sum(
            self.searched.fixed_dollars(choices.entity) for choices in self.choices
        )
        plans = {each.name: each for each in entities}
        stored = [
            each for choices in self.choices for each in self._stored(choices, plans[choices.name])
        ]
        lookups = [each for choices in self.choices for each in self._lookups(choices)]
        return TableBlueprint(
            self._table(), entities, reads, opened, lookups, stored, self.sizes, dollars,
            self.found.proven,
        )  # fmt: skip

    def _group(self, placed: GroupLayout) -> PatternPlan:
        if not placed.is_apart:
            return self.read_plans.group(placed)
        legs = []
        for member in placed.group.members:
            choices = self._choices(member.entity)
            names = [need.leg_of for need in choices.needs]
            legs.append(self.read_plans.need(choices, names.index(placed.group.name)))
        return apart_plan(placed.group, legs)

    def _table(self) -> TablePlan:
        first = next(iter(self.base_slots.values()))
        indexes = self._indexes()
        attributes = self._attributes()
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
            ttl=ttl_attribute(self.name, [each.entity for each in self.choices]),
        )

    def _stored(self, choices: EntityChoices, plan: EntityPlan) -> Iterator[StoredItems]:
        """Yield what an entity stores: its items, its guards and its index entries."""
        layout, costs = self.layouts[choices.entity], self.costs
        volume, name = costs.estimates.volume(choices.entity), choices.name
        size = costs.item_bytes(choices.entity)
        yield StoredItems(name, self.name, None, round(volume, 2), round(size, 4))
        guards = sum(guarded_shares(choices.entity, plan, costs).values())
        if guards:
            table = own_table(self.design_name).name
            count = round(volume * guards, 2)
            yield StoredItems(name, table, None, count, GUARD_BYTES, is_guard=True)
        for each in layout.opened:
            count = round(volume * costs.presence(each.path), 4)
            size = round(costs.entry_bytes(each), 4)
            yield StoredItems(name, self.name, self.slots[each].index, count, size)

    def _lookups(self, choices: EntityChoices) -> Iterator[UnitUse]:
        """Yield the reads by which updates and deletes find an item's key from its identity."""
        layout = self.layouts[choices.entity]
        for need, placement in zip(choices.needs, layout.assigned):
            if placement is None or not need.only_key:
                continue
            served = choices.serve(placement, need)
            units = 0.0 if served is None else self.costs.read_units(served, placement) or 0.0
            if units:
                index = None if placement.is_base else self.slots[placement].index
                label, rate = f"lookups of {choices.name}", round(units * need.rps, 9)
                yield UnitUse("read", label, choices.name, self.name, index, rate)

    def _attributes(self) -> dict[str, str]:
        kinds: dict[str, str] = {}
        for entity, slot, placement in self._all_slots():
            kinds |= _kinds(entity, slot, placement)
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
                    self._included(placements),
                    tuple(dict.fromkeys(info(each.path.entity).name for each in placements)),
                    patterns,
                    slot.native,
                    0.0,  # ``priced_table`` fills it in
                    index_reason(
                        placements,
                        [
                            reason
                            for each in placements
                            for reason in shard_reasons(self._choices(each.path.entity), each)
                        ],
                        patterns,
                        self._elsewhere(placements),
                        self._long_reads(placements),
                        frozenset(each.group.name for each in self.groups),
                        self.costs,
                    ),
                )
            )
        return found

    def _elsewhere(self, without: list[Placement]) -> frozenset[str]:
        """Return the names of the patterns that can do without the placements in ``without``.

        Another key or index, a guard or a permitted Scan could serve them.
        """
        found = set()
        for choices in self.choices:
            layout = self.layouts[choices.entity]
            others = [each for each in (layout.base, *layout.opened) if each not in without]
            for at, need in enumerate(choices.needs):
                prices = [choices.keyless[at], self.costs.guard_units(need)]
                prices += [
                    choices.use_dollars[each][at] for each in others if not choices.sorts(each, at)
                ]
                if any(price is not None for price in prices):
                    found.add(need.name)
        return frozenset(found)

    def _long_reads(self, without: list[Placement]) -> dict[str, str]:
        """Return what patterns would read without these placements, as text by pattern name.

        Each text is about the cheapest other key or index, with a filter that may read too much.
        """
        found = {}
        for choices in self.choices:
            layout = self.layouts[choices.entity]
            others = [each for each in (layout.base, *layout.opened) if each not in without]
            costs = choices.unlocked.costs
            for need in choices.needs:
                ways = [
                    (price, each.rank, served, each)
                    for each in others
                    if (served := choices.serve_at_any_length(each, need)) is not None
                    and (price := costs.read_dollars(served, each)) is not None
                ]
                if ways:
                    _, _, served, each = min(ways, key=lambda way: (way[2].in_memory, *way[:2]))
                    found[need.name] = long_read(served, each, costs)
        return found

    def _included(self, placements: list[Placement]) -> tuple[str, ...]:
        by_hand = placements[0].path.handwritten
        if by_hand is not None:
            return by_hand.included
        fields = sorted({name for each in placements for name in each.included})
        read_alone = [each for each in placements if self._is_read_alone(each)]
        types = [self.discriminator] if self.discriminator and read_alone else []
        # Without their version, entries of an earlier shape could not be told from current ones.
        if any(info(each.path.entity).shape_version.version > 1 for each in read_alone):
            types.append(VERSION_ATTRIBUTE)
        return tuple(dict.fromkeys((*fields, *types)))

    def _is_read_alone(self, placement: Placement) -> bool:
        """Whether a pattern reads the entries of an INCLUDE index without fetching whole items.

        Its readers then need the entity and the version of each entry.
        """
        choices, layout = self._choices(placement.path.entity), self.layouts[placement.path.entity]
        return placement.projection == "INCLUDE" and any(
            self.costs.covers(placement, need) and not need.is_count
            for need, each in zip(choices.needs, layout.assigned)
            if each == placement
        )

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
        identity = info(choices.entity).identity
        if choices.name == self.costs.longer:
            identity = tuple(dict.fromkeys((*identity, *base.fields)))
        return EntityPlan(
            choices.name,
            self.name,
            identity,
            self.discriminator,
            tuple(attributes),
            base.shards,
            round(float(self.costs.estimates.volume(choices.entity)), 2),
            round(float(self.costs.item_bytes(choices.entity)), 2),
            tuple(
                base_reasons(
                    choices,
                    layout,
                    self._users(layout.base),
                    str(Template(partition_parts(base, self.labels))),
                )
            ),
            tuple(entity_warnings(choices, layout, lookup, self.costs)),
            info(choices.entity).shape_version.version,
            stored_fields(choices.entity),
            tuple(sorted(info(choices.entity).shape_version.upcasts)),
            self.costs.estimates.is_size_guessed(choices.entity),
        )


# --- dollars --------------------------------------------------------------------------------------


def priced_table(
    table: TablePlan, uses: Iterable[UnitUse], stored: Iterable[StoredItems]
) -> TablePlan:
    """Return a table with its dollars filled in: storage, costs of no pattern, and each index.

    ``uses`` has the write units of the table's entities, and ``stored`` their items and entries.
    The storage of the entities' guards is included, although guards are in the design's own table.
    """
    used, held = list(uses), list(stored)
    indexes = tuple(
        replace(
            index,
            dollars_per_month=round(
                sum(
                    _use_dollars(each)
                    for each in used
                    if each.index == index.name and each.kind == "write"
                )
                + sum(_stored_dollars(each) for each in held if each.index == index.name),
                4,
            ),
        )
        for index in table.indexes
    )
    others = [each for each in used if each.pattern.startswith(("writes of ", "lookups of "))]
    return replace(
        table,
        indexes=indexes,
        storage_dollars_per_month=round(sum(map(_stored_dollars, held)), 4),
        other_dollars_per_month=round(sum(map(_use_dollars, others)), 4),
    )


def _use_dollars(use: UnitUse) -> float:
    price = WRITE_UNIT_DOLLARS if use.kind == "write" else READ_UNIT_DOLLARS
    return use.units * MONTH_SECONDS * price


def _stored_dollars(stored: StoredItems) -> float:
    return stored.count * (stored.item_bytes + ITEM_OVERHEAD_BYTES) * STORAGE_BYTE_DOLLARS


# --- key attributes -------------------------------------------------------------------------------


def _native_names(slot: Slot, placement: Placement) -> set[str]:
    """Return the key attributes of a slot that are fields themselves."""
    return {*slot.partition, *slot.sort} if slot.native else set(placement.path.native_fields)


def _kinds(entity: type[Entity], slot: Slot, placement: Placement) -> dict[str, str]:
    """Return the DynamoDB type of each key attribute of a slot.

    For a local index, only the type of the sort key is returned. Its partition key is the table's,
    whose type the table's own slot has.
    """
    native, kinds = _native_names(slot, placement), {}
    for name in slot.sort if slot.kind == "LSI" else (*slot.partition, *slot.sort):
        encoding = key_encoding(info(entity), name) if name in native else None
        kinds[name] = encoding.native if encoding and encoding.native else "S"
    return kinds


# --- time to live ---------------------------------------------------------------------------------


def ttl_attribute(table: str, entities: Iterable[type[Entity]]) -> str | None:
    """Return the table's time-to-live attribute, or None if no entity has a ``ttl()`` field.

    DynamoDB has one such attribute for each table. The ``ttl()`` fields of all entities must have
    the same name, and no other number field may have that name.
    """
    members = list(entities)
    marked = [
        (info(entity).name, name)
        for entity in members
        for name, field in info(entity).fields.items()
        if field.role == "ttl"
    ]
    names = sorted({name for _, name in marked})
    if len(names) > 1:
        shown = " and ".join(f"{entity}.{name}" for entity, name in marked)
        raise DesignError(
            f"{shown} are in table {table}, which can expire items by one attribute only",
            hint="use one name for the fields, or a separate table for each entity: "
            'layout="table-per-entity"',
        )
    for entity in members if names else ():
        field = info(entity).fields.get(names[0])
        if field is not None and field.role != "ttl" and _is_number(field.shape):
            raise DesignError(
                f"DynamoDB would expire items of table {table} by the number "
                f"{info(entity).name}.{field.name}, because {marked[0][0]}.{names[0]} is the "
                f"table's time to live",
                hint="rename one of the two fields, or mark "
                f"{info(entity).name}.{field.name} with ttl() as well",
            )
    return names[0] if names else None


def _is_number(shape: Shape) -> bool:
    inner = shape.inner if isinstance(shape, Maybe) else shape
    return isinstance(inner, (Scalar, Choice, Coded)) and inner.kind == "N"
