"""An engine with something of everything that an operation can name."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any, BinaryIO

import orjson

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.engine.recovery.objects import Encryption, no_such_bucket
from stator.model.scope import DEFAULT_ACCOUNT, DEFAULT_REGION, Scope

SCOPE = Scope(DEFAULT_ACCOUNT, DEFAULT_REGION)
START = 1_790_000_000.0

TABLE: dict[str, Any] = {
    "TableName": "music",
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": name, "AttributeType": kind}
        for name, kind in (("pk", "S"), ("sk", "N"), ("g", "S"), ("h", "N"), ("l", "B"))
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "LocalSecondaryIndexes": [
        {
            "IndexName": "local",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "l", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "global",
            "KeySchema": [
                {"AttributeName": "g", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        },
        {
            "IndexName": "wide",
            "KeySchema": [
                {"AttributeName": "g", "KeyType": "HASH"},
                {"AttributeName": "h", "KeyType": "HASH"},
                {"AttributeName": "pk", "KeyType": "RANGE"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["a"]},
        },
    ],
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
}
PLAIN: dict[str, Any] = {
    "TableName": "plain",
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
}


def item(pk: str, sk: int) -> dict[str, Any]:
    return {
        "pk": {"S": pk},
        "sk": {"N": str(sk)},
        "g": {"S": f"g{sk % 3}"},
        "h": {"N": str(sk % 2)},
        "l": {"B": "AA=="},
        "a": {"L": [{"N": "1"}, {"S": "x"}, {"M": {"deep": {"BOOL": True}}}]},
        "m": {"M": {"n": {"N": "7"}, "s": {"SS": ["a", "b"]}}},
        "n": {"N": "5"},
        "t": {"NS": ["1", "2"]},
    }


class MemoryBucket:
    """An object store with a single bucket, in memory: a world is made for every few requests."""

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}

    def put(
        self,
        bucket: str,
        key: str,
        content: bytes,
        *,
        owner: str | None = None,
        encryption: Encryption | None = None,
    ) -> str:
        self._check(bucket)
        self._objects[key] = content
        return "etag"

    def open(self, bucket: str, key: str, *, owner: str | None = None) -> BinaryIO:
        self._check(bucket)
        return BytesIO(self._objects[key])

    def keys(
        self, bucket: str, prefix: str, *, owner: str | None = None
    ) -> Iterator[tuple[str, int]]:
        self._check(bucket)
        found = sorted(key for key in self._objects if key.startswith(prefix))
        return iter([(key, len(self._objects[key])) for key in found])

    def _check(self, bucket: str) -> None:
        if bucket != "bucket":
            raise no_such_bucket()


@dataclass(slots=True)
class World:
    """An engine, and the names that its data got."""

    engine: Engine
    clock: VirtualClock
    names: dict[str, str]

    def ask(self, operation: str, request: Any) -> tuple[int, Any]:
        """Send a request as a server would; return status and answer. Raises what a bug raises."""
        reply = self.engine.submit(operation, orjson.dumps(request), SCOPE)
        return reply.status, orjson.loads(reply.body or b"null")


@contextmanager
def new_world(path: str | None = None) -> Iterator[World]:
    clock, bucket = VirtualClock(START), MemoryBucket()
    rows = b"".join(
        orjson.dumps({"Item": {"id": {"S": f"i{n}"}}}, option=orjson.OPT_APPEND_NEWLINE)
        for n in range(3)
    )
    bucket.put("bucket", "in/rows.json.gz", gzip.compress(rows))
    with Engine.open(path, durability="process", clock=clock, buckets=bucket) as engine:
        yield World(engine, clock, _filled(engine, clock))


def _filled(engine: Engine, clock: VirtualClock) -> dict[str, str]:
    call = engine.call
    table = call("CreateTable", TABLE)["TableDescription"]
    call("CreateTable", PLAIN)
    call(
        "UpdateTimeToLive",
        {
            "TableName": "music",
            "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "ttl"},
        },
    )
    recovery = {"PointInTimeRecoveryEnabled": True}
    call(
        "UpdateContinuousBackups",
        {"TableName": "music", "PointInTimeRecoverySpecification": recovery},
    )
    for pk in ("p", "q"):
        for sk in range(4):
            call("PutItem", {"TableName": "music", "Item": item(pk, sk)})
    call("PutItem", {"TableName": "plain", "Item": {"id": {"S": "one"}, "n": {"N": "1"}}})
    tags = [{"Key": "team", "Value": "a"}]
    call("TagResource", {"ResourceArn": table["TableArn"], "Tags": tags})
    backup = call("CreateBackup", {"TableName": "music", "BackupName": "first"})
    clock.advance(600)
    export = call(
        "ExportTableToPointInTime",
        {"TableArn": table["TableArn"], "S3Bucket": "bucket", "ClientToken": "export-1"},
    )
    for token in ("export-2", "export-3"):
        request = {"TableArn": table["TableArn"], "S3Bucket": "bucket", "ClientToken": token}
        call("ExportTableToPointInTime", request)
    loaded = call("ImportTable", import_request("imported"))
    call("ImportTable", import_request("imported-again"))
    stream = table["LatestStreamArn"]
    shards = call("DescribeStream", {"StreamArn": stream})["StreamDescription"]["Shards"]
    iterator = call(
        "GetShardIterator",
        {
            "StreamArn": stream,
            "ShardId": shards[0]["ShardId"],
            "ShardIteratorType": "TRIM_HORIZON",
        },
    )
    engine.recovery.tasks.wait()
    page = call("ExecuteStatement", {"Statement": "SELECT * FROM music", "Limit": 2})
    engine.sweep()
    return {
        "table_arn": table["TableArn"],
        "stream": stream,
        "shard": shards[0]["ShardId"],
        "sequence": shards[0]["SequenceNumberRange"]["StartingSequenceNumber"],
        "iterator": iterator["ShardIterator"],
        "backup": backup["BackupDetails"]["BackupArn"],
        "export": export["ExportDescription"]["ExportArn"],
        "import": loaded["ImportTableDescription"]["ImportArn"],
        "next_token": page["NextToken"],
        "next_export": call("ListExports", {"MaxResults": 1})["NextToken"],
        "next_import": call("ListImports", {"PageSize": 1})["NextToken"],
    }


def import_request(table: str) -> dict[str, Any]:
    return {
        "ClientToken": f"import-{table}",
        "S3BucketSource": {"S3Bucket": "bucket", "S3KeyPrefix": "in/"},
        "InputFormat": "DYNAMODB_JSON",
        "InputCompressionType": "GZIP",
        "TableCreationParameters": {
            "TableName": table,
            "KeySchema": PLAIN["KeySchema"],
            "AttributeDefinitions": PLAIN["AttributeDefinitions"],
            "BillingMode": "PAY_PER_REQUEST",
        },
    }
