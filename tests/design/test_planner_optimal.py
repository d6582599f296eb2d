"""The search finds what trying everything finds: small random designs, every combination of keys
and indexes priced.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from itertools import permutations, product
from typing import Any, Literal

import pytest

from stator.design.design import Design
from stator.design.entities.derived_parts import (
    day_of,
    month_of,
    prefix_of,
    source_field,
    year_of,
)
from stator.design.entities.entity import Entity, info
from stator.design.entities.markers import ident, unique
from stator.design.patterns.ask import descending as downward
from stator.design.patterns.pattern import read
from stator.design.patterns.query import find, together
from stator.design.patterns.write_pattern import creates, deletes, updates, write
from stator.design.planner import choices as choices_module
from stator.design.planner.assignment import Assignment
from stator.design.planner.choices import EntityChoices
from stator.design.planner.cost_model import Placement
from stator.design.planner.needs.need import Need, key_encoding
from stator.design.planner.needs.write_rates import mutable_fields
from stator.design.planner.paths.access_path import AccessPath, may_be_base
from stator.design.planner.paths.candidate_paths import by_label, paths_of
from stator.design.planner.planner import Planner
from stator.design.planner.search import Component, GroupLayout, apart_layout, search
from stator.design.planner.slots import slots_needed
from stator.design.planner.weights import INDEX_DOLLARS
from stator.errors import PatternRefused

Counts = tuple[int, int]


class Parent(Entity):
    key: str = ident()
    mail: str = unique()
    kind: Literal["a", "b", "c"]
    since: datetime


class Child(Entity):
    child: str = ident()
    key: str
    kind: Literal["a", "b", "c"]
    state: Literal["on", "off"]
    at: datetime
    rank: int | None = None


class Pair(Entity):
    left: str = ident()
    right: str = ident()
    key: str
    at: datetime
    note: str = ""


_EQUAL: dict[type[Any], list[str]] = {
    Parent: ["key", "mail", "kind"],
    Child: ["child", "key", "kind", "state"],
    Pair: ["left", "right", "key"],
}
_ORDER: dict[type[Any], list[str]] = {Parent: ["since"], Child: ["at", "rank"], Pair: ["at"]}
_CONSTANTS = {"kind": "a", "state": "on"}


_PARTS: dict[type[Any], list[Any]] = {
    Parent: [year_of(Parent.since), month_of(Parent.since)],
    Child: [month_of(Child.at), day_of(Child.at), prefix_of(Child.key, 2)],
    Pair: [month_of(Pair.at), prefix_of(Pair.left, 2), prefix_of(Pair.left, 4)],
}


_MIXED: dict[type[Any], list[str]] = {
    Parent: ["since", "mail"],
    Child: ["at", "rank", "child"],
    Pair: ["at", "note", "left"],
}
Extra = Literal["", "parts", "orders"]
"""What the reads of a random design have besides fields and one order."""


def a_read(chance: random.Random, entity: type[Any], name: str, extra: Extra = "") -> Any:
    fields: list[Any] = chance.sample(_EQUAL[entity], chance.choice([1, 1, 2]))
    if extra == "parts":
        fields = [chance.choice(_PARTS[entity]), *fields[: chance.choice([0, 1])]]
    constant = chance.random() < 0.4
    order = chance.choice([None, *_ORDER[entity]])
    limit = chance.choice([None, 10])
    bounded = order is not None and chance.random() < 0.5
    consistent = chance.random() < 0.1
    descending = chance.random() < 0.5
    mixed = chance.sample(_MIXED[entity], 2) if extra == "orders" else []
    constants = {
        at for at, field in enumerate(fields)
        if constant and isinstance(field, str) and field in _CONSTANTS
    }  # fmt: skip

    def ask(p0: Any = None, p1: Any = None, p2: Any = None) -> Any:
        tests = [
            (getattr(entity, field) if isinstance(field, str) else field)
            == (_CONSTANTS[field] if at in constants else value)
            for at, (field, value) in enumerate(zip(fields, (p0, p1)))
        ]
        if bounded and order:
            tests.append(getattr(entity, order) >= p2)
        query = find(entity).where(*tests)
        if mixed:
            first, second = (getattr(entity, each) for each in mixed)
            query = query.order_by(downward(first), second, descending=descending)
        elif order:
            query = query.order_by(getattr(entity, order), descending=descending)
        return query.limit(limit) if limit else query

    ask.__name__ = name
    used = [f"p{at}" for at, field in enumerate(fields) if at not in constants] + (
        ["p2"] if bounded else []
    )
    whole = inspect.signature(ask)
    ask.__signature__ = whole.replace(  # type: ignore[attr-defined]
        parameters=[
            each.replace(default=each.empty)
            for name, each in whole.parameters.items()
            if name in used
        ]
    )
    return read(
        rps=chance.choice([0.1, 5, 200]), returns=chance.choice([1, 20, 500]), consistent=consistent
    )(ask)


def a_group(chance: random.Random, entities: list[type[Any]]) -> Any:
    def ask(p0: Any) -> Any:
        first, second = entities
        return together(first, second).where(first.key == p0)

    ask.__name__ = "group"
    return read(rps=chance.choice([1, 100]), returns=20)(ask)


def a_write(chance: random.Random, entity: type[Any], name: str) -> Any:
    changed = chance.choice([*_EQUAL[entity], *_ORDER[entity]])
    identity = {Parent: ["key"], Child: ["child"], Pair: ["left", "right"]}[entity]
    kind = chance.choice(["create", "update", "delete"])

    def change() -> Any:
        if kind == "create":
            return creates(entity)
        return (
            updates(getattr(entity, changed))
            if kind == "update" and changed not in identity
            else deletes(entity)
        )

    change.__name__ = name
    return write(rps=chance.choice([0.1, 10, 500]))(change)


def a_design(seed: int, extra: Extra = "") -> Design:
    chance = random.Random(seed)
    entities = chance.sample([Parent, Child, Pair], chance.choice([1, 2, 2]))
    patterns: list[Any] = []
    for entity in entities:
        count = chance.choice([1, 2, 3]) if len(entities) == 1 else chance.choice([1, 2])
        patterns += [
            a_read(chance, entity, f"{entity.__name__.lower()}{at}", extra) for at in range(count)
        ]
        if chance.random() < 0.8:
            patterns.append(a_write(chance, entity, f"{entity.__name__.lower()}_write"))
    if len(entities) == 2 and chance.random() < 0.6:
        patterns.append(a_group(chance, entities))
    volumes = {entity: chance.choice([50.0, 10_000.0, 5_000_000.0]) for entity in entities}
    layout: Any = chance.choice(["single-table", "table-per-entity"])
    return Design("random", entities, patterns, volumes=volumes, layout=layout)


# --- trying everything ----------------------------------------------------------------------------


def everything(component: Component, neighbours: list[type[Any]]) -> None:
    """Put back the placements that were dropped because another one beats them."""
    for choices in component.choices:
        paths = paths_of(choices.entity, choices.needs, component.groups, component.labels)
        others = tuple(each for each in neighbours if each is not choices.entity)
        choices.secondary = tuple(choices_module._secondary(choices, paths, others))
        for placement in choices.secondary:
            choices.price(placement)


def assignments(
    choices: EntityChoices, base: Placement, forced: tuple[Placement, ...], apart: set[str]
) -> dict[frozenset[Placement], float]:
    """The price of every set of indexes that some assignment of the needs opens.

    ``apart`` has the groups that send one request for each entity.
    """
    local_ok = [
        each
        for each in choices.secondary
        if each.kind != "local"
        or (
            each.path.partition == base.path.partition
            and each.path.shards == base.path.shards
            and each.path.sort != base.path.sort
            and (base.path.sort or not base.is_native)
        )
    ]
    usable = (base, *forced, *local_ok)
    counted = [
        at for at, need in enumerate(choices.needs) if need.leg_of is None or need.leg_of in apart
    ]
    # None stands for a lookup by a guard.
    options: list[list[Placement | None]] = [
        [
            *(each for each in usable if choices.use_dollars[each][at] is not None),
            *([None] if choices.keyless[at] is not None else []),
        ]
        for at in counted
    ]
    found: dict[frozenset[Placement], float] = {}
    for chosen in product(*options):
        held = {each for each in chosen if each is not None}
        opened = frozenset(held) - {base} | frozenset(forced)
        price = choices.open_dollars[base] + sum(choices.open_dollars[each] for each in opened)
        price += sum(
            (choices.keyless[at] if each is None else choices.use_dollars[each][at]) or 0.0
            for at, each in zip(counted, chosen)
        )
        found[opened] = min(found.get(opened, price), price)
    return found


def designs(component: Component) -> Iterator[tuple[float, Counts]]:
    """Price and shared indexes of every design of a component."""
    for bases in product(*(choices.bases for choices in component.choices)):
        of = dict(zip((choices.entity for choices in component.choices), bases))
        placements: list[list[GroupLayout]] = []
        for group in component.groups:
            met = component.in_base(group, of)
            placements.append(
                [
                    *([met] if met is not None else []),
                    *component.in_indexes(group),
                    apart_layout(group),
                ]
            )
        for placed in product(*placements):
            read_dollars = sum(each.dollars for each in placed)
            apart = {each.group.name for each in placed if each.is_apart}
            per_entity = []
            for choices, base in zip(component.choices, bases):
                forced = tuple(
                    placement
                    for each in placed
                    if each.in_index
                    for placement in each.placements
                    if placement.path.entity is choices.entity
                )
                cheapest: dict[Counts, tuple[float, frozenset[Placement]]] = {}
                for opened, price in assignments(choices, base, forced, apart).items():
                    shared = [each.projection for each in opened if each.shares_slot]
                    counts = shared.count("KEYS_ONLY"), shared.count("ALL")
                    if counts not in cheapest or price < cheapest[counts][0]:
                        cheapest[counts] = (price, opened)
                per_entity.append(list(cheapest.values()))
            for chosen in product(*per_entity):
                counts = slots_needed(
                    [list(opened) for _, opened in chosen], [each.placements for each in placed]
                )
                yield read_dollars + sum(price for price, _ in chosen), counts


def cheapest_of(components: list[Component]) -> float:
    frontier: dict[Counts, float] = {(0, 0): 0.0}
    for component in components:
        own: dict[Counts, float] = {}
        for price, counts in designs(component):
            own[counts] = min(own.get(counts, price), price)
        joined: dict[Counts, float] = {}
        for (before, so_far), (counts, price) in product(frontier.items(), own.items()):
            most = (max(before[0], counts[0]), max(before[1], counts[1]))
            joined[most] = min(joined.get(most, so_far + price), so_far + price)
        frontier = joined
    return min(price + INDEX_DOLLARS * sum(counts) for counts, price in frontier.items())


def combinations_of(components: list[Component]) -> int:
    """How many there are to try."""
    total = 0
    for component in components:
        for choices in component.choices:
            total += len(choices.bases) * (len(choices.secondary) + 2) ** len(choices.needs)
        total *= 1 + 3 * len(component.groups)
    return total


@pytest.mark.parametrize("block", range(6))
def test_no_combination_of_keys_and_indexes_is_cheaper(block: int) -> None:
    compared = 0
    for seed in range(block * 100, block * 100 + 100):
        compared += optimum_was_found(seed)
        if compared == 12:
            return
    raise AssertionError(f"only {compared} of the designs were small enough to try everything")


@pytest.mark.parametrize("block", range(3))
@pytest.mark.parametrize("extra", ["parts", "orders"])
def test_no_combination_with_parts_or_mixed_orders_is_cheaper(extra: Extra, block: int) -> None:
    compared = 0
    for seed in range(block * 100, block * 100 + 100):
        compared += optimum_was_found(seed, extra)
        if compared == 12:
            return
    raise AssertionError(f"only {compared} of the designs were small enough to try everything")


def optimum_was_found(seed: int, extra: Extra = "") -> bool:
    planning = Planner(a_design(seed, extra))
    compared = False
    for _, members in planning.tables():
        try:
            components = planning.components(members)
        except PatternRefused:
            continue
        if any(component.solve((99, 99)) is None for component in components):
            continue
        found = search(components)
        for component in components:
            everything(component, members)
        if combinations_of(components) > 60_000:
            continue
        assert found.proven
        assert found.dollars == pytest.approx(cheapest_of(components), abs=1e-6), seed
        compared = True
    return compared


# --- every path -----------------------------------------------------------------------------------


def every_path(choices: EntityChoices) -> list[AccessPath]:
    """Every path of up to four of the names that the needs compare or order by.

    Each stands alone and with the identity behind it. The planner makes a few of them only.
    """
    entity, identity = choices.entity, info(choices.entity).identity
    names = {name for need in choices.needs for name in (*need.keyed, *need.sequence)}
    names |= {source_field(name) for name in names}
    found = []
    for size in range(1, 5):
        for chosen in permutations(sorted(names), size):
            for at in range(1, size + 1):
                if tuple(sorted(chosen[:at])) == chosen[:at]:
                    rest = tuple(name for name in identity if name not in chosen)
                    for path in (
                        AccessPath(entity, chosen[:at], chosen[at:]),
                        AccessPath(entity, chosen[:at], (*chosen[at:], *rest)),
                    ):
                        found += [path, *(path.turning({name}) for name in turnable_of(path))]
    return found


def turnable_of(path: AccessPath) -> list[str]:
    known = info(path.entity)
    return [
        name
        for name in path.sort
        if (found := key_encoding(known, name)) and found.turn is not None
    ]


@pytest.mark.parametrize("block", range(4))
@pytest.mark.parametrize("extra", ["parts", "orders"])
def test_no_other_path_with_parts_or_mixed_orders_is_cheaper(extra: Extra, block: int) -> None:
    """The planner tries only paths that the needs suggest. No other path would save anything."""
    compared = 0
    for seed in range(block * 25, block * 25 + 25):
        design = a_design(seed, extra)
        if len(design.entities) > 1 or len(design.reads) > 2:
            continue
        planning = Planner(design)
        [(_, members)] = planning.tables()
        try:
            components = planning.components(members)
        except PatternRefused:
            continue
        if any(component.solve((99, 99)) is None for component in components):
            continue
        found = search(components)
        [choices] = components[0].choices
        labels, costs = components[0].labels, choices.costs
        paths = [
            replace(path, partition=by_label(path.entity, path.partition, labels))
            for path in every_path(choices)
        ]
        mutable = mutable_fields(choices.entity, costs.rates[choices.entity])
        bases = [
            Placement(replace(path, shards=costs.write_shards(path)), "base")
            for path in paths
            if may_be_base(path, mutable)
        ]
        choices.bases = tuple(dict.fromkeys((*choices.bases, *bases)))
        choices.secondary = tuple(
            choices_module._secondary(choices, tuple(dict.fromkeys(paths)), ())
        )
        for placement in (*choices.bases, *choices.secondary):
            choices.price(placement)
        choices.secondary = choices_module._undominated(choices)
        if combinations_of(components) > 400_000:
            continue
        assert found.dollars <= cheapest_of(components) + 1e-6, seed
        compared += 1
    assert compared >= 2


# --- assignments with prices out of the air -------------------------------------------------------


def cheapest_assignment(choices: EntityChoices, base: Placement, caps: Counts) -> float | None:
    """Every set of placements that fits into the caps."""
    best = None
    for mask in range(2 ** len(choices.secondary)):
        opened = [each for at, each in enumerate(choices.secondary) if mask >> at & 1]
        shared = [each.projection for each in opened if each.shares_slot]
        if shared.count("KEYS_ONLY") > caps[0] or shared.count("ALL") > caps[1]:
            continue
        price = choices.open_dollars[base] + sum(choices.open_dollars[each] for each in opened)
        for at in range(len(choices.needs)):
            uses = [
                use
                for each in (base, *opened)
                if (use := choices.use_dollars[each][at]) is not None
            ]
            price += min(uses, default=float("inf"))
        best = price if best is None or price < best else best
    return None if best is None or best == float("inf") else best


@pytest.mark.parametrize("seed", range(30))
def test_assignments_at_random_prices_are_the_cheapest(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(20):
        needs = tuple(Need(f"n{at}", Child, {}) for at in range(chance.randrange(1, 6)))
        base = Placement(AccessPath(Child, ("child",), ()), "base")
        placements: list[tuple[Any, Any]] = [
            ("concatenated", "ALL"),
            ("concatenated", "KEYS_ONLY"),
            ("native", "ALL"),
        ]
        secondary = tuple(
            Placement(
                AccessPath(Child, ("key",), ("at",), shards=at + 1), *chance.choice(placements)
            )
            for at in range(chance.randrange(7))
        )
        nothing: Any = None  # the costs are set by hand below
        choices = EntityChoices(Child, needs, (base,), secondary, (), nothing, (None,) * len(needs))
        for placement in (base, *secondary):
            often = 0.3 if placement is base else 0.6
            choices.open_dollars[placement] = 0.0 if placement is base else chance.uniform(0, 10)
            choices.use_dollars[placement] = tuple(
                chance.uniform(0, 5) if chance.random() < often else None for _ in needs
            )
        for caps in ((99, 99), (1, 1), (0, 2), (2, 0), (0, 0)):
            found = Assignment(choices, base, (), caps).solve()
            wanted = cheapest_assignment(choices, base, caps)
            assert (found is None) == (wanted is None)
            if found is not None:
                assert found.dollars == pytest.approx(wanted)
