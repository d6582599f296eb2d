"""Plans that run: tables created from them, items written, every pattern answered by its requests
as by a loop over the objects.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from stator.design.design import Design
from stator.design.entities.conditions import All, Any_, Comparison, Condition, FieldRef, Inverse
from stator.design.entities.entity import info
from stator.design.patterns.ask import Ask
from stator.design.plan.guard_text import GUARD, OWNER, guard_prefix
from stator.design.plan.key_text import encoding_of
from stator.design.plan.own_table import own_table, unique_fields
from stator.design.plan.plan import Attributes, Plan, Step
from stator.engine.engine import Engine

from . import models

WORLDS: dict[
    str,
    tuple[
        Callable[..., Design],
        Callable[[random.Random], list[Any]],
        list[tuple[str, dict[str, Any]]],
    ],
] = {
    "shop": (models.shop, models.shop_objects, models.SHOP_CALLS),
    "social": (models.social, models.social_objects, models.SOCIAL_CALLS),
    "routers": (models.routers, models.router_objects, models.ROUTER_CALLS),
}


def filled(plan: Plan, objects: list[Any]) -> Engine:
    engine = Engine.open()
    for request in plan.create_table_requests():
        engine.call("CreateTable", request)
    put_all(engine, plan, objects)
    return engine


def put_all(engine: Engine, plan: Plan, objects: list[Any]) -> None:
    """Store objects with the guards of their unique fields, as the data layer does."""
    own = own_table(plan.name)
    if any(unique_fields(type(each)) for each in objects):
        engine.call("CreateTable", own.create_request())
    for each in objects:
        entity = plan.entity(type(each))
        engine.call("PutItem", entity.put_request(each))
        for name in unique_fields(type(each)):
            key = {key.name: key.value(Attributes(each)) for key in entity.keys if not key.index}
            encoding = encoding_of(info(type(each)).fields[name].shape)
            assert encoding is not None
            guard = guard_prefix(entity.name, name) + encoding.write(getattr(each, name))
            item = {"PK": {"S": guard}, "SK": {"S": GUARD}, OWNER: {"S": json.dumps(key)}}
            engine.call("PutItem", {"TableName": own.name, "Item": item})


def answer(
    engine: Engine, plan: Plan, design: Design, name: str, arguments: dict[str, Any]
) -> list[Any]:
    """What the requests of a pattern give, in the order they give it; of a count, the number."""
    found: list[Any] = []
    for step in plan.pattern(name).steps:
        found += run_step(engine, design, step, arguments)
    return found


def run_step(engine: Engine, design: Design, step: Step, arguments: dict[str, Any]) -> list[Any]:
    items, count = [], 0
    for request in step.requests(arguments):
        if step.operation == "GetItem":
            got = engine.call("GetItem", request)
            items += [got["Item"]] if "Item" in got else []
            continue
        while True:
            got = engine.call(step.operation, request)
            count += got["Count"]
            items += got.get("Items", [])
            if "LastEvaluatedKey" not in got or "Limit" in request:
                break
            request["ExclusiveStartKey"] = got["LastEvaluatedKey"]
    if step.is_count and step.fetched_filter is None:
        return [count]
    if step.fetch:
        fetched = []
        for batch in step.fetch_requests(items):
            fetched += engine.call("BatchGetItem", batch)["Responses"][step.table]
        keys = [step.fetched_key(item) for item in items]
        order = [tuple(sorted(str(key[name]) for name in step.fetch)) for key in keys]
        fetched.sort(
            key=lambda item: order.index(tuple(sorted(str(item[name]) for name in step.fetch)))
        )
        passes = None if step.fetched_filter is None else step.fetched_filter.condition(arguments)
        items = [item for item in fetched if passes is None or passes(item)]
    if step.is_count:
        return [len(items)]
    classes = {info(entity).name: entity for entity in design.entities}
    return [
        info(classes[item.get("_type", {"S": step.entities[0]})["S"]]).codec.decode(item)
        for item in items
    ]


def holds(condition: Condition, of: Any) -> bool:
    match condition:
        case All(operands):
            return all(holds(each, of) for each in operands)
        case Any_(operands):
            return any(holds(each, of) for each in operands)
        case Inverse(operand):
            return not holds(operand, of)
        case Comparison(field, operator, values):
            mine = getattr(of, field.name)
            first = values[0] if values else None
            return mine is not None and bool(
                {
                    "=": lambda: mine == first,
                    "<>": lambda: mine != first,
                    "<": lambda: mine < first,
                    "<=": lambda: mine <= first,
                    ">": lambda: mine > first,
                    ">=": lambda: mine >= first,
                    "between": lambda: first <= mine <= values[1],
                    "begins_with": lambda: mine.startswith(first),
                    "in": lambda: mine in values,
                }[operator]()
            )
    raise AssertionError(condition)


def expected(ask: Ask, objects: list[Any]) -> list[Any]:
    found = []
    for each in objects:
        if type(each) not in ask.targets:
            continue
        own = [_about(test, type(each)) for test in (*ask.tests, *ask.filters)]
        if all(holds(test, each) for test in own if test is not None):
            found.append(each)
    return found


def _about(test: Any, target: type) -> Any:
    """A comparison of a bundle, for an entity that has the field under the same name."""
    if isinstance(test, Comparison) and not issubclass(target, test.field.owner):
        return Comparison(FieldRef(target, test.field.path), test.operator, test.values)
    return test


@pytest.mark.parametrize("layout", ["single-table", "aggregate", "table-per-entity"])
@pytest.mark.parametrize("world", sorted(WORLDS))
def test_every_pattern_answers_as_a_loop_over_the_objects_would(world: str, layout: Any) -> None:
    make, objects_of, calls = WORLDS[world]
    design = make(layout)
    plan = Plan.from_json(design.plan().to_json())
    objects = objects_of(random.Random(5))
    by_name = {pattern.name: pattern for pattern in design.reads}
    assert {name for name, _ in calls} == set(by_name)
    with filled(plan, objects) as engine:
        for name, arguments in calls:
            check(
                engine,
                plan,
                design,
                name,
                arguments,
                by_name[name].function(**arguments).ask,
                objects,
            )


def check(
    engine: Engine,
    plan: Plan,
    design: Design,
    name: str,
    arguments: dict[str, Any],
    ask: Ask,
    objects: list[Any],
) -> None:
    got, wanted = answer(engine, plan, design, name, arguments), expected(ask, objects)
    if ask.is_count:
        assert got == [len(wanted)] or sum(got) == len(wanted), name
        return
    need_order = _order_of(ask)
    step = plan.pattern(name).steps[0]
    if (step.shards > 1 or step.in_memory) and need_order:
        got.sort(key=lambda each: getattr(each, need_order), reverse=ask.descending)
    if step.is_filtered or step.shards > 1:
        got = got[: ask.limit]  # the reader's part, where DynamoDB's Limit counts something else
    if need_order is None and ask.limit is not None:
        assert len(got) == min(ask.limit, len(wanted)) and set(map(repr, got)) <= set(
            map(repr, wanted)
        ), name
        return
    if need_order is None:
        assert sorted(map(repr, got)) == sorted(map(repr, wanted)), name
        return
    wanted.sort(key=lambda each: getattr(each, need_order), reverse=ask.descending)
    wanted = wanted[: ask.limit] if ask.limit is not None else wanted
    assert [getattr(each, need_order) for each in got] == [
        getattr(each, need_order) for each in wanted
    ], name
    if ask.limit is None:
        assert sorted(map(repr, got)) == sorted(map(repr, wanted)), name


def _order_of(ask: Ask) -> str | None:
    if ask.order is not None:
        return ask.order.name
    return "at" if ask.descending else None
