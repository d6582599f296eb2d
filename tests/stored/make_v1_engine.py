"""Makes the engine folders of version 1: one closed, one killed, one killed amid long jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from stator.clock import VirtualClock
from stator.engine import Engine, lifecycle
from stator.engine.recovery import capture, imports, restores

from .ledger import (
    ARN,
    BUCKET,
    EVENTS,
    KINDS,
    ORDERS,
    START,
    STREAM,
    Item,
    attributes,
    contents,
    index,
    kinds,
    on_demand,
    open_engine,
    order,
    order_key,
    read_shard,
    scan,
)

HOUR = 3600.0


class Maker:
    """An engine on a folder, and short ways to write to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = VirtualClock(START)
        self.engine = open_engine(folder, self.clock)

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        return self.engine.call(operation, request)

    def put(self, table: str, *items: Item) -> None:
        for item in items:
            self.call("PutItem", TableName=table, Item=item)

    def enable_recovery(self, table: str) -> None:
        wanted = {"PointInTimeRecoveryEnabled": True}
        self.call(
            "UpdateContinuousBackups", TableName=table, PointInTimeRecoverySpecification=wanted
        )

    def enable_expiry(self, table: str) -> None:
        wanted = {"Enabled": True, "AttributeName": "expires"}
        self.call("UpdateTimeToLive", TableName=table, TimeToLiveSpecification=wanted)

    def stream(self, table: str) -> str:
        return str(self.call("DescribeTable", TableName=table)["Table"]["LatestStreamArn"])

    def export(self, **options: Any) -> str:
        answer = self.call(
            "ExportTableToPointInTime", TableArn=ARN + "orders", S3Bucket=BUCKET, **options
        )
        return str(answer["ExportDescription"]["ExportArn"])

    def start_import(self, table: str, items: list[Item]) -> str:
        """Write items as two files into the bucket, and begin to import them."""
        source = self.folder / "buckets" / BUCKET / f"to-{table}"
        source.mkdir()
        for part in range(2):
            lines = [json.dumps({"Item": item}) + "\n" for item in items[part::2]]
            (source / f"{part}.json").write_text("".join(lines))
        answer = self.call(
            "ImportTable",
            S3BucketSource={"S3Bucket": BUCKET, "S3KeyPrefix": f"to-{table}/"},
            InputFormat="DYNAMODB_JSON",
            TableCreationParameters=on_demand(
                table,
                AttributeDefinitions=attributes(pk="S", g="S"),
                GlobalSecondaryIndexes=[index("by-g", ["g"], [])],
            ),
            ClientToken=f"import-{table}",
        )
        return str(answer["ImportTableDescription"]["ImportArn"])


def transaction(first: int, last: int) -> dict[str, Any]:
    """A TransactWriteItems request with a token."""
    return {
        "ClientRequestToken": f"token-{first}-{last}",
        "TransactItems": [
            {"Put": {"TableName": "orders", "Item": order(number)}} for number in range(first, last)
        ],
    }


# --- a folder closed in good order --------------------------------------------------------------


def make_closed(folder: Path) -> dict[str, Any]:
    """What it stores, and what a test needs to go on with it."""
    maker = Maker(folder)
    moments = _write_orders(maker)
    _write_kinds(maker)
    _write_events(maker)
    backup = _back_up(maker)
    _pass_time(maker)
    exports = _export(maker, moments)
    _lose_a_table(maker)
    pages = _begin_to_read(maker)
    recorded = {
        "now": maker.clock.now(),
        "contents": contents(maker.engine),
        "moments": moments,
        "backup": backup,
        "exports": exports,
        "transaction": transaction(40, 43),
        "pages": pages,
    }
    maker.engine.close()
    return recorded


def _write_orders(maker: Maker) -> list[dict[str, Any]]:
    """Fill the table, with continuous backups; its items at three moments."""
    maker.call("CreateTable", **ORDERS)
    maker.enable_recovery("orders")
    maker.enable_expiry("orders")
    moments = [_moment(maker)]
    maker.put("orders", *map(order, range(16)))
    maker.put("orders", order(16, expires={"N": str(int(START) + 600)}))
    maker.put("orders", order(17, expires={"N": str(int(START) + 40 * 24 * 3600)}))
    moments.append(_moment(maker))
    maker.call("DeleteItem", TableName="orders", Key=order_key(3))
    maker.call(
        "UpdateItem",
        TableName="orders",
        Key=order_key(4),
        UpdateExpression="SET g = :g, changed = :t",
        ExpressionAttributeValues={":g": {"S": "w"}, ":t": {"BOOL": True}},
    )
    batch = [{"PutRequest": {"Item": order(number)}} for number in range(20, 26)]
    maker.call("BatchWriteItem", RequestItems={"orders": batch})
    moments.append(_moment(maker))
    return moments


