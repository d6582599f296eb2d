"""The workload of a plan: the units used each second and the data stored.

``report`` turns these quantities into dollars.

Every quantity belongs to one pattern, one entity and one place (a table or one of its indexes). So
the sums by pattern, by entity and by place all have the same total. The planner counts all of them
(``stator.design.plan.usage``), so this module only reads them from the plan.

A plan from an older lock file has no such counts. Its demand (the stored workload) then says which
fields an update changes, how often a pattern makes a change, and what ``writes=`` declares. A plan
without a demand (lock format 1) may borrow the demand of a design. If there is no demand at all,
the plan's own units of each write pattern are used. Units that the table itself does not need are
then spread evenly over the entity's indexes, and ``writes=`` is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final, Literal

from stator.design.capacity_units import index_write_units, write_units
from stator.design.cost.charges import stored_bytes
from stator.design.declaration import Declaration
from stator.design.plan.demand import ChangeDemand, EntityDemand
from stator.design.plan.plan import EntityPlan, IndexPlan, PatternPlan, Plan
from stator.design.plan.templates import Part, Template
from stator.design.planner.estimates import demand_of

_KEYS_ONLY_BYTES: Final = 150
"""The assumed size of a KEYS_ONLY entry, which holds the keys of the index and of the table."""
_BASE_KEY_BYTES: Final = 64
"""The typical size of the table's key, for lock files that do not say what is stored."""
_NAMES_BYTES: Final = 28
_PRESENT: Final = 0.5
"""The assumed share of items that have an optional field or a sparse index's value."""


@dataclass(frozen=True, slots=True)
class CapacityUse:
    """The units a second that a pattern uses in one place.

    ``index`` is None for the table itself. ``by`` names the fields of the entity's index key,
    because an index name such as GSI1 does not say what the index is for.
    """

    kind: Literal["read", "write"]
    pattern: str
    entity: str
    table: str
    index: str | None
    units: Decimal
    by: str = ""


@dataclass(frozen=True, slots=True)
class StoredData:
    """The items of an entity in a table, or their entries in one of its indexes."""

    entity: str
    table: str
    index: str | None
    is_local: bool
    entries: Decimal
    entry_bytes: Decimal
    by: str = ""
    is_guard: bool = False

    @property
    def stored_bytes(self) -> Decimal:
        return stored_bytes(self.entries, self.entry_bytes)


@dataclass(frozen=True, slots=True)
class Workload:
    uses: tuple[CapacityUse, ...]
    stored: tuple[StoredData, ...]

    def scaled(self, rates: float = 1.0, volumes: float = 1.0) -> Workload:
        """Return the workload with all rates, and all stored data, multiplied.

        Each call still uses the same units, although a query may read more of a larger table.
        """
        return Workload(
            tuple(replace(use, units=use.units * _exact(rates)) for use in self.uses),
            tuple(replace(each, entries=each.entries * _exact(volumes)) for each in self.stored),
        )


def workload_of(plan: Plan, design: Declaration | None = None) -> Workload:
    """Return the workload of a plan.

    ``design`` is used only if the plan has no demand. It may be older or newer than the plan: only
    the entities and write patterns that both have are counted.
    """
    return _WorkloadCounter(plan, design).count()


