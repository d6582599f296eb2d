"""On-demand backups: what they hold, what is said of them, and what a restore makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import (
    AccessDenied,
    BackupInUse,
    BackupNotFound,
    ResourceInUse,
    TableAlreadyExists,
    TableInUse,
    TableNotFound,
    ValidationFailed,
)

from .world import ARN, CREATE, START, World, item

DAY = 86_400


def fill(world: World, **changes: Any) -> None:
    world.create(**changes)
    world.put(
        item("a", 1, g={"S": "x"}), item("a", 2, text={"S": "t" * 400}), item("b", 1, g={"S": "y"})
    )


def test_a_backup_is_restored_with_its_indexes_and_counts(world: World) -> None:
    fill(world)
    before = world.items()
    arn = world.back_up()
    world.put(item("a", 1, g={"S": "changed"}), item("new", 1))
    world.delete("b", 1)
    answer = world.restore(arn, "restored")
    assert answer["TableStatus"] == "CREATING"
    assert answer["RestoreSummary"]["RestoreInProgress"] is True
    world.check_whole("restored", before)
    shown = world.call("DescribeTable", TableName="restored")["Table"]["RestoreSummary"]
    assert shown == {
        "SourceBackupArn": arn,
        "SourceTableArn": ARN + "orders",
        "RestoreDateTime": START,
        "RestoreInProgress": False,
    }


def test_a_backup_is_described_as_on_aws(world: World) -> None:
    fill(world)
    answer = world.call("CreateBackup", TableName=ARN + "orders", BackupName="nightly")[
        "BackupDetails"
    ]
    arn = answer["BackupArn"]
    assert arn.startswith(ARN + f"orders/backup/0{int(START * 1000)}-")
    assert answer["BackupStatus"] == "CREATING"
    described = world.call("DescribeBackup", BackupArn=arn)["BackupDescription"]
    assert described["BackupDetails"] == {
        "BackupArn": arn,
        "BackupName": "nightly",
        "BackupSizeBytes": world.call("DescribeTable", TableName="orders")["Table"][
            "TableSizeBytes"
        ],
        "BackupStatus": "AVAILABLE",
        "BackupType": "USER",
        "BackupCreationDateTime": START,
    }
    source, features = described["SourceTableDetails"], described["SourceTableFeatureDetails"]
    assert (source["TableName"], source["ItemCount"], source["BillingMode"]) == (
        "orders",
        3,
        "PAY_PER_REQUEST",
    )
    assert [index["IndexName"] for index in features["GlobalSecondaryIndexes"]] == ["by-g"]
    assert [index["IndexName"] for index in features["LocalSecondaryIndexes"]] == ["by-pk-g"]


def test_a_restored_table_has_none_of_what_aws_drops(world: World) -> None:
    fill(
        world,
        Tags=[{"Key": "team", "Value": "shop"}],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
        DeletionProtectionEnabled=True,
    )
    specification = {"Enabled": True, "AttributeName": "ttl"}
    world.call("UpdateTimeToLive", TableName="orders", TimeToLiveSpecification=specification)
    world.enable()
    described = world.call("DescribeBackup", BackupArn=(arn := world.back_up()))[
        "BackupDescription"
    ]
    features = described["SourceTableFeatureDetails"]
    assert features["TimeToLiveDescription"] == {
        "TimeToLiveStatus": "ENABLED",
        "AttributeName": "ttl",
    }
    assert features["StreamDescription"]["StreamEnabled"] is True
    world.restore(arn, "restored")
    table = world.call("DescribeTable", TableName="restored")["Table"]
    assert "StreamSpecification" not in table and "LatestStreamArn" not in table
    assert table["DeletionProtectionEnabled"] is False
    assert world.call("ListTagsOfResource", ResourceArn=ARN + "restored")["Tags"] == []
    ttl = world.call("DescribeTimeToLive", TableName="restored")["TimeToLiveDescription"]
    assert ttl == {"TimeToLiveStatus": "DISABLED"}
    continuous = world.call("DescribeContinuousBackups", TableName="restored")[
        "ContinuousBackupsDescription"
    ]
    assert continuous["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "DISABLED"


def test_a_restore_overrides_indexes_and_capacity(world: World) -> None:
    fill(world)
    before = world.items()
    world.restore(
        world.back_up(),
        "restored",
        BillingModeOverride="PROVISIONED",
        ProvisionedThroughputOverride={"ReadCapacityUnits": 7, "WriteCapacityUnits": 8},
        GlobalSecondaryIndexOverride=[],
        SSESpecificationOverride={"Enabled": True},
    )
    table = world.call("DescribeTable", TableName="restored")["Table"]
    assert world.items("restored") == before
    assert "GlobalSecondaryIndexes" not in table and len(table["LocalSecondaryIndexes"]) == 1
    throughput = table["ProvisionedThroughput"]
    assert (throughput["ReadCapacityUnits"], throughput["WriteCapacityUnits"]) == (7, 8)
    assert table["SSEDescription"]["SSEType"] == "KMS"
    world.restore(
        world.back_up(), "bare", GlobalSecondaryIndexOverride=[], LocalSecondaryIndexOverride=[]
    )
    assert [each["AttributeName"] for each in describe_attributes(world, "bare")] == ["pk", "sk"]


def describe_attributes(world: World, table: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = world.call("DescribeTable", TableName=table)["Table"][
        "AttributeDefinitions"
    ]
    return found


def test_overrides_that_fit_no_source_are_refused(world: World) -> None:
    fill(world)
    arn = world.back_up()
    index = CREATE["GlobalSecondaryIndexes"][0]
    for wrong in (
        {"GlobalSecondaryIndexOverride": [index | {"IndexName": "other"}]},
        {"GlobalSecondaryIndexOverride": [index | {"Projection": {"ProjectionType": "ALL"}}]},
        {
            "GlobalSecondaryIndexOverride": [
                index | {"WarmThroughput": {"ReadUnitsPerSecond": 15000}}
            ]
        },
        {"BillingModeOverride": "PROVISIONED"},
        {"ProvisionedThroughputOverride": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}},
    ):
        world.refused(
            "RestoreTableFromBackup",
            ValidationFailed,
            BackupArn=arn,
            TargetTableName="new",
            **wrong,
        )
    units = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
    to_provisioned = {"BillingModeOverride": "PROVISIONED", "ProvisionedThroughputOverride": units}
    request = {"BackupArn": arn, "TargetTableName": "new", **to_provisioned}
    assert world.refused("RestoreTableFromBackup", ValidationFailed, **request) == (
        "One or more parameter values were invalid: "
        "GlobalSecondaryIndexOverride must be specified for index: by-g when "
        "BillingModeOverride is PROVISIONED"
    )
    assert world.call("ListTables")["TableNames"] == ["orders"]


def test_what_is_not_there_and_what_is_there_already(world: World) -> None:
    fill(world)
    arn = world.back_up()
    message = world.refused(
        "CreateBackup", TableNotFound, TableName="missing", BackupName="nightly"
    )
    assert message == "Table not found: missing"
    gone = arn[:-4] + "0000"
    assert (
        world.refused("DescribeBackup", BackupNotFound, BackupArn=gone)
        == f"Backup not found: {gone}"
    )
    world.refused("DeleteBackup", BackupNotFound, BackupArn=gone)
    world.refused("RestoreTableFromBackup", BackupNotFound, BackupArn=gone, TargetTableName="new")
    world.refused(
        "RestoreTableFromBackup", TableAlreadyExists, BackupArn=arn, TargetTableName="orders"
    )
    world.refused(
        "DescribeBackup", AccessDenied, BackupArn=arn.replace("123456789012", "999999999999")
    )
    world.refused("DescribeBackup", ValidationFailed, BackupArn=ARN + "orders/stream/2026-10-08")


def test_a_deleted_backup_is_gone_and_its_space_free(world: World) -> None:
    fill(world)
    arn = world.back_up()
    assert (
        world.call("DeleteBackup", BackupArn=arn)["BackupDescription"]["BackupDetails"][
            "BackupStatus"
        ]
        == "DELETED"
    )
    world.refused("DescribeBackup", BackupNotFound, BackupArn=arn)
    assert world.call("ListBackups")["BackupSummaries"] == []
    assert list(world.engine.storage.scan(b"b", b"c")) == []


def test_backups_are_listed_by_table_time_and_type(world: World) -> None:
    fill(world)
    world.call("CreateTable", **{**CREATE, "TableName": "carts"})
    arns = []
    for table in ("carts", "orders", "orders"):
        arns.append(world.back_up(table=table))
        world.clock.advance(60)

    def listed(**request: Any) -> list[str]:
        return [
            each["BackupArn"] for each in world.call("ListBackups", **request)["BackupSummaries"]
        ]

    assert listed() == arns
    assert listed(TableName="orders") == arns[1:] == listed(TableName=ARN + "orders")
    assert listed(TimeRangeLowerBound=START + 60, TimeRangeUpperBound=START + 120) == [arns[1]]
    assert listed(BackupType="SYSTEM") == []
    page = world.call("ListBackups", Limit=2)
    assert page["LastEvaluatedBackupArn"] == arns[1]
    assert listed(ExclusiveStartBackupArn=arns[1]) == arns[2:]


def test_a_backup_outlives_its_table_and_a_restart(tmp_path: Path, clock: VirtualClock) -> None:
    path = str(tmp_path / "data")
    with Engine.open(path, clock=clock) as engine:
        world = World(engine, clock, tmp_path)
        fill(world)
        before = world.items()
        arn = world.back_up()
        world.call("DeleteTable", TableName="orders")
    with Engine.open(path, clock=clock) as engine:
        world = World(engine, clock, tmp_path)
        world.restore(arn, "orders")
        world.check_whole("orders", before)


def test_while_a_backup_is_made_it_can_not_be_used(clock: VirtualClock, tmp_path: Path) -> None:
    with Engine.open(clock=clock, status_delay_seconds=10) as engine:
        world = World(engine, clock, tmp_path)
        world.create()
        world.refused("CreateBackup", TableInUse, TableName="orders", BackupName="nightly")
        clock.advance(10)
        arn = world.back_up()
        assert world.call("DescribeBackup", BackupArn=arn)["BackupDescription"]["BackupDetails"][
            "BackupStatus"
        ] == ("CREATING")
        world.refused("DeleteBackup", BackupInUse, BackupArn=arn)
        world.refused("RestoreTableFromBackup", BackupInUse, BackupArn=arn, TargetTableName="new")
        clock.advance(10)
        world.restore(arn, "new")
        world.refused("RestoreTableFromBackup", TableInUse, BackupArn=arn, TargetTableName="new")
        clock.advance(10)
        assert world.call("DescribeTable", TableName="new")["Table"]["TableStatus"] == "ACTIVE"
        world.call("DeleteBackup", BackupArn=arn)


def test_a_table_being_copied_can_not_be_deleted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(world)
    started: list[Any] = []
    tasks = world.engine.recovery.tasks
    monkeypatch.setattr(tasks, "start", lambda task, at_once: started.append(task))
    arn = world.back_up()
    world.refused("DeleteTable", ResourceInUse, TableName="orders")
    monkeypatch.undo()
    tasks.start(started[0], at_once=True)
    world.call("DeleteTable", TableName="orders")
    world.restore(arn, "orders")


@pytest.mark.parametrize("restart", [False, True])
def test_a_deleted_table_with_recovery_leaves_a_backup_for_35_days(
    tmp_path: Path, clock: VirtualClock, restart: bool
) -> None:
    path = str(tmp_path / "data")
    engine = Engine.open(path, clock=clock)
    world = World(engine, clock, tmp_path)
    fill(world)
    world.enable()
    before = world.items()
    world.call("DeleteTable", TableName="orders")
    if restart:
        world.call("ListTables")
        engine.close()
        engine = Engine.open(path, clock=clock)
        world = World(engine, clock, tmp_path)
    [left] = world.call("ListBackups", BackupType="SYSTEM")["BackupSummaries"]
    assert (left["BackupName"], left["BackupType"]) == ("orders$DeletedTableBackup", "SYSTEM")
    assert left["BackupExpiryDateTime"] == START + 35 * DAY
    world.restore(left["BackupArn"], "orders")
    world.check_whole("orders", before)
    world.call("DeleteTable", TableName="orders")
    clock.advance(35 * DAY)
    assert world.call("ListTables")["TableNames"] == []
    assert world.call("ListBackups", BackupType="ALL")["BackupSummaries"] == []
    assert list(engine.storage.scan(b"d", b"e")) == [] == list(engine.storage.scan(b"l", b"m"))
    engine.close()
