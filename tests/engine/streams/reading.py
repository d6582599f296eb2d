"""Reading streams through the API, as a consumer does: parents before children."""

from __future__ import annotations

from typing import Any

from stator.engine import Engine

Record = dict[str, Any]


def table(
    name: str = "orders", view: str | None = "NEW_AND_OLD_IMAGES", **more: Any
) -> dict[str, Any]:
    request: dict[str, Any] = {
        "TableName": name,
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
        **more,
    }
    if view is not None:
        request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": view}
    return request


def create(
    engine: Engine, name: str = "orders", view: str | None = "NEW_AND_OLD_IMAGES", **more: Any
) -> str:
    """Make a table; its stream's ARN."""
    described = engine.call("CreateTable", table(name, view, **more))["TableDescription"]
    return str(described.get("LatestStreamArn", ""))


def put(engine: Engine, key: str, name: str = "orders", **values: int) -> None:
    item = {"pk": {"S": key}, **{field: {"N": str(value)} for field, value in values.items()}}
    engine.call("PutItem", {"TableName": name, "Item": item})


def delete(engine: Engine, key: str, name: str = "orders") -> None:
    engine.call("DeleteItem", {"TableName": name, "Key": {"pk": {"S": key}}})


def described(engine: Engine, arn: str, **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = engine.call("DescribeStream", {"StreamArn": arn, **more})[
        "StreamDescription"
    ]
    return answer


def shards(engine: Engine, arn: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    page = described(engine, arn)
    found += page["Shards"]
    while "LastEvaluatedShardId" in page:
        page = described(engine, arn, ExclusiveStartShardId=page["LastEvaluatedShardId"])
        found += page["Shards"]
    return found


def iterator(engine: Engine, arn: str, shard: str, kind: str = "TRIM_HORIZON", **more: Any) -> str:
    request = {"StreamArn": arn, "ShardId": shard, "ShardIteratorType": kind, **more}
    return str(engine.call("GetShardIterator", request)["ShardIterator"])


def read(engine: Engine, place: str | None, **more: Any) -> tuple[list[Record], str | None]:
    """Everything from an iterator on: the records, and where an open shard goes on."""
    found: list[Record] = []
    while place is not None:
        page = engine.call("GetRecords", {"ShardIterator": place, **more})
        found += page["Records"]
        place = page.get("NextShardIterator")
        if not page["Records"]:
            break
    return found, place


def read_shard(engine: Engine, arn: str, shard: str, **more: Any) -> list[Record]:
    return read(engine, iterator(engine, arn, shard), **more)[0]


def read_all(engine: Engine, arn: str) -> list[Record]:
    """All records that are left, those of a shard after those of its parent."""
    listed = {shard["ShardId"]: shard for shard in shards(engine, arn)}
    found: list[Record] = []
    done: set[str] = set()

    def visit(shard_id: str) -> None:
        if shard_id in done or shard_id not in listed:
            return
        done.add(shard_id)
        visit(listed[shard_id].get("ParentShardId", ""))
        found.extend(read_shard(engine, arn, shard_id))

    for shard_id in listed:
        visit(shard_id)
    return found


def told(records: list[Record]) -> list[tuple[str, str]]:
    return [(record["eventName"], record["dynamodb"]["Keys"]["pk"]["S"]) for record in records]