class _WorkloadCounter:
    def __init__(self, plan: Plan, design: Declaration | None) -> None:
        self.plan = plan
        self.demand = (
            demand_of(design) if plan.demand is None and design is not None else plan.demand
        )
        self.entities = {each.name: each for each in plan.entities}

    def count(self) -> Workload:
        if self.plan.stored:
            return self._planned()
        uses = [use for pattern in self.plan.patterns for use in self._pattern(pattern)]
        return Workload(
            tuple(each for each in (*uses, *self._declared()) if each.units), tuple(self._stored())
        )

    def _planned(self) -> Workload:
        """Return the quantities that the planner has counted."""
        uses = [use for each in self.plan.patterns for use in self._read(each)]
        for use in self.plan.uses:
            by = found_by(self.entities[use.entity], use.index) if use.index else ""
            units = _exact(use.units)
            uses.append(
                CapacityUse(use.kind, use.pattern, use.entity, use.table, use.index, units, by)
            )
        stored = []
        for each in self.plan.stored:
            by = found_by(self.entities[each.entity], each.index) if each.index else ""
            local = any(
                index.kind == "LSI"
                for table in self.plan.tables
                for index in table.indexes
                if (table.name, index.name) == (each.table, each.index)
            )
            count, size = _exact(each.count), _exact(each.item_bytes)
            stored.append(
                StoredData(
                    each.entity, each.table, each.index, local, count, size, by, each.is_guard
                )
            )
        return Workload(tuple(each for each in uses if each.units), tuple(stored))

    # -- requests

    def _read(self, pattern: PatternPlan) -> Iterator[CapacityUse]:
        rate = _exact(pattern.requests_per_second)
        for step in pattern.steps if pattern.kind == "read" else ():
            entities = " + ".join(step.entities)
            units = _exact(step.units) * rate
            yield CapacityUse("read", pattern.name, entities, step.table, step.index, units)

    def _pattern(self, pattern: PatternPlan) -> Iterator[CapacityUse]:
        rate = _exact(pattern.requests_per_second)
        if pattern.kind == "read":
            yield from self._read(pattern)
            return
        changes = self._changes(pattern)
        if changes is None:
            yield from self._undeclared(pattern, rate)
            return
        for change in changes:
            yield from self._writes(
                pattern.name, change, rate * _exact(change.times), pattern.transaction
            )

    def _changes(self, pattern: PatternPlan) -> tuple[ChangeDemand, ...] | None:
        """Return the changes that a write pattern makes, or None if they are not known.

        The changes are known if the demand lists the pattern with the same entities as its planned
        steps.
        """
        found = self.demand.pattern(pattern.name) if self.demand is not None else None
        planned = [step.entities[0] for step in pattern.steps]
        return (
            found.changes
            if found is not None and [each.entity for each in found.changes] == planned
            else None
        )

    def _declared(self) -> Iterator[CapacityUse]:
        """Yield the capacity used by the creations that ``Design(writes=...)`` declares.

        These creations belong to no pattern.
        """
        for entity in () if self.demand is None else self.demand.entities:
            if entity.creates and entity.name in self.entities:
                change = ChangeDemand("create", entity.name)
                yield from self._writes(
                    f"writes of {entity.name}", change, _exact(entity.creates), transactional=False
                )

    def _writes(
        self, pattern: str, change: ChangeDemand, rate: Decimal, transactional: bool
    ) -> Iterator[CapacityUse]:
        entity = self.entities[change.entity]
        size = _exact(entity.item_bytes)
        units = write_units(size, transactional=transactional)
        yield CapacityUse("write", pattern, entity.name, entity.table, None, units * rate)
        for index in self._indexes(entity):
            each = self._index_units(entity, index, change)
            yield CapacityUse(
                "write",
                pattern,
                entity.name,
                entity.table,
                index.name,
                each * rate,
                found_by(entity, index.name),
            )

    def _index_units(self, entity: EntityPlan, index: IndexPlan, change: ChangeDemand) -> Decimal:
        size, changed = self._entry_bytes(entity, index), set(change.fields)
        if change.kind == "create":
            units = index_write_units(None, size)
        elif change.kind == "delete":
            units = index_write_units(size, None)
        else:
            seen = index.projection == "ALL" or bool(changed & set(index.included))
            moved = bool(changed & _fields(entity, index.name))
            units = index_write_units(size, size, key_changes=moved, changes=seen)
        return units * self._presence(entity, index)

    def _undeclared(self, pattern: PatternPlan, rate: Decimal) -> Iterator[CapacityUse]:
        """Yield the capacity that a write pattern uses if the demand does not list its changes.

        The plan's units for the pattern are distributed over the pattern's steps.
        """
        total = sum((_exact(step.units) for step in pattern.steps), Decimal(0))
        for step in pattern.steps:
            entity = self.entities[step.entities[0]]
            times = _exact(pattern.units_per_call) / total if total else Decimal(0)
            indexes = self._indexes(entity)
            alone = write_units(entity.item_bytes, transactional=pattern.transaction)
            own = min(Decimal(alone), _exact(step.units)) if indexes else _exact(step.units)
            yield CapacityUse(
                "write", pattern.name, entity.name, step.table, None, own * times * rate
            )
            rest = _exact(step.units) - own
            for index in indexes:
                units, by = rest / len(indexes) * times * rate, found_by(entity, index.name)
                yield CapacityUse(
                    "write", pattern.name, entity.name, step.table, index.name, units, by
                )

    # -- storage

    def _stored(self) -> Iterator[StoredData]:
        for entity in self.plan.entities:
            items = _exact(entity.items)
            yield StoredData(
                entity.name, entity.table, None, False, items, _exact(entity.item_bytes)
            )
            for index in self._indexes(entity):
                entries = items * self._presence(entity, index)
                size = self._entry_bytes(entity, index)
                local, by = index.kind == "LSI", found_by(entity, index.name)
                yield StoredData(entity.name, entity.table, index.name, local, entries, size, by)

    def _indexes(self, entity: EntityPlan) -> list[IndexPlan]:
        return [
            index
            for index in self.plan.table(entity.table).indexes
            if entity.name in index.entities
        ]

    def _known(self, entity: EntityPlan) -> EntityDemand | None:
        return None if self.demand is None else self.demand.entity(entity.name)

    def _presence(self, entity: EntityPlan, index: IndexPlan) -> Decimal:
        """Return the estimated share of an entity's items that have an entry in the index.

        An item has an entry if it has every field of the key. In a sparse index, some of its fields
        must also equal constants.
        """
        tests = dict(test for key in entity.keys if key.index == index.name for test in key.when)
        constants = {name: wanted for test, wanted in tests.items() for name in _holes(test)}
        known = self._known(entity)
        part = 1.0
        for name in sorted(_fields(entity, index.name) | constants.keys()):
            field = known.field(name) if known is not None else None
            if name in constants and constants[name] is None:
                part *= 1 - _PRESENT
            elif name in constants:
                part *= _PRESENT if field is None else 1 / field.values
            elif field is not None and field.optional:
                part *= _PRESENT
        return _exact(part)

    def _entry_bytes(self, entity: EntityPlan, index: IndexPlan) -> Decimal:
        if index.projection == "ALL":
            return _exact(entity.item_bytes)
        known = self._known(entity)
        if known is None:
            return _exact(min(float(_KEYS_ONLY_BYTES), entity.item_bytes))
        keyed = [each for each in known.fields if each.name in _fields(entity, index.name)]
        if index.native:
            size = sum(each.bytes for each in keyed)
        else:
            size = _NAMES_BYTES + sum(each.value_bytes + 1 for each in keyed)
        included = [each for each in known.fields if each.name in index.included]
        size += _BASE_KEY_BYTES + sum(each.bytes for each in included)
        return _exact(min(size, entity.item_bytes))


