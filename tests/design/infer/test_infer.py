"""Guessing a design from items: what can be told, and what is listed as a doubt."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.design.infer import design_file, infer
from stator.design.infer.fields import field_of
from stator.design.infer.key_text import shapes_of
from stator.errors import ConfigurationError

from .. import models


def loaded(text: str) -> dict[str, Any]:
    """The names of a design file, run as Python runs it."""
    import sys
    import types

    module = types.ModuleType("inferred")
    sys.modules["inferred"] = module
    exec(compile(text, "inferred.py", "exec"), module.__dict__)
    return module.__dict__


def test_the_entities_of_a_planned_table_are_found_again() -> None:
    plan = models.shop().plan()
    objects = models.shop_objects(random.Random(7))
    items = [plan.entity(type(each)).item(each) for each in objects]
    found = infer(items, table="shop")
    assert {each.name for each in found.entities} == {type(each).__name__ for each in objects}
    design = loaded(design_file(found))["shop"]
    assert design.plan().tables


@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        (["USER#1", "USER#2"], {"USER#{}"}),
        (["PROFILE", "ORDER#1", "ORDER#2"], {"PROFILE", "ORDER#{}"}),
        (["a17", "b99", "c12"], {"{}"}),
        (["ORG:1:USER:2", "ORG:1:USER:3"], {"ORG:{}:USER:{}"}),
        (["2026-01-01", "2026-01-02"], {"{}"}),
    ],
)
def test_words_and_values_of_keys(texts: list[str], shown: set[str]) -> None:
    shapes = shapes_of(texts)
    assert {shape.filled([""] * len(shape.parts)) for shape in shapes.values()} == shown


@given(st.lists(st.text(alphabet="AUs1#:-", max_size=12), min_size=1, max_size=20))
def test_every_key_has_a_shape_that_gives_it_back(texts: list[str]) -> None:
    for text, shape in shapes_of(texts).items():
        template = shape.filled(["hole"] * len(shape.parts))
        for value in shape.values(text):
            template = template.replace("{hole}", value, 1)
        assert template == text


@pytest.mark.parametrize(
    ("values", "python"),
    [
        ([{"S": "x"}], "str"),
        ([{"N": "1"}, {"N": "2"}], "int"),
        ([{"N": "1"}, {"N": "2.5"}], "Decimal"),
        ([{"S": "2026-01-01"}], "date"),
        ([{"S": "0b0e8d2e-6c1c-4a2e-9d0c-0c4b5a6f7e8d"}], "UUID"),
        ([{"SS": ["a"]}], "set[str]"),
        ([{"NS": ["1"]}], "set[int]"),
        ([{"L": [{"N": "1"}]}], "list[int]"),
        ([{"L": []}], "list[Any]"),
        ([{"M": {}}], "dict[str, Any]"),
        ([{"BOOL": True}], "bool"),
        ([{"B": "aa=="}], "bytes"),
        ([{"S": "x"}, {"N": "1"}], "Any"),
        ([{"S": "red"}] * 15 + [{"S": "blue"}] * 15, 'Literal["blue", "red"]'),
    ],
)
def test_types_of_attributes(values: list[dict[str, Any]], python: str) -> None:
    assert field_of("x", values, len(values)).python == python


def test_an_attribute_that_some_items_lack_is_optional() -> None:
    assert field_of("x", [{"S": "a"}], 2).annotation == "str | None"
    assert field_of("x", [{"NULL": True}, {"S": "a"}], 2).optional


def test_a_time_to_live_is_told_by_name_and_value() -> None:
    field = field_of("expires_at", [{"N": "1790000000"}], 1)
    assert field.marker.startswith("ttl(")
    assert field.doubt


def test_kinds_are_told_by_a_type_attribute_when_there_is_one() -> None:
    items = [
        {
            "PK": {"S": f"x{number}"},
            "SK": {"S": f"y{number}"},
            "_type": {"S": "cat" if number % 2 else "dog"},
        }
        for number in range(10)
    ]
    assert sorted(each.name for each in infer(items, table="pets").entities) == ["Cat", "Dog"]


def test_keys_with_another_separator_are_planned_anew_and_said_so() -> None:
    items = [{"PK": {"S": f"USER|{number}"}, "SK": {"S": "PROFILE"}} for number in range(5)]
    found = infer(items, table="users")
    assert found.entities[0].key is None
    assert any("'|'" in doubt for doubt in found.doubts)
    assert loaded(design_file(found))["users"].plan()


def test_nothing_to_look_at() -> None:
    with pytest.raises(ConfigurationError, match="no items"):
        infer([], table="t")
