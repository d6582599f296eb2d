"""Published designs against the planner's: never more expensive, every difference explained."""

from __future__ import annotations

import importlib
import pkgutil
import random
from functools import cache
from typing import Any

import pytest

from stator.design.design import Design, Layout
from stator.design.entities.entity import info
from stator.design.patterns.ask import Ask
from stator.design.plan.plan import Plan
from stator.design.planner.planner import Planner
from stator.design.planner.weights import INDEX_DOLLARS
from stator.engine.engine import Engine

from . import published
from .published.model import (
    Model,
    Published,
    Retargeted,
    base_of,
    has_same_keys,
    index_of,
    indexes_of,
)
from .test_planner_engine import answer, expected, filled

NAMES = sorted(
    each.name for each in pkgutil.iter_modules(published.__path__) if each.name != "model"
)


@cache
def model_of(name: str) -> Model:
    found = importlib.import_module(f"{published.__name__}.{name}").MODEL
    assert isinstance(found, Model)
    return found


@cache
def ours(name: str) -> Plan:
    return weighed(model_of(name).ours())[0]


@cache
def theirs(name: str) -> tuple[Published, Plan]:
    made = model_of(name).published()
    return made, weighed(made.design)[0]


@cache
def our_weight(name: str) -> float:
    return weighed(model_of(name).ours())[1]


@cache
def their_weight(name: str) -> float:
    return weighed(model_of(name).published().design)[1]


def weighed(design: Design) -> tuple[Plan, float]:
    """The plan, and the value that the search minimises.

    That value is the bill, plus the cents by which the search decides ties.
    """
    planning = Planner(design)
    return planning.run(), planning.weight


def test_there_are_at_least_eight() -> None:
    assert len(NAMES) >= 8


@pytest.mark.parametrize("name", NAMES)
def test_every_pattern_gets_the_expected_path(name: str) -> None:
    model, plan = model_of(name), ours(name)
    assert plan.proven
    assert set(model.paths) == {pattern.name for pattern in model.ours().reads}
    for pattern, wanted in model.paths.items():
        [step] = plan.pattern(pattern).steps
        assert (pattern, step.operation) == (pattern, wanted.operation)
        assert (pattern, step.index is not None) == (pattern, wanted.of == "index")
        assert (pattern, step.shards) == (pattern, 1)
        assert (pattern, step.filter is not None) == (pattern, wanted.filtered)
        index = next((each for each in indexes_of(plan) if each.name == step.index), None)
        for entity in step.entities:
            partition, sort = (
                base_of(plan, entity) if index is None else index_of(plan, entity, index)
            )
            assert (pattern, set(partition)) == (pattern, set(wanted.partition))
            assert (pattern, sort[: len(wanted.sort)]) == (pattern, wanted.sort)


@pytest.mark.parametrize("name", NAMES)
def test_the_published_keys_plan_and_cost_no_less(name: str) -> None:
    model, mine, (_, plan) = model_of(name), ours(name), theirs(name)
    assert {index.name for index in indexes_of(plan)} == model.published_indexes  # they suffice
    for entity in model.entities:
        written = model.keys[entity]
        keys = {key.name: key for key in plan.entity(entity).keys}
        assert [str(keys[at].template) for at in ("PK", "SK")] == list(written.key)
        for index, sides in written.indexes.items():
            assert [str(keys[f"{index}{at}"].template) for at in ("PK", "SK")] == list(sides)
    assert our_weight(name) <= their_weight(name) + 1e-6
    # Words in keys take up to one percent more or less; the search does not count them.
    assert mine.dollars_per_month <= 1.01 * plan.dollars_per_month + INDEX_DOLLARS * (
        1 + len(model.published_indexes)
    )
    if "indexes" not in model.differences:
        assert len(indexes_of(mine)) <= len(model.published_indexes)


@pytest.mark.parametrize("name", NAMES)
def test_the_published_keys_cost_no_less_even_without_what_writing_them_by_hand_adds(
    name: str,
) -> None:
    made, plan = theirs(name)
    assert our_weight(name) <= made.dollars(plan, their_weight(name)) + 1e-6


@pytest.mark.parametrize("name", [name for name in NAMES if not model_of(name).instead])
def test_no_rates_make_the_published_keys_cheaper(name: str) -> None:
    chance = random.Random(11)
    for _ in range(5):
        model = model_of(name).at_other_rates(chance)
        mine, weight = weighed(model.ours())
        if any(step.shards > 1 for pattern in mine.patterns for step in pattern.steps):
            continue  # theirs would be throttled: keys written by hand have no shards
        assert mine.proven
        assert weight <= weighed(model.published().design)[1] + 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_every_difference_has_its_reason(name: str) -> None:
    model, mine, (_, plan) = model_of(name), ours(name), theirs(name)
    differing = {info(each).name for each in model.entities if not has_same_keys(each, mine, plan)}
    if len(indexes_of(mine)) != len(model.published_indexes):
        differing.add("indexes")
    assert differing == set(model.differences)
    for what, difference in model.differences.items():
        assert difference.why.endswith(".")
        assert difference.fact(mine, plan), what


# --- running --------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["single-table", "aggregate", "table-per-entity"])
@pytest.mark.parametrize("name", NAMES)
def test_our_plan_answers_as_a_loop_would(name: str, layout: Layout) -> None:
    model = model_of(name)
    design = model.ours(layout)
    _runs(design, design.plan(), model.objects(random.Random(7)), model.calls)


@pytest.mark.parametrize("name", NAMES)
def test_the_published_keys_answer_as_a_loop_would(name: str) -> None:
    made, plan = theirs(name)
    _runs(made.design, plan, made.objects(random.Random(7)), made.model.published_calls)


def _runs(
    design: Design, plan: Plan, objects: list[Any], calls: tuple[tuple[str, dict[str, Any]], ...]
) -> None:
    patterns = {pattern.name: pattern for pattern in design.reads}
    assert {name for name, _ in calls} == set(patterns)
    found_any = set()
    with filled(plan, objects) as engine:
        for name, arguments in calls:
            pattern: Any = patterns[name]
            is_moved = isinstance(pattern, Retargeted)
            ask = pattern.asked(arguments) if is_moved else pattern.function(**arguments).ask
            assert plan.pattern(name).requests(**arguments)
            if _compare(engine, plan, design, name, arguments, ask, objects):
                found_any.add(name)
    assert found_any == set(patterns)  # a call that finds nothing shows nothing


def _compare(
    engine: Engine,
    plan: Plan,
    design: Design,
    name: str,
    arguments: dict[str, Any],
    ask: Ask,
    objects: list[Any],
) -> int:
    got, wanted = answer(engine, plan, design, name, arguments), expected(ask, objects)
    if plan.pattern(name).steps[0].filter:
        got = got[: ask.limit]  # with a filter no limit is sent, and the reader counts
    if ask.order is not None:
        field = ask.order.name
        wanted = sorted(wanted, key=lambda each: getattr(each, field), reverse=ask.descending)[
            : ask.limit
        ]
        assert [getattr(each, field) for each in got] == [
            getattr(each, field) for each in wanted
        ], name
    assert sorted(map(repr, got)) == sorted(map(repr, wanted)), name
    return len(got)
