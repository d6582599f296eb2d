"""Large requests are answered in time that grows with their size, and with short answers."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from stator.engine import Engine
from stator.model.scope import DEFAULT_ACCOUNT, DEFAULT_REGION, Scope

from ...fuzz.world import PLAIN

SCOPE = Scope(DEFAULT_ACCOUNT, DEFAULT_REGION)


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("BatchWriteItem", {"RequestItems": {"plain": [{}] * 200_000}}),
        (
            "BatchWriteItem",
            {"RequestItems": {"plain": [{"DeleteRequest": {"Key": {"id": {"S": "x"}}}}] * 50_000}},
        ),
        ("TransactGetItems", {"TransactItems": [{}] * 200_000}),
        ("TransactWriteItems", {"TransactItems": [{}] * 200_000}),
        ("BatchGetItem", {"RequestItems": {"plain": {"Keys": [{}] * 200_000}}}),
        ("BatchExecuteStatement", {"Statements": [{}] * 200_000}),
        ("TagResource", {"ResourceArn": "arn", "Tags": [{}] * 200_000}),
        ("CreateTable", {**PLAIN, "KeySchema": [{}] * 200_000}),
    ],
)
def test_the_answer_is_smaller_than_the_request(operation: str, request_: dict[str, Any]) -> None:
    body = orjson.dumps(request_)
    with Engine.open() as engine:
        engine.call("CreateTable", {**PLAIN, "TableName": "other"})
        reply = engine.submit(operation, body, SCOPE)
    assert reply.status == 400
    assert len(reply.body) < len(body)


def test_many_names_and_members_take_no_quadratic_time() -> None:
    """With 50,000 of each, a quadratic step would take minutes, and the test its time limit."""
    names = [f"a{number}" for number in range(50_000)]
    members = [f"{number:05}" for number in range(40_000)]
    with Engine.open() as engine:
        engine.call("CreateTable", PLAIN)
        engine.call("PutItem", {"TableName": "plain", "Item": {"id": {"S": "x"}}})
        key = {"TableName": "plain", "Key": {"id": {"S": "x"}}}
        engine.call("GetItem", {**key, "AttributesToGet": names})
        for sign in ("ADD", "DELETE"):
            engine.call(
                "UpdateItem",
                {
                    **key,
                    "UpdateExpression": f"{sign} m :m",
                    "ExpressionAttributeValues": {":m": {"SS": members[::-1]}},
                },
            )
        assert engine.call("GetItem", key)["Item"] == {"id": {"S": "x"}}