def _holes(template: Template) -> set[str]:
    return {name for part in template.parts for name in _names(part)}


def _names(part: Part) -> set[str]:
    if part.kind == "shard":
        return set()  # computed from the identity, which never changes
    return {part.value} if part.kind == "field" else set()


def _fields(entity: EntityPlan, index: str) -> set[str]:
    """Return every field that decides whether and where an index has an entry for an item."""
    keys = [key for key in entity.keys if key.index == index]
    return {
        name
        for key in keys
        for each in (key.template, *(test for test, _ in key.when))
        for name in _holes(each)
    }


def found_by(entity: EntityPlan, index: str) -> str:
    """Return the fields of an index key in order, joined with ``+``: ``status+placed_at``.

    Identity fields that only make the key unique are left out.
    """
    keys = [key for key in entity.keys if key.index == index]
    constants = [part for key in keys for test, _ in key.when for part in test.parts]
    parts = [*constants, *(part for key in keys for part in key.template.parts)]
    names = list(dict.fromkeys(part.name for part in parts if part.kind == "field"))
    telling = [name for at, name in enumerate(names) if at == 0 or name not in entity.identity]
    return " + ".join(telling)


def _exact(value: float | Decimal) -> Decimal:
    return value if isinstance(value, Decimal) else Decimal(str(value))
