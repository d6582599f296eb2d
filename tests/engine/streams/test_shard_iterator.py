"""GetShardIterator and GetRecords: where reading starts, its page size, and its errors."""

from __future__ import annotations

from typing import Any

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import ExpiredIterator, ResourceNotFound, ServiceError, ValidationFailed

from .reading import create, iterator, put, read, shards

ONE_SHARD: dict[str, Any] = {
    "BillingMode": "PROVISIONED",
    "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
}


@pytest.fixture
def arn(engine: Engine) -> str:
    return create(engine, **ONE_SHARD)


@pytest.fixture
def shard(engine: Engine, arn: str) -> str:
    return str(shards(engine, arn)[0]["ShardId"])


def values(records: list[dict[str, Any]]) -> list[int]:
    return [int(record["dynamodb"]["NewImage"]["v"]["N"]) for record in records]


def refused(
    engine: Engine,
    operation: str,
    request: dict[str, Any],
    kind: type[ServiceError] = ValidationFailed,
) -> str:
    with pytest.raises(kind) as caught:
        engine.call(operation, request)
    return caught.value.message


def test_the_five_types(engine: Engine, clock: VirtualClock, arn: str, shard: str) -> None:
    for number in range(6):
        put(engine, "a", v=number)
        clock.advance(10)
    records, _ = read(engine, iterator(engine, arn, shard))
    assert values(records) == [0, 1, 2, 3, 4, 5]
    third = records[2]["dynamodb"]
    at = iterator(engine, arn, shard, "AT_SEQUENCE_NUMBER", SequenceNumber=third["SequenceNumber"])
    assert values(read(engine, at)[0]) == [2, 3, 4, 5]
    after = iterator(
        engine, arn, shard, "AFTER_SEQUENCE_NUMBER", SequenceNumber=third["SequenceNumber"]
    )
    assert values(read(engine, after)[0]) == [3, 4, 5]
    moment = third["ApproximateCreationDateTime"]
    since = iterator(engine, arn, shard, "AT_TIMESTAMP", Timestamp=moment)
    assert values(read(engine, since)[0]) == [2, 3, 4, 5]
    between = iterator(engine, arn, shard, "AT_TIMESTAMP", Timestamp=moment + 0.5)
    assert values(read(engine, between)[0]) == [3, 4, 5]
    old = iterator(engine, arn, shard, "AT_TIMESTAMP", Timestamp=moment - 1e6)
    assert values(read(engine, old)[0]) == [0, 1, 2, 3, 4, 5]
    latest = iterator(engine, arn, shard, "LATEST")
    put(engine, "a", v=6)
    assert values(read(engine, latest)[0]) == [6]


def test_the_first_number_of_a_shard_reads_all_of_it(engine: Engine, arn: str, shard: str) -> None:
    put(engine, "a", v=1)
    first = shards(engine, arn)[0]["SequenceNumberRange"]["StartingSequenceNumber"]
    for kind in ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"):
        assert values(
            read(engine, iterator(engine, arn, shard, kind, SequenceNumber=first))[0]
        ) == [1]


def test_reading_on_finds_only_new_records(engine: Engine, arn: str, shard: str) -> None:
    put(engine, "a", v=1)
    records, place = read(engine, iterator(engine, arn, shard))
    assert values(records) == [1]
    assert read(engine, place)[0] == []
    put(engine, "a", v=2)
    assert values(read(engine, place)[0]) == [2]


def test_a_page_has_at_most_so_many_records(engine: Engine, arn: str, shard: str) -> None:
    for number in range(1100):
        put(engine, "a", v=number)
    page = engine.call("GetRecords", {"ShardIterator": iterator(engine, arn, shard)})
    assert len(page["Records"]) == 1000
    rest = engine.call("GetRecords", {"ShardIterator": page["NextShardIterator"], "Limit": 70})
    assert values(rest["Records"]) == list(range(1000, 1070))
    assert values(read(engine, iterator(engine, arn, shard), Limit=7)[0]) == list(range(1100))


def test_a_page_has_at_most_a_megabyte_but_one_record(engine: Engine, arn: str, shard: str) -> None:
    for number in range(4):
        item = {"pk": {"S": "a"}, "v": {"N": str(number)}, "t": {"S": "x" * 390_000}}
        engine.call("PutItem", {"TableName": "orders", "Item": item})
    place = iterator(engine, arn, shard)
    sizes = []
    for _ in range(4):
        page = engine.call("GetRecords", {"ShardIterator": place})
        sizes.append(len(page["Records"]))
        place = page["NextShardIterator"]
    assert sizes == [1, 1, 1, 1]  # one image, then twice as much each: no two fit
    assert sum(sizes) == 4


def test_an_iterator_lasts_fifteen_minutes(
    engine: Engine, clock: VirtualClock, arn: str, shard: str
) -> None:
    put(engine, "a", v=1)
    place = iterator(engine, arn, shard)
    clock.advance(15 * 60)
    assert values(read(engine, place)[0]) == [1]
    clock.advance(1)
    with pytest.raises(ExpiredIterator):
        read(engine, place)