def _moment(maker: Maker) -> dict[str, Any]:
    found = {"at": maker.clock.now(), "items": scan(maker.engine, "orders")}
    maker.clock.advance(60)
    return found


def _write_kinds(maker: Maker) -> None:
    """Every type of attribute, and a table whose settings and indexes have changed."""
    maker.call("CreateTable", **KINDS)
    maker.put("kinds", *kinds())
    units = {"ReadCapacityUnits": 6, "WriteCapacityUnits": 9}
    maker.call("UpdateTable", TableName="kinds", ProvisionedThroughput=units)
    made = index("by-text", ["text"], []) | {"ProvisionedThroughput": units}
    for change in (
        {"Create": made},
        {"Delete": {"IndexName": "by-text"}},
        {"Create": made | {"IndexName": "again"}},
    ):
        maker.call(
            "UpdateTable",
            TableName="kinds",
            AttributeDefinitions=attributes(text="S"),
            GlobalSecondaryIndexUpdates=[change],
        )
    maker.put("kinds", kinds()[1] | {"text": {"S": "in the new index"}})


def _write_events(maker: Maker) -> None:
    """A stream that was switched off, and another that took its place."""
    maker.call("CreateTable", **EVENTS)
    maker.put("events", *({"n": {"N": str(number)}} for number in (1, -2, 3)))
    for wanted in ({"StreamEnabled": False}, STREAM):
        maker.clock.advance(1)
        maker.call("UpdateTable", TableName="events", StreamSpecification=wanted)
    maker.put("events", {"n": {"N": "4.25"}, "v": {"S": "new stream"}})


def _back_up(maker: Maker) -> dict[str, Any]:
    answer = maker.call("CreateBackup", TableName="orders", BackupName="nightly")
    maker.engine.recovery.wait()
    found = {"arn": answer["BackupDetails"]["BackupArn"], "items": scan(maker.engine, "orders")}
    maker.put("orders", order(0, text={"S": "changed after the backup"}))
    return found


def _pass_time(maker: Maker) -> None:
    """Shards roll after about four hours, one is split, and an item expires."""
    maker.clock.advance(4.5 * HOUR)
    maker.put("orders", *map(order, range(30, 34)))
    arn = maker.stream("orders")
    shards = maker.call("DescribeStream", StreamArn=arn)["StreamDescription"]["Shards"]
    open_now = [
        shard["ShardId"]
        for shard in shards
        if "EndingSequenceNumber" not in shard["SequenceNumberRange"]
    ]
    busiest = max(open_now, key=lambda shard: len(read_shard(maker.engine, arn, shard)))
    maker.engine.streams.split(arn, busiest)
    maker.engine.sweep()
    maker.put("orders", *map(order, range(34, 38)))
    maker.engine.call("TransactWriteItems", transaction(40, 43))


def _export(maker: Maker, moments: list[dict[str, Any]]) -> dict[str, str]:
    """A full export, one of changes, one that fails, and an import."""
    now = maker.clock.now()
    window = {"ExportFromTime": START + 60, "ExportToTime": now - 300}
    found = {
        "full": maker.export(ExportTime=moments[1]["at"], S3Prefix="full"),
        "incremental": maker.export(
            ExportType="INCREMENTAL_EXPORT", IncrementalExportSpecification=window
        ),
        "import": maker.start_import(
            "imported", [{"pk": {"S": f"i{n}"}, "g": {"S": "xy"[n % 2]}} for n in range(9)]
        ),
    }
    maker.engine.recovery.wait()
    return found


def _lose_a_table(maker: Maker) -> None:
    """A deleted table with continuous backups leaves a backup, whose items stay in place."""
    maker.call("CreateTable", **on_demand("gone"))
    maker.enable_recovery("gone")
    maker.put("gone", *({"pk": {"S": f"g{number}"}} for number in range(3)))
    maker.call("DeleteTable", TableName="gone")


def _begin_to_read(maker: Maker) -> dict[str, Any]:
    """What clients hold in the middle of reading, and what is left for them to read."""
    arn = maker.stream("orders")
    shards = maker.call("DescribeStream", StreamArn=arn)["StreamDescription"]["Shards"]
    shard = next(each for each in shards if len(read_shard(maker.engine, arn, each["ShardId"])) > 3)
    request = {
        "StreamArn": arn,
        "ShardId": shard["ShardId"],
        "ShardIteratorType": "TRIM_HORIZON",
    }
    first = maker.call("GetShardIterator", **request)["ShardIterator"]
    page = maker.call("GetRecords", ShardIterator=first, Limit=2)
    statement = "SELECT * FROM orders WHERE pk = 'customer-1'"
    selected = maker.call("ExecuteStatement", Statement=statement, Limit=3)
    whole = maker.call("ExecuteStatement", Statement=statement)["Items"]
    return {
        "shard_iterator": page["NextShardIterator"],
        "records_left": read_shard(maker.engine, arn, shard["ShardId"])[2:],
        "statement": statement,
        "next_token": selected["NextToken"],
        "items_left": whole[3:],
    }


