"""A program to be killed anywhere: moves amounts between accounts while the table is copied."""

from __future__ import annotations

import json
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.engine.recovery import capture, imports, restores, tasks

from .world import CREATE, World, item

ACCOUNTS = 60
TOTAL = ACCOUNTS * 100
IMPORTED = {name: value for name, value in CREATE.items() if name != "LocalSecondaryIndexes"}


def take_small_steps() -> None:
    """A few items to a chunk and nothing at once, so that a kill hits work in the middle of it."""
    for module in (capture, restores, imports):  # each reads the name it imported
        module.CHUNK_ITEMS = 3  # type: ignore[attr-defined]  # imported, so not exported
    tasks.STEPS_AT_ONCE = 0


def open_world(folder: Path) -> World:
    (folder / "buckets" / "exports").mkdir(parents=True, exist_ok=True)
    engine = Engine.open(
        str(folder / "data"),
        durability="process",
        buckets=str(folder / "buckets"),
        recovery_lag_seconds=0,
    )
    return World(engine, VirtualClock(), folder / "buckets" / "exports")


def prepare(folder: Path) -> None:
    world = open_world(folder)
    world.create()
    world.enable()
    accounts = [
        item("account", number, amount={"N": "100"}, g={"S": str(number % 7)})
        for number in range(ACCOUNTS)
    ]
    world.put(*accounts)
    (world.bucket / "accounts").mkdir()
    for part in range(3):
        lines = [json.dumps({"Item": each}) for each in accounts[part::3]]
        (world.bucket / "accounts" / str(part)).write_text("\n".join(lines))
    world.engine.close()


def work_until_killed(folder: Path, seed: int, reports: Connection) -> None:
    """Move and copy for ever; report the ARN of each copy and the name of each new table."""
    take_small_steps()
    world = open_world(folder)
    reports.send("open")
    step = 0
    while True:
        for _ in range(5):
            transfer(world, seed + step)
            step += 1
        name = f"copy-{seed}-{step}"
        match step // 5 % 4:
            case 0:
                reports.send(world.back_up(name))
            case 1:
                request: dict[str, Any] = {"SourceTableName": "orders", "TargetTableName": name}
                world.call("RestoreTableToPointInTime", **request, UseLatestRestorableTime=True)
                reports.send(name)
            case 2:
                request = {
                    "TableArn": world.call("DescribeTable", TableName="orders")["Table"]["TableArn"]
                }
                answer = world.call("ExportTableToPointInTime", **request, S3Bucket="exports")
                reports.send(answer["ExportDescription"]["ExportArn"])
            case 3:
                request = {"S3BucketSource": {"S3Bucket": "exports", "S3KeyPrefix": "accounts/"}}
                request |= {
                    "InputFormat": "DYNAMODB_JSON",
                    "TableCreationParameters": IMPORTED | {"TableName": name},
                }
                request["ClientToken"] = name
                reports.send(
                    world.call("ImportTable", **request)["ImportTableDescription"]["ImportArn"]
                )


def transfer(world: World, step: int) -> None:
    source, target = step * 7 % ACCOUNTS, (step * 11 + 1) % ACCOUNTS
    if source != target:
        world.call("TransactWriteItems", TransactItems=[add(source, -1), add(target, 1)])


def add(number: int, amount: int) -> dict[str, Any]:
    return {
        "Update": {
            "TableName": "orders",
            "Key": item("account", number),
            "UpdateExpression": "ADD amount :a",
            "ExpressionAttributeValues": {":a": {"N": str(amount)}},
        }
    }
