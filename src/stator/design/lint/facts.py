"""The input of the rules: a design and its plan, with the numbers that several rules need.

Numbers follow from the declared volumes and rates, spread evenly over key values unless a
``largest`` fact says otherwise. What costs money is the average of a day. What a partition sees is
the busiest moment: a pattern with a window asks for all its traffic in it. Real traffic is uneven,
so rules warn well before a rate reaches a limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from stator.design.capacity_units import MONTH_SECONDS, write_units
from stator.design.declaration import Declaration
from stator.design.entities.derived_parts import PartComparison, derived_part, source_field
from stator.design.entities.entity import Entity, EntityField, EntityInfo, info
from stator.design.lint.finding import Finding, Severity, SubjectKind
from stator.design.lint.location import Location, class_location, function_location
from stator.design.patterns.pattern import Pattern
from stator.design.patterns.write_pattern import DeclaredWrite, WritePattern
from stator.design.plan.plan import (
    EntityPlan,
    IndexPlan,
    PatternPlan,
    Plan,
    Step,
    TablePlan,
)
from stator.design.plan.templates import PlannedKeyAttribute
from stator.design.planner.entry_changes import ItemLife
from stator.design.planner.estimates import Estimates
from stator.design.planner.locked_choices import constant_source
from stator.design.planner.needs.need import Need, is_optional
from stator.design.planner.needs.write_rates import rates_of
from stator.design.planner.paths.access_path import AccessPath
from stator.design.planner.selectivity import fraction
from stator.design.planner.weights import READ_UNIT_DOLLARS

_ROUNDED = 1e-9
_ALWAYS_WRITTEN = ("version", "updated")


@dataclass(frozen=True)
class Collection:
    """A collection: the items under one partition key template of a table or an index.

    Several entities may share a template. ``fields`` are the fields in the template, by entity.
    """

    table: TablePlan
    index: IndexPlan | None
    template: str
    entities: tuple[type[Entity], ...]
    fields: dict[type[Entity], tuple[str, ...]]
    shards: int
    values: float
    """The number of distinct key values, shards included."""

    @property
    def name(self) -> str:
        return f"{self.template} of {self.index.name if self.index else self.table.name}"


@dataclass(frozen=True, slots=True)
class LargestValue:
    """The most frequent value of the fields that a query compares.

    ``share`` of the entity's items have this value. A query for it reads ``times`` as many items as
    the average query.
    """

    entity: type[Entity]
    fields: tuple[str, ...]
    share: float
    times: float


@dataclass(frozen=True)
class Facts:
    design: Declaration
    plan: Plan

    # -- names

    @cached_property
    def by_name(self) -> dict[str, type[Entity]]:
        return {info(entity).name: entity for entity in self.design.entities}

    @cached_property
    def reads(self) -> dict[str, Pattern[..., Any]]:
        return {pattern.name: pattern for pattern in self.design.reads}

    @cached_property
    def writes(self) -> dict[str, WritePattern]:
        return {pattern.name: pattern for pattern in self.design.write_patterns}

    @cached_property
    def estimates(self) -> Estimates:
        return Estimates(self.design)

    def fields(self) -> Iterator[tuple[EntityInfo, EntityField]]:
        for entity in self.design.entities:
            for each in info(entity).fields.values():
                yield info(entity), each

    def planned_reads(self) -> Iterator[tuple[Pattern[..., Any], PatternPlan]]:
        for plan in self.plan.patterns:
            if plan.name in self.reads:
                yield self.reads[plan.name], plan

    # -- rates

    def read_dollars(self, index: str) -> float:
        """Return what the queries of an index cost a month."""
        units = sum(
            step.units * plan.requests_per_second
            for _, plan in self.planned_reads()
            for step in plan.steps
            if step.index == index
        )
        return units * MONTH_SECONDS * READ_UNIT_DOLLARS

    def own_indexes(self, pattern: PatternPlan) -> list[IndexPlan]:
        """Return the indexes that exist for this pattern alone."""
        names = {(step.table, step.index) for step in pattern.steps}
        return [
            index
            for table in self.plan.tables
            for index in table.indexes
            if (table.name, index.name) in names and index.patterns == (pattern.name,)
        ]

    @cached_property
    def changes(self) -> list[tuple[DeclaredWrite, float]]:
        return self.design.changes()

    @cached_property
    def busy_changes(self) -> list[list[tuple[DeclaredWrite, float]]]:
        """The changes at each moment that may be the busiest of the day, with their rates."""
        return self.design.busy_changes() or [self.changes]

    def rate(self, entity: type[Entity], *kinds: str) -> float:
        """Return how many writes of the given kinds an entity gets each second.

        The kinds are ``create``, ``update`` and ``delete``.
        """
        return sum(
            rate
            for change, rate in self.changes
            if change.entity is entity and change.kind in kinds
        )

    def billed_writes(self, entity: type[Entity]) -> float:
        """Return how many writes of an entity's items are billed each second.

        A write in a transaction counts twice, because its units are billed twice.
        """
        plan = self.entity_plan(entity)
        units = sum(
            each.units
            for each in self.plan.uses
            if (each.kind, each.entity, each.table, each.index)
            == ("write", plan.name, plan.table, None)
        )
        if self.plan.uses:
            return units / self.write_units(entity)
        return self.rate(entity, "create", "update", "delete")

    def update_rate(self, entity: type[Entity], fields: set[str]) -> float:
        """Return how many updates each second change any of these fields of an entity."""
        return self._update_rate(entity, fields, self.changes)

    def busy_update_rate(self, entity: type[Entity], fields: set[str]) -> float:
        """Return ``update_rate`` at the busiest moment of the day."""
        return max(self._update_rate(entity, fields, each) for each in self.busy_changes)

    def _update_rate(
        self, entity: type[Entity], fields: set[str], changes: list[tuple[DeclaredWrite, float]]
    ) -> float:
        always = {
            each.name for each in info(entity).fields.values() if each.role in _ALWAYS_WRITTEN
        }
        return sum(
            rate
            for change, rate in changes
            if change.entity is entity
            and change.kind == "update"
            and fields & ({*change.fields} | always)
        )

    def index_units_of_updates(self, entity: type[Entity], index: str, field: str) -> float:
        """Return the write units a second that updates of a field take in an index.

        The plan knows this number for a pattern that only updates items. For a pattern that also
        creates or deletes items of the entity, two writes of the entry are assumed for each update.
        """
        always = info(entity).fields[field].role in _ALWAYS_WRITTEN
        total = 0.0
        for pattern in self.design.write_patterns:
            own = [each for each in pattern.trace() if each.entity is entity]
            changes = [
                each for each in own if each.kind == "update" and (always or field in each.fields)
            ]
            if changes and len(changes) == len(own):
                total += sum(
                    each.units
                    for each in self.plan.uses
                    if (each.kind, each.pattern, each.entity, each.index)
                    == ("write", pattern.name, info(entity).name, index)
                )
            else:
                times = sum(each.times for each in changes)
                total += 2 * pattern.rps * times * self.write_units(entity)
        return total

    def write_units(self, entity: type[Entity]) -> float:
        return float(write_units(self.entity_plan(entity).item_bytes))

    def entity_plan(self, entity: type[Entity]) -> EntityPlan:
        return self.plan.entity(entity)

    # -- collections

    @cached_property
    def collections(self) -> list[Collection]:
        found: list[Collection] = []
        for table in self.plan.tables:
            for index in (None, *(each for each in table.indexes if each.kind == "GSI")):
                found += self._collections(table, index)
        return found

    def _collections(self, table: TablePlan, index: IndexPlan | None) -> Iterator[Collection]:
        names = index.partition if index else (table.partition,)
        grouped: dict[str, dict[type[Entity], list[PlannedKeyAttribute]]] = {}
        for name in index.entities if index else table.entities:
            entity = self.by_name[name]
            held = index.name if index else None
            keys = [
                key
                for key in self.plan.entity(name).keys
                if key.index == held and key.name in names
            ]
            grouped.setdefault(", ".join(str(key.template) for key in keys), {})[entity] = keys
        for template, members in grouped.items():
            fields = {entity: _fields_in(keys) for entity, keys in members.items()}
            shards = max(
                part.shards
                for keys in members.values()
                for key in keys
                for part in key.template.parts
            )
            distinct = max(self.distinct(entity, names) for entity, names in fields.items())
            yield Collection(
                table, index, template, tuple(members), fields, shards, distinct * shards
            )

    def distinct(self, entity: type[Entity], fields: tuple[str, ...]) -> float:
        return self.estimates.distinct(entity, fields) if fields else 1.0

    def hottest(self, collection: Collection) -> float:
        """Return how many times more items the most frequent key value has than the average."""
        return max(
            self.estimates.hottest(entity, fields) * self.distinct(entity, fields)
            for entity, fields in collection.fields.items()
        )

    def presence(self, collection: Collection, entity: type[Entity]) -> float:
        """Return the share of an entity's items that are in the collection.

        The share is below 1 only in a sparse index.
        """
        path = self._path(collection, entity)
        probe = Need("", entity, dict(path.constants))
        found = fraction(probe, probe.equal, self.estimates)
        known = info(entity)
        for name in dict.fromkeys(map(source_field, (*path.partition, *path.sort))):
            if is_optional(known, name):
                found *= self.estimates.present(entity, name)
        return float(found)

    def steps_on(self, collection: Collection) -> Iterator[tuple[PatternPlan, Step]]:
        """Yield the steps of read patterns that query the collection, as pairs (pattern, step)."""
        names = {info(entity).name for entity in collection.entities}
        held = (
            {collection.index.name} if collection.index else {None, *self._local(collection.table)}
        )
        for pattern in self.plan.patterns:
            for step in pattern.steps:
                here = step.table == collection.table.name and step.index in held
                if (
                    pattern.kind == "read"
                    and step.operation != "Scan"
                    and here
                    and names & {*step.entities}
                ):
                    yield pattern, step

    def _local(self, table: TablePlan) -> set[str]:
        return {index.name for index in table.indexes if index.kind == "LSI"}

    def largest_value(self, step: Step) -> LargestValue | None:
        """Return how much more a query reads if it asks for the most frequent value.

        Returns None if all values are assumed to be equally frequent, or if a limit ends the query.
        """
        if step.operation != "Query" or step.limit is not None or step.limit_param is not None:
            return None
        mean, most, found = 0.0, 0.0, []
        for name in step.entities:
            entity = self.by_name[name]
            fields = self._asked_fields(entity, step)
            if not fields:
                continue
            values, share = self.distinct(entity, fields), self.estimates.hottest(entity, fields)
            present = self.design.facts.all_present(entity, map(source_field, fields))
            size_bytes = self.design.volume(entity) * self.entity_plan(entity).item_bytes * present
            mean += size_bytes / values
            most += size_bytes * share
            if self.estimates.is_skewed(entity, fields) and share * values > 1:
                found.append(
                    (size_bytes * share, LargestValue(entity, fields, share * present, 0.0))
                )
        if not found or not mean:
            return None
        _, heaviest = max(found, key=lambda each: each[0])
        return replace(heaviest, times=most / mean)

    def _asked_fields(self, entity: type[Entity], step: Step) -> tuple[str, ...]:
        """Return the leading key fields that a query compares for equality.

        The fields come in the order of the key. The first field without an equality test ends the
        result.
        """
        equal = {
            part.attribute for part in step.key if part.operator in ("=", "begins_with", "BETWEEN")
        }
        keys = [
            key
            for key in self.entity_plan(entity).keys
            if key.index == step.index and key.name in equal
        ]
        pattern = next(
            each for each in self.plan.patterns if each.kind == "read" and step in each.steps
        )
        compared = {
            str(test.derived) if isinstance(test, PartComparison) else test.field.name
            for test in self.reads[pattern.name].trace().tests
            if test.operator in ("=", "part")
        }
        found: list[str] = []
        for key in sorted(keys, key=lambda each: each.is_sort):
            for name in _fields_in([key]):
                if name not in compared:
                    return tuple(found)
                found.append(name)
        return tuple(dict.fromkeys(found))

    def read_units_per_value(self, collection: Collection) -> float:
        """Return the read units a second of a collection's hottest key value, at its busiest.

        Calls are assumed to ask for a key value in proportion to its share of the items.
        """
        means: dict[str, float] = {}
        for pattern, step in self.steps_on(collection):
            units = pattern.requests_per_second * step.units
            means[pattern.name] = means.get(pattern.name, 0.0) + units
        return self.design.busiest(means)[1] / collection.values * self.hottest(collection)

    def write_units_per_value(self, collection: Collection) -> float:
        """Return the write units a second of a collection's hottest key value, at its busiest."""
        return self.write_units_of(collection) / collection.values * self.hottest(collection)

    def write_units_of(self, collection: Collection) -> float:
        """Return the write units a second of all key values of a collection, at its busiest."""
        return max(
            sum(self._write_units_of(collection, entity, each) for entity in collection.entities)
            for each in self.busy_changes
        )

    def _write_units_of(
        self,
        collection: Collection,
        entity: type[Entity],
        changes: list[tuple[DeclaredWrite, float]],
    ) -> float:
        index = collection.index
        included = None if index is None or index.projection == "ALL" else frozenset(index.included)
        path = self._path(collection, entity)
        life, rates = self.life(entity), rates_of(entity, changes)
        return life.entry_writes(path, included=included, rates=rates) * self.write_units(entity)

    def created_units(self, collection: Collection, entity: type[Entity]) -> float:
        """Return the write units a second of new items in a collection, at its busiest."""
        path, life = self._path(collection, entity), self.life(entity)
        entries = max(
            life.entry_writes(path, ("create",), rates=rates_of(entity, each))
            for each in self.busy_changes
        )
        return entries * self.write_units(entity)

    def life(self, entity: type[Entity]) -> ItemLife:
        return ItemLife(entity, rates_of(entity, self.changes), self.estimates)

    def _path(self, collection: Collection, entity: type[Entity]) -> AccessPath:
        """Return the planned key of an entity in a collection as a path of the planner."""
        held = collection.index.name if collection.index else None
        keys = [key for key in self.entity_plan(entity).keys if key.index == held]
        constants = {
            test.parts[0].name: constant_source(test.parts[0].encoding, text)
            for key in keys
            for test, text in key.when
        }
        return AccessPath(
            entity,
            tuple(
                name
                for name in _fields_in([key for key in keys if not key.is_sort])
                if name not in constants
            ),
            _fields_in([key for key in keys if key.is_sort]),
            tuple(sorted(constants.items())),
        )

    def key_fields(self, entity: type[Entity], index: str | None) -> set[str]:
        """Return the fields in an entity's key of an index, or of the table if ``index`` is None.

        Fields that decide whether an item is in a sparse index are included.
        """
        found: set[str] = set()
        for key in self.entity_plan(entity).keys:
            if key.index == index:
                found |= {
                    *map(source_field, _fields_in([key])),
                    *(part.value for test, _ in key.when for part in test.parts),
                }
        return found

    def is_sparse(self, entity: type[Entity], index: str) -> bool:
        """Whether an index may lack entries for some items of an entity."""
        keys = [key for key in self.entity_plan(entity).keys if key.index == index]
        known = info(entity)
        return any(key.when for key in keys) or any(
            is_optional(known, name) for name in self.key_fields(entity, index)
        )

    def decides_membership(self, entity: type[Entity], index: str, field: str) -> bool:
        """Whether a field decides if an item is in a sparse index: a status, or an optional field.

        A change of such a field inserts or deletes the index entry, rather than moving it.
        """
        keys = [key for key in self.entity_plan(entity).keys if key.index == index]
        if field in {part.value for key in keys for test, _ in key.when for part in test.parts}:
            return True
        names = set(map(source_field, _fields_in(keys)))
        return field in names and is_optional(info(entity), field)

    def moves_entries(self, entity: type[Entity], index: str, field: str) -> bool:
        """Whether an update of a field moves entries of an index, or rewrites them in their place.

        It does not if each declared update of the field takes items into a sparse index, or out.
        """
        found = (each for each in self.collections if each.index and each.index.name == index)
        collection = next((each for each in found if entity in each.entities), None)
        if collection is None:
            return True
        path, life = self._path(collection, entity), self.life(entity)
        changes = [
            life.entry_changes(path, each)
            for each in life.rates.writes
            if each.kind == "update" and field in each.fields
        ]
        return any(each.moves + each.stays > _ROUNDED for each in changes)

    # -- findings

    def on_entity(
        self,
        code: str,
        severity: Severity,
        entity: type[Entity],
        message: str,
        fix: str,
        dollars: float | None = None,
    ) -> Finding:
        where = class_location(entity)
        return Finding(code, severity, "entity", info(entity).name, message, fix, where, dollars)

    def on_field(
        self,
        code: str,
        severity: Severity,
        entity: type[Entity],
        field: str,
        message: str,
        fix: str,
        dollars: float | None = None,
    ) -> Finding:
        part = derived_part(field)
        where = class_location(entity, source_field(field))
        name = f"{info(entity).name}.{field}"
        if part is not None:
            name = part.shown(f"{info(entity).name}.{part.field}")
        return Finding(code, severity, "field", name, message, fix, where, dollars)

    def on_pattern(
        self,
        code: str,
        severity: Severity,
        name: str,
        message: str,
        fix: str,
        dollars: float | None = None,
    ) -> Finding:
        where = self.pattern_location(name)
        return Finding(code, severity, "pattern", name, message, fix, where, dollars)

    def on_index(
        self,
        code: str,
        severity: Severity,
        index: IndexPlan,
        message: str,
        fix: str,
        dollars: float | None = None,
    ) -> Finding:
        where = self._index_location(index)
        return Finding(code, severity, "index", index.name, message, fix, where, dollars)

    def on_collection(
        self, code: str, severity: Severity, collection: Collection, message: str, fix: str
    ) -> Finding:
        """Return a finding about a collection.

        If the collection has one entity, with one field in the partition key, the subject of the
        finding is that field. Otherwise it is the index or, in the table itself, the first entity.
        """
        entity = collection.entities[0]
        fields = collection.fields[entity]
        if len(collection.entities) == 1 and len(fields) == 1:
            return self.on_field(code, severity, entity, fields[0], message, fix)
        if collection.index is not None:
            return self.on_index(code, severity, collection.index, message, fix)
        return self.on_entity(code, severity, entity, message, fix)

    def pattern_location(self, name: str) -> Location | None:
        pattern = self.reads.get(name) or self.writes.get(name)
        return None if pattern is None else function_location(pattern.function)

    def _index_location(self, index: IndexPlan) -> Location | None:
        """Return the source location to show for an index.

        This is the entity that declares the index by hand, else the first pattern that uses the
        index, else the first entity in the index.
        """
        for name in index.entities:
            if index.name in dict(info(self.by_name[name]).overrides.indexes):
                return class_location(self.by_name[name])
        located = (self.pattern_location(name) for name in index.patterns)
        return next(
            (where for where in located if where is not None),
            class_location(self.by_name[index.entities[0]]),
        )

    def of(
        self,
        kind: SubjectKind,
        code: str,
        severity: Severity,
        subject: str,
        message: str,
        fix: str,
        dollars: float | None = None,
    ) -> Finding:
        return Finding(code, severity, kind, subject, message, fix, None, dollars)


def _fields_in(keys: list[PlannedKeyAttribute]) -> tuple[str, ...]:
    """Return the fields and derived parts in keys.

    Fields that only determine a shard are left out.
    """
    return tuple(
        dict.fromkeys(
            part.name for key in keys for part in key.template.parts if part.kind == "field"
        )
    )
