"""A published design: entities, patterns with rates, published keys, expected access paths.

The published keys are data. ``Model.published`` plans them, too: it creates subclasses of the
entities with ``key=`` and ``index=`` and gives them the same patterns. Both designs are then priced
by one cost function and run on one engine.
"""

from __future__ import annotations

import dataclasses
import random
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from stator.design.design import Design, Layout, Per
from stator.design.entities.entity import Entity, info
from stator.design.patterns.ask import Ask
from stator.design.patterns.pattern import Pattern
from stator.design.patterns.write_pattern import DeclaredWrite, WritePattern
from stator.design.plan.plan import (
    IndexPlan,
    Plan,
)
from stator.design.plan.templates import PlannedKeyAttribute
from stator.design.planner.cost_model import Placement
from stator.design.planner.keys.handwritten_keys import parse
from stator.design.planner.paths.access_path import AccessPath
from stator.design.planner.planner import Planner
from stator.design.planner.weights import INDEX_DOLLARS, STORAGE_BYTE_DOLLARS

Fields = tuple[str, ...]
Shape = tuple[Fields, Fields]
"""The fields of a partition key and of a sort key."""


@dataclass(frozen=True)
class Keys:
    """The published keys of one entity: in the table, and in the indexes."""

    key: tuple[str, str] | tuple[str]
    indexes: Mapping[str, tuple[str, str] | tuple[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Wanted:
    """The expected access path of a pattern.

    ``sort`` is the expected start of the sort key; ``filtered`` allows a filter.
    """

    operation: Literal["GetItem", "Query"]
    of: Literal["table", "index"]
    partition: Fields
    sort: Fields = ()
    filtered: bool = False


@dataclass(frozen=True)
class Difference:
    """Why the planned keys of an entity differ from the published ones.

    The reason rests on a fact, a test of both plans.
    """

    why: str
    fact: Callable[[Plan, Plan], bool]


@dataclass(frozen=True)
class Model:
    """A published design.

    ``plain`` are published indexes whose keys are attributes of the items, not composed strings.
    ``instead`` has replacements for patterns that the published keys cannot serve as written.
    ``differences`` are by entity, and by "indexes" if the number of indexes differs.
    """

    name: str
    entities: tuple[type[Entity], ...]
    patterns: tuple[Pattern[..., Any] | WritePattern, ...]
    volumes: Mapping[type[Entity], float | Per]
    keys: Mapping[type[Entity], Keys]
    paths: Mapping[str, Wanted]
    objects: Callable[[random.Random], list[Any]]
    calls: tuple[tuple[str, dict[str, Any]], ...]
    differences: Mapping[str, Difference] = field(default_factory=dict)
    plain: frozenset[str] = frozenset()
    instead: Mapping[str, tuple[Pattern[..., Any], ...]] = field(default_factory=dict)
    instead_calls: tuple[tuple[str, dict[str, Any]], ...] = ()

    def ours(self, layout: Layout = "single-table") -> Design:
        return Design(self.name, self.entities, self.patterns, volumes=self.volumes, layout=layout)

    def published(self) -> Published:
        made = {each: _keyed(each, self.keys[each]) for each in self.entities}
        volumes = {
            made[each]: replace(count, entity=made[count.entity])
            if isinstance(count, Per)
            else count
            for each, count in self.volumes.items()
        }
        asked = [one for each in self.patterns for one in self.instead.get(each.name, (each,))]
        patterns = [_asked_of(pattern, made) for pattern in asked]
        return Published(self, Design(self.name, made.values(), patterns, volumes=volumes), made)

    def at_other_rates(self, chance: random.Random) -> Model:
        """The same model with the rate of every pattern up to ten times higher or lower."""

        def turned(pattern: Pattern[..., Any] | WritePattern) -> Pattern[..., Any] | WritePattern:
            factor = 10 ** chance.uniform(-1, 1)
            if isinstance(pattern, WritePattern):
                return WritePattern(pattern.function, pattern.rps * factor)
            return Pattern(
                pattern.function, replace(pattern.traffic, rps=pattern.traffic.rps * factor)
            )

        return replace(self, patterns=tuple(map(turned, self.patterns)))

    @property
    def published_calls(self) -> tuple[tuple[str, dict[str, Any]], ...]:
        return (
            tuple(call for call in self.calls if call[0] not in self.instead) + self.instead_calls
        )

    @property
    def published_indexes(self) -> set[str]:
        return {name for keys in self.keys.values() for name in keys.indexes}


@dataclass(frozen=True)
class Published:
    model: Model
    design: Design
    made: Mapping[type[Entity], type[Entity]]

    def objects(self, chance: random.Random) -> list[Any]:
        return [
            self.made[type(each)](
                **{one.name: getattr(each, one.name) for one in dataclasses.fields(each)}
            )
            for each in self.model.objects(chance)
        ]

    def dollars(self, plan: Plan, weight: float) -> float:
        """The value of the published design in the search, without the cost of ``index=`` itself.

        With ``index=``, an index is charged once for each entity in it, its keys are strings even
        if the authors used plain attributes, and several entities in it need several queries.
        """
        dollars = weight
        dollars -= sum(
            plan.pattern(one.name).dollars_per_month
            for each in self.model.instead.values()
            for one in each[1:]
        )
        pins = [
            (entity, name)
            for entity in self.made.values()
            for name, _ in info(entity).overrides.indexes
        ]
        dollars -= INDEX_DOLLARS * (len(pins) - len({name for _, name in pins}))
        costs = Planner(self.design).costs
        for entity in self.made.values():
            for name, written in info(entity).overrides.indexes:
                if name in self.model.plain:
                    pieces = parse(entity, written, name)
                    path = AccessPath(
                        entity,
                        pieces.partition.fields,
                        () if pieces.sort is None else pieces.sort.fields,
                        handwritten=pieces,
                    )
                    entries = costs.estimates.volume(entity) * costs.presence(path)
                    dollars -= (
                        entries
                        * costs.key_bytes(Placement(path, "concatenated"))
                        * STORAGE_BYTE_DOLLARS
                    )
        return dollars


def _keyed(entity: type[Entity], keys: Keys) -> type[Entity]:
    options = {"key": keys.key, "index": dict(keys.indexes)}
    return types.new_class(
        entity.__name__, (entity,), options, lambda body: body.update(__module__=entity.__module__)
    )


class Retargeted(Pattern[..., Any]):
    """A pattern applied to subclasses of the entities it was written for."""

    def __init__(
        self, pattern: Pattern[..., Any], made: Mapping[type[Entity], type[Entity]]
    ) -> None:
        super().__init__(pattern.function, pattern.traffic)
        self._made = made

    def _trace(self) -> Ask:
        return self.moved(super()._trace())

    def moved(self, ask: Ask) -> Ask:
        return replace(ask, targets=tuple(self._made[each] for each in ask.targets))

    def asked(self, arguments: Mapping[str, Any]) -> Ask:
        """What one call asks, with values in place of parameters."""
        return self.moved(self.function(**arguments).ask)


def _asked_of(
    pattern: Pattern[..., Any] | WritePattern, made: Mapping[type[Entity], type[Entity]]
) -> Pattern[..., Any] | WritePattern:
    if isinstance(pattern, Pattern):
        return Retargeted(pattern, made)

    def changes() -> tuple[DeclaredWrite, ...]:
        return tuple(replace(change, entity=made[change.entity]) for change in pattern.trace())

    changes.__name__ = pattern.name
    return WritePattern(changes, pattern.rps)


# --- the keys of a plan ---------------------------------------------------------------------------


def base_of(plan: Plan, entity: str) -> Shape:
    table = plan.table(plan.entity(entity).table)
    own = {key.name: key for key in plan.entity(entity).keys if key.index is None}
    return _fields(own[table.partition]), _fields(
        own[table.sort]
    ) if table.sort and table.sort in own else ()


def index_of(plan: Plan, entity: str, index: IndexPlan) -> Shape:
    if index.native:
        return index.partition, index.sort
    own = {key.name: key for key in plan.entity(entity).keys if key.index == index.name}
    sides = [
        tuple(name for at in side if at in own for name in _fields(own[at]))
        for side in (index.partition, index.sort)
    ]
    return sides[0], sides[1]


def indexes_of(plan: Plan) -> list[IndexPlan]:
    return [index for table in plan.tables for index in table.indexes]


def index_shapes(plan: Plan, entity: type[Entity]) -> list[Shape]:
    name = info(entity).name
    return [index_of(plan, name, index) for index in indexes_of(plan) if name in index.entities]


def has_same_keys(entity: type[Entity], ours: Plan, theirs: Plan) -> bool:
    """Whether both plans use the same fields in the keys of an entity.

    Fields at the end of a sort key that only tell items apart do not count.
    """
    name, identity = info(entity).name, set(info(entity).identity)

    def same(one: Shape, other: Shape) -> bool:
        common = next(
            (at for at, (a, b) in enumerate(zip(one[1], other[1])) if a != b),
            min(len(one[1]), len(other[1])),
        )
        return set(one[0]) == set(other[0]) and {*one[1][common:], *other[1][common:]} <= identity

    if not same(base_of(ours, name), base_of(theirs, name)):
        return False
    left = index_shapes(theirs, entity)
    for mine in index_shapes(ours, entity):
        match = next((each for each in left if same(mine, each)), None)
        if match is None:
            return False
        left.remove(match)
    return not left


def _fields(key: PlannedKeyAttribute) -> Fields:
    constants = tuple(
        f"{part.value}={text}" for template, text in key.when for part in template.parts
    )
    return (*constants, *(part.value for part in key.template.parts if part.kind == "field"))
