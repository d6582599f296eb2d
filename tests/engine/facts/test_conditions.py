"""Conditions on missing attributes and on values of other types."""

from __future__ import annotations

import pytest

from .subject import Subject, attributes, operator, refusal


def test_a_missing_attribute_equals_nothing_and_has_no_order(subject: Subject) -> None:
    subject.put()
    assert subject.holds("x <> y")
    assert subject.holds("x <> :v", {":v": 1})
    assert subject.holds(":v <> x", {":v": 1})
    for condition in (
        "x = y",
        "x < y",
        "x <= y",
        "x > y",
        "x >= y",
        "x BETWEEN y AND z",
        "x IN (y)",
    ):
        assert not subject.holds(condition), condition


def test_a_condition_on_the_key_tells_whether_there_is_an_item(subject: Subject) -> None:
    request = subject.request("new", values={":p": "new"}, ConditionExpression="p <> :p")
    subject.engine.call("UpdateItem", request)
    assert subject.get("new") == attributes(p="new")


def test_an_attribute_of_the_wrong_type_fails_a_condition_and_a_value_refuses_it(
    subject: Subject,
) -> None:
    subject.put(x=[1], n=1)
    assert not subject.holds("x < :v", {":v": 1})
    assert not subject.holds("n BETWEEN x AND :v", {":v": 5})
    assert not subject.holds("begins_with(n, :v)", {":v": "1"})
    assert "operand type: L" in subject.refused_condition("n < :v", {":v": [1]})
    assert "operand type: N" in subject.refused_condition("begins_with(n, :v)", {":v": 1})


def test_contains_finds_any_value_in_a_list(subject: Subject) -> None:
    subject.put(l=["a", {1, 2}, [3]], s="abc", b=b"abc", m={"k": 1}, t=True)
    for part in ("a", {1, 2}, [3]):
        assert subject.holds("contains(l, :v)", {":v": part})
    assert subject.holds("contains(s, :v)", {":v": "bc"})
    assert subject.holds("contains(b, :v)", {":v": b"bc"})
    for name, other in (("b", {1, 2}), ("m", "k"), ("t", True), ("s", 1)):
        assert not subject.holds(f"contains({name}, :v)", {":v": other}), name


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(126, 127, True), (128, 255, False), (0, 127, True)]
)
def test_binary_is_ordered_by_unsigned_bytes(
    subject: Subject, low: int, high: int, expected: bool
) -> None:
    subject.put(b=bytes([127]))
    assert (
        subject.holds("b BETWEEN :l AND :h", {":l": bytes([low]), ":h": bytes([high])}) is expected
    )


# -- in the style from before expressions


def passes(subject: Subject, **conditions: dict[str, object]) -> bool:
    return bool(
        subject.engine.call("Scan", {"TableName": "facts", "ScanFilter": conditions})["Count"]
    )


def test_neither_contains_nor_not_contains_holds_where_there_is_no_attribute(
    subject: Subject,
) -> None:
    subject.put(s="abc")
    assert not passes(subject, x=operator("CONTAINS", 1))
    assert not passes(subject, x=operator("NOT_CONTAINS", 1))
    assert passes(subject, x=operator("NE", 1))
    assert passes(subject, s=operator("NOT_CONTAINS", 1))
    assert passes(subject, s=operator("NOT_CONTAINS", "x"))
    assert not passes(subject, s=operator("NOT_CONTAINS", "b"))


def test_null_asks_for_the_attribute_not_for_its_type(subject: Subject) -> None:
    subject.put(a=None)
    assert passes(subject, a=operator("NOT_NULL"))
    assert passes(subject, b=operator("NULL"))
    assert not passes(subject, a=operator("NULL"))


@pytest.mark.parametrize("given", [{"Exists": True}, {"Exists": False, "Value": {"N": "1"}}])
def test_exists_needs_a_value_and_its_absence_none(
    subject: Subject, given: dict[str, object]
) -> None:
    message = refusal(
        subject.engine, "UpdateItem", subject.request(AttributeUpdates={}, Expected={"a": given})
    )
    assert "Exists" in message
