"""Queries of an index with four RANGE attributes (captured from AWS by the paritysuite conformance
suite).
"""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Answers

ENTRIES = {
    "p1": ("T", "live", "b", "r1"),
    "p2": ("T", "live", "a", "r2"),
    "p3": ("T", "live", "a", "r1"),
    "p4": ("T", "draft", "c", "r1"),
    "p5": ("F", "live", "a", "r0"),
    "p6": ("T", "live", None, "r1"),
}
VALUES = {":h": "o1", ":a": "T", ":b": "live", ":c": "a", ":d": "r", ":e": "r1"}


@pytest.fixture
def wide(aws: Answers) -> Answers:
    aws.create("wide", "pk", index=("by-h", ["h", "a", "b", "c", "d"], 1))
    for key, parts in ENTRIES.items():
        item = {
            "pk": key,
            "h": "o1",
            **{n: part for n, part in zip("abcd", parts) if part is not None},
        }
        aws(
            "PutItem",
            {"TableName": "wide", "Item": {name: {"S": text} for name, text in item.items()}},
        )
    return aws


def asked(condition: str, **more: Any) -> dict[str, Any]:
    values = {name: {"S": text} for name, text in VALUES.items() if name in condition}
    return {
        "TableName": "wide",
        "IndexName": "by-h",
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": values,
        **more,
    }


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("h = :h", "p5 p4 p3 p2 p1"),
        ("h = :h AND a = :a", "p4 p3 p2 p1"),
        ("b = :b AND h = :h AND a = :a", "p3 p2 p1"),
        ("h = :h AND a = :a AND b < :b", "p4"),
        ("h = :h AND a = :a AND b = :b AND c > :c", "p1"),
        ("h = :h AND a = :a AND b = :b AND c = :c AND begins_with(d, :d)", "p3 p2"),
        ("h = :h AND a = :a AND b = :b AND c = :c AND d BETWEEN :d AND :e", "p3"),
    ],
)
def test_a_condition_on_the_first_attributes(wide: Answers, condition: str, expected: str) -> None:
    items = wide("Query", asked(condition))["Items"]
    assert [item["pk"]["S"] for item in items] == expected.split()


def test_a_page_ends_with_every_key_attribute(wide: Answers) -> None:
    assert wide("Query", asked("h = :h", Limit=2))["LastEvaluatedKey"].keys() == {
        "pk",
        "h",
        "a",
        "b",
        "c",
        "d",
    }


@pytest.mark.parametrize(
    ("condition", "without", "present"),
    [
        ("h = :h AND a = :a AND c = :c", "b", "c"),
        ("h = :h AND a = :a AND b > :b AND c = :c", "b", "c"),
        ("h = :h AND b = :b", "a", "b"),
    ],
)
def test_no_attribute_may_be_left_out(
    wide: Answers, condition: str, without: str, present: str
) -> None:
    assert (
        f"RANGE key attributes {without} must have equality conditions specified in the query "
        f"because a condition is present on key attribute {present}"
    ) in wide.refusal("Query", asked(condition))
