"""What an UpdateItem may cost of the 400 KB (bisected on AWS, eu-west-2, by paritysuite)."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Answers

LIMIT = 409_600
TOO_LARGE = "Item size to update has exceeded the maximum allowed size"
PADDING_CLAUSE = 3 + 19 + len("b")  # SET b = :pad, without the padding itself
VALUES: dict[str, Any] = {
    ":one": {"N": "1"},
    ":ten": {"S": "y" * 10},
    ":list": {"L": [{"S": "y" * 10}]},
    ":set": {"SS": ["q"]},
}


NUMBER = {"n": {"N": "1"}}
LIST = {"l": {"L": [{"S": "e"}]}}
MAP = {"m": {"M": {"z": {"S": "r"}}}}
TEXT = {"longer": {"S": "r"}}
SET = {"ss": {"SS": ["p", "q"]}}


@pytest.mark.parametrize(
    ("clause", "item", "cost"),
    [
        ("", {}, 0),
        (", c = :ten", {}, 19 + 1 + 10),
        (", c = longer", TEXT, 19 + 1 + 1 + 14 + 6),
        (", c = m.z", MAP, 19 + 1 + 1 + 15 + 15),
        (", n = n + :one", NUMBER, 19 + 1 + 34 + 16 + 2),
        (", n = n - :one", NUMBER, 19 + 1 + 37 + 16 + 2),
        (", c = if_not_exists(c, :ten)", {}, 19 + 1 + 39 + 16 + 10),
        (", l = list_append(l, :list)", LIST, 19 + 1 + 37 + 16 + (3 + 1 + 10)),
        (" ADD n :one", NUMBER, 19 + 1 + 2),
        (" REMOVE longer", TEXT, 1 + 6),
        (" REMOVE m.z", MAP, 1 + 1 + 4 + 1),
        (" REMOVE l[0]", LIST, 1 + 1 + 4 + 1),
        (" DELETE ss :set", SET, 1 + 2),
    ],
)
def test_a_clause_costs(aws: Answers, clause: str, item: dict[str, Any], cost: int) -> None:
    padding = LIMIT - PADDING_CLAUSE - cost
    aws("PutItem", {"TableName": "hash", "Item": {"pk": {"S": "k"}, **item}})
    assert aws.refusal("UpdateItem", padded(clause, padding + 1)) == TOO_LARGE
    aws("UpdateItem", padded(clause, padding))


def padded(clause: str, padding: int) -> dict[str, Any]:
    values = {name: value for name, value in VALUES.items() if name in clause}
    return {
        "TableName": "hash",
        "Key": {"pk": {"S": "k"}},
        "UpdateExpression": f"SET b = :pad{clause}",
        "ExpressionAttributeValues": {":pad": {"S": "x" * padding}, **values},
    }


def test_attribute_updates_are_measured_by_the_finished_item(aws: Answers) -> None:
    key = {"pk": {"S": "k"}}
    room = LIMIT - len("pkk") - len("b")

    def put(size: int) -> dict[str, Any]:
        update = {"b": {"Action": "PUT", "Value": {"S": "x" * size}}}
        return {"TableName": "hash", "Key": key, "AttributeUpdates": update}

    aws("UpdateItem", put(room))
    assert aws.refusal("UpdateItem", put(room + 1)) == TOO_LARGE
