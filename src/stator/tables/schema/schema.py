"""The entities, tables and patterns of a design, in the current plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from stator.design.design import Design
from stator.design.entities.entity import info
from stator.design.patterns.ask import Ask
from stator.design.plan.own_table import own_table
from stator.design.plan.plan import EntityPlan, IndexPlan, PatternPlan, Plan, Step, TablePlan
from stator.errors import DesignError
from stator.model.values import Item, Value
from stator.tables.schema.entity_map import EntityMap
from stator.tables.schema.key_identity import TableKeyReader
from stator.tables.schema.place import Place

_NONE: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class StepRoute:
    """A step (one request of a planned pattern) with the index it reads, looked up once.

    ``sort`` names the sort key attributes of the table or index. ``key`` names the attributes of an
    ExclusiveStartKey.
    """

    step: Step
    index: IndexPlan | None
    sort: tuple[str, ...]
    key: tuple[str, ...]

    @classmethod
    def of(cls, step: Step, table: TablePlan) -> StepRoute:
        index = next((each for each in table.indexes if each.name == step.index), None)
        own_sort = (table.sort,) if table.sort else ()
        base = (table.partition, *own_sort)
        if index is None:
            return cls(step, None, own_sort, base)
        key = tuple(dict.fromkeys((*base, *index.partition, *index.sort)))
        return cls(step, index, index.sort, key)


class Schema:
    """All entities of a design, in the current plan."""

    def __init__(self, design: Design, plan: Plan, prefix: str = "") -> None:
        self.design = design
        self.plan = plan = prefixed(plan, prefix)
        self.tables = {table.name: table for table in plan.tables}
        self.maps: dict[type[Any], EntityMap] = {}
        self._by_name: dict[str, EntityMap] = {}
        for cls in design.entities:
            entity = self._plan_of(cls)
            made = EntityMap(cls, entity, self.tables[entity.table])
            self.maps[cls] = self._by_name[made.name] = made
            model = getattr(made.info, "model", None)  # the class of an adapted model's instances
            if model is not None:
                self.maps[model] = made
        for made in self._by_name.values():
            made.neighbours = [
                each
                for each in self._by_name.values()
                if each is not made and each.table is made.table
            ]
            if made.neighbours and made.plan.discriminator is None:
                made.told_by_key = self._key_test(made)
            variants = {
                tag: EntityMap(cls, made.plan, made.table)
                for tag, cls in made.info.variants.items()
            }
            made.take_variants(variants)
            for each in variants.values():
                each.told_by_key = made.told_by_key
            self.maps |= {each.cls: each for each in variants.values()}
        self._soft_deletes = any(each.deleted for each in self._by_name.values())
        self._routes: dict[str, tuple[StepRoute, ...]] = {}
        self._patterns = {pattern.name: pattern for pattern in plan.patterns}
        self._table_keys: dict[str, TableKeyReader] = {}
        # A separate table: the plan's tables hold entities only, and the plan may change.
        self.place = Place.of(own_table(design.name, prefix))

    def _key_test(self, made: EntityMap) -> Callable[[Item], bool]:
        return lambda item: self.of_item(item, made.table.name) is made

    def hidden(self, ask: Ask) -> frozenset[str]:
        """Return the ``soft_delete()`` fields by which a query recognises items to leave out."""
        if not self._soft_deletes:
            return _NONE
        return frozenset(name for each in ask.targets if (name := ask.hides(each)) is not None)

    def ttl_of(self, table: str) -> str | None:
        """Return the attribute by which items of a table expire, or None."""
        return next(
            (each.ttl for each in self._by_name.values() if each.plan.table == table and each.ttl),
            None,
        )

    def _plan_of(self, cls: type[Any]) -> EntityPlan:
        name = info(cls).name
        found = next((each for each in self.plan.entities if each.name == name), None)
        if found is None:
            raise DesignError(
                f"the plan of {self.design.name} has no {name}",
                hint="write the lock file again with `stator plan --write`",
            )
        return found

    def of(self, cls: type[Any]) -> EntityMap:
        """Return the map of an entity. Raises DesignError for a variant of an entity."""
        found = self.of_class(cls)
        if found.tag:
            raise DesignError(
                f"{cls.__name__} is a variant of {found.name}, and a whole entity is needed here",
                hint=f"use {found.name}, and test isinstance(item, {cls.__name__})",
            )
        return found

    def of_class(self, cls: type[Any]) -> EntityMap:
        """Return the map of an entity or of a variant."""
        found = self.maps.get(cls)
        if found is None:
            raise DesignError(
                f"{getattr(cls, '__name__', cls)!s} is not in the design {self.design.name}",
                hint=f"it has {', '.join(self._by_name)}",
            )
        return found

    def named(self, name: str) -> EntityMap:
        return self._by_name[name]

    def of_object(self, entity: Any) -> EntityMap:
        return self.maps.get(type(entity)) or self.of_class(type(entity))

    def pattern(self, name: str) -> PatternPlan:
        found = self._patterns.get(name)
        if found is None:
            raise DesignError(
                f"the plan of {self.design.name} has no pattern {name}",
                hint="add it to the design, then write the lock file with `stator plan --write`",
            )
        return found

    def routes(self, pattern: PatternPlan) -> tuple[StepRoute, ...]:
        """Return the steps of a pattern with the tables and indexes they read."""
        found = self._routes.get(pattern.name)
        if found is None:
            found = tuple(StepRoute.of(step, self.tables[step.table]) for step in pattern.steps)
            self._routes[pattern.name] = found
        return found

    def table_keys(self, table: str) -> TableKeyReader:
        """Return the reader of a table's keys, which finds an item's entity and identity."""
        found = self._table_keys.get(table)
        if found is None:
            names = self.tables[table].entities
            found = TableKeyReader([self._by_name[name] for name in names if name in self._by_name])
            self._table_keys[table] = found
        return found

    def of_item(self, item: Item, table: str, entities: tuple[str, ...] = ()) -> EntityMap | None:
        """Return the entity of an item, or None if the item belongs to no entity of the design.

        The discriminator attribute names the entity. If the plan has no discriminator, the item's
        key shows the entity. A table with one entity needs neither.
        """
        candidates = entities or self.tables[table].entities
        first = self._by_name[candidates[0]]
        discriminator = first.plan.discriminator
        value: Value | None = item.get(discriminator) if discriminator is not None else None
        if discriminator is None:
            return first if not first.neighbours else self.table_keys(table).closest(item)
        if value is None:
            return None
        return self._by_name.get(value.get("S", ""))


def _prefixed_step(step: Step, prefix: str) -> Step:
    guard = step.guard and replace(step.guard, table=prefix + step.guard.table)
    return replace(step, table=prefix + step.table, guard=guard)


def prefixed(plan: Plan, prefix: str) -> Plan:
    """Return the same plan with ``prefix`` before every table name."""
    if not prefix:
        return plan
    return replace(
        plan,
        tables=tuple(replace(table, name=prefix + table.name) for table in plan.tables),
        entities=tuple(replace(entity, table=prefix + entity.table) for entity in plan.entities),
        patterns=tuple(
            replace(
                pattern,
                steps=tuple(_prefixed_step(step, prefix) for step in pattern.steps),
            )
            for pattern in plan.patterns
        ),
    )
