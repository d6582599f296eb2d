"""Engine folders that version 0.1 wrote are opened, answer as they did, and go on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import IdempotentParameterMismatch

from .ledger import (
    ARN,
    BUCKET,
    START,
    Item,
    contents,
    exported,
    open_engine,
    order,
    order_key,
    read_on,
    scan,
    stream_contents,
    table_contents,
)
from .packing import expected, unpack

DAY = 24 * 3600.0


@contextmanager
def opened(folder: Path, now: float) -> Iterator[tuple[Engine, VirtualClock]]:
    clock = VirtualClock(now)
    with open_engine(folder, clock) as engine:
        yield engine, clock


def ordered(items: list[Item]) -> list[Item]:
    return sorted(items, key=lambda item: (item["pk"]["S"], float(item.get("sk", {"N": "0"})["N"])))


def restored(engine: Engine, table: str) -> list[Item]:
    """The items of a table that a restore or import has made, with every index checked."""
    engine.recovery.wait()
    found = table_contents(engine, table)
    assert found["description"]["TableStatus"] == "ACTIVE"
    assert found["description"]["ItemCount"] == len(found["items"])
    for name, entries in found["indexes"].items():
        keyed = [item for item in found["items"] if key_names(found, name) <= item.keys()]
        assert len(entries) == len(keyed), name
    items: list[Item] = found["items"]
    return items


def key_names(found: dict[str, Any], index: str) -> set[str]:
    described = found["description"]
    listed = [
        each
        for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes")
        for each in described.get(kind, ())
    ]
    schema = next(each["KeySchema"] for each in listed if each["IndexName"] == index)
    return {element["AttributeName"] for element in schema}


# --- a folder closed in good order --------------------------------------------------------------


def test_a_closed_folder_holds_what_was_recorded(tmp_path: Path) -> None:
    recorded = expected("engine-closed")
    with opened(unpack("engine-closed", tmp_path), recorded["now"]) as (engine, _):
        assert contents(engine) == recorded["contents"]


def test_a_folder_opened_and_closed_again_holds_the_same(tmp_path: Path) -> None:
    recorded = expected("engine-closed")
    folder = unpack("engine-closed", tmp_path)
    for _ in range(2):
        with opened(folder, recorded["now"]) as (engine, _):
            pass
    with opened(folder, recorded["now"]) as (engine, _):
        assert contents(engine) == recorded["contents"]


def test_indexes_are_queried_in_their_order(tmp_path: Path) -> None:
    recorded = expected("engine-closed")
    items = recorded["contents"]["tables"]["orders"]["items"]
    with opened(unpack("engine-closed", tmp_path), recorded["now"]) as (engine, _):

        def query(index: str, condition: str, **values: Any) -> list[str]:
            request = {
                "TableName": "orders",
                "IndexName": index,
                "KeyConditionExpression": condition,
                "ExpressionAttributeNames": {
                    f"#{name}": name for name in values if f"#{name}" in condition
                },
                "ExpressionAttributeValues": {f":{name}": value for name, value in values.items()},
            }
            return [item["sk"]["N"] for item in engine.call("Query", request)["Items"]]

        by_g = [int(item["sk"]["N"]) for item in items if item.get("g") == {"S": "y"}]
        found = query("by-g", "#g = :g AND sk > :low", g={"S": "y"}, low={"N": "5"})
        assert found == [str(number) for number in sorted(by_g) if number > 5]
        place = [
            (item["g"]["S"], item["pk"]["S"], int(item["sk"]["N"]))
            for item in items
            if item.get("zone") == {"N": "1"} and "g" in item
        ]
        condition = "#city = :city AND #zone = :zone AND #year = :year"
        values = {"city": {"S": "Oslo"}, "zone": {"N": "1"}, "year": {"N": "2026"}}
        assert query("by-place", condition, **values) == [str(sk) for _, _, sk in sorted(place)]
        local = [
            (item["g"]["S"], int(item["sk"]["N"]))
            for item in items
            if item["pk"] == {"S": "customer-1"} and "g" in item
        ]
        found = query("by-pk-g", "#pk = :pk", pk={"S": "customer-1"})
        assert found == [str(number) for _, number in sorted(local)]


def test_what_clients_hold_still_leads_on(tmp_path: Path) -> None:
    """A shard iterator and a NextToken, in the middle of reading."""
    recorded = expected("engine-closed")
    pages = recorded["pages"]
    with opened(unpack("engine-closed", tmp_path), recorded["now"]) as (engine, _):
        assert read_on(engine, pages["shard_iterator"]) == pages["records_left"]
        request = {"Statement": pages["statement"], "NextToken": pages["next_token"]}
        assert engine.call("ExecuteStatement", request)["Items"] == pages["items_left"]


def test_a_transaction_with_a_stored_token_is_not_carried_out_again(tmp_path: Path) -> None:
    recorded = expected("engine-closed")
    with opened(unpack("engine-closed", tmp_path), recorded["now"]) as (engine, clock):
        request = recorded["transaction"]
        key = order_key(40)
        engine.call("DeleteItem", {"TableName": "orders", "Key": key})
        engine.call("TransactWriteItems", request)
        assert "Item" not in engine.call("GetItem", {"TableName": "orders", "Key": key})
        other = {**request, "TransactItems": request["TransactItems"][:1]}
        with pytest.raises(IdempotentParameterMismatch):
            engine.call("TransactWriteItems", other)
        clock.advance(3600)
        engine.call("TransactWriteItems", request)
        assert "Item" in engine.call("GetItem", {"TableName": "orders", "Key": key})


def test_streams_go_on_behind_their_last_record(tmp_path: Path) -> None:
    recorded = expected("engine-closed")
    [before] = [
        each
        for each in recorded["contents"]["streams"]
        if each["description"]["TableName"] == "orders"
    ]
    arn = before["description"]["StreamArn"]
    with opened(unpack("engine-closed", tmp_path), recorded["now"]) as (engine, clock):
        engine.call("PutItem", {"TableName": "orders", "Item": order(1, text={"S": "later"})})
        after = stream_contents(engine, arn)["records"]
        added = [
            record
            for shard, records in after.items()
            for record in records[len(before["records"][shard]) :]
        ]
        assert all(
            records[: len(before["records"][shard])] == before["records"][shard]
            for shard, records in after.items()
        )
        [record] = added
        assert record["dynamodb"]["NewImage"]["text"] == {"S": "later"}
        assert record["dynamodb"]["OldImage"] == order(1)
        last = max(
            int(record["dynamodb"]["SequenceNumber"])
            for records in before["records"].values()
            for record in records
        )
        assert int(record["dynamodb"]["SequenceNumber"]) > last
        clock.advance(DAY + 1)
        engine.sweep()
        assert not any(stream_contents(engine, arn)["records"].values())


def test_items_on_the_expiry_list_expire(tmp_path: Path) -> None:
    recorded = expected("engine-closed")
    with opened(unpack("engine-closed", tmp_path), recorded["now"]) as (engine, clock):
        engine.sweep()
        assert "Item" in engine.call("GetItem", {"TableName": "orders", "Key": order_key(17)})
        clock.advance(START + 41 * DAY - clock.now())
        engine.sweep()
        left = scan(engine, "orders")
        stored = recorded["contents"]["tables"]["orders"]["items"]
        assert left == [item for item in stored if item["sk"] != {"N": "17"}]


def test_backups_are_restored(tmp_path: Path) -> None:
    recorded = expected("engine-closed")
    with opened(unpack("engine-closed", tmp_path), recorded["now"]) as (engine, _):
        request = {"BackupArn": recorded["backup"]["arn"], "TargetTableName": "again"}
        engine.call("RestoreTableFromBackup", request)
        assert restored(engine, "again") == recorded["backup"]["items"]
        deleted = next(
            each["BackupDetails"]["BackupArn"]
            for each in recorded["contents"]["backups"]
            if each["BackupDetails"]["BackupType"] == "SYSTEM"
        )
        engine.call("RestoreTableFromBackup", {"BackupArn": deleted, "TargetTableName": "gone"})
        found = restored(engine, "gone")
        assert sorted(item["pk"]["S"] for item in found) == ["g0", "g1", "g2"]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_table_is_restored_to_every_recorded_moment(number: int, tmp_path: Path) -> None:
    recorded = expected("engine-closed")
    moment = recorded["moments"][number]
    with opened(unpack("engine-closed", tmp_path), recorded["now"]) as (engine, _):
        engine.call("PutItem", {"TableName": "orders", "Item": order(2, text={"S": "newer"})})
        engine.call(
            "RestoreTableToPointInTime",
            {
                "SourceTableName": "orders",
                "TargetTableName": "then",
                "RestoreDateTime": moment["at"],
            },
        )
        assert restored(engine, "then") == moment["items"]


def test_changes_before_and_after_reopening_are_exported_together(tmp_path: Path) -> None:
    recorded = expected("engine-closed")
    folder = unpack("engine-closed", tmp_path)
    with opened(folder, recorded["now"]) as (engine, clock):
        clock.advance(10)
        engine.call("PutItem", {"TableName": "orders", "Item": order(90)})
        clock.advance(3600)
        begin = recorded["moments"][1]["at"] + 1
        window = {"ExportFromTime": begin, "ExportToTime": clock.now() - 400}
        started = engine.call(
            "ExportTableToPointInTime",
            {
                "TableArn": ARN + "orders",
                "S3Bucket": BUCKET,
                "ExportType": "INCREMENTAL_EXPORT",
                "IncrementalExportSpecification": window,
            },
        )["ExportDescription"]
        engine.recovery.wait()
        made = engine.call("DescribeExport", {"ExportArn": started["ExportArn"]})
        changed = exported(folder / "buckets" / BUCKET, made["ExportDescription"])
        state = {_key(item): item for item in recorded["moments"][1]["items"]}
        for change in changed:
            assert change.get("OldImage") == state.get(_key(change["Keys"]))
            state.pop(_key(change["Keys"]), None)
            if "NewImage" in change:
                state[_key(change["NewImage"])] = change["NewImage"]
        assert ordered(list(state.values())) == ordered(scan(engine, "orders"))


def _key(item: Item) -> tuple[str, str]:
    return item["pk"]["S"], item["sk"]["N"]


def test_new_tables_indexes_and_backups_take_numbers_of_their_own(tmp_path: Path) -> None:
    """What is made after reopening does not get in the way of what was there."""
    recorded = expected("engine-closed")
    folder = unpack("engine-closed", tmp_path)
    with opened(folder, recorded["now"]) as (engine, _):
        engine.call(
            "UpdateTable",
            {
                "TableName": "orders",
                "AttributeDefinitions": [{"AttributeName": "text", "AttributeType": "S"}],
                "GlobalSecondaryIndexUpdates": [
                    {
                        "Create": {
                            "IndexName": "by-text",
                            "KeySchema": [{"AttributeName": "text", "KeyType": "HASH"}],
                            "Projection": {"ProjectionType": "ALL"},
                        }
                    }
                ],
            },
        )
        engine.call("CreateBackup", {"TableName": "kinds", "BackupName": "more"})
        engine.recovery.wait()
    with opened(folder, recorded["now"]) as (engine, _):
        found, before = contents(engine), recorded["contents"]
        assert len(found["backups"]) == len(before["backups"]) + 1
        orders = found["tables"]["orders"]
        items = before["tables"]["orders"]["items"]
        assert ordered(orders["indexes"].pop("by-text")) == ordered(items)
        assert orders["indexes"] == before["tables"]["orders"]["indexes"]
        assert {name: each["items"] for name, each in found["tables"].items()} == {
            name: each["items"] for name, each in before["tables"].items()
        }
        assert found["streams"] == before["streams"]


# --- a folder whose process was killed ----------------------------------------------------------


def test_acknowledged_writes_of_a_killed_process_are_there(tmp_path: Path) -> None:
    recorded = expected("engine-killed")
    folder = unpack("engine-killed", tmp_path)
    with opened(folder, recorded["now"]) as (engine, _):
        assert contents(engine) == recorded["contents"]
        engine.call("DeleteItem", {"TableName": "orders", "Key": order_key(50)})
        engine.call("TransactWriteItems", recorded["transaction"])
        assert "Item" not in engine.call("GetItem", {"TableName": "orders", "Key": order_key(50)})
    with opened(folder, recorded["now"]) as (engine, _):
        before = recorded["contents"]["tables"]["orders"]["items"]
        assert scan(engine, "orders") == [item for item in before if item["sk"] != {"N": "50"}]


# --- a folder whose process was killed amid long jobs -------------------------------------------


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    return unpack("engine-unfinished", tmp_path)


def test_an_unfinished_backup_becomes_whole_and_is_of_its_moment(unfinished: Path) -> None:
    recorded = expected("engine-unfinished")
    with opened(unfinished, recorded["now"]) as (engine, _):
        engine.recovery.wait()
        arn = recorded["jobs"]["backup"]
        described = engine.call("DescribeBackup", {"BackupArn": arn})["BackupDescription"]
        assert described["BackupDetails"]["BackupStatus"] == "AVAILABLE"
        engine.call("RestoreTableFromBackup", {"BackupArn": arn, "TargetTableName": "half"})
        assert restored(engine, "half") == recorded["jobs"]["items"]


@pytest.mark.parametrize("table", ["from-backup", "from-moment"])
def test_unfinished_restores_are_finished(table: str, unfinished: Path) -> None:
    recorded = expected("engine-unfinished")
    with opened(unfinished, recorded["now"]) as (engine, _):
        assert restored(engine, table) == recorded["before"]["items"]


def test_unfinished_exports_are_finished(unfinished: Path) -> None:
    recorded = expected("engine-unfinished")
    with opened(unfinished, recorded["now"]) as (engine, _):
        engine.recovery.wait()
        for arn in recorded["jobs"]["exports"]:
            found = engine.call("DescribeExport", {"ExportArn": arn})["ExportDescription"]
            assert (found["ExportStatus"], found["ItemCount"]) == ("COMPLETED", 20)
            lines = exported(unfinished / "buckets" / BUCKET, found)
            items = [line["Item"] for line in lines]
            assert ordered(items) == ordered(recorded["before"]["items"])


def test_an_unfinished_import_is_finished(unfinished: Path) -> None:
    recorded = expected("engine-unfinished")
    with opened(unfinished, recorded["now"]) as (engine, _):
        items = restored(engine, "imported")
        found = engine.call("DescribeImport", {"ImportArn": recorded["jobs"]["import"]})
        described = found["ImportTableDescription"]
        assert (described["ImportStatus"], described["ImportedItemCount"]) == ("COMPLETED", 12)
        assert sorted(item["pk"]["S"] for item in items) == sorted(f"i{n}" for n in range(12))


def test_the_table_itself_is_as_it_was_left(unfinished: Path) -> None:
    recorded = expected("engine-unfinished")
    with opened(unfinished, recorded["now"]) as (engine, _):
        engine.recovery.wait()
        assert scan(engine, "orders") == recorded["orders"]
        assert list(engine.recovery.tasks) == []
        engine.call("DeleteTable", {"TableName": "orders"})  # refused while a job needs its history


def test_an_index_and_an_expiry_list_are_filled_to_the_end(unfinished: Path) -> None:
    recorded = expected("engine-unfinished")
    with opened(unfinished, recorded["now"]) as (engine, clock):
        while not _is_filled(engine):
            time.sleep(0.002)
        assert ordered(scan(engine, "filled", "by-g")) == ordered(scan(engine, "filled"))
        clock.advance(2 * DAY)
        engine.sweep()
        left = [f"f{number:03d}" for number in range(0, 150, 2)]
        assert [item["pk"]["S"] for item in ordered(scan(engine, "filled"))] == left
        assert [item["pk"]["S"] for item in ordered(scan(engine, "filled", "by-g"))] == left


def _is_filled(engine: Engine) -> bool:
    described = engine.call("DescribeTable", {"TableName": "filled"})["Table"]
    return bool(described["GlobalSecondaryIndexes"][0]["IndexStatus"] == "ACTIVE")
