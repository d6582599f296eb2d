"""The same writes on this engine and on DynamoDB Local leave the same stream records.

DynamoDB Local rounds the time to the minute and has one shard for ever, so times, numbers and
shards are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator.addresses import Address, EngineTransport, TransportOptions, open_transport
from stator.engine import Engine
from stator.transport import Transport
from tests.dynamodb_local import dynamodb_local

VIEWS = ("KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES")
KEYS = st.sampled_from(["a", "b", "c"])
# As DynamoDB writes numbers: after an update DynamoDB Local shows one as it was sent, 1.0 for 1.
NUMBERS = st.sampled_from(["0", "1", "-2.5", "12345678901234567890"])
VALUES = st.one_of(
    NUMBERS.map(lambda number: {"N": number}),
    st.text("xyzé", max_size=4).map(lambda text: {"S": text}),
    st.sets(st.sampled_from(["p", "q", "r"]), min_size=1).map(
        lambda members: {"SS": sorted(members, reverse=True)}
    ),
    st.lists(st.just({"BOOL": True}), max_size=2).map(lambda members: {"L": members}),
    st.just({"M": {"k": {"NULL": True}}}),
)
ITEMS = st.dictionaries(st.sampled_from(["v", "w"]), VALUES, max_size=2)
STEPS = st.one_of(
    st.tuples(st.just("put"), KEYS, ITEMS),
    st.tuples(st.just("update"), KEYS, VALUES),
    st.tuples(st.just("delete"), KEYS, st.none()),
    st.tuples(st.just("batch"), KEYS, ITEMS),
    st.tuples(st.just("transact"), KEYS, ITEMS),
)


@pytest.fixture(scope="module")
def local() -> Iterator[Transport]:
    with dynamodb_local() as url:
        options: TransportOptions = {
            "access_key_id": "x",
            "secret_access_key": "y",
            "region": "us-east-1",
        }
        transport = open_transport(Address.parse(url), None, options)
        yield transport
        transport.close()


def request_of(table: str, step: tuple[str, str, Any]) -> tuple[str, dict[str, Any]]:
    kind, key, content = step
    keys = {"pk": {"S": key}}
    item = {**keys, **(content or {})} if kind != "update" else keys
    match kind:
        case "put":
            return "PutItem", {"TableName": table, "Item": item}
        case "update":
            update = {
                "UpdateExpression": "SET v = :v",
                "ExpressionAttributeValues": {":v": content},
            }
            return "UpdateItem", {"TableName": table, "Key": keys, **update}
        case "delete":
            return "DeleteItem", {"TableName": table, "Key": keys}
        case "batch":
            return "BatchWriteItem", {"RequestItems": {table: [{"PutRequest": {"Item": item}}]}}
    return "TransactWriteItems", {"TransactItems": [{"Put": {"TableName": table, "Item": item}}]}


def records_of(
    transport: Transport, table: str, view: str, steps: list[Any]
) -> list[dict[str, Any]]:
    request = {
        "TableName": table,
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": view},
    }
    arn = transport.call("CreateTable", request)["TableDescription"]["LatestStreamArn"]
    try:
        for step in steps:
            transport.call(*request_of(table, step))
        [shard] = transport.call("DescribeStream", {"StreamArn": arn})["StreamDescription"][
            "Shards"
        ]
        ask = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        iterator = transport.call("GetShardIterator", ask)["ShardIterator"]
        found: list[dict[str, Any]] = transport.call("GetRecords", {"ShardIterator": iterator})[
            "Records"
        ]
    finally:
        transport.call("DeleteTable", {"TableName": table})
    return [told(record) for record in found]


def told(record: dict[str, Any]) -> dict[str, Any]:
    body = dict(record["dynamodb"])
    for name in ("SequenceNumber", "ApproximateCreationDateTime"):
        body.pop(name)
    return {"eventName": record["eventName"], **body}


@pytest.mark.parametrize("view", VIEWS)
def test_records_are_the_same(local: Transport, view: str) -> None:
    ours = EngineTransport(Engine.open())
    count = 0

    @settings(max_examples=25)
    @given(st.lists(STEPS, max_size=12))
    def compare(steps: list[Any]) -> None:
        nonlocal count
        count += 1
        table = f"stream-{view.replace('_', '-')}-{count}"
        assert records_of(ours, table, view, steps) == records_of(local, table, view, steps)

    compare()
    ours.close()