# --- a folder whose process was killed ----------------------------------------------------------


def write_to_be_killed(folder: Path) -> dict[str, Any]:
    """Acknowledged writes, of which nothing has been flushed to a table file."""
    maker = Maker(folder)
    _write_orders(maker)
    maker.engine.call("TransactWriteItems", transaction(50, 54))
    return {
        "now": maker.clock.now(),
        "contents": contents(maker.engine),
        "transaction": transaction(50, 54),
    }


# --- a folder whose process was killed amid long jobs -------------------------------------------


def work_to_be_killed(folder: Path) -> dict[str, Any]:
    """One of each kind of long job, each some steps far, with writes since it began."""
    _take_small_steps()
    maker = Maker(folder)
    before = _prepare(maker)
    tasks = maker.engine.recovery.tasks
    started: list[Any] = []
    tasks.start = lambda task, *, at_once: started.append(task)  # type: ignore[method-assign]
    jobs = _begin_jobs(maker, before)
    for task, steps in zip(started, (2, 3, 5, 9, 13, 2), strict=True):
        for _ in range(steps):
            tasks.step(task)
    now = maker.clock.now()
    _write_meanwhile(maker)
    _begin_to_fill(maker.engine)
    return {
        "now": now,
        "before": before,
        "jobs": jobs,
        "stages": [[task.stages, task.cursor] for task in started],
        "orders": scan(maker.engine, "orders"),
    }


def _take_small_steps() -> None:
    capture.CHUNK_ITEMS = restores.CHUNK_ITEMS = imports.CHUNK_ITEMS = 3
    lifecycle.CHUNK_ITEMS = 5


def _prepare(maker: Maker) -> dict[str, Any]:
    """Items, a whole backup to restore, and the moment to restore to; its items."""
    maker.call("CreateTable", **ORDERS)
    maker.enable_recovery("orders")
    maker.put("orders", *map(order, range(20)))
    answer = maker.call("CreateBackup", TableName="orders", BackupName="whole")
    maker.engine.recovery.wait()
    found = {
        "at": maker.clock.now(),
        "items": scan(maker.engine, "orders"),
        "backup": answer["BackupDetails"]["BackupArn"],
    }
    maker.clock.advance(60)
    maker.put("orders", *(order(number, late={"BOOL": True}) for number in range(5, 9)))
    maker.clock.advance(600)
    return found


def _begin_jobs(maker: Maker, before: dict[str, Any]) -> dict[str, Any]:
    """In the order of the numbers of steps they are given."""
    at_begin = scan(maker.engine, "orders")
    backup = maker.call("CreateBackup", TableName="orders", BackupName="half")
    maker.call("RestoreTableFromBackup", BackupArn=before["backup"], TargetTableName="from-backup")
    maker.call(
        "RestoreTableToPointInTime",
        SourceTableName="orders",
        TargetTableName="from-moment",
        RestoreDateTime=before["at"],
    )
    return {
        "items": at_begin,
        "backup": backup["BackupDetails"]["BackupArn"],
        "exports": [maker.export(ExportTime=before["at"]) for _ in range(2)],
        "import": maker.start_import(
            "imported", [{"pk": {"S": f"i{n}"}, "g": {"S": "xy"[n % 2]}} for n in range(12)]
        ),
    }


def _write_meanwhile(maker: Maker) -> None:
    """Writes on both sides of what the jobs have copied so far."""
    for number in range(0, 20, 3):
        maker.put("orders", order(number, text={"S": "written while it was copied"}))
        maker.call("DeleteItem", TableName="orders", Key=order_key(number + 1))


def _begin_to_fill(engine: Engine) -> None:
    """An index and an expiry list of a table that has items, both half done.

    The lock is never given back: the thread that fills the index waits for it until the kill.
    """
    engine.call("CreateTable", on_demand("filled"))
    expires = {"N": str(int(START) + 100_000)}
    for number in range(150):
        item = {"pk": {"S": f"f{number:03d}"}, "g": {"S": "xyz"[number % 3]}}
        item |= {"expires": expires} if number % 2 else {}
        engine.call("PutItem", {"TableName": "filled", "Item": item})
    wanted = {"Enabled": True, "AttributeName": "expires"}
    engine.lock.acquire()
    engine.call("UpdateTimeToLive", {"TableName": "filled", "TimeToLiveSpecification": wanted})
    engine.expiry.step()
    engine.call(
        "UpdateTable",
        {
            "TableName": "filled",
            "AttributeDefinitions": attributes(g="S"),
            "GlobalSecondaryIndexUpdates": [{"Create": index("by-g", ["g"], [])}],
        },
    )
