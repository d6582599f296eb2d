"""A server counts its requests by operation, table and result."""

from __future__ import annotations

import json
from typing import Literal

from prometheus_client import CollectorRegistry

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.model.scope import Scope
from stator.server.metered_backend import MeteredBackend

SCOPE = Scope("000000000000", "us-east-1")
TABLE = {
    "TableName": "orders",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PROVISIONED",
    "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
}


def backend(registry: CollectorRegistry, throughput: Literal["off", "enforced"]) -> MeteredBackend:
    engine = Engine.open(throughput=throughput, clock=VirtualClock())
    made = MeteredBackend(engine, registry)
    made.submit("CreateTable", json.dumps(TABLE).encode(), SCOPE)
    return made


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(name, labels)


def test_requests_are_counted_by_operation_table_and_result() -> None:
    registry = CollectorRegistry()
    metered = backend(registry, "off")
    put = {"Item": {"pk": {"S": "a"}}}
    arn = "arn:aws:dynamodb:us-east-1:000000000000:table/orders"
    for body in (
        {"TableName": "orders", **put},
        {**put, "TableName": arn},
        {"TableName": "ghost", **put},
    ):
        metered.submit("PutItem", json.dumps(body).encode(), SCOPE)
    batch = {"RequestItems": {"orders": [{"PutRequest": put}]}}
    metered.submit("BatchWriteItem", json.dumps(batch).encode(), SCOPE)
    metered.submit("ListTables", b"{}", SCOPE)
    name = "stator_server_requests_total"
    assert value(registry, name, operation="PutItem", table="orders", result="ok") == 2
    missing = {"operation": "PutItem", "table": "ghost", "result": "ResourceNotFoundException"}
    assert value(registry, name, **missing) == 1
    assert value(registry, name, operation="BatchWriteItem", table="orders", result="ok") == 1
    assert value(registry, name, operation="ListTables", table="", result="ok") == 1
    counted = "stator_server_request_seconds_count"
    assert value(registry, counted, operation="PutItem", table="orders") == 2


def test_refusals_are_counted_by_reason() -> None:
    registry = CollectorRegistry()
    metered = backend(registry, "enforced")
    body = json.dumps({"TableName": "orders", "Item": {"pk": {"S": "a"}}}).encode()
    statuses = [metered.submit("PutItem", body, SCOPE).status for _ in range(1000)]
    refused = statuses.count(400)
    assert refused > 0
    name = "stator_server_throttles_total"
    reason = "TableWriteProvisionedThroughputExceeded"
    assert value(registry, name, table="orders", reason=reason) == refused
