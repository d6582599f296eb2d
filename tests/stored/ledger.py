"""The tables of the engine fixtures, what is written to them, and all that can be asked of them.

``contents`` asks an engine for everything it stores. The script that makes the fixtures records
the answer, and the tests compare it with the answer of the code under test.
"""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

from stator.clock import VirtualClock
from stator.engine import Engine

START = 1_791_489_600.0
"""Thursday, 8 October 2026, 20:00 UTC."""
ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/"
BUCKET = "exports"
Item = dict[str, Any]
Answer = dict[str, Any]


def open_engine(folder: Path, clock: VirtualClock) -> Engine:
    """An engine on ``folder/data`` whose exports go to ``folder/buckets``."""
    (folder / "buckets" / BUCKET).mkdir(parents=True, exist_ok=True)
    return Engine.open(str(folder / "data"), clock=clock, buckets=str(folder / "buckets"))


# --- tables -------------------------------------------------------------------------------------


def keys(partition: list[str], sort: list[str]) -> list[dict[str, str]]:
    roles = [(name, "HASH") for name in partition] + [(name, "RANGE") for name in sort]
    return [{"AttributeName": name, "KeyType": role} for name, role in roles]


def attributes(**kinds: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in kinds.items()]


def index(
    name: str, partition: list[str], sort: list[str], projection: str = "ALL", *included: str
) -> dict[str, Any]:
    shown: dict[str, Any] = {"ProjectionType": projection}
    if included:
        shown["NonKeyAttributes"] = list(included)
    return {"IndexName": name, "KeySchema": keys(partition, sort), "Projection": shown}


STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}

ORDERS: dict[str, Any] = {
    "TableName": "orders",
    "KeySchema": keys(["pk"], ["sk"]),
    "AttributeDefinitions": attributes(pk="S", sk="N", g="S", city="S", zone="N", year="N"),
    "BillingMode": "PAY_PER_REQUEST",
    "StreamSpecification": STREAM,
    "Tags": [{"Key": "team", "Value": "data"}, {"Key": "stage", "Value": "test"}],
    "GlobalSecondaryIndexes": [
        index("by-g", ["g"], ["sk"], "KEYS_ONLY"),
        index("by-place", ["city", "zone"], ["year", "g"], "INCLUDE", "text"),
    ],
    "LocalSecondaryIndexes": [index("by-pk-g", ["pk"], ["g"])],
}

KINDS: dict[str, Any] = {
    "TableName": "kinds",
    "KeySchema": keys(["id"], ["part"]),
    "AttributeDefinitions": attributes(id="B", part="S", rank="N"),
    "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
    "DeletionProtectionEnabled": True,
    "SSESpecification": {"Enabled": True},
    "TableClass": "STANDARD_INFREQUENT_ACCESS",
    "GlobalSecondaryIndexes": [
        index("by-rank", ["rank"], [])
        | {"ProvisionedThroughput": {"ReadCapacityUnits": 2, "WriteCapacityUnits": 3}}
    ],
}

EVENTS: dict[str, Any] = {
    "TableName": "events",
    "KeySchema": keys(["n"], []),
    "AttributeDefinitions": attributes(n="N"),
    "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
}


def on_demand(name: str, **more: Any) -> dict[str, Any]:
    """A table with one key attribute ``pk``."""
    return {
        "TableName": name,
        "KeySchema": keys(["pk"], []),
        "AttributeDefinitions": attributes(pk="S"),
        "BillingMode": "PAY_PER_REQUEST",
        **more,
    }


# --- items --------------------------------------------------------------------------------------


def order(number: int, **more: Any) -> Item:
    item = {"pk": {"S": f"customer-{number % 4}"}, "sk": {"N": str(number)}}
    if number % 3:
        item["g"] = {"S": "xyz"[number % 3]}
    if number % 2:
        item |= {"city": {"S": "Oslo"}, "zone": {"N": str(number % 5)}, "year": {"N": "2026"}}
    return item | {"text": {"S": f"order {number} \0 é"}} | more


def order_key(number: int) -> Item:
    return {name: order(number)[name] for name in ("pk", "sk")}


def binary(content: bytes) -> dict[str, str]:
    return {"B": base64.b64encode(content).decode()}


EVERY_KIND: Item = {
    "id": binary(b"\0\xff\0"),
    "part": {"S": "every kind \U0001f600"},
    "rank": {"N": "-1.5E-130"},
    "text": {"S": ""},
    "number": {"N": "12345678901234567890123456789012345678"},
    "tiny": {"N": "-1E-130"},
    "bytes": binary(bytes(range(256))),
    "yes": {"BOOL": True},
    "none": {"NULL": True},
    "texts": {"SS": ["b", "a", "é"]},
    "numbers": {"NS": ["3", "-1", "2.5"]},
    "blobs": {"BS": ["AA==", "/w=="]},
    "list": {"L": [{"S": "x"}, {"L": []}, {"M": {"deep": {"N": "1"}}}]},
    "map": {"M": {"a.b": {"S": "dot"}, "empty": {"M": {}}}},
}


