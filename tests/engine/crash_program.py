"""A long-running writer that can be killed anywhere, and the model of what must survive."""

from __future__ import annotations

import random
from multiprocessing.connection import Connection
from typing import Any

from stator.engine import Engine

TABLE = "crash"
CREATE: dict[str, Any] = {
    "TableName": TABLE,
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "N"},
        {"AttributeName": "g", "AttributeType": "S"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-g",
            "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
    "LocalSecondaryIndexes": [
        {
            "IndexName": "by-pk-g",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "g", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
}

Model = dict[tuple[str, str], dict[str, Any]]
Step = tuple[str, dict[str, Any]]


def step(seed: int, number: int) -> Step:
    """The request a writer sends as its ``number``th."""
    chance = random.Random(f"{seed}/{number}")
    kind = chance.choice(["put", "put", "update", "delete", "batch", "transact"])
    if kind == "put":
        return "PutItem", {"TableName": TABLE, "Item": _item(chance)}
    if kind == "delete":
        return "DeleteItem", {"TableName": TABLE, "Key": _key(chance)}
    if kind == "update":
        return "UpdateItem", {
            "TableName": TABLE,
            "Key": _key(chance),
            "UpdateExpression": "SET g = :g, v = :v",
            "ExpressionAttributeValues": {
                ":g": {"S": chance.choice("xyz")},
                ":v": {"N": str(number)},
            },
        }
    items = {(item["pk"]["S"], item["sk"]["N"]): item for item in (_item(chance) for _ in range(5))}
    if kind == "batch":
        return "BatchWriteItem", {
            "RequestItems": {TABLE: [{"PutRequest": {"Item": i}} for i in items.values()]}
        }
    return "TransactWriteItems", {
        "ClientRequestToken": f"{seed}-{number}",
        "TransactItems": [{"Put": {"TableName": TABLE, "Item": i}} for i in items.values()],
    }


def _key(chance: random.Random) -> dict[str, Any]:
    return {"pk": {"S": chance.choice("abcd")}, "sk": {"N": str(chance.randrange(8))}}


def _item(chance: random.Random) -> dict[str, Any]:
    item = {**_key(chance), "text": {"S": chance.choice("lmn") * chance.randrange(1, 400)}}
    if chance.random() < 0.7:
        item["g"] = {"S": chance.choice("xyz")}
    return item


def apply(model: Model, request: Step) -> None:
    operation, body = request
    match operation:
        case "PutItem":
            _put(model, body["Item"])
        case "DeleteItem":
            model.pop(_identity(body["Key"]), None)
        case "UpdateItem":
            values = body["ExpressionAttributeValues"]
            key: dict[str, Any] = body["Key"]
            item = {
                **model.get(_identity(key), key),
                "g": values[":g"],
                "v": values[":v"],
            }
            _put(model, item)
        case "BatchWriteItem":
            for write in body["RequestItems"][TABLE]:
                _put(model, write["PutRequest"]["Item"])
        case "TransactWriteItems":
            for action in body["TransactItems"]:
                _put(model, action["Put"]["Item"])


def _put(model: Model, item: dict[str, Any]) -> None:
    model[_identity(item)] = item


def _identity(key: dict[str, Any]) -> tuple[str, str]:
    return key["pk"]["S"], key["sk"]["N"]


def write_until_killed(path: str, seed: int, reports: Connection) -> None:
    """Open the folder, write, and report each acknowledged step. Never returns by itself."""
    engine = Engine.open(path)
    if TABLE not in engine.call("ListTables", {})["TableNames"]:
        engine.call("CreateTable", CREATE)
    reports.send(-1)
    number = 0
    while True:
        operation, body = step(seed, number)
        engine.call(operation, body)
        reports.send(number)
        number += 1


def contents(engine: Engine, index: str | None = None) -> list[dict[str, Any]]:
    request: dict[str, Any] = {"TableName": TABLE}
    if index is not None:
        request["IndexName"] = index
    found: list[dict[str, Any]] = []
    while True:
        page = engine.call("Scan", request)
        found += page["Items"]
        if "LastEvaluatedKey" not in page:
            return found
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
