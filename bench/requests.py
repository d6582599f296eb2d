"""The requests to send: 1 KB items in a table with partition key, sort key and one global index."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

TABLE = "bench"
GROUP = 20  # items per partition, which one Query returns

CREATE: dict[str, Any] = {
    "TableName": TABLE,
    "KeySchema": [
        {"AttributeName": "PK", "KeyType": "HASH"},
        {"AttributeName": "SK", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "PK", "AttributeType": "S"},
        {"AttributeName": "SK", "AttributeType": "S"},
        {"AttributeName": "GSI1PK", "AttributeType": "S"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "GSI1",
            "KeySchema": [
                {"AttributeName": "GSI1PK", "KeyType": "HASH"},
                {"AttributeName": "SK", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "BillingMode": "PAY_PER_REQUEST",
}


def key(number: int) -> dict[str, Any]:
    return {"PK": {"S": f"USER#{number // GROUP:08d}"}, "SK": {"S": f"ORDER#{number % GROUP:08d}"}}


def item(number: int) -> dict[str, Any]:
    """About 1 KB: keys, a number, a flag, a list, and text."""
    return {
        **key(number),
        "GSI1PK": {"S": f"STATUS#{number % 1000}"},
        "total": {"N": str(number % 10_000)},
        "paid": {"BOOL": number % 2 == 0},
        "tags": {"L": [{"S": "red"}, {"S": "large"}]},
        **{f"field{at}": {"S": f"{number:08d}" * 15} for at in range(7)},
    }


@dataclass(frozen=True, slots=True)
class Workload:
    """``body(number)`` returns one request; ``target`` is the least ratio to the fastest peer."""

    name: str
    operation: str
    body: Callable[[int, int], dict[str, Any]]
    target: float | None = None
    distinct: int = 20_000


def _get(number: int, items: int) -> dict[str, Any]:
    return {"TableName": TABLE, "Key": key(_scattered(number, items))}


def _query(number: int, items: int) -> dict[str, Any]:
    return query_partition(_scattered(number, items) // GROUP)


def query_partition(partition: int) -> dict[str, Any]:
    return {
        "TableName": TABLE,
        "KeyConditionExpression": "PK = :p",
        "ExpressionAttributeValues": {":p": key(partition * GROUP)["PK"]},
    }


def _put(number: int, items: int) -> dict[str, Any]:
    return {"TableName": TABLE, "Item": item(_scattered(number, items))}


def _update(number: int, items: int) -> dict[str, Any]:
    return {
        "TableName": TABLE,
        "Key": key(_scattered(number, items)),
        "UpdateExpression": "SET #t = #t + :one, field0 = :text",
        "ExpressionAttributeNames": {"#t": "total"},
        "ExpressionAttributeValues": {":one": {"N": "1"}, ":text": {"S": "updated" * 15}},
    }


def batch_write(number: int, items: int) -> dict[str, Any]:
    first = number * 25
    return {
        "RequestItems": {TABLE: [{"PutRequest": {"Item": item(first + at)}} for at in range(25)]}
    }


def _batch_put(number: int, items: int) -> dict[str, Any]:
    return batch_write(number % (items // 25), items)


def _batch_get(number: int, items: int) -> dict[str, Any]:
    first = _scattered(number, items)
    return {
        "RequestItems": {TABLE: {"Keys": [key((first + at * 37) % items) for at in range(100)]}}
    }


def _transact(number: int, items: int) -> dict[str, Any]:
    first = _scattered(number * 3, items)
    return {
        "TransactItems": [
            {"Put": {"TableName": TABLE, "Item": item((first + at) % items)}} for at in range(3)
        ]
    }


def _scattered(number: int, items: int) -> int:
    return number * 7919 % items


WORKLOADS = (
    Workload("GetItem", "GetItem", _get, 5),
    Workload("Query of 20", "Query", _query, 5),
    Workload("PutItem", "PutItem", _put, 3, 8_000),
    Workload("UpdateItem", "UpdateItem", _update, 3),
    Workload("BatchWriteItem 25", "BatchWriteItem", _batch_put, 4, 800),
    Workload("BatchGetItem 100", "BatchGetItem", _batch_get, 4, 2_000),
    Workload("TransactWriteItems 3", "TransactWriteItems", _transact, 4, 3_000),
)


def bodies(workload: Workload, items: int) -> Iterator[str]:
    for number in range(workload.distinct):
        yield json.dumps(workload.body(number, items), separators=(",", ":"))
