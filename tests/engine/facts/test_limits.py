"""Limits on names, keys, nesting and transactions."""

from __future__ import annotations

from typing import Any

import pytest

from stator.engine import Engine
from stator.errors import TransactionCanceled
from stator.model.scope import Scope

from .subject import ENVELOPE, Subject, attributes, refusal, value

NAME_TOO_LARGE = "Attribute name is too large, must be less than 65536 bytes"
LONGEST = "x" * 65_535


def create(engine: Engine, name: str, keys: list[str], *indexes: list[str]) -> None:
    """A table of string keys, the partition key first, with a global index on each list of
    attributes.
    """

    def schema(names: list[str]) -> list[dict[str, str]]:
        return [{"AttributeName": n, "KeyType": t} for n, t in zip(names, ("HASH", "RANGE"))]

    declared = {attribute for names in (keys, *indexes) for attribute in names}
    request: dict[str, Any] = {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": schema(keys),
        "AttributeDefinitions": [
            {"AttributeName": n, "AttributeType": "S"} for n in sorted(declared)
        ],
    }
    if indexes:
        request["GlobalSecondaryIndexes"] = [
            {
                "IndexName": f"by-{'-'.join(n)}",
                "KeySchema": schema(n),
                "Projection": {"ProjectionType": "ALL"},
            }
            for n in indexes
        ]
    engine.call("CreateTable", request)


# -- names


def test_a_name_of_65535_bytes_is_fine_everywhere(subject: Subject) -> None:
    longest: dict[str, Any] = {LONGEST: 1}
    subject.put(**longest)
    names = {"#n": LONGEST}
    subject.update("SET #n = #n + :v", {":v": 1}, ExpressionAttributeNames=names)
    assert subject.get(ProjectionExpression="#n", ExpressionAttributeNames=names) == {
        LONGEST: value(2)
    }
    assert subject.get(AttributesToGet=[LONGEST]) == {LONGEST: value(2)}


@pytest.mark.parametrize("name", [LONGEST + "x", "é" * 32_768])
@pytest.mark.parametrize("nested", [False, True])
def test_a_longer_name_is_refused_in_items(subject: Subject, name: str, nested: bool) -> None:
    item = attributes(p="p", **({"l": [{name: 1}]} if nested else {name: 1}))
    put = {"TableName": "facts", "Item": item}
    assert refusal(subject.engine, "PutItem", put) == ENVELOPE + NAME_TOO_LARGE
    batch = {"RequestItems": {"facts": [{"PutRequest": {"Item": item}}]}}
    assert refusal(subject.engine, "BatchWriteItem", batch) == NAME_TOO_LARGE


def test_a_longer_name_is_refused_wherever_it_is_named(subject: Subject) -> None:
    engine, name = subject.engine, LONGEST + "x"
    names = {"#n": name}
    wrapped = f"ExpressionAttributeNames contains invalid value: {NAME_TOO_LARGE} for key #n"
    get = subject.request(ProjectionExpression="#n", ExpressionAttributeNames=names)
    assert refusal(engine, "GetItem", get) == wrapped
    assert refusal(engine, "GetItem", subject.request(AttributesToGet=[name])) == NAME_TOO_LARGE
    update = subject.request(UpdateExpression="REMOVE #n", ExpressionAttributeNames=names)
    assert refusal(engine, "UpdateItem", update) == ENVELOPE + wrapped
    old_update = subject.request(AttributeUpdates={name: {"Action": "DELETE"}})
    assert refusal(engine, "UpdateItem", old_update) == ENVELOPE + NAME_TOO_LARGE
    old_condition = subject.request(Expected={name: {"Exists": False}})
    assert refusal(engine, "DeleteItem", old_condition) == ENVELOPE + NAME_TOO_LARGE


# -- keys


def test_keys_have_their_lengths_in_reads_as_in_writes(engine: Engine) -> None:
    create(engine, "pairs", ["p", "s"])
    for p, s in (("p" * 2048, "s"), ("p", "s" * 1024)):
        engine.call("PutItem", {"TableName": "pairs", "Item": attributes(p=p, s=s)})
    for p, s in (("p" * 2049, "s"), ("p", "s" * 1025)):
        for operation, member in (("PutItem", "Item"), ("GetItem", "Key"), ("DeleteItem", "Key")):
            assert "limit" in refusal(
                engine, operation, {"TableName": "pairs", member: attributes(p=p, s=s)}
            )


