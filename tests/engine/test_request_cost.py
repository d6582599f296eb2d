"""What a request costs follows from its own size and its item's, not from their product."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from stator.engine import Engine
from stator.errors import ServiceError, ValidationFailed, ValueFailed
from stator.errors.service import MESSAGE_CHARACTERS
from stator.model.values import normalise

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


class Member(str):
    """A text that counts how often it is compared."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Member.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize("kind", ["SS", "BS"])
def test_the_members_of_a_set_are_compared_in_linear_time(kind: str) -> None:
    def comparisons(count: int) -> int:
        members = [Member("AAAA")] + [Member(f"{at:04}") for at in range(count)]
        Member.comparisons = 0
        with pytest.raises(ValueFailed, match="contains duplicates"):
            normalise({kind: [*members, Member("AAAA")]})
        return Member.comparisons

    assert comparisons(1000) <= 10 * comparisons(100) + 100


@pytest.mark.parametrize("kind", ["SS", "BS", "NS"])
@pytest.mark.parametrize("member", ["", "MTIz"])
def test_the_error_about_a_large_set_is_short(engine: Engine, kind: str, member: str) -> None:
    members = (["1"] if kind == "NS" else [member]) * 100_000
    request = {"TableName": "things", "Item": {"id": {"S": "b"}, "s": {kind: members}}}
    with pytest.raises(ValidationFailed, match="Input collection") as refused:
        engine.call("PutItem", request)
    assert len(refused.value.message) <= MESSAGE_CHARACTERS + len("...")


@pytest.mark.parametrize(
    ("operation", "request_part"),
    [
        ("TransactWriteItems", {"TransactItems": [{}] * 50_000}),
        ("BatchGetItem", {"RequestItems": {"things": {"Keys": [KEY] * 50_000}}}),
        ("TransactGetItems", {"TransactItems": [{"Get": {"TableName": "t", "Key": KEY}}] * 50_000}),
        ("DescribeTable", {"TableName": "x" * 1_000_000}),
    ],
)  # fmt: skip
def test_errors_that_repeat_the_request_are_short(
    engine: Engine, operation: str, request_part: dict[str, Any]
) -> None:
    with pytest.raises(ServiceError) as refused:
        engine.call(operation, request_part)
    assert len(str(refused.value.wire())) < MESSAGE_CHARACTERS + 200
