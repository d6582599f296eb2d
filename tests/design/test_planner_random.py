"""Random designs on the engine: whatever the search chooses, the answers are those of a loop over
the objects.
"""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from stator.design.design import Design
from stator.design.plan.lock_file import compare
from stator.design.plan.plan import Plan
from stator.engine.engine import Engine
from stator.errors import PatternRefused

from .models import START
from .test_planner_engine import check, filled, put_all
from .test_planner_optimal import Child, Pair, Parent, a_design

_WORDS = ["", "a", "a#", "a b", "b", "ab", "é", "$", "#"]


def objects_of(chance: random.Random, entities: tuple[type[Any], ...]) -> list[Any]:
    kinds: list[Any] = ["a", "b", "c"]
    words = _WORDS[1:]  # DynamoDB has no empty strings in keys that are attributes
    found: list[Any] = []
    if Parent in entities:
        found += [
            Parent(
                key=word,
                mail=f"{word}@",
                kind=chance.choice(kinds),
                since=START + timedelta(hours=chance.randrange(9)),
            )
            for word in words
        ]
    if Child in entities:
        states: list[Any] = ["on", "off"]
        found += [
            Child(
                child=f"{chance.choice(words)}{at}",
                key=chance.choice(words),
                kind=chance.choice(kinds),
                state=chance.choice(states),
                at=START + timedelta(hours=chance.randrange(20)),
                rank=chance.choice([None, -10, -9, 0, 5, 10, 100]),
            )
            for at in range(60)
        ]
    if Pair in entities:
        for left in words[:5]:
            found += [
                Pair(
                    left=left,
                    right=right,
                    key=chance.choice(words),
                    at=START + timedelta(hours=chance.randrange(20)),
                )
                for right in chance.sample(words, 4)
            ]
    return found


def arguments_of(chance: random.Random, pattern: Any, objects: list[Any]) -> dict[str, Any]:
    """Values that occur, as the fields have them."""
    ask = pattern.trace()
    some = chance.choice([each for each in objects if type(each) in ask.targets])
    found: dict[str, Any] = dict.fromkeys(pattern.parameters)
    for test in ask.tests:
        param = getattr(test.values[0], "name", None)
        if param is not None:
            value = getattr(some, test.field.name, None)
            found[param] = value if value is not None else {"rank": 0, "key": "a"}[test.field.name]
    return found


def ask_everything(
    engine: Engine, plan: Plan, design: Design, objects: list[Any], chance: random.Random
) -> None:
    for pattern in design.reads:
        for _ in range(6):
            arguments = arguments_of(chance, pattern, objects)
            ask = pattern.function(**arguments).ask
            wanted = objects
            if ask.order is not None and ask.order.name == "rank":
                # What has no rank has no place in an order by rank.
                wanted = [each for each in objects if getattr(each, "rank", 0) is not None]
            check(engine, plan, design, pattern.name, arguments, ask, wanted)


@pytest.mark.parametrize("block", range(5))
def test_random_designs_answer_as_a_loop_over_the_objects_would(block: int) -> None:
    planned = 0
    for seed in range(1000 + block * 40, 1040 + block * 40):
        design = a_design(seed)
        chance = random.Random(seed)
        try:
            plan = Plan.from_json(design.plan().to_json())
        except PatternRefused:
            continue
        planned += 1
        objects = objects_of(chance, design.entities)
        with filled(plan, objects) as engine:
            ask_everything(engine, plan, design, objects, chance)
    assert planned >= 24


@pytest.mark.parametrize("block", range(4))
def test_what_a_lock_calls_safe_finds_the_items_that_were_there(block: int) -> None:
    """Items written under the keys of a lock; a pattern is added; where nothing grave is said, the
    new plan answers with the old items.
    """
    safe = 0
    for seed in range(2000 + block * 40, 2040 + block * 40):
        design, chance = a_design(seed), random.Random(seed)
        if len(design.reads) < 2:
            continue
        try:
            old = design.without(chance.choice(design.reads).name).plan()
            new = design.plan(previous=Plan.from_json(old.to_json()))
        except PatternRefused:
            continue
        if any(change.risk != "safe" for change in compare(old, new)):
            continue
        safe += 1
        objects = objects_of(chance, design.entities)
        with Engine.open() as engine:
            for request in new.create_table_requests():
                engine.call("CreateTable", request)
            put_all(engine, old, objects)
            ask_everything(engine, new, design, objects, chance)
    assert safe >= 8
