"""Shards: lineage, rolling, splits, trimming, and disabled streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import ResourceNotFound, StorageFull, TrimmedDataAccess
from tests.storage.test_storage import FullDisk

from .reading import (
    create,
    delete,
    described,
    iterator,
    put,
    read,
    read_all,
    read_shard,
    shards,
    told,
)

HOUR = 3600.0


def open_shards(engine: Engine, arn: str) -> list[dict[str, Any]]:
    return [
        shard
        for shard in shards(engine, arn)
        if "EndingSequenceNumber" not in shard["SequenceNumberRange"]
    ]


def numbers(shard: dict[str, Any]) -> tuple[int, int | None]:
    found = shard["SequenceNumberRange"]
    last = found.get("EndingSequenceNumber")
    return int(found["StartingSequenceNumber"]), None if last is None else int(last)


def test_a_table_has_a_shard_for_each_partition(engine: Engine) -> None:
    assert len(shards(engine, create(engine))) == 4
    small = create(
        engine,
        "small",
        BillingMode="PROVISIONED",
        ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
    )
    assert len(shards(engine, small)) == 1
    large = create(
        engine,
        "large",
        BillingMode="PROVISIONED",
        ProvisionedThroughput={"ReadCapacityUnits": 3000, "WriteCapacityUnits": 1500},
    )
    assert len(shards(engine, large)) == 3


def test_an_item_stays_in_its_line_of_shards(engine: Engine, clock: VirtualClock) -> None:
    arn = create(engine)
    for hour in range(20):
        put(engine, "a", v=hour)
        clock.advance(HOUR)
    lines = {shard["ShardId"]: shard for shard in shards(engine, arn)}
    holding = [shard for shard in lines if read_shard(engine, arn, shard)]
    assert 4 <= len(holding) <= 6
    youngest = max(holding)
    line = []
    place: str | None = youngest
    while place is not None:
        line.append(place)
        place = lines[place].get("ParentShardId")
    assert set(holding) <= set(line)
    assert [r["dynamodb"]["NewImage"]["v"]["N"] for r in read_all(engine, arn)] == [
        str(hour) for hour in range(20)
    ]


def test_shards_roll_after_about_four_hours_without_traffic(
    engine: Engine, clock: VirtualClock
) -> None:
    arn = create(engine)
    first = {shard["ShardId"] for shard in shards(engine, arn)}
    clock.advance(3.7 * HOUR)
    assert {shard["ShardId"] for shard in shards(engine, arn)} == first
    clock.advance(0.6 * HOUR)
    now = shards(engine, arn)
    assert len(now) == 8
    assert {shard["ParentShardId"] for shard in open_shards(engine, arn)} == first
    clock.advance(12 * HOUR)
    assert len(open_shards(engine, arn)) == 4
    assert len(shards(engine, arn)) >= 16


def test_ranges_of_parents_and_children_do_not_overlap(engine: Engine, clock: VirtualClock) -> None:
    arn = create(engine)
    for number in range(300):
        put(engine, f"k{number}", v=number)
        clock.advance(200)
    listed = {shard["ShardId"]: shard for shard in shards(engine, arn)}
    for shard in listed.values():
        start, end = numbers(shard)
        for record in read_shard(engine, arn, shard["ShardId"]):
            assert start <= int(record["dynamodb"]["SequenceNumber"]) <= (end or 10**40)
        parent = listed.get(shard.get("ParentShardId", ""))
        if parent is not None:
            assert (numbers(parent)[1] or 0) < start


def test_a_closed_shard_ends_and_an_open_one_goes_on(engine: Engine) -> None:
    arn = create(engine)
    put(engine, "a", v=1)
    places = [iterator(engine, arn, shard["ShardId"]) for shard in shards(engine, arn)]
    assert all(read(engine, place)[1] is not None for place in places)
    children = engine.streams.roll(arn)
    assert len(children) == 4
    ends = [read(engine, place) for place in places]
    assert [end for _, end in ends] == [None] * 4
    assert told([record for records, _ in ends for record in records]) == [("INSERT", "a")]
    latest = iterator(engine, arn, shards(engine, arn)[0]["ShardId"], "LATEST")
    assert read(engine, latest) == ([], None)


def test_a_split_halves_a_shard(engine: Engine) -> None:
    arn = create(engine)
    keys = [f"k{number}" for number in range(200)]
    for key in keys:
        put(engine, key, v=1)
    parent = shards(engine, arn)[0]["ShardId"]
    held = {key for _, key in told(read_shard(engine, arn, parent))}
    children = [shard.id for shard in engine.streams.split(arn, parent)]
    for key in keys:
        put(engine, key, v=2)
    of_children = [{key for _, key in told(read_shard(engine, arn, child))} for child in children]
    assert of_children[0] | of_children[1] == held
    assert not of_children[0] & of_children[1]
    assert all(of_children)
    filtered = described(engine, arn, ShardFilter={"Type": "CHILD_SHARDS", "ShardId": parent})[
        "Shards"
    ]
    assert {shard["ShardId"] for shard in filtered} == set(children)
    with pytest.raises(ResourceNotFound):
        engine.streams.split(arn, parent)


def test_a_shard_that_is_hot_for_minutes_splits_with_its_partition(
    engine: Engine, clock: VirtualClock
) -> None:
    arn = create(engine)
    homes = _homes(engine, arn)
    home, keys = max(homes.items(), key=lambda each: len(each[1]))
    _heat(engine, clock, keys, 130.0)
    assert len(open_shards(engine, arn)) == 4, "a split takes minutes"
    clock.advance(180.0)
    put(engine, keys[0], v=1)
    split = [shard for shard in shards(engine, arn) if shard.get("ParentShardId") == home]
    assert len(split) == 2
    assert len(open_shards(engine, arn)) == 5


def test_one_hot_key_does_not_split_a_shard_but_other_shards_do(
    engine: Engine, clock: VirtualClock
) -> None:
    arn = create(engine)
    homes = _homes(engine, arn)
    (first, first_keys), (second, second_keys) = list(homes.items())[:2]
    _heat(engine, clock, [first_keys[0], *second_keys, *second_keys], 250.0)
    clock.advance(180.0)
    put(engine, first_keys[0], v=1)
    parents = [shard.get("ParentShardId") for shard in shards(engine, arn)]
    assert parents.count(first) == 0
    assert parents.count(second) == 2


def _homes(engine: Engine, arn: str) -> dict[str, list[str]]:
    """Return keys that each shard takes."""
    homes: dict[str, list[str]] = {}
    for number in range(24):
        for shard in [shard["ShardId"] for shard in shards(engine, arn)]:
            if _takes(engine, arn, shard, f"hot{number}"):
                homes.setdefault(shard, []).append(f"hot{number}")
    return homes


def _heat(engine: Engine, clock: VirtualClock, keys: list[str], seconds: float) -> None:
    """Write 293 units at a time, seven times in every second: twice what a partition takes."""
    text = {"S": "x" * 300_000}
    end = clock.now() + seconds
    number = 0
    while clock.now() < end:
        key = keys[number * 7 % len(keys)]
        item = {"pk": {"S": key}, "n": {"N": str(number)}, "t": text}
        engine.call("PutItem", {"TableName": "orders", "Item": item})
        number += 1
        clock.advance(0.15 if len(keys) < 9 else 0.06)


def test_a_stream_that_cannot_roll_on_a_full_disk_rolls_when_there_is_room(tmp_path: Path) -> None:
    clock = VirtualClock(1_790_000_000.0)
    with Engine.open(str(tmp_path / "data"), clock=clock) as engine:
        arn = create(engine)
        put(engine, "a", v=1)
        before = {shard["ShardId"] for shard in shards(engine, arn)}
        clock.advance(5 * HOUR)
        storage: Any = engine.storage
        real = storage._db
        storage._db = FullDisk(real, "write")
        with pytest.raises(StorageFull):
            put(engine, "b", v=1)
        storage._db = real
        put(engine, "c", v=1)
        assert {shard["ShardId"] for shard in shards(engine, arn)} > before
        assert engine.call("DescribeTable", {"TableName": "orders"})["Table"]["ItemCount"] == 2
        assert sorted(key for _, key in told(read_all(engine, arn))) == ["a", "c"]


def _takes(engine: Engine, arn: str, shard: str, key: str) -> bool:
    place = iterator(engine, arn, shard, "LATEST")
    put(engine, key, v=1)
    taken = bool(read(engine, place)[0])
    delete(engine, key)
    return taken


def test_records_are_trimmed_after_a_day(engine: Engine, clock: VirtualClock) -> None:
    arn = create(engine)
    for hour in range(30):
        put(engine, f"k{hour}", v=hour)
        clock.advance(HOUR)
    left = sorted(int(record["dynamodb"]["NewImage"]["v"]["N"]) for record in read_all(engine, arn))
    assert left == list(range(7, 30))  # written at hour 6 is exactly a day old
    listed = shards(engine, arn)
    trimmed_parents = {shard.get("ParentShardId") for shard in listed} - {
        shard["ShardId"] for shard in listed
    }
    assert trimmed_parents - {None}  # a child still names the parent that is gone


def test_an_iterator_on_trimmed_records_is_refused(engine: Engine, clock: VirtualClock) -> None:
    arn = create(engine)
    put(engine, "a", v=1)
    [(shard, record)] = [
        (s["ShardId"], r)
        for s in shards(engine, arn)
        for r in read_shard(engine, arn, s["ShardId"])
    ]
    number = record["dynamodb"]["SequenceNumber"]
    clock.advance(2 * HOUR)
    put(engine, "a", v=2)
    clock.advance(22 * HOUR - 60)
    place = iterator(engine, arn, shard, "AT_SEQUENCE_NUMBER", SequenceNumber=number)
    clock.advance(120)
    with pytest.raises(TrimmedDataAccess):
        read(engine, place)
    with pytest.raises(TrimmedDataAccess):
        iterator(engine, arn, shard, "AT_SEQUENCE_NUMBER", SequenceNumber=number)
    assert [r["dynamodb"]["NewImage"]["v"]["N"] for r in read_shard(engine, arn, shard)] == ["2"]
    clock.advance(5 * HOUR)
    with pytest.raises(ResourceNotFound):
        iterator(engine, arn, shard)


def test_a_stream_outlives_its_disabling_by_a_day(engine: Engine, clock: VirtualClock) -> None:
    arn = create(engine)
    put(engine, "a", v=1)
    engine.call(
        "UpdateTable", {"TableName": "orders", "StreamSpecification": {"StreamEnabled": False}}
    )
    put(engine, "a", v=2)
    assert described(engine, arn)["StreamStatus"] == "DISABLED"
    assert not open_shards(engine, arn)
    assert told(read_all(engine, arn)) == [("INSERT", "a")]
    again = {
        "TableName": "orders",
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
    }
    second = engine.call("UpdateTable", again)["TableDescription"]["LatestStreamArn"]
    put(engine, "a", v=3)
    assert told(read_all(engine, second)) == [("MODIFY", "a")]
    listed = engine.call("ListStreams", {"TableName": "orders"})["Streams"]
    assert [stream["StreamArn"] for stream in listed] == [arn, second]
    clock.advance(24 * HOUR)
    listed = engine.call("ListStreams", {"TableName": "orders"})["Streams"]
    assert [stream["StreamArn"] for stream in listed] == [second]
    with pytest.raises(ResourceNotFound):
        described(engine, arn)


def test_a_stream_outlives_its_table_by_a_day(engine: Engine, clock: VirtualClock) -> None:
    arn = create(engine)
    put(engine, "a", v=1)
    engine.call("DeleteTable", {"TableName": "orders"})
    assert described(engine, arn)["StreamStatus"] == "DISABLED"
    assert told(read_all(engine, arn)) == [("INSERT", "a")]
    clock.advance(1)
    other = create(engine)
    put(engine, "b", v=1)
    assert other != arn
    assert told(read_all(engine, other)) == [("INSERT", "b")]
    assert told(read_all(engine, arn)) == [("INSERT", "a")]
    clock.advance(24 * HOUR)
    with pytest.raises(ResourceNotFound):
        described(engine, arn)


def test_shards_and_records_are_there_after_reopening(tmp_path: Path, clock: VirtualClock) -> None:
    path = str(tmp_path / "data")
    with Engine.open(path, clock=clock) as engine:
        arn = create(engine)
        for number in range(20):
            put(engine, f"k{number % 5}", v=number)
            clock.advance(HOUR / 2)
        before, ids = read_all(engine, arn), shards(engine, arn)
    with Engine.open(path, clock=clock) as engine:
        assert shards(engine, arn) == ids
        assert read_all(engine, arn) == before
        put(engine, "k0", v=99)
        last = read_all(engine, arn)
        newest = max(last, key=lambda record: int(record["dynamodb"]["SequenceNumber"]))
        assert newest["dynamodb"]["NewImage"]["v"] == {"N": "99"}


def test_sequence_numbers_are_not_reused_after_all_records_are_trimmed(
    tmp_path: Path, clock: VirtualClock
) -> None:
    path = str(tmp_path / "data")
    with Engine.open(path, clock=clock) as engine:
        arn = create(engine)
        put(engine, "a", v=1)
        [first] = read_all(engine, arn)
        clock.advance(40 * HOUR)
        assert read_all(engine, arn) == []
    with Engine.open(path, clock=clock) as engine:
        put(engine, "a", v=2)
        [second] = read_all(engine, arn)
    assert int(second["dynamodb"]["SequenceNumber"]) > int(first["dynamodb"]["SequenceNumber"])
