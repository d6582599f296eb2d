"""Continuous backups: the window, its bounds, and restores to a second of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.engine.recovery.tasks import Task
from stator.errors import (
    BackupInUse,
    ContinuousBackupsUnavailable,
    InvalidRestoreTime,
    LimitExceeded,
    RecoveryUnavailable,
    TableAlreadyExists,
    TableNotFound,
    ValidationFailed,
)

from .world import ARN, START, World, item

DAY = 86_400


def continuous(world: World, table: str = "orders") -> dict[str, Any]:
    described = world.call("DescribeContinuousBackups", TableName=table)[
        "ContinuousBackupsDescription"
    ]
    assert described["ContinuousBackupsStatus"] == "ENABLED"
    shown: dict[str, Any] = described["PointInTimeRecoveryDescription"]
    return shown


def switch(enabled: bool, **more: Any) -> dict[str, Any]:
    return {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": enabled, **more}}


def test_the_window_opens_with_recovery_and_ends_five_minutes_ago(world: World) -> None:
    world.create()
    assert continuous(world) == {"PointInTimeRecoveryStatus": "DISABLED"}
    answer = world.call("UpdateContinuousBackups", TableName="orders", **switch(True))
    assert answer["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"] == {
        "PointInTimeRecoveryStatus": "ENABLED",
        "RecoveryPeriodInDays": 35,
        "EarliestRestorableDateTime": START,
        "LatestRestorableDateTime": START,
    }
    world.clock.advance(3600)
    shown = continuous(world)
    assert (shown["EarliestRestorableDateTime"], shown["LatestRestorableDateTime"]) == (
        START,
        START + 3300,
    )
    world.clock.advance(40 * DAY)
    assert continuous(world)["EarliestRestorableDateTime"] == START + 3600 + 5 * DAY


def test_the_period_is_from_1_to_35_days_and_kept(world: World) -> None:
    world.create()
    world.enable(RecoveryPeriodInDays=2)
    world.clock.advance(10 * DAY)
    assert continuous(world)["EarliestRestorableDateTime"] == START + 8 * DAY
    world.enable()
    assert continuous(world)["RecoveryPeriodInDays"] == 2
    for days in (0, 36):
        world.refused(
            "UpdateContinuousBackups",
            ValidationFailed,
            TableName="orders",
            **switch(True, RecoveryPeriodInDays=days),
        )
    world.refused(
        "UpdateContinuousBackups",
        ValidationFailed,
        TableName="orders",
        **switch(False, RecoveryPeriodInDays=5),
    )


def test_a_table_is_restored_to_any_second(world: World) -> None:
    world.create()
    world.put(item("a", 1, g={"S": "x"}))
    world.enable()
    states = {}
    for second in range(1, 6):
        world.clock.advance(1)
        world.put(item("a", 1, g={"S": str(second)}), item("b", second))
        if second == 4:
            world.delete("b", 1)
        states[second] = world.items()
    world.clock.advance(300)
    for second, expected in states.items():
        answer = world.restore_to(START + second, f"at-{second}")
        assert answer["RestoreSummary"] == {
            "SourceTableArn": ARN + "orders",
            "RestoreDateTime": START + second,
            "RestoreInProgress": True,
        }
        world.check_whole(f"at-{second}", expected)
    world.restore_to(START + 0.5, "between")
    world.check_whole("between", {("a", "1"): item("a", 1, g={"S": "x"})})
    assert list(world.engine.storage.scan(b"b", b"c")) == []


def test_the_latest_restorable_time_is_five_minutes_behind(world: World) -> None:
    world.create()
    world.enable()
    world.put(item("a", 1))
    world.clock.advance(400)
    world.put(item("a", 2))
    world.call(
        "RestoreTableToPointInTime",
        SourceTableArn=ARN + "orders",
        TargetTableName="new",
        UseLatestRestorableTime=True,
    )
    world.settle()
    assert set(world.items("new")) == {("a", "1")}
    world.refused(
        "RestoreTableToPointInTime",
        InvalidRestoreTime,
        SourceTableName="orders",
        TargetTableName="newer",
        RestoreDateTime=START + 101,
    )
    world.refused(
        "RestoreTableToPointInTime",
        InvalidRestoreTime,
        SourceTableName="orders",
        TargetTableName="newer",
        RestoreDateTime=START - 1,
    )


def test_the_lag_can_be_set_for_those_who_can_not_wait(clock: VirtualClock, tmp_path: Path) -> None:
    with Engine.open(clock=clock, recovery_lag_seconds=0) as engine:
        world = World(engine, clock, tmp_path)
        world.create()
        world.enable()
        clock.advance(1)
        world.put(item("a", 1))
        world.call(
            "RestoreTableToPointInTime",
            SourceTableName="orders",
            TargetTableName="new",
            UseLatestRestorableTime=True,
        )
        assert set(world.items("new")) == {("a", "1")}


def test_what_a_restore_needs(world: World) -> None:
    world.create()
    asked = {"SourceTableName": "orders", "TargetTableName": "new", "UseLatestRestorableTime": True}
    world.refused("RestoreTableToPointInTime", RecoveryUnavailable, **asked)
    world.refused(
        "RestoreTableToPointInTime", TableNotFound, **asked | {"SourceTableName": "missing"}
    )
    world.enable()
    world.refused(
        "RestoreTableToPointInTime", TableAlreadyExists, **asked | {"TargetTableName": "orders"}
    )
    world.refused(
        "RestoreTableToPointInTime", ValidationFailed, **asked, SourceTableArn=ARN + "orders"
    )
    world.refused("RestoreTableToPointInTime", ValidationFailed, **asked, RestoreDateTime=START)
    world.refused(
        "RestoreTableToPointInTime",
        ValidationFailed,
        SourceTableName="orders",
        TargetTableName="new",
    )


def test_turning_recovery_off_loses_the_history(world: World) -> None:
    world.create()
    world.enable()
    world.put(item("a", 1))
    world.clock.advance(1000)
    world.call("UpdateContinuousBackups", TableName="orders", **switch(False))
    assert list(world.engine.storage.scan(b"l", b"m")) == []
    world.put(item("a", 2))
    world.enable()
    assert continuous(world)["EarliestRestorableDateTime"] == START + 1000
    world.clock.advance(1000)
    world.restore_to(START + 1000, "new")
    assert set(world.items("new")) == {("a", "1"), ("a", "2")}


def test_changes_before_the_window_are_forgotten(world: World) -> None:
    world.create()
    world.enable(RecoveryPeriodInDays=1)
    world.put(item("a", 1))
    world.clock.advance(2 * DAY)
    world.put(item("a", 2))
    continuous(world)
    assert len(list(world.engine.storage.scan(b"l", b"m"))) == 1
    for _ in range(1000):
        world.put(item("b", 1))
    world.clock.advance(2 * DAY)
    for _ in range(1000):
        world.put(item("b", 1))
    assert len(list(world.engine.storage.scan(b"l", b"m"))) <= 1001


def test_a_table_that_is_being_made_has_no_backups_yet(clock: VirtualClock, tmp_path: Path) -> None:
    with Engine.open(clock=clock, status_delay_seconds=10) as engine:
        world = World(engine, clock, tmp_path)
        world.create()
        world.refused(
            "UpdateContinuousBackups",
            ContinuousBackupsUnavailable,
            TableName="orders",
            **switch(True),
        )
        world.refused("DescribeContinuousBackups", TableNotFound, TableName="missing")


def test_history_survives_a_restart_and_a_clock_that_goes_back(tmp_path: Path) -> None:
    path = str(tmp_path / "data")
    with Engine.open(path, clock=VirtualClock(START)) as engine:
        world = World(engine, VirtualClock(START), tmp_path)
        world.create()
        world.enable()
        world.put(item("a", 1, n={"N": "1"}))
    with Engine.open(path, clock=VirtualClock(START - 50)) as engine:
        World(engine, VirtualClock(), tmp_path).put(item("a", 1, n={"N": "2"}))
    clock = VirtualClock(START + 10)
    with Engine.open(path, clock=clock) as engine:
        world = World(engine, clock, tmp_path)
        world.put(item("a", 1, n={"N": "3"}))
        clock.advance(400)
        world.restore_to(START + 5, "new")
        assert world.items("new") == {("a", "1"): item("a", 1, n={"N": "2"})}


def test_a_restore_to_a_second_takes_overrides(world: World) -> None:
    world.create()
    world.enable()
    world.put(item("a", 1, g={"S": "x"}))
    world.clock.advance(400)
    world.restore_to(START + 1, "new", GlobalSecondaryIndexOverride=[])
    table = world.call("DescribeTable", TableName="new")["Table"]
    assert "GlobalSecondaryIndexes" not in table
    assert world.items("new", "by-pk-g") == world.items()
    world.refused(
        "RestoreTableToPointInTime",
        ValidationFailed,
        SourceTableName="orders",
        TargetTableName="newer",
        UseLatestRestorableTime=True,
        LocalSecondaryIndexOverride=[
            {
                "IndexName": "other",
                "KeySchema": [
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "g", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )


def test_there_are_fifty_restores_at_a_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.create()
    arn = world.back_up()
    held: list[Task] = []
    with monkeypatch.context() as patched:
        patched.setattr(
            world.engine.recovery.tasks, "start", lambda task, at_once: held.append(task)
        )
        for number in range(50):
            world.restore(arn, f"restored-{number}")
        world.refused("DeleteBackup", BackupInUse, BackupArn=arn)
        world.refused(
            "RestoreTableFromBackup", LimitExceeded, BackupArn=arn, TargetTableName="one-more"
        )
    for task in held:
        world.engine.recovery.tasks.start(task, at_once=True)
    world.restore(arn, "one-more")


def test_housekeeping_forgets_what_nobody_can_ask_for(world: World) -> None:
    world.create()
    world.enable()
    world.put(item("a", 1))
    world.clock.advance(36 * DAY)
    world.engine.housekeeping.sweep()
    assert list(world.engine.storage.scan(b"l", b"m")) == []
    world.call("DeleteTable", TableName="orders")
    assert world.call("ListTables")["TableNames"] == []
    assert list(world.engine.storage.scan(b"d", b"e")) != []
    world.clock.advance(36 * DAY)
    world.engine.housekeeping.sweep()
    assert list(world.engine.storage.scan(b"d", b"e")) == []


def test_items_that_expire_are_there_in_the_past(world: World) -> None:
    world.create()
    specification = {"Enabled": True, "AttributeName": "until"}
    world.call("UpdateTimeToLive", TableName="orders", TimeToLiveSpecification=specification)
    world.enable()
    world.put(item("a", 1, until={"N": str(int(START) + 100)}))
    world.clock.advance(1000)
    world.engine.housekeeping.sweep()
    assert world.items() == {}
    world.clock.advance(1000)
    world.restore_to(START + 50, "before")
    world.restore_to(START + 1500, "after")
    assert set(world.items("before")) == {("a", "1")}
    assert world.items("after") == {}