def test_made_up_iterators_are_refused(engine: Engine, arn: str, shard: str) -> None:
    place = iterator(engine, arn, shard)
    for wrong in (
        "x" * 40,
        place[:-3],
        place[:-4] + "AAA=",
        place.replace("orders", "others"),
        f"{arn}|1|",
        f"{arn}|2|AAAA",
    ):
        assert refused(engine, "GetRecords", {"ShardIterator": wrong}) == "Invalid ShardIterator"


def test_invalid_requests_are_refused(
    engine: Engine, clock: VirtualClock, arn: str, shard: str
) -> None:
    number = shards(engine, arn)[0]["SequenceNumberRange"]["StartingSequenceNumber"]
    good = {"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "LATEST"}
    invalid = "One or more parameter values were invalid: "
    ask = "GetShardIterator"
    for kind in ("LATEST", "TRIM_HORIZON"):
        text = refused(engine, ask, {**good, "ShardIteratorType": kind, "SequenceNumber": number})
        assert text == f"{invalid}SequenceNumber should not be passed for this iterator type"
    for kind in ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"):
        for more in (
            {},
            {"SequenceNumber": "9" * 25},
            {"SequenceNumber": "0" * 21},
            {"SequenceNumber": "x" * 21},
        ):
            text = refused(engine, ask, {**good, "ShardIteratorType": kind, **more})
            assert text == f"{invalid}Invalid SequenceNumber"
    assert "Timestamp is required" in refused(
        engine, ask, {**good, "ShardIteratorType": "AT_TIMESTAMP"}
    )
    assert "Timestamp should not be passed" in refused(engine, ask, {**good, "Timestamp": 1})
    future = {**good, "ShardIteratorType": "AT_TIMESTAMP", "Timestamp": clock.now() + 60}
    assert "in the future" in refused(engine, ask, future)
    assert "enum value set" in refused(engine, ask, {**good, "ShardIteratorType": "FIRST"})
    assert "length greater than or equal to 28" in refused(engine, ask, {**good, "ShardId": "x"})
    refused(engine, ask, {**good, "ShardId": "x" * 30}, ResourceNotFound)
    refused(engine, ask, {**good, "StreamArn": arn[:-1] + "1"}, ResourceNotFound)
    assert refused(engine, ask, {**good, "StreamArn": "x" * 40}) == "Invalid StreamArn"
    place = iterator(engine, arn, shard)
    assert "less than or equal to 1000" in refused(
        engine, "GetRecords", {"ShardIterator": place, "Limit": 1001}
    )
    assert "greater than or equal to 1" in refused(
        engine, "GetRecords", {"ShardIterator": place, "Limit": 0}
    )


def test_describing_and_listing_in_pages(engine: Engine) -> None:
    arns = [create(engine, f"table{number}") for number in range(5)]
    found: list[str] = []
    more: dict[str, Any] = {}
    while True:
        page = engine.call("ListStreams", {"Limit": 2, **more})
        found += [stream["StreamArn"] for stream in page["Streams"]]
        if "LastEvaluatedStreamArn" not in page:
            break
        more = {"ExclusiveStartStreamArn": page["LastEvaluatedStreamArn"]}
    assert found == arns
    ids = [shard["ShardId"] for shard in shards(engine, arns[0])]
    first = engine.call("DescribeStream", {"StreamArn": arns[0], "Limit": 3})["StreamDescription"]
    assert first["LastEvaluatedShardId"] == ids[2] == first["Shards"][-1]["ShardId"]
    rest = engine.call(
        "DescribeStream", {"StreamArn": arns[0], "Limit": 3, "ExclusiveStartShardId": ids[2]}
    )
    assert [shard["ShardId"] for shard in rest["StreamDescription"]["Shards"]] == ids[3:]
    assert "LastEvaluatedShardId" not in rest["StreamDescription"]
    text = refused(engine, "DescribeStream", {"StreamArn": arns[0], "Limit": 101})
    assert (
        text == "One or more parameter values were invalid: Limit cannot be greater than the "
        "maximum: 100"
    )
    both = {
        "StreamArn": arns[0],
        "ExclusiveStartShardId": ids[0],
        "ShardFilter": {"Type": "CHILD_SHARDS"},
    }
    assert "both should not be specified" in refused(engine, "DescribeStream", both)
    assert "CHILD_SHARDS" in refused(
        engine, "DescribeStream", {"StreamArn": arns[0], "ShardFilter": {}}
    )
    assert "Limit cannot be greater" in refused(engine, "ListStreams", {"Limit": 101})
    assert (
        refused(engine, "ListStreams", {"ExclusiveStartStreamArn": "x" * 40}) == "Invalid StreamArn"
    )


def test_a_description_has_the_members_of_aws(engine: Engine, clock: VirtualClock) -> None:
    arn = create(engine, "orders", "KEYS_ONLY", **ONE_SHARD)
    shown = engine.call("DescribeStream", {"StreamArn": arn})["StreamDescription"]
    [shard] = shown.pop("Shards")
    assert shown == {
        "StreamArn": arn,
        "StreamLabel": arn.rpartition("/")[2],
        "StreamStatus": "ENABLED",
        "StreamViewType": "KEYS_ONLY",
        "CreationRequestDateTime": clock.now(),
        "TableName": "orders",
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    }
    assert shard.keys() == {"ShardId", "SequenceNumberRange"}
    assert shard["SequenceNumberRange"].keys() == {"StartingSequenceNumber"}
