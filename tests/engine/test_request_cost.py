"""What a request costs follows from its own size and its item's, not from their product."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from stator.engine import Engine
from stator.errors import ServiceError

ELEMENTS = 20_000
KEY = {"id": {"S": "a"}}
LARGE = {"L": [{"N": "1"}] * ELEMENTS}
TOO_LARGE = "Item size to update has exceeded the maximum allowed size"


@pytest.fixture
def engine() -> Engine:
    engine = Engine.open()
    engine.call(
        "CreateTable",
        {
            "TableName": "things",
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )
    engine.call("PutItem", {"TableName": "things", "Item": {**KEY, "l": LARGE}})
    return engine


def update(engine: Engine, clauses: str, values: dict[str, Any] | None = None) -> None:
    request: dict[str, Any] = {"TableName": "things", "Key": KEY, "UpdateExpression": clauses}
    if values:
        request["ExpressionAttributeValues"] = values
    engine.call("UpdateItem", request)


def transact(engine: Engine, clauses: str) -> None:
    entry = {"TableName": "things", "Key": KEY, "UpdateExpression": clauses}
    engine.call("TransactWriteItems", {"TransactItems": [{"Update": entry}]})


def execute(engine: Engine, clauses: str, parameters: list[Any] | None = None) -> None:
    request: dict[str, Any] = {"Statement": f"UPDATE things {clauses} WHERE id = 'a'"}
    if parameters:
        request["Parameters"] = parameters
    engine.call("ExecuteStatement", request)


def repeated(clause: str, count: int) -> str:
    return ", ".join(clause.format(at) for at in range(count))


def appended(depth: int) -> str:
    return "l" if depth == 0 else f"list_append({appended(depth - 1)}, {appended(depth - 1)})"


@pytest.mark.parametrize(
    "send",
    [
        lambda engine, n: update(engine, "SET " + repeated("a{} = l", n)),
        lambda engine, n: update(engine, "SET " + repeated("a{} = if_not_exists(z, l)", n)),
        lambda engine, n: update(engine, "SET " + repeated("l[{}] = l", n)),
        lambda engine, n: update(
            engine, "SET " + repeated("a{} = list_append(l, :e)", n), {":e": {"L": []}}
        ),
        lambda engine, n: update(engine, "SET " + repeated("a{} = :v", n), {":v": LARGE}),
        lambda engine, n: transact(engine, "SET " + repeated("a{} = l", n)),
        lambda engine, n: execute(engine, " ".join(f"SET a{at} = l" for at in range(n))),
        lambda engine, n: execute(
            engine, f"SET l = {appended(n.bit_length() - 1)}"
        ),
    ],
)  # fmt: skip
def test_copies_of_a_large_attribute_are_refused_before_they_are_made(
    engine: Engine, send: Callable[[Engine, int], None]
) -> None:
    def peak_bytes(copies: int) -> int:
        tracemalloc.start()
        with pytest.raises(ServiceError) as refused:
            send(engine, copies)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert TOO_LARGE in str(refused.value.wire())
        return peak

    # Besides the expression and its tree, memory holds the decoded item, whatever the number.
    assert peak_bytes(128) < peak_bytes(16) + 1_000_000
