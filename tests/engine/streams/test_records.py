"""The records that changes leave in a stream."""

from __future__ import annotations

import re
from typing import Any

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.testing.boto import boto3_session

from .reading import create, delete, put, read_all, told


def test_a_record_has_the_members_of_aws(engine: Engine, clock: VirtualClock) -> None:
    arn = create(engine)
    engine.call(
        "PutItem",
        {"TableName": "orders", "Item": {"pk": {"S": "101"}, "Message": {"S": "New item!"}}},
    )
    [record] = read_all(engine, arn)
    event_id, number = record.pop("eventID"), record["dynamodb"].pop("SequenceNumber")
    assert re.fullmatch("[0-9a-f]{32}", event_id)
    assert re.fullmatch("[0-9]{21,40}", number)
    assert record == {
        "eventName": "INSERT",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1",
        "dynamodb": {
            "ApproximateCreationDateTime": 1_791_489_600,  # to the second, rounded down
            "Keys": {"pk": {"S": "101"}},
            "NewImage": {"pk": {"S": "101"}, "Message": {"S": "New item!"}},
            "SizeBytes": 26,  # 5 of the key, 21 of the image
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
    }


@pytest.mark.parametrize(
    ("view", "images"),
    [
        ("KEYS_ONLY", [set(), set(), set()]),
        ("NEW_IMAGE", [{"NewImage"}, {"NewImage"}, set()]),
        ("OLD_IMAGE", [set(), {"OldImage"}, {"OldImage"}]),
        ("NEW_AND_OLD_IMAGES", [{"NewImage"}, {"NewImage", "OldImage"}, {"OldImage"}]),
    ],
)
def test_a_view_type_says_which_images_there_are(
    engine: Engine, view: str, images: list[set[str]]
) -> None:
    arn = create(engine, view=view)
    put(engine, "a", v=1)
    put(engine, "a", v=2)
    delete(engine, "a")
    records = read_all(engine, arn)
    assert told(records) == [("INSERT", "a"), ("MODIFY", "a"), ("REMOVE", "a")]
    for record, expected in zip(records, images):
        body = record["dynamodb"]
        assert {"NewImage", "OldImage"} & body.keys() == expected
        assert body["StreamViewType"] == view
        size = 3 * (1 + len(expected)) + 3 * len(expected)
        assert body["SizeBytes"] == size
    assert records[1]["dynamodb"].get("NewImage", {}).get("v", {"N": "2"}) == {"N": "2"}
    assert records[1]["dynamodb"].get("OldImage", {}).get("v", {"N": "1"}) == {"N": "1"}


def test_a_write_without_effect_leaves_no_record(engine: Engine) -> None:
    arn = create(engine)
    item = {"pk": {"S": "a"}, "tags": {"SS": ["x", "y"]}, "n": {"N": "1.0"}}
    engine.call("PutItem", {"TableName": "orders", "Item": item})
    engine.call(
        "PutItem",
        {"TableName": "orders", "Item": {"n": {"N": "1"}, **item, "tags": {"SS": ["y", "x"]}}},
    )
    key = {"TableName": "orders", "Key": {"pk": {"S": "a"}}}
    engine.call("UpdateItem", {**key, "UpdateExpression": "REMOVE nowhere"})
    engine.call("UpdateItem", key)
    delete(engine, "ghost")
    engine.call(
        "TransactWriteItems",
        {
            "TransactItems": [
                {"Put": {"TableName": "orders", "Item": item}},
                {
                    "ConditionCheck": {
                        "TableName": "orders",
                        "Key": {"pk": {"S": "b"}},
                        "ConditionExpression": "attribute_not_exists(pk)",
                    }
                },
                {"Delete": {"TableName": "orders", "Key": {"pk": {"S": "c"}}}},
            ]
        },
    )
    assert told(read_all(engine, arn)) == [("INSERT", "a")]


def test_a_refused_write_leaves_no_record(engine: Engine) -> None:
    arn = create(engine)
    put(engine, "a")
    request = {"TableName": "orders", "Item": {"pk": {"S": "a"}, "v": {"N": "1"}}}
    with pytest.raises(Exception, match="conditional"):
        engine.call("PutItem", {**request, "ConditionExpression": "attribute_not_exists(pk)"})
    assert told(read_all(engine, arn)) == [("INSERT", "a")]


def test_every_kind_of_write_leaves_a_record(engine: Engine) -> None:
    arn = create(engine)
    engine.call("UpdateItem", {"TableName": "orders", "Key": {"pk": {"S": "update"}}})
    requests = [
        {"PutRequest": {"Item": {"pk": {"S": "batch"}}}},
        {"DeleteRequest": {"Key": {"pk": {"S": "update"}}}},
    ]
    engine.call("BatchWriteItem", {"RequestItems": {"orders": requests}})
    put_in_transaction = {"Put": {"TableName": "orders", "Item": {"pk": {"S": "transaction"}}}}
    engine.call("TransactWriteItems", {"TransactItems": [put_in_transaction]})
    engine.call("ExecuteStatement", {"Statement": "INSERT INTO orders VALUE {'pk': 'partiql'}"})
    engine.call("ExecuteStatement", {"Statement": "DELETE FROM orders WHERE pk = 'batch'"})
    assert sorted(told(read_all(engine, arn))) == [
        ("INSERT", "batch"),
        ("INSERT", "partiql"),
        ("INSERT", "transaction"),
        ("INSERT", "update"),
        ("REMOVE", "batch"),
        ("REMOVE", "update"),
    ]


def test_a_table_without_a_stream_has_none(engine: Engine) -> None:
    create(engine, view=None)
    put(engine, "a")
    assert engine.call("ListStreams", {"TableName": "orders"}) == {"Streams": []}


def test_sequence_numbers_rise_with_the_writes(engine: Engine) -> None:
    arn = create(engine)
    for number in range(50):
        put(engine, f"k{number % 7}", v=number)
    records = read_all(engine, arn)
    in_order = sorted(records, key=lambda record: int(record["dynamodb"]["SequenceNumber"]))
    assert [record["dynamodb"]["NewImage"]["v"]["N"] for record in in_order] == [
        str(number) for number in range(50)
    ]


def test_boto3_reads_them(engine: Engine) -> None:
    arn = create(engine)
    put(engine, "a", v=1)
    client: Any = boto3_session(engine).client("dynamodbstreams")
    pages = [
        client.get_records(
            ShardIterator=client.get_shard_iterator(
                StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )["ShardIterator"]
        )
        for shard in client.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    ]
    [record] = [record for page in pages for record in page["Records"]]
    assert record["dynamodb"]["NewImage"] == {"pk": {"S": "a"}, "v": {"N": "1"}}
    assert record["dynamodb"]["ApproximateCreationDateTime"].timestamp() == 1_791_489_600
