"""Updates of missing items and of lists, and what they return."""

from __future__ import annotations

from typing import Any

import pytest

from .subject import Subject, attributes, refusal, value


@pytest.mark.parametrize(
    "expression",
    ["REMOVE a", "REMOVE a.b", "REMOVE a[0]", "REMOVE a, b.c", "DELETE a :v", "DELETE a.b :v"],
)
def test_taking_away_from_no_item_makes_none(subject: Subject, expression: str) -> None:
    values = {":v": {"x"}} if ":v" in expression else None
    assert subject.update(expression, values, ReturnValues="ALL_NEW") is None
    assert subject.get() is None


def test_taking_away_in_the_old_style_makes_no_item_either(subject: Subject) -> None:
    for update in ({"Action": "DELETE"}, {"Action": "DELETE", "Value": value({1})}):
        subject.engine.call("UpdateItem", subject.request(AttributeUpdates={"a": update}))
        assert subject.get() is None


def test_a_transaction_takes_away_from_no_item(subject: Subject) -> None:
    update = subject.request(UpdateExpression="REMOVE a.b")
    subject.engine.call("TransactWriteItems", {"TransactItems": [{"Update": update}]})
    assert subject.get() is None


@pytest.mark.parametrize("request_part", [{}, {"AttributeUpdates": {}}])
def test_an_update_of_nothing_makes_an_item(subject: Subject, request_part: dict[str, Any]) -> None:
    answer = subject.engine.call(
        "UpdateItem", subject.request(ReturnValues="ALL_NEW", **request_part)
    )
    assert answer == {"Attributes": attributes(p="p")}


def test_removing_a_missing_value_requires_its_parent(subject: Subject) -> None:
    subject.put(m={"x": 1}, l=[1], s="text")
    for there in ("REMOVE m.y", "REMOVE l[7]", "REMOVE z"):
        subject.update(there)
    for nowhere in ("REMOVE z.y", "REMOVE z[0]", "REMOVE s.y", "REMOVE l.y", "REMOVE m[0]"):
        answer = "The document path provided in the update expression is invalid for update"
        assert subject.refused_update(nowhere) == answer
    assert subject.get() == attributes(p="p", m={"x": 1}, l=[1], s="text")


def test_list_indexes_refer_to_the_item_before_the_update(subject: Subject) -> None:
    subject.put(a=[2, 3, 4, 5, 6, 7])
    subject.update("REMOVE a[1] SET a[3] = :v", {":v": 17})
    assert subject.get() == attributes(p="p", a=[2, 4, 17, 6, 7])


def test_elements_past_the_end_are_appended_in_the_order_of_their_indexes(subject: Subject) -> None:
    subject.put(a=["x"])
    subject.update(
        "SET a[84] = :d, a[37] = :b, a[17] = :a, a[50] = :c",
        {":a": "a", ":b": "b", ":c": "c", ":d": "d"},
    )
    assert subject.get() == attributes(p="p", a=["x", "a", "b", "c", "d"])


def test_values_are_read_before_anything_is_written(subject: Subject) -> None:
    subject.put(a=1)
    subject.update("REMOVE a SET b = a")
    assert subject.get() == attributes(p="p", b=1)
    assert "does not exist" in subject.refused_update("SET x = :v, y = x", {":v": 1})


def test_only_the_places_an_update_names_are_returned(subject: Subject) -> None:
    subject.put(a={"b": "dog", "c": [1, 2, 3]}, d="cat")
    old = subject.update(
        "SET a.c[1] = :v, a.b = :w", {":v": 7, ":w": "fox"}, ReturnValues="UPDATED_OLD"
    )
    assert old == attributes(a={"b": "dog", "c": [2]})
    assert subject.update("REMOVE a.c[1], a.c[3]", ReturnValues="UPDATED_OLD") == attributes(
        a={"c": [7]}
    )
    assert subject.update("SET a.x = :v", {":v": 8}, ReturnValues="UPDATED_OLD") is None
    assert subject.update("SET a.y = :v", {":v": 8}, ReturnValues="UPDATED_NEW") == attributes(
        a={"y": 8}
    )
    assert subject.update("SET e = :v", {":v": 8}, ReturnValues="UPDATED_OLD") is None


def test_a_list_index_is_resolved_again_in_the_updated_list(subject: Subject) -> None:
    subject.put(a=[1, 2, 3])
    assert subject.update("SET a[100] = :v", {":v": 70}, ReturnValues="UPDATED_NEW") is None
    assert subject.update("REMOVE a[1]", ReturnValues="UPDATED_NEW") == attributes(a=[3])


# -- in the style from before expressions


def legacy(subject: Subject, action: str, given: Any) -> dict[str, Any]:
    return subject.request(AttributeUpdates={"a": {"Action": action, "Value": value(given)}})


def test_add_appends_to_lists_only_in_the_old_style(subject: Subject) -> None:
    subject.engine.call("UpdateItem", legacy(subject, "ADD", [1]))
    subject.engine.call("UpdateItem", legacy(subject, "ADD", ["x"]))
    assert subject.get() == attributes(p="p", a=[1, "x"])
    answer = "Incorrect operand type for operator or function; operator: ADD, operand type: LIST"
    assert subject.refused_update("ADD a :v", {":v": [1]}) == answer


@pytest.mark.parametrize(
    ("present", "added"),
    [({1}, {"a"}), ({"a"}, 1), ({"a"}, ["a"]), (["a"], {"a"}), ([1], 1), (1, [1])],
)
def test_add_joins_like_to_like(subject: Subject, present: Any, added: Any) -> None:
    subject.put(a=present)
    answer = refusal(subject.engine, "UpdateItem", legacy(subject, "ADD", added))
    assert answer == "Type mismatch for attribute to update"
    assert subject.get() == attributes(p="p", a=present)
