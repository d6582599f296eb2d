"""Generated writers of keys and items against the plan, which fills templates without them."""

from __future__ import annotations

import random
from typing import Any

import orjson
import pytest

from stator.tables.schema.schema import Schema
from tests.design.test_planner_engine import WORLDS

from .shop import Session, order, shop, user


def entries(schema: Schema, made: list[Any]) -> None:
    for each in made:
        of = schema.of_object(each)
        item = of.item(each)
        assert item == of.plan.item(each)
        key, entry = of.bulk_entry(each)
        assert orjson.loads(entry) == {"PutRequest": {"Item": item}}
        assert key == of.key_values(item)
        assert of.key_of(each) == of.stored_key(item)
        values = {name: getattr(each, name) for name in of.fields}
        assert of.key_from(values) == of.stored_key(item)
        empty = dict.fromkeys(of.fields)
        for attribute in of.plan.keys:
            assert of.key_value(attribute, values) == attribute.value(values)
            assert of.key_value(attribute, empty) == attribute.value(empty)


@pytest.mark.parametrize("layout", ["single-table", "aggregate", "table-per-entity"])
@pytest.mark.parametrize("world", WORLDS)
def test_items_and_keys_are_those_of_the_plan(world: str, layout: str) -> None:
    make, objects, _ = WORLDS[world]
    design = make(layout=layout)
    entries(Schema(design, design.plan()), objects(random.Random(3)))


def test_values_of_other_types_are_written_alike() -> None:
    class Text(str):
        __slots__ = ()

    schema = Schema(shop(), shop().plan())
    odd = order(
        1, note=Text('100 % \u00e9 "quoted" \\ #$ \x01'), tags={Text("t")}, user_id="u # $ % 1"
    )
    entries(
        schema,
        [odd, user(), order(2, tags=set()), Session(session_id="100%", user_id="\U0001f600")],
    )
