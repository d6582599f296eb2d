"""Background tasks whose steps raise unexpected errors: they end, and hold on to nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.engine.lifecycle import Lifecycle
from stator.engine.recovery.tasks import Task, Tasks
from stator.errors import BackupNotFound, StorageFull
from stator.model.limits import NESTING_LEVELS

from .world import ARN, CREATE, World, item

SECRET = "an error that names /a/path/of/the/server"
Shown = dict[str, Any]
# Starts a job, and returns how to find out what became of it.
Job = Callable[[World], Callable[[World], Shown]]


def full_export(world: World) -> Callable[[World], Shown]:
    return _export(world)


def incremental_export(world: World) -> Callable[[World], Shown]:
    start = world.clock.now()
    world.clock.advance(3600)
    window = {"ExportFromTime": start, "ExportToTime": start + 1800}
    return _export(world, ExportType="INCREMENTAL_EXPORT", IncrementalExportSpecification=window)


def _export(world: World, **options: Any) -> Callable[[World], Shown]:
    answer = world.call(
        "ExportTableToPointInTime", TableArn=ARN + "orders", S3Bucket="exports", **options
    )
    arn = answer["ExportDescription"]["ExportArn"]

    def outcome(world: World) -> Shown:
        shown: Shown = world.call("DescribeExport", ExportArn=arn)["ExportDescription"]
        return {"status": shown["ExportStatus"], "message": shown.get("FailureMessage")}

    return outcome


def data_import(world: World) -> Callable[[World], Shown]:
    lines = [json.dumps({"Item": item("i", number)}) for number in range(3)]
    (world.bucket / "in").write_text("\n".join(lines))
    table = {name: value for name, value in CREATE.items() if "Indexes" not in name}
    table["AttributeDefinitions"] = table["AttributeDefinitions"][:2]
    answer = world.call(
        "ImportTable",
        ClientToken="token",
        S3BucketSource={"S3Bucket": "exports", "S3KeyPrefix": "in"},
        InputFormat="DYNAMODB_JSON",
        TableCreationParameters=table | {"TableName": "made"},
    )
    arn = answer["ImportTableDescription"]["ImportArn"]

    def outcome(world: World) -> Shown:
        shown: Shown = world.call("DescribeImport", ImportArn=arn)["ImportTableDescription"]
        return {"status": shown["ImportStatus"], "message": shown.get("FailureMessage")}

    return outcome


def backup(world: World) -> Callable[[World], Shown]:
    answer = world.call("CreateBackup", TableName="orders", BackupName="mine")
    arn = answer["BackupDetails"]["BackupArn"]

    def outcome(world: World) -> Shown:
        world.refused("DescribeBackup", BackupNotFound, BackupArn=arn)
        return {"status": "FAILED", "message": "removed"}

    return outcome


def restore_of_backup(world: World) -> Callable[[World], Shown]:
    [kept] = world.call("ListBackups")["BackupSummaries"]
    world.call("RestoreTableFromBackup", BackupArn=kept["BackupArn"], TargetTableName="made")
    return _restored


def restore_to_moment(world: World) -> Callable[[World], Shown]:
    moment = world.clock.now()
    world.clock.advance(3600)
    world.call(
        "RestoreTableToPointInTime",
        SourceTableName="orders",
        TargetTableName="made",
        RestoreDateTime=moment,
    )
    return _restored


def _restored(world: World) -> Shown:
    gone = "made" not in world.call("ListTables")["TableNames"]
    return {"status": "FAILED" if gone else "IN_PROGRESS", "message": "removed"}


JOBS: list[tuple[Job, list[str]]] = [
    (full_export, ["begin export", "copy", "count", "undo", "write export"]),
    (incremental_export, ["begin export", "gather", "write export"]),
    (data_import, ["import"]),
    (backup, ["copy", "count", "keep"]),
    (restore_of_backup, ["fill"]),
    (restore_to_moment, ["copy", "count", "undo", "fill"]),
]
STAGES = [
    pytest.param(job, stage, id=f"{job.__name__}, {stage}")
    for job, stages in JOBS
    for stage in stages
]


@pytest.fixture
def orders(world: World) -> World:
    world.create()
    world.enable()
    world.put(*(item(f"p{number}", number, g={"S": "x"}) for number in range(20)))
    world.call("CreateBackup", TableName="orders", BackupName="kept")
    world.settle()
    return world


def fails_in(stage: str, error: Exception) -> Callable[[Tasks, Task], None]:
    step = Tasks.step

    def failing(tasks: Tasks, task: Task) -> None:
        if task.stage == stage:
            raise error
        step(tasks, task)

    return failing


def check_nothing_is_held(world: World, outcome: Callable[[World], Shown]) -> None:
    world.settle()
    shown = outcome(world)
    assert shown["status"] == "FAILED"
    assert "path" not in shown["message"]
    assert not list(world.engine.recovery.tasks)
    world.call("DeleteTable", TableName="orders")
    if "made" in world.call("ListTables")["TableNames"]:
        world.call("DeleteTable", TableName="made")


@pytest.mark.parametrize(("job", "stage"), STAGES)
def test_a_task_that_fails_ends_and_releases_its_table(
    orders: World,
    job: Job,
    stage: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(Tasks, "step", fails_in(stage, RuntimeError(SECRET)))
    check_nothing_is_held(orders, job(orders))
    assert SECRET in caplog.text  # with its traceback


@pytest.mark.parametrize(("job", "stage"), STAGES)
def test_a_task_that_an_earlier_version_left_stuck_ends_when_the_folder_is_opened(
    tmp_path: Path, clock: VirtualClock, job: Job, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "buckets" / "exports").mkdir(parents=True)

    def opened() -> World:
        engine = Engine.open(
            str(tmp_path / "data"),
            durability="process",
            clock=clock,
            buckets=str(tmp_path / "buckets"),
        )
        return World(engine, clock, tmp_path / "buckets" / "exports")

    world = opened()
    with world.engine:
        world.create()
        world.enable()
        world.put(*(item(f"p{number}", number, g={"S": "x"}) for number in range(20)))
        world.call("CreateBackup", TableName="orders", BackupName="kept")
        world.settle()
        # A full disk stops the task in the same way as an unexpected error once did.
        monkeypatch.setattr(Tasks, "step", fails_in(stage, StorageFull("", "")))
        outcome = None
        try:
            outcome = job(world)
        except StorageFull:  # a step that runs before the answer
            outcome = _backup_is_gone if job is backup else _restored
        world.settle()
        assert list(world.engine.recovery.tasks)
        monkeypatch.undo()
    monkeypatch.setattr(Tasks, "step", fails_in(stage, RuntimeError(SECRET)))
    world = opened()
    with world.engine:
        check_nothing_is_held(world, outcome)


def _backup_is_gone(world: World) -> Shown:
    names = [each["BackupName"] for each in world.call("ListBackups")["BackupSummaries"]]
    return {"status": "FAILED" if names == ["kept"] else "", "message": "removed"}


def test_a_task_goes_on_after_the_disk_was_full(
    orders: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full:
        full.setattr(Tasks, "step", fails_in("write export", StorageFull("", "")))
        outcome = full_export(orders)
        orders.settle()
        assert outcome(orders)["status"] == "IN_PROGRESS"
    orders.engine.recovery.tasks.resume()
    orders.settle()
    assert outcome(orders)["status"] == "COMPLETED"


def test_an_import_that_fails_halfway_counts_what_is_in_its_table(
    orders: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    imports = orders.engine.recovery.imports
    take, taken = imports._take, iter(range(2))

    def failing(*given: Any) -> None:
        next(taken)  # raises an error at the third item
        take(*given)

    monkeypatch.setattr(imports, "_take", failing)
    outcome = data_import(orders)
    orders.settle()
    assert outcome(orders)["status"] == "FAILED"
    assert "made" not in orders.call("ListTables")["TableNames"]  # nothing was written


def test_a_backfill_that_fails_removes_its_index(
    orders: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_: Any) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(Lifecycle, "_index_item", failing)
    key = [{"AttributeName": "g", "KeyType": "HASH"}]
    create = {"IndexName": "new", "KeySchema": key, "Projection": {"ProjectionType": "ALL"}}
    orders.call(
        "UpdateTable",
        TableName="orders",
        AttributeDefinitions=[{"AttributeName": "g", "AttributeType": "S"}],
        GlobalSecondaryIndexUpdates=[{"Create": create}],
    )
    table = orders.call("DescribeTable", TableName="orders")["Table"]
    assert [index["IndexName"] for index in table["GlobalSecondaryIndexes"]] == ["by-g"]
    assert table["TableStatus"] == "ACTIVE"
    assert SECRET in caplog.text
    orders.put(item("more", 1, g={"S": "y"}))
    orders.call("DeleteTable", TableName="orders")


# -- input that once raised such errors


def nested(levels: int) -> bytes:
    return b'{"L":[' * levels + b"]}" * levels


@pytest.mark.parametrize(
    ("line", "goes_on"),
    [
        (rb'{"Item":{"pk":{"S":"\ud800"},"sk":{"N":"1"}}}', True),
        (rb'{"Item":{"pk":{"S":"a"},"sk":{"N":"1"},"x":{"S":"\udfff"}}}', True),
        (rb'{"Item":{"pk":{"S":"a"},"sk":{"N":"1"},"x":{"SS":["\udfff"]}}}', True),
        (rb'{"Item":{"pk":{"S":"a"},"sk":{"N":"1"},"x":{"N":"\ud800"}}}', True),
        (rb'{"Item":{"pk":{"S":"a"},"sk":{"N":"1"},"x":{"NS":["\ud800"]}}}', True),
        (rb'{"Item":{"pk":{"S":"a"},"sk":{"N":"1"},"x":{"SS":["\ud800","\ud800"]}}}', True),
        (rb'{"Item":{"pk":{"S":"a"},"sk":{"N":"1"},"x":{"B":"\ud800"}}}', True),
        (rb'{"Item":{"pk":{"S":"a"},"sk":{"N":"1"},"x":{"\ud800":"y"}}}', True),
        (rb'{"Item":{"pk":{"S":"a"},"sk":{"N":"1"},"\ud800":{"S":"y"}}}', True),
        (rb'{"Item":{"pk":{"S":"a"},"sk":{"N":"1"},"x":{"M":{"\ud800":{"S":"y"}}}}}', True),
        (b'{"Item":{"pk":{"S":"a"},"sk":{"N":"1"},"x":%b}}' % nested(NESTING_LEVELS + 1), True),
        (b'{"Item":{"pk":{"S":"a"},"sk":{"N":"1"},"x":%b}}' % nested(490), True),
        (b'{"Item":{"pk":{"S":"a"},"sk":{"N":"1"},"x":%b}}' % nested(3000), False),
        (b"[" * 200_000, False),
        (b'{"Item":' + b"[" * 200_000, False),
        (b'{"Item":{"pk":{"S":"%b"}}}' % (b"x" * (9 << 20)), False),
    ],
)
def test_an_odd_line_is_one_error_of_an_import(world: World, line: bytes, goes_on: bool) -> None:
    outcome = data_import(world)
    world.settle()
    assert outcome(world)["status"] == "COMPLETED"
    world.call("DeleteTable", TableName="made")
    good = b'{"Item":{"pk":{"S":"good"},"sk":{"N":"1"}}}\n'
    (world.bucket / "in").write_bytes(good + line + b"\n" + good.replace(b"good", b"next"))
    answer = world.call(
        "ImportTable",
        ClientToken="another",
        S3BucketSource={"S3Bucket": "exports", "S3KeyPrefix": "in"},
        InputFormat="DYNAMODB_JSON",
        TableCreationParameters={
            "TableName": "made",
            "KeySchema": CREATE["KeySchema"],
            "AttributeDefinitions": CREATE["AttributeDefinitions"][:2],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )
    world.settle()
    arn = answer["ImportTableDescription"]["ImportArn"]
    shown = world.call("DescribeImport", ImportArn=arn)["ImportTableDescription"]
    assert (shown["ImportStatus"], shown["ErrorCount"]) == ("FAILED", 1)
    assert shown["FailureCode"] == "ItemValidationError"
    assert shown["ImportedItemCount"] == 1 + goes_on
    world.call("DeleteTable", TableName="made")


@pytest.fixture
def blocked(world: World) -> World:
    """A bucket in which the export's folder cannot be made, because a file is in its place."""
    (world.bucket / "AWSDynamoDB").write_text("")
    return world


@pytest.mark.parametrize("prefix", ["a\0b", "\0", "x" * 300])
def test_a_prefix_that_no_file_can_have_fails_the_export(orders: World, prefix: str) -> None:
    check_nothing_is_held(orders, _export(orders, S3Prefix=prefix))


def test_a_failed_export_does_not_show_paths_of_the_server(orders: World, blocked: World) -> None:
    outcome = full_export(orders)
    orders.settle()
    shown = outcome(orders)
    assert shown["status"] == "FAILED"
    assert str(orders.bucket.parent) not in shown["message"]
    assert "AWSDynamoDB" in shown["message"]
