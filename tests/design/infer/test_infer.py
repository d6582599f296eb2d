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
from stator.design.infer.words import class_of_table, field_name
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
        (["2026-01-01T10:00:00Z", "2026-01-02T10:00:00Z"], {"{}"}),
        (["T#2026-01-01T10:00:00Z", "T#2026-01-02T10:00:00Z"], {"T#{}"}),
        (["a/b/c", "a/b/d", "x/y"], {"{}"}),
        (["P#a/b", "P#/c"], {"P#{}"}),
        (["https://a.org/x", "https://b.org/y"], {"{}"}),
        (["user:1", "user:2"], {"user:{}"}),
        (["#META", "ORDER#1"], {"#META", "ORDER#{}"}),
        (["METADATA#", "ORDER#1"], {"METADATA#", "ORDER#{}"}),
        (["COUNTRY#DE", "COUNTRY#FR"], {"COUNTRY#{}"}),
        (["ORG#a#USER#b", "ORG#c#USER#d"], {"ORG#{}#USER#{}"}),
        (["FRIEND#ann#2020", "FRIEND#ann#2021", "FRIEND#bo#2020"], {"FRIEND#{}#{}"}),
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
        ([{"S": "red"}] * 15 + [{"S": "blue"}] * 15, "str"),
        ([{"S": "2026-13-01"}], "str"),
        ([{"S": "2026-01-01T10:00:00Z"}], "str"),
        ([{"S": "2026-01-01T10:00:00.000000Z"}], "datetime"),
        ([{"L": [{"M": {}}]}], "list[dict[str, Any]]"),
    ],
)
def test_types_of_attributes(values: list[dict[str, Any]], python: str) -> None:
    assert field_of("x", values, len(values)).python == python


def test_an_attribute_that_some_items_lack_is_optional() -> None:
    assert field_of("x", [{"S": "a"}], 2).annotation == "str | None"
    assert field_of("x", [{"NULL": True}, {"S": "a"}], 2).optional


def test_a_time_to_live_is_told_by_name_and_value() -> None:
    field = field_of("expires_at", [{"N": "1790000000"}], 1)
    assert field.marker == "ttl"
    assert field.doubt
    assert field_of("expires_at", [{"N": "1790000000"}], 1, is_ttl=False).python == "int"


def test_kinds_are_told_by_a_type_attribute_if_their_keys_differ() -> None:
    def items(cats: str, dogs: str) -> list[dict[str, Any]]:
        return [
            {
                "PK": {"S": f"{cats if number % 2 else dogs}{number}"},
                "SK": {"S": "INFO"},
                "kind": {"S": "big-cats" if number % 2 else "dog"},
            }
            for number in range(10)
        ]

    apart = infer(items("CAT#", "DOG#"), table="pets")
    assert sorted((each.name, each.label) for each in apart.entities) == [
        ("BigCat", "big-cats"),
        ("Dog", "dog"),
    ]
    text = design_file(apart)
    assert 'names={"_type": "kind"}' in text and 'name="big-cats"' in text
    same = infer(items("PET#", "PET#"), table="pets")
    assert [each.name for each in same.entities] == ["Pet"]
    assert "kind" in {field.name for field in same.entities[0].fields}


def test_another_separator_before_the_value() -> None:
    items = [{"PK": {"S": f"USER|{number}"}, "SK": {"S": "PROFILE"}} for number in range(5)]
    found = infer(items, table="users")
    assert found.entities[0].key == ("USER|{user_id}", "PROFILE")


@pytest.mark.parametrize("text", ["ORG:{}:USER:1", "USER#the {}"])
def test_keys_that_stator_writes_in_another_form_stay_whole(text: str) -> None:
    items = [{"PK": {"S": text.format(at)}, "SK": {"S": "INFO"}} for at in range(5)]
    found = infer(items, table="users")
    assert found.entities[0].key == ("{pk}", "INFO")
    assert 'pk: str = ident(stored="PK")' in design_file(found)


def test_a_sparse_index_key_is_not_added_to_items_that_lack_it() -> None:
    items: list[dict[str, Any]] = [
        {"PK": {"S": f"ORDER#{at}"}, "SK": {"S": "INFO"}, "id": {"S": str(at)}} for at in range(6)
    ]
    for item in items[:2]:
        item |= {"GSI1PK": {"S": "OPEN"}, "GSI1SK": {"S": f"ORDER#{item['id']['S']}"}}
    found = infer(items, table="orders")
    assert found.entities[0].indexes["GSI1"] == ("{gsi1_pk}", "{gsi1_sk}")
    assert "# 4 of 6 items have no GSI1PK" in design_file(found)


@pytest.mark.parametrize(
    ("attribute", "name"),
    [
        ("firstName", "first_name"),
        ("first-name", "first_name"),
        ("HTTPStatus", "http_status"),
        ("class", "class_"),
        ("date", "date_"),
        ("2nd", "field_2nd"),
        ("_x", "x"),
        ("-", "field_"),
    ],
)
def test_names_of_fields(attribute: str, name: str) -> None:
    assert field_name(attribute) == name


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("Users", "User"),
        ("prod-order_lines", "OrderLine"),
        ("CategoriesTable", "Category"),
        ("addresses", "Address"),
        ("GameScores", "GameScore"),
        ("status", "Status"),
        ("people", "Person"),
        ("42", "Item42"),
        ("Designs", "DesignItem"),
    ],
)
def test_names_of_entities(table: str, name: str) -> None:
    assert class_of_table(table) == name


def test_nothing_to_look_at() -> None:
    with pytest.raises(ConfigurationError, match="no items"):
        infer([], table="t")
