"""What is told about calls: sums by pattern, log lines, spans."""

from __future__ import annotations

import logging

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from stator import connect
from stator.errors import ItemExists
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
        and put.attributes["aws.dynamodb.consumed_write_units"] == 1.0
    )
    assert put.end_time is not None and put.start_time is not None and put.end_time > put.start_time
    assert not create.status.is_ok


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