def kinds() -> list[Item]:
    ranks = ["0", "-0.5", "1E+20", "99999999999999999999", "7"]
    return [EVERY_KIND] + [
        {"id": binary(bytes([n])), "part": {"S": "\0" * n + "z"}, "rank": {"N": rank}}
        for n, rank in enumerate(ranks, 1)
    ]


# --- everything there is ------------------------------------------------------------------------


def contents(engine: Engine) -> Answer:
    """Tables, items, indexes, streams, backups, exports and imports, as the engine tells them."""
    tables = engine.call("ListTables", {})["TableNames"]
    return {
        "tables": {name: table_contents(engine, name) for name in tables},
        "streams": [stream_contents(engine, each) for each in _streams(engine)],
        "backups": _backups(engine),
        "exports": _exports(engine),
        "imports": _imports(engine),
    }


def table_contents(engine: Engine, name: str) -> Answer:
    about = {"TableName": name}
    description = engine.call("DescribeTable", about)["Table"]
    indexes = [
        each["IndexName"]
        for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes")
        for each in description.get(kind, ())
    ]
    return {
        "description": description,
        "items": scan(engine, name),
        "indexes": {each: scan(engine, name, each) for each in indexes},
        "tags": engine.call("ListTagsOfResource", {"ResourceArn": ARN + name})["Tags"],
        "time_to_live": engine.call("DescribeTimeToLive", about)["TimeToLiveDescription"],
        "continuous_backups": engine.call("DescribeContinuousBackups", about)[
            "ContinuousBackupsDescription"
        ],
    }


def scan(engine: Engine, table: str, index: str | None = None) -> list[Item]:
    """Every item, in the order of the Scan, which is that of the stored keys."""
    request: dict[str, Any] = {"TableName": table, "Limit": 7}
    if index is not None:
        request["IndexName"] = index
    found: list[Item] = []
    while True:
        page = engine.call("Scan", request)
        found += page["Items"]
        if "LastEvaluatedKey" not in page:
            return found
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def _streams(engine: Engine) -> list[str]:
    return [each["StreamArn"] for each in engine.call("ListStreams", {})["Streams"]]


def stream_contents(engine: Engine, arn: str) -> Answer:
    """A stream's description, and the records of each shard from its beginning."""
    described = engine.call("DescribeStream", {"StreamArn": arn})["StreamDescription"]
    shards = [shard["ShardId"] for shard in described["Shards"]]
    return {
        "description": described,
        "records": {shard: read_shard(engine, arn, shard) for shard in shards},
    }


def read_shard(engine: Engine, arn: str, shard: str) -> list[Answer]:
    request = {"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
    return read_on(engine, engine.call("GetShardIterator", request)["ShardIterator"])


def read_on(engine: Engine, iterator: str | None) -> list[Answer]:
    """The records from an iterator to the end of its shard, or to what is there by now."""
    found: list[Answer] = []
    while iterator is not None:
        page = engine.call("GetRecords", {"ShardIterator": iterator, "Limit": 5})
        found += page["Records"]
        iterator = page.get("NextShardIterator") if page["Records"] else None
    return found


def _backups(engine: Engine) -> list[Answer]:
    listed = engine.call("ListBackups", {"BackupType": "ALL"})["BackupSummaries"]
    return [
        engine.call("DescribeBackup", {"BackupArn": each["BackupArn"]})["BackupDescription"]
        for each in listed
    ]


def _exports(engine: Engine) -> list[Answer]:
    return [
        engine.call("DescribeExport", {"ExportArn": each["ExportArn"]})["ExportDescription"]
        for each in engine.call("ListExports", {})["ExportSummaries"]
    ]


def _imports(engine: Engine) -> list[Answer]:
    return [
        engine.call("DescribeImport", {"ImportArn": each["ImportArn"]})["ImportTableDescription"]
        for each in engine.call("ListImports", {})["ImportSummaryList"]
    ]


def exported(bucket: Path, export: Answer) -> list[Answer]:
    """The lines of all data files that an export's manifest names."""
    summary = json.loads((bucket / export["ExportManifest"]).read_bytes())
    files = (bucket / summary["manifestFilesS3Key"]).read_text().splitlines()
    lines: list[Answer] = []
    for file in files:
        content = gzip.decompress((bucket / json.loads(file)["dataFileS3Key"]).read_bytes())
        lines += [json.loads(line) for line in content.splitlines()]
    return lines
