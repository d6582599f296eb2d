"""The backfill of an index while the table is in use: exact at the end, even after a crash."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stator.engine import Engine, lifecycle
from stator.engine.items import records
from stator.errors import LimitExceeded, ResourceInUse, ValidationFailed
from stator.storage.protocol import after_prefix

from .declare import create_index, describe, global_index, on_demand, refusal

ITEMS = 20_000


def load(engine: Engine, count: int) -> None:
    engine.call("CreateTable", on_demand())
    for start in range(0, count, 25):
        puts = [
            {"PutRequest": {"Item": item(number)}}
            for number in range(start, min(start + 25, count))
        ]
        engine.call("BatchWriteItem", {"RequestItems": {"orders": puts}})


def item(number: int, group: str | None = None) -> dict[str, Any]:
    """Two of three items have the attribute that the index is about."""
    made: dict[str, Any] = {"pk": {"S": f"order-{number}"}, "total": {"N": str(number)}}
    if number % 3 or group is not None:
        made["customer"] = {"S": group or f"customer-{number % 100}"}
    return made


def put(engine: Engine, new: dict[str, Any]) -> None:
    engine.call("PutItem", {"TableName": "orders", "Item": new})


def delete(engine: Engine, number: int) -> None:
    engine.call("DeleteItem", {"TableName": "orders", "Key": {"pk": {"S": f"order-{number}"}}})


def add_index(engine: Engine) -> dict[str, Any]:
    request = {"TableName": "orders", **create_index("by-customer", "customer")}
    answer: dict[str, Any] = engine.call("UpdateTable", request)["TableDescription"]
    return answer


def wait_until_filled(engine: Engine) -> None:
    while global_index(engine, "by-customer")["IndexStatus"] != "ACTIVE":
        engine.clock.sleep(0.002)


def stored(engine: Engine, prefix: bytes) -> Iterator[bytes]:
    return (record for _, record in engine.storage.scan(prefix, after_prefix(prefix)))


def check_exact(engine: Engine) -> int:
    """The index holds exactly the items that have its key, and its counts say so."""
    [table] = list(engine.database.catalog.all())
    [index] = table.indexes
    expected = [
        record for record in stored(engine, table.prefix) if "customer" in records.unpack(record)
    ]
    entries = list(stored(engine, index.prefix))
    assert sorted(entries) == sorted(expected)
    shown = global_index(engine, "by-customer")
    assert shown["ItemCount"] == len(expected)
    assert shown["IndexSizeBytes"] == sum(map(records.size_of, expected))
    return len(expected)


def test_an_index_filled_under_concurrent_writes_is_exact(engine: Engine) -> None:
    load(engine, ITEMS)
    done = threading.Event()
    failures: list[BaseException] = []

    def write() -> None:
        try:
            number = 0
            while not done.is_set() or number < 300:
                put(
                    engine, item(number * 37 % ITEMS, group="moved")
                )  # changes an item, or brings it in
                put(engine, {"pk": {"S": f"order-{number * 41 % ITEMS}"}})  # takes an item out
                delete(engine, number * 43 % ITEMS)
                put(engine, item(ITEMS + number))  # a new one
                number += 1
        except BaseException as failure:
            failures.append(failure)

    writer = threading.Thread(target=write)
    writer.start()
    add_index(engine)
    wait_until_filled(engine)
    done.set()
    writer.join()
    assert failures == []
    assert check_exact(engine) > 1000


def test_a_long_backfill_is_shown_and_refuses_changes_as_on_aws(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "CHUNK_ITEMS", 10)
    load(engine, 500)
    with engine.lock:  # the filler waits for it: the index stays half filled
        add_index(engine)
        assert describe(engine)["TableStatus"] == "ACTIVE"
        by_customer = global_index(engine, "by-customer")
        assert (by_customer["IndexStatus"], by_customer["Backfilling"]) == ("CREATING", True)
        assert 0 < by_customer["ItemCount"] < 400
        query = {
            "TableName": "orders",
            "IndexName": "by-customer",
            "KeyConditionExpression": "customer = :c",
            "ExpressionAttributeValues": {":c": {"S": "customer-1"}},
        }
        text = refusal(engine, "Query", query, ValidationFailed)
        assert text == "Cannot read from backfilling global secondary index: by-customer"
        other = {"TableName": "orders", **create_index("by-other", "other")}
        text = (
            "Subscriber limit exceeded: Only 1 online index can be created or deleted "
            "simultaneously per table"
        )
        assert refusal(engine, "UpdateTable", other, LimitExceeded) == text
        text = "Cannot delete table while indexes are being created, updated, or deleted."
        assert refusal(engine, "DeleteTable", {"TableName": "orders"}, ResourceInUse).endswith(text)
        for number in range(0, 500, 7):
            delete(engine, number)
            put(engine, item(number + 1, group="moved"))
    wait_until_filled(engine)
    check_exact(engine)


def test_an_index_being_filled_can_be_deleted(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "CHUNK_ITEMS", 10)
    load(engine, 500)
    with engine.lock:
        add_index(engine)
        [table] = list(engine.database.catalog.all())
        prefix = table.indexes[0].prefix
        gone = {
            "TableName": "orders",
            "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by-customer"}}],
        }
        describe(engine)
        engine.call("UpdateTable", gone)
        assert "GlobalSecondaryIndexes" not in describe(engine)
    assert list(stored(engine, prefix)) == []
    # The same name again, with a number of its own.
    add_index(engine)
    wait_until_filled(engine)
    check_exact(engine)


def test_items_whose_values_no_key_can_have_are_left_out(engine: Engine) -> None:
    engine.call("CreateTable", on_demand())
    values: list[dict[str, Any]] = [
        {"S": ""},
        {"S": "x" * 2_049},
        {"S": "y" * 70_000},
        {"N": "1"},
        {"S": "é" * 1_024},
    ]
    for number, value in enumerate(values):
        put(engine, {"pk": {"S": f"order-{number}"}, "customer": value})
    add_index(engine)
    wait_until_filled(engine)
    assert global_index(engine, "by-customer")["ItemCount"] == 1
    # They can be taken away, and brought in, without the counts going wrong.
    put(engine, item(0, group="proper"))
    for number in (1, 2, 3):
        delete(engine, number)
    assert global_index(engine, "by-customer")["ItemCount"] == 2
    assert check_exact(engine) == 2


def half_filled_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder as a crash would leave it in the middle of a backfill, with writes on both sides of
    its progress.
    """
    monkeypatch.setattr(lifecycle, "CHUNK_ITEMS", 50)
    copy = str(tmp_path / "crashed")
    with Engine.open(str(tmp_path / "data"), durability="process") as engine:
        load(engine, 2_000)
        with engine.lock:
            add_index(engine)
            for number in range(0, 2_000, 5):
                put(engine, item(number, group="late"))
                delete(engine, number + 1)
            assert global_index(engine, "by-customer")["Backfilling"] is True
            engine.storage.checkpoint(copy)
    return copy


def test_a_backfill_goes_on_after_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = half_filled_copy(tmp_path, monkeypatch)
    with Engine.open(copy, durability="process") as engine:
        wait_until_filled(engine)
        check_exact(engine)


def test_a_backfill_goes_on_after_the_engine_was_closed_half_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "CHUNK_ITEMS", 50)
    folder = str(tmp_path / "data")
    with Engine.open(folder, durability="process") as engine:
        load(engine, 5_000)
        add_index(engine)
    with Engine.open(folder, durability="process") as engine:
        assert describe(engine)["ItemCount"] == 5_000
        wait_until_filled(engine)
        check_exact(engine)


def test_entries_of_an_index_lost_in_a_crash_are_removed_at_the_next_start(tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    with Engine.open(folder, durability="process") as engine:
        load(engine, 25)
        add_index(engine)
        wait_until_filled(engine)
        [table] = list(engine.database.catalog.all())
        orphan = table.prefix[:-2] + b"\x00\x63" + b"an entry of an index that is gone"
        engine.storage.write({orphan: b"x"})
    with Engine.open(folder, durability="process") as engine:
        assert engine.storage.get(orphan) is None
        check_exact(engine)
        assert describe(engine)["ItemCount"] == 25
