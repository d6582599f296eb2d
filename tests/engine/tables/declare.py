"""Requests that declare tables, and helpers to create and inspect them."""

from __future__ import annotations

from typing import Any

import pytest

from stator.engine import Engine
from stator.errors import ServiceError, ValidationFailed

POVI = "One or more parameter values were invalid: "
ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/"
REFER = (
    "Refer to the Amazon DynamoDB Developer Guide for current limits and how to request "
    "higher limits."
)


def keys(*names: str, ranges: tuple[str, ...] = ()) -> list[dict[str, str]]:
    return [{"AttributeName": name, "KeyType": "HASH"} for name in names] + [
        {"AttributeName": name, "KeyType": "RANGE"} for name in ranges
    ]


def attributes(**kinds: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in kinds.items()]


def units(read: int, write: int) -> dict[str, int]:
    return {"ReadCapacityUnits": read, "WriteCapacityUnits": write}


def on_demand(name: str = "orders", **changes: Any) -> dict[str, Any]:
    """CreateTable of a table with ``pk``, billed on demand; None leaves a member out."""
    request: dict[str, Any] = {
        "TableName": name,
        "KeySchema": keys("pk"),
        "AttributeDefinitions": attributes(pk="S"),
        "BillingMode": "PAY_PER_REQUEST",
    }
    return {member: value for member, value in (request | changes).items() if value is not None}


def provisioned(
    name: str = "orders", read: int = 5, write: int = 5, **changes: Any
) -> dict[str, Any]:
    return on_demand(
        name, **{"BillingMode": None, "ProvisionedThroughput": units(read, write)} | changes
    )


def index(
    name: str, schema: list[dict[str, str]], projection: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    return {
        "IndexName": name,
        "KeySchema": schema,
        "Projection": {"ProjectionType": "ALL"} if projection is None else projection,
        **more,
    }


def create_index(name: str, attribute: str, **more: Any) -> dict[str, Any]:
    """Members of an UpdateTable request that adds a global index on one attribute."""
    return {
        "AttributeDefinitions": attributes(**{attribute: "S"}),
        "GlobalSecondaryIndexUpdates": [{"Create": index(name, keys(attribute), **more)}],
    }


def describe(engine: Engine, name: str = "orders") -> dict[str, Any]:
    description: dict[str, Any] = engine.call("DescribeTable", {"TableName": name})["Table"]
    return description


def global_index(engine: Engine, name: str, table: str = "orders") -> dict[str, Any]:
    found = describe(engine, table)["GlobalSecondaryIndexes"]
    return next(index for index in found if index["IndexName"] == name)


def refusal(
    engine: Engine,
    operation: str,
    request: dict[str, Any],
    error: type[ServiceError] = ValidationFailed,
) -> str:
    """The message that the request is refused with; another error, or none, fails the test."""
    with pytest.raises(ServiceError) as caught:
        engine.call(operation, request)
    assert caught.type is error, f"{caught.type.__name__}: {caught.value}"
    return caught.value.message
