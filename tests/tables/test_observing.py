"""What is told about calls: sums by pattern, log lines, spans."""

from __future__ import annotations

import json
import logging

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from stator import connect
from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import ItemExists, SlowDown
from stator.tables.observers import CallRecord
from stator.tables.telemetry import log_calls, trace_calls

from .shop import Product, order, orders_of_user, shop, user


def test_capacity_is_summed_by_pattern() -> None:
    db = connect(shop(), measure=True)
    assert db.meter is not None
    db.create(user())
    db.write_many(order(n) for n in range(50))
    for _ in range(3):
        list(db.fetch(orders_of_user("u1")))
    usage = db.meter.by_label
    assert usage["orders_of_user"].calls == 3 and usage["orders_of_user"].read_units > 0
    assert usage["batch"].calls == 2 and usage["batch"].write_units >= 50
    assert usage["create User"].write_units >= 4  # a transaction of the item and its guard
    with pytest.raises(ItemExists):
        db.create(user())
    assert usage["create User"].errors == 1


def test_calls_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    db = connect(shop(), observers=[log_calls(logging.getLogger("calls"), level=logging.INFO)])
    with caplog.at_level(logging.INFO):
        db.put(Product(sku="s1"))
        with pytest.raises(ItemExists):
            db.create(Product(sku="s1"))
    first, second = caplog.records
    assert "put Product PutItem on shop" in first.getMessage() and first.levelno == logging.INFO
    assert "ConditionFailed" in second.getMessage() and second.levelno == logging.WARNING


def test_calls_are_spans() -> None:
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    db = connect(shop(), observers=[trace_calls(provider.get_tracer("test"))])
    db.put(Product(sku="s1"))
    with pytest.raises(ItemExists):
        db.create(Product(sku="s1"))
    put, create = spans.get_finished_spans()
    assert put.name == "PutItem shop" and put.attributes is not None
    assert (
        put.attributes["db.query.summary"] == "put Product"
        and put.attributes["stator.write_units"] == 1.0
    )
    assert put.end_time is not None and put.start_time is not None and put.end_time > put.start_time
    assert not create.status.is_ok
    assert create.attributes is not None
    assert create.attributes["db.response.status_code"] == "ConditionalCheckFailedException"


def test_a_span_has_the_attributes_of_the_conventions() -> None:
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    db = connect(shop(), observers=[trace_calls(provider.get_tracer("test"))])
    db.write_many(order(n) for n in range(3))
    list(db.fetch(orders_of_user("u1")))
    query = spans.get_finished_spans()[-1].attributes
    assert query is not None
    assert query["db.system.name"] == "aws.dynamodb"
    assert query["aws.dynamodb.table_names"] == ("shop",) and query["db.collection.name"] == "shop"
    assert query["aws.dynamodb.count"] == query["aws.dynamodb.scanned_count"] == 3
    consumed = query["aws.dynamodb.consumed_capacity"]
    assert isinstance(consumed, tuple) and len(consumed) == 1
    assert json.loads(str(consumed[0]))["TableName"] == "shop"


def test_an_observer_sees_every_call() -> None:
    seen: list[CallRecord] = []
    db = connect(shop(), observers=[seen.append])
    db.get(Product, sku="s1")
    [record] = seen
    assert (record.operation, record.label, record.table, record.error) == (
        "GetItem",
        "get Product",
        "shop",
        None,
    )


def test_a_record_tells_items_pages_and_units_by_index() -> None:
    seen: list[CallRecord] = []

    class ByIndex:
        by_index = True

        def __call__(self, record: CallRecord) -> None:
            seen.append(record)

    db = connect(shop(), observers=[ByIndex()])
    db.write_many(order(n) for n in range(3))
    list(db.fetch(orders_of_user("u1")))
    batch, query = seen
    assert not batch.is_page and batch.item_count == 0
    assert sum(each.units for each in batch.used) == batch.write_units
    assert query.is_page and (query.item_count, query.scanned_count) == (3, 3)
    assert sum(each.units for each in query.used) == query.read_units


def test_a_record_tells_retries_and_every_refusal() -> None:
    clock = VirtualClock()
    engine = Engine.open(throughput="enforced", clock=clock)
    seen: list[CallRecord] = []
    db = connect(shop(), engine, clock=clock, observers=[seen.append], max_attempts=4)
    product = Product(sku="lamp")
    with pytest.raises(SlowDown):
        for _ in range(100_000):
            db.put(product)
    last = seen[-1]
    assert last.error is not None and last.attempts == 4
    assert len(last.throttles) == 4
    assert {each.scope for each in last.throttles} == {"key range"}
