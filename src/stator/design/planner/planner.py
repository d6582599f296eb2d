"""The planning run: from a declaration to its plan.

Patterns become needs, needs become access paths, the search chooses a layout, and the blueprint
writes it out.

``plan`` is the entry point. It splits the entities into tables as ``layout=`` says:
``single-table`` gives one table, ``aggregate`` a table for entities that are read together, and
``table-per-entity`` a table for each entity. It refuses patterns that no key could serve, lets
``search`` choose for each table, and hands the result to ``blueprint``. With a lock file,
``locked_choices`` prices every move away from the locked keys.

Planning is a pure function: entities and patterns are sorted by name first, so their order in the
declaration has no effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from weakref import WeakKeyDictionary

from stator.design.capacity_units import MONTH_SECONDS
from stator.design.declaration import Declaration
from stator.design.entities.entity import Entity, info
from stator.design.plan.plan import EntityPlan, PatternPlan, Plan, TablePlan
from stator.design.plan.usage import StoredItems, UnitUse
from stator.design.planner.blueprint.table_blueprint import (
    TableBlueprint,
    priced_table,
    write_blueprint,
)
from stator.design.planner.blueprint.write_plans import WritePlans
from stator.design.planner.blueprint.write_usage import Opened
from stator.design.planner.choices import (
    EntityChoices,
    add_shards,
    choices_of,
    drop_worse_bases,
    handwritten_indexes,
)
from stator.design.planner.cost_model import CostModel, LayoutBytes
from stator.design.planner.estimates import Estimates, demand_of
from stator.design.planner.keys.handwritten_keys import parse
from stator.design.planner.keys.key_labels import KeyLabels, labels_of, upper_words
from stator.design.planner.locked_choices import (
    LockedChoices,
    locked_choices_of,
    locked_labels,
    stored_keys,
)
from stator.design.planner.needs.need import Need, TogetherGroup, is_optional, key_encoding
from stator.design.planner.needs.write_rates import identity_need, rates_of
from stator.design.planner.paths.access_path import AccessPath
from stator.design.planner.paths.candidate_paths import paths_of
from stator.design.planner.refusals import refuse_component, refuse_indexes, refuse_unserved
from stator.design.planner.search import Component, components_of, search
from stator.design.planner.selectivity import estimated_group, estimated_need
from stator.design.planner.weights import READ_UNIT_DOLLARS
from stator.errors import DesignError
from stator.model.limits import READ_UNIT_BYTES


def plan(design: Declaration, previous: Plan | None = None, rekey: Iterable[str] = ()) -> Plan:
    """Return the cheapest plan that serves every pattern.

    The plan is cached for each declaration, lock and ``rekey``. ``previous`` is the plan that
    existing data was written under; by default, it is the declaration's lock. ``rekey`` names
    entities that may get another base key than the locked one. Raises ScanNeeded or PatternRefused
    if a pattern cannot be served.
    """
    lock, freed = previous or design.lock, frozenset(rekey)
    for name in sorted(freed - {info(entity).name for entity in design.entities}):
        raise DesignError(
            f"{design.name} has no entity {name!r} that could get another key",
            hint=f"name one of {', '.join(sorted(info(each).name for each in design.entities))}",
        )
    planned = _PLANNED.setdefault(design, [])
    for known, names, found in planned:  # a declaration does not change
        if known is lock and names == freed:
            return found
    found = Planner(design, lock, freed).run()
    planned.append((lock, freed, found))
    return found


_PLANNED: WeakKeyDictionary[Declaration, list[tuple[Plan | None, frozenset[str], Plan]]] = (
    WeakKeyDictionary()
)


class Planner:
    """One planning run: the needs, their prices, and then one blueprint for each table."""

    def __init__(
        self,
        design: Declaration,
        previous: Plan | None = None,
        rekey: frozenset[str] = frozenset(),
        longer: str | None = None,
    ) -> None:
        """Prepare a run. The base key of the entity ``longer`` may exceed its identity."""
        self.design = design
        self.longer = longer
        self.previous = previous
        self.rekey = rekey
        self.weight = 0.0
        """The sum that the search minimised, set by ``run``: the bill plus burdens that no bill
        shows.
        """
        self.estimates = Estimates(design)
        self.entities = sorted(design.entities, key=lambda each: info(each).name)
        for entity in self.entities:
            _check_identity(entity)
        _check_distinct_keys(self.entities, design.layout)
        self.reads = sorted(design.reads, key=lambda each: each.name)
        self.needs: dict[type[Entity], list[Need]] = {entity: [] for entity in self.entities}
        self.groups: list[TogetherGroup] = []
        self.allowed_scans = {pattern.name for pattern in self.reads if pattern.traffic.allow_scan}
        self._sort_reads()
        self.labels: KeyLabels = labels_of(
            self.entities, self.groups, locked_labels(previous, self.entities)
        )
        changes = design.changes()
        rates = {entity: rates_of(entity, changes) for entity in self.entities}
        self.costs = CostModel(
            self.estimates,
            rates,
            self.labels,
            busy_rates=[
                {entity: rates_of(entity, busy) for entity in self.entities}
                for busy in design.busy_changes()
            ],
            longer=longer,
            stored_keys=stored_keys(previous, design.layout, self.entities),
            written_keys={
                entity: tuple(
                    each.path for each in handwritten_indexes(entity) if each.kind == "concatenated"
                )
                for entity in self.entities
            },
        )
        for entity in self.entities:
            lookup = identity_need(entity, rates[entity])
            if lookup is not None and info(entity).name != longer:
                self.needs[entity].append(lookup)

    def _sort_reads(self) -> None:
        for pattern in self.reads:
            targets = pattern.trace().targets
            [first, *others] = targets
            if not others:
                self.needs[first].append(estimated_need(pattern, first, self.estimates))
                continue
            group = estimated_group(pattern, self.estimates)
            leg_of = None
            if not self._is_apart(targets) and not self._needs_types(group):
                self.groups.append(group)
                leg_of = group.name
            for member in group.members:
                self.needs[member.entity].append(replace(member, leg_of=leg_of))

    def run(self) -> Plan:
        tables: list[TablePlan] = []
        entities: list[EntityPlan] = []
        patterns: dict[str, PatternPlan] = {}
        opened: dict[str, Opened] = {}
        lookups: list[UnitUse] = []
        stored: list[StoredItems] = []
        sizes, proven = LayoutBytes(), True
        for name, members in self.tables():
            _check_table_name(self.design.names.get(name, name))
            blueprint = self._blueprint(name, members)
            tables.append(blueprint.table)
            entities += blueprint.entities
            opened |= blueprint.opened
            lookups += blueprint.lookups
            stored += blueprint.stored
            sizes = sizes.joined(blueprint.sizes)
            self.weight += blueprint.dollars
            for each in blueprint.patterns:
                before = patterns.get(each.name)
                # A pattern whose entities live in several tables has a part in each.
                patterns[each.name] = each if before is None else before.joined(each)
            proven = proven and blueprint.proven
        by_name = {each.name: each for each in entities}
        writes = WritePlans(self.design, replace(self.costs, known=sizes), by_name, opened)
        found = sorted([*patterns.values(), *writes.patterns()], key=lambda each: each.name)
        found = [_with_locked_runner_up(each, self.previous) for each in found]
        uses = [each for each in (*writes.uses(), *lookups) if each.units]
        tables = [
            priced_table(
                table,
                (each for each in uses if each.entity in table.entities),
                (each for each in stored if each.entity in table.entities),
            )
            for table in tables
        ]
        dollars = sum(each.dollars_per_month for each in found)
        dollars += sum(
            each.storage_dollars_per_month + each.other_dollars_per_month for each in tables
        )
        warnings = [f"{each.name}: {warning}" for each in entities for warning in each.warnings]
        warnings += [f"{each.name}: {warning}" for each in found for warning in each.warnings]
        return Plan(
            self.design.name,
            self.design.layout,
            tuple(tables),
            tuple(sorted(entities, key=lambda each: each.name)),
            tuple(found),
            round(dollars, 4),
            proven,
            tuple(warnings),
            demand_of(self.design),
            tuple(sorted(uses, key=_place)),
            tuple(sorted(stored, key=_place)),
        )

    # -- tables

    def tables(self) -> list[tuple[str, list[type[Entity]]]]:
        """Return the name of each table with its entities.

        Entities with ``table=`` are in that table. The layout decides about the others.
        """
        chosen: dict[str, list[type[Entity]]] = {}
        for entity in self.entities:
            if (own := info(entity).overrides.table) is not None:
                chosen.setdefault(own, []).append(entity)
        free = [each for each in self.entities if info(each).overrides.table is None]
        for name, members in self._by_layout(free):
            if name in chosen:
                chosen[name] = [each for each in self.entities if each in (*chosen[name], *members)]
            else:
                chosen[name] = members
        return list(chosen.items())

    def _by_layout(self, entities: list[type[Entity]]) -> Iterable[tuple[str, list[type[Entity]]]]:
        if not entities:
            return
        if self.design.layout == "single-table":
            yield self.design.name, entities
            return
        if self.design.layout == "table-per-entity":
            yield from ((self._table_name(entity), [entity]) for entity in entities)
            return
        joined: dict[type[Entity], set[type[Entity]]] = {entity: {entity} for entity in entities}
        for group in self.groups:
            merged: set[type[Entity]] = set().union(
                *(joined[member.entity] for member in group.members if member.entity in joined)
            )
            joined |= dict.fromkeys(merged, merged)
        for entity in entities:
            members = [each for each in entities if each in joined[entity]]
            if entity is members[0]:
                name = self._locked_table_name(members) or self._table_name(self._root(members))
                yield name, members

    def _is_apart(self, targets: Iterable[type[Entity]]) -> bool:
        """Whether these entities are in several tables, so that a pattern needs several requests.

        The entities are in several tables if their ``table=`` differs, or if the layout is
        ``table-per-entity``.
        """
        targets = list(targets)
        places = {info(each).overrides.table for each in targets}
        return len(places) > 1 or (self.design.layout == "table-per-entity" and places == {None})

    def _needs_types(self, group: TogetherGroup) -> bool:
        """Whether a group cannot be served by one query, because items have no type attribute.

        A condition on only one entity of a group needs the type attribute, so that items of the
        other entities pass. ``names={"_type": ""}`` leaves the attribute out.
        """
        names = self.design.names
        table = info(group.members[0].entity).overrides.table or self.design.name
        has_type = bool(names.get(f"{table}/_type", names.get("_type", "_type")))
        return not has_type and any(
            each.filters or each.spans or len(each.equal) > len(group.shared)
            for each in group.members
        )

    def _locked_table_name(self, members: list[type[Entity]]) -> str | None:
        """Return the name of the one locked table that holds these entities, or None.

        Returns None if there is no lock, if its layout differs, or if the entities are in several
        of its tables or in none. Also returns None if the table holds other entities of the design.
        """
        if self.previous is None or self.previous.layout != self.design.layout:
            return None
        names = {info(each).name for each in members}
        tables = [each for each in self.previous.tables if names & set(each.entities)]
        present = {info(each).name for each in self.entities}
        if len(tables) != 1 or not present & set(tables[0].entities) <= names:
            return None
        return next(
            (name for name, own in self.design.names.items() if own == tables[0].name),
            tables[0].name,
        )

    def _locked(self, entity: type[Entity], paths: tuple[AccessPath, ...]) -> LockedChoices | None:
        """Return the choices for an entity in the lock file.

        Returns None if there is no lock file, or if it does not have the entity in the same table.
        """
        if self.previous is None:
            return None
        table = next(name for name, members in self.tables() if entity in members)
        own = self.design.names.get(table, table)
        there = any(
            each.name == own and info(entity).name in each.entities for each in self.previous.tables
        )
        if not there:
            return None
        found = locked_choices_of(entity, self.previous, paths, self.labels)
        if found is not None and info(entity).name in self.rekey:
            return replace(found, base=None)
        return found

    def _root(self, members: list[type[Entity]]) -> type[Entity]:
        """Return the entity after which the partitions of an aggregate are labelled.

        That is the entity whose label occurs in the shared partition key, else the first one.
        """
        labels = {
            self.labels.field(member.entity, name)
            for group in self.groups
            for member, name in zip(group.members, group.shared[0])
            if member.entity in members
        }
        return next((each for each in members if self.labels.entity(each) in labels), members[0])

    def _table_name(self, entity: type[Entity]) -> str:
        return f"{self.design.name}-{upper_words(info(entity).name).lower().replace('_', '-')}"

    def components(self, members: list[type[Entity]]) -> list[Component]:
        """Return the components of one table.

        A component is a group of entities, each with its candidate keys and indexes. Raises
        ScanNeeded or PatternRefused if no candidate serves a need.
        """
        groups = [group for group in self.groups if group.members[0].entity in members]
        choices = [self._choices(entity, members, groups) for entity in members]
        for each in choices:
            refuse_unserved(each, self.reads, self.labels)
        components = components_of(choices, groups, self.costs, self.labels)
        for component in components:
            _even_shards(component)
            for each in component.choices:
                ordered = [
                    member.order
                    for group in groups
                    for member in group.members
                    if member.entity is each.entity
                ]
                drop_worse_bases(each, any(ordered))
        return components

    def _blueprint(self, name: str, members: list[type[Entity]]) -> TableBlueprint:
        components = self.components(members)
        for component in components:
            refuse_component(component)
        found = search(components)
        refuse_indexes(self.design.name, found)
        choices = sorted(
            (each for one in components for each in one.choices), key=lambda each: each.name
        )
        taken = self._taken_names(self.design.names.get(name, name))
        return write_blueprint(
            name, self.design, choices, found, self.costs, self.labels, self.reads, taken
        )

    def _taken_names(self, table: str) -> frozenset[str]:
        """Return the index names that the lock file has for a table."""
        tables = () if self.previous is None else self.previous.tables
        return frozenset(
            index.name for each in tables if each.name == table for index in each.indexes
        )

    def _choices(
        self, entity: type[Entity], members: list[type[Entity]], groups: list[TogetherGroup]
    ) -> EntityChoices:
        needs = tuple(self.needs[entity])
        scan = sum(
            self.estimates.volume(each) * self.costs.item_bytes(each) / READ_UNIT_BYTES / 2
            for each in members
        )
        scans = tuple(
            scan * need.rps * MONTH_SECONDS * READ_UNIT_DOLLARS
            if need.name in self.allowed_scans and (need.is_whole or not need.sequence)
            else None
            for need in needs
        )
        paths = paths_of(entity, needs, groups, self.labels)
        return choices_of(
            entity,
            needs,
            paths,
            self.costs,
            neighbours=tuple(each for each in members if each is not entity),
            own_table=self.design.layout == "table-per-entity" and len(members) == 1,
            scans=scans,
            locked=self._locked(entity, paths),
            beyond_identity=info(entity).name == self.longer,
        )


def _place(each: UnitUse | StoredItems) -> tuple[str, ...]:
    label = (each.kind, each.pattern) if isinstance(each, UnitUse) else ()
    return (*label, each.entity, each.table, each.index or "")


def _even_shards(component: Component) -> None:
    """Give base keys on the same partition variants with equal numbers of shards.

    Entities can share a partition only if their base keys have the same number of shards. Each base
    key gets a variant with the largest number that any base key on that partition has.
    """
    if not component.groups:
        return
    most: dict[tuple[str, ...], int] = {}
    for choices in component.choices:
        for base in choices.bases:
            head = tuple(
                component.labels.field(choices.entity, name) for name in base.path.partition
            )
            most[head] = max(most.get(head, 1), base.path.shards)
    for choices in component.choices:
        for base in choices.bases:
            head = tuple(
                component.labels.field(choices.entity, name) for name in base.path.partition
            )
            if most[head] > base.path.shards and base.path.handwritten is None:
                add_shards(choices, base.path, most[head])


def _check_distinct_keys(entities: list[type[Entity]], layout: str) -> None:
    """Refuse equal handwritten keys in one table: items of two entities could overwrite each other.

    Entities in different tables may have equal keys.
    """
    seen: dict[tuple[object, ...], str] = {}
    for entity in entities:
        known = info(entity)
        table = known.overrides.table
        if known.overrides.key is None or (layout == "table-per-entity" and table is None):
            continue
        written = parse(entity, known.overrides.key)
        form = (
            table,
            *(
                None
                if side is None
                else tuple("" if is_field else text for is_field, text in side.pieces)
                for side in (written.partition, written.sort)
            ),
        )
        if form in seen:
            raise DesignError(
                f"{seen[form]} and {known.name} have the same key {known.overrides.key}: "
                f"one would overwrite the other",
                hint="start each sort key with a different word, for example ORDER#{order_id}",
            )
        seen[form] = known.name


def _with_locked_runner_up(pattern: PatternPlan, previous: Plan | None) -> PatternPlan:
    """Return a pattern's plan with the runner-up of the lock file, if its price is the same.

    The runner-up is the text about the next best placement. With the old text, an unchanged design
    leaves its lock file unchanged, to the last byte.
    """
    locked = previous.patterns if previous is not None else ()
    before = next((each for each in locked if each.name == pattern.name), None)
    if before is None or before.steps != pattern.steps:
        return pattern
    prices = [each.runner_up.rpartition(", ")[2] for each in (before, pattern)]
    return replace(pattern, runner_up=before.runner_up) if len(set(prices)) == 1 else pattern


def _check_table_name(name: str) -> None:
    if not re.fullmatch(r"[a-zA-Z0-9_.-]{3,255}", name):
        raise DesignError(
            f"{name!r} cannot be the name of a table",
            hint="use 3 to 255 letters, digits, dots, dashes and underscores; the table takes the "
            "design's name unless names= renames it",
        )


def _check_identity(entity: type[Entity]) -> None:
    known = info(entity)
    for name in known.identity:
        if key_encoding(known, name) is None or is_optional(known, name):
            raise DesignError(
                f"{known.name}.{name} cannot identify an item",
                hint="an identity is a required field of one of the types "
                f"{', '.join(sorted(_key_types()))}",
            )


def _key_types() -> set[str]:
    return {"str", "int", "Decimal", "datetime", "date", "UUID", "bool", "bytes", "float", "time"}