def test_attributes_that_are_index_keys_have_the_lengths_of_keys(engine: Engine) -> None:
    create(engine, "indexed", ["p"], ["x"], ["p", "y"])

    def put(**given: Any) -> dict[str, Any]:
        return {"TableName": "indexed", "Item": attributes(p="p", **given)}

    engine.call("PutItem", put(x="x" * 2048, y="y" * 1024))
    assert "2048" in refusal(engine, "PutItem", put(x="x" * 2049))
    assert "1024" in refusal(engine, "PutItem", put(y="y" * 1025))


def test_an_index_added_later_leaves_out_values_that_cannot_be_keys(engine: Engine) -> None:
    create(engine, "later", ["p"])
    sizes = {"empty": 0, "short": 1024, "long": 2048, "longer": 2049}
    for name, size in sizes.items():
        engine.call("PutItem", {"TableName": "later", "Item": attributes(p=name, x="x" * size)})
    engine.call("PutItem", {"TableName": "later", "Item": attributes(p="number", x=1)})
    index = {
        "IndexName": "by-x",
        "KeySchema": [{"AttributeName": "x", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    }
    engine.call(
        "UpdateTable",
        {
            "TableName": "later",
            "AttributeDefinitions": [{"AttributeName": "x", "AttributeType": "S"}],
            "GlobalSecondaryIndexUpdates": [{"Create": index}],
        },
    )
    found = engine.call("Scan", {"TableName": "later", "IndexName": "by-x"})["Items"]
    assert {item["p"]["S"] for item in found} == {"short", "long"}


# -- depth


@pytest.mark.parametrize(("opening", "closing"), [(b'{"L":[', b"]}"), (b'{"M":{"m":', b"}}")])
@pytest.mark.parametrize("depth", [32, 100, 500])
def test_a_deep_value_is_refused_however_deep(
    subject: Subject, opening: bytes, closing: bytes, depth: int
) -> None:
    deep = opening * depth + b'{"S":"x"}' + closing * depth
    body = b'{"TableName":"facts","Item":{"p":{"S":"p"},"a":%b}}' % deep
    reply = subject.engine.submit("PutItem", body, Scope())
    assert reply.status == 400
    assert b"Nesting Levels have exceeded supported limits" in reply.body


# -- transactions


def reasons(engine: Engine, *actions: dict[str, Any]) -> list[str]:
    with pytest.raises(TransactionCanceled) as canceled:
        engine.call("TransactWriteItems", {"TransactItems": list(actions)})
    return [reason["Code"] for reason in canceled.value.reasons]


def put_action(p: Any, **more: Any) -> dict[str, Any]:
    return {"Put": {"TableName": "facts", "Item": {"p": value(p)}, **more}}


def test_only_the_first_action_its_table_cannot_take_is_named(subject: Subject) -> None:
    false = put_action("a", ConditionExpression="attribute_exists(p)")
    assert reasons(subject.engine, put_action(7), put_action(8), false) == [
        "ValidationError",
        "None",
        "None",
    ]
    assert reasons(subject.engine, false, put_action(7)) == ["None", "ValidationError"]


def test_every_action_whose_condition_fails_is_named(subject: Subject) -> None:
    first, second = (put_action(p, ConditionExpression="attribute_exists(p)") for p in "ab")
    found = reasons(subject.engine, put_action("c"), first, second)
    assert found == ["None", "ConditionalCheckFailed", "ConditionalCheckFailed"]


def test_a_transaction_is_measured_by_its_request(subject: Subject) -> None:
    names = [str(i) for i in range(45)]
    for name in names:
        subject.put(name, x="x" * 100_000)
    keys = [subject.request(name) for name in names]
    whole = [{"Put": {"TableName": "facts", "Item": subject.get(name)}} for name in names]
    message = refusal(subject.engine, "TransactWriteItems", {"TransactItems": whole})
    assert "Transaction payload size cannot exceed 4MB" in message
    touch = {"UpdateExpression": "SET y = :v", "ExpressionAttributeValues": attributes(**{":v": 1})}
    for kind, more in (
        ("Update", touch),
        ("ConditionCheck", {"ConditionExpression": "attribute_exists(p)"}),
        ("Delete", {}),
    ):
        actions = [{kind: {**key, **more}} for key in keys]
        subject.engine.call("TransactWriteItems", {"TransactItems": actions})
    assert subject.get("0") is None
