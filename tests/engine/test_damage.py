"""A damaged file gives an error on every path that reads it, never a shorter answer."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.engine.verification import verify_folder
from stator.errors import StorageCorrupt, StorageError

_ITEMS = 1500
_START = 1_790_000_000.0
_TABLE: dict[str, Any] = {
    "TableName": "things",
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [
        {"AttributeName": "id", "AttributeType": "S"},
        {"AttributeName": "group", "AttributeType": "S"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_group",
            "KeySchema": [{"AttributeName": "group", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
}


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("intact") / "data"
    chance = random.Random(1)  # a seed to repeat it by
    clock = VirtualClock(_START)
    with Engine.open(str(folder), durability="process", clock=clock) as engine:
        engine.call("CreateTable", _TABLE)
        engine.call(
            "UpdateContinuousBackups",
            {
                "TableName": "things",
                "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
            },
        )
        for number in range(_ITEMS):
            engine.call("PutItem", {"TableName": "things", "Item": _item(number, chance)})
        engine.call("CreateBackup", {"TableName": "things", "BackupName": "first"})
        engine.recovery.tasks.wait()
        clock.advance(3600)
        for number in range(_ITEMS):
            engine.call("PutItem", {"TableName": "things", "Item": _item(number, chance)})
        engine.storage._db.flush()  # type: ignore[attr-defined]  # so that one file holds it all
    return folder


def _item(number: int, chance: random.Random) -> dict[str, Any]:
    text = chance.randbytes(200).hex()
    return {"id": {"S": f"i{number}"}, "group": {"S": f"g{number % 5}"}, "text": {"S": text}}


def _damaged(intact: Path, to: Path, share: float) -> Path:
    """A copy of the folder with four bytes flipped in its largest data file."""
    to.mkdir()
    for path in intact.iterdir():
        (to / path.name).write_bytes(path.read_bytes())
    largest = max(to.glob("*.sst"), key=lambda path: path.stat().st_size)
    content = bytearray(largest.read_bytes())
    at = int(len(content) * share)
    for offset in range(at, at + 4):
        content[offset] ^= 0x5A
    largest.write_bytes(content)
    return to


def _pages(engine: Engine, operation: str, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    while True:
        page = engine.call(operation, request)
        yield page
        if "LastEvaluatedKey" not in page:
            return
        request = {**request, "ExclusiveStartKey": page["LastEvaluatedKey"]}


def _scan(engine: Engine, **more: Any) -> int:
    return sum(page["Count"] for page in _pages(engine, "Scan", {"TableName": "things", **more}))


def _query(engine: Engine) -> int:
    count = 0
    for number in range(5):
        request = {
            "TableName": "things",
            "IndexName": "by_group",
            "KeyConditionExpression": "#g = :g",
            "ExpressionAttributeNames": {"#g": "group"},
            "ExpressionAttributeValues": {":g": {"S": f"g{number}"}},
            "ScanIndexForward": bool(number % 2),
        }
        count += sum(page["Count"] for page in _pages(engine, "Query", request))
    return count


def _keys() -> list[dict[str, Any]]:
    return [{"id": {"S": f"i{number}"}} for number in range(_ITEMS)]


def _gets(engine: Engine) -> int:
    return sum(
        "Item" in engine.call("GetItem", {"TableName": "things", "Key": key}) for key in _keys()
    )


def _batch_gets(engine: Engine) -> int:
    keys = _keys()
    return sum(
        len(
            engine.call(
                "BatchGetItem", {"RequestItems": {"things": {"Keys": keys[at : at + 100]}}}
            )["Responses"]["things"]
        )
        for at in range(0, _ITEMS, 100)
    )


def _statement(engine: Engine) -> int:
    count, request = 0, {"Statement": "SELECT id FROM things"}
    while True:
        page = engine.call("ExecuteStatement", request)
        count += len(page["Items"])
        if "NextToken" not in page:
            return count
        request = {**request, "NextToken": page["NextToken"]}


def _stream(engine: Engine) -> int:
    arn = engine.call("DescribeTable", {"TableName": "things"})["Table"]["LatestStreamArn"]
    shards = engine.call("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"]
    count = 0
    for shard in shards:
        request = {
            "StreamArn": arn,
            "ShardId": shard["ShardId"],
            "ShardIteratorType": "TRIM_HORIZON",
        }
        iterator = engine.call("GetShardIterator", request)["ShardIterator"]
        while records := engine.call("GetRecords", {"ShardIterator": iterator}):
            count += len(records["Records"])
            iterator = records.get("NextShardIterator")
            if not records["Records"]:
                break
    return count


def _backup(engine: Engine) -> int:
    made = engine.call("CreateBackup", {"TableName": "things", "BackupName": "again"})
    engine.recovery.tasks.wait()
    request = {"BackupArn": made["BackupDetails"]["BackupArn"]}
    described = engine.call("DescribeBackup", request)["BackupDescription"]
    if described["BackupDetails"]["BackupStatus"] != "AVAILABLE":
        raise StorageCorrupt("", "the backup did not become available")
    return _restored(engine, "RestoreTableFromBackup", request)


def _first_backup(engine: Engine) -> int:
    [backup] = engine.call("ListBackups", {})["BackupSummaries"]
    return _restored(engine, "RestoreTableFromBackup", {"BackupArn": backup["BackupArn"]})


def _moment(engine: Engine) -> int:
    return _restored(
        engine,
        "RestoreTableToPointInTime",
        {"SourceTableName": "things", "RestoreDateTime": _START + 1800},
    )


def _restored(engine: Engine, operation: str, request: dict[str, Any]) -> int:
    engine.call(operation, {**request, "TargetTableName": "restored"})
    engine.recovery.tasks.wait()
    table = engine.call("DescribeTable", {"TableName": "restored"})["Table"]
    if table["TableStatus"] != "ACTIVE":
        raise StorageCorrupt("", "the table did not become active")
    return sum(page["Count"] for page in _pages(engine, "Scan", {"TableName": "restored"}))


def _export(engine: Engine) -> int:
    arn = engine.call("DescribeTable", {"TableName": "things"})["Table"]["TableArn"]
    request = {"TableArn": arn, "S3Bucket": "bucket", "ClientToken": "one"}
    export = engine.call("ExportTableToPointInTime", request)["ExportDescription"]["ExportArn"]
    engine.recovery.tasks.wait()
    done = engine.call("DescribeExport", {"ExportArn": export})["ExportDescription"]
    if done["ExportStatus"] == "FAILED":
        raise StorageCorrupt("", done["FailureMessage"])
    return int(done["ItemCount"])


_PATHS: dict[str, Callable[[Engine], int]] = {
    "scan": _scan,
    "scan of an index": lambda engine: _scan(engine, IndexName="by_group"),
    "query": _query,
    "get": _gets,
    "batch get": _batch_gets,
    "statement": _statement,
    "stream": _stream,
    "backup": _backup,
    "restore of a backup": _first_backup,
    "restore to a moment": _moment,
    "export": _export,
}


@pytest.mark.parametrize("share", [0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95])
def test_every_way_to_read_gives_all_or_an_error(
    intact: Path, tmp_path: Path, share: float
) -> None:
    raised = []
    for number, (name, read) in enumerate(_PATHS.items()):
        folder = _damaged(intact, tmp_path / f"data{number}", share)
        (tmp_path / f"buckets{number}" / "bucket").mkdir(parents=True)
        try:
            with Engine.open(
                str(folder),
                clock=VirtualClock(_START + 7200),
                buckets=str(tmp_path / f"buckets{number}"),
            ) as engine:
                expected = 2 * _ITEMS if name == "stream" else _ITEMS
                assert read(engine) == expected, name
        except StorageError:
            raised.append(name)
    assert raised, "the damage is in data that one of these reads"


@pytest.mark.parametrize("share", [0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95])
def test_verify_finds_damage_anywhere(intact: Path, tmp_path: Path, share: float) -> None:
    assert verify_folder(str(_damaged(intact, tmp_path / "data", share))).faults


def test_damage_to_the_end_of_a_file_is_damage(intact: Path, tmp_path: Path) -> None:
    folder = _damaged(intact, tmp_path / "data", 0.0)
    largest = max(folder.glob("*.sst"), key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-40] + b"\xff" * 40)  # the footer
    with pytest.raises(StorageCorrupt), Engine.open(str(folder)) as engine:
        _scan(engine)
