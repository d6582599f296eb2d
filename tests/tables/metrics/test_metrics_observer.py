"""One observer counts calls for Prometheus and for OpenTelemetry, by pattern and entity."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry

from stator import connect, connect_async
from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import ItemExists, SlowDown
from stator.tables.metrics.metrics_observer import metrics_observer

from ..shop import Product, order, orders_of_user, shop, user


def samples(registry: CollectorRegistry, name: str) -> list[tuple[dict[str, str], float]]:
    return [
        (sample.labels, sample.value)
        for family in registry.collect()
        for sample in family.samples
        if sample.name == name
    ]


def total(registry: CollectorRegistry, name: str, **labels: str) -> float:
    return sum(
        value
        for found, value in samples(registry, name)
        if all(found[label] == wanted for label, wanted in labels.items())
    )


def test_calls_are_counted_by_pattern_and_entity() -> None:
    registry = CollectorRegistry()
    design = shop()
    db = connect(design, observers=[metrics_observer(design, registry=registry)], measure=True)
    db.create(user())
    db.write_many(order(n) for n in range(50))
    for _ in range(3):
        list(db.fetch(orders_of_user("u1")))
    with pytest.raises(ItemExists):
        db.create(user())
    assert db.meter is not None
    by_label = db.meter.by_label
    read = {"pattern": "orders_of_user", "entity": "Order"}
    assert total(registry, "stator_requests_total", **read) == 3
    assert total(registry, "stator_pages_total", pattern="orders_of_user") == 3
    assert total(registry, "stator_items_returned_total", pattern="orders_of_user") == 150
    assert total(registry, "stator_read_units_total", **read) == pytest.approx(
        by_label["orders_of_user"].read_units
    )
    assert total(registry, "stator_write_units_total", pattern="batch") == pytest.approx(
        by_label["batch"].write_units
    )
    created = {"pattern": "create User", "entity": "User"}
    assert total(registry, "stator_requests_total", result="ok", **created) == 1
    assert (
        total(registry, "stator_requests_total", result="TransactionCanceledException", **created)
        == 1
    )
    assert total(registry, "stator_request_seconds_count", pattern="orders_of_user") == 3
    assert total(registry, "stator_item_bytes_count") == 2, "one item of each batch"
    indexes = {labels["index"] for labels, _ in samples(registry, "stator_write_units_total")}
    assert "" in indexes and len(indexes) > 1, "index writes are counted apart"


async def counted_asynchronously(registry: CollectorRegistry) -> None:
    design = shop()
    async with await _opened(design, registry) as db:
        await db.put(Product(sku="lamp"))


async def _opened(design: Any, registry: CollectorRegistry) -> Any:
    return connect_async(design, observers=[metrics_observer(design, registry=registry)])


def test_an_async_db_feeds_the_same_observer() -> None:
    import asyncio

    registry = CollectorRegistry()
    asyncio.run(counted_asynchronously(registry))
    assert total(registry, "stator_requests_total", pattern="put Product", entity="Product") == 1


def throttled(registry: CollectorRegistry, **options: Any) -> None:
    clock = VirtualClock()
    engine = Engine.open(throughput="enforced", clock=clock)
    design = shop()
    observer = metrics_observer(design, registry=registry, clock=clock, **options)
    db = connect(design, engine, clock=clock, observers=[observer], max_attempts=3)
    with pytest.raises(SlowDown):
        for _ in range(100_000):
            db.put(Product(sku="lamp"))


def test_throttles_are_counted_by_reason_with_those_that_were_retried() -> None:
    registry = CollectorRegistry()
    throttled(registry)
    found = samples(registry, "stator_throttles_total")
    assert {labels["reason"] for labels, _ in found} == {"TableWriteKeyRangeThroughputExceeded"}
    retries = total(registry, "stator_retries_total", pattern="put Product")
    assert retries >= 2
    assert sum(value for _, value in found) == retries + 1, "the last refusal was not retried"


def test_the_busiest_keys_are_hashed_unless_asked() -> None:
    hashed, shown = CollectorRegistry(), CollectorRegistry()
    throttled(hashed)
    throttled(shown, show_keys=True)
    name = "stator_hot_key_units_per_second"
    [(labels, rate)] = samples(hashed, name)
    assert labels["table"] == "shop" and "lamp" not in labels["key"] and rate > 0
    [(labels, _)] = samples(shown, name)
    assert "lamp" in labels["key"]


def test_queries_and_batches_have_keys_too() -> None:
    registry = CollectorRegistry()
    design = shop()
    observer = metrics_observer(design, registry=registry, show_keys=True)
    db = connect(design, observers=[observer])
    db.write_many(Product(sku=f"s{n}") for n in range(3))
    keys = {labels["key"] for labels, _ in samples(registry, "stator_hot_key_units_per_second")}
    assert len(keys) == 3 and all("s" in key for key in keys)


def test_labels_are_capped() -> None:
    registry = CollectorRegistry()
    design = shop()
    db = connect(design, observers=[metrics_observer(design, registry=registry, max_labels=2)])
    db.put(Product(sku="s1"))
    db.get(Product, sku="s1")
    db.delete(Product, sku="s1")
    list(db.fetch(orders_of_user("u1")))
    patterns = {labels["pattern"] for labels, _ in samples(registry, "stator_requests_total")}
    assert patterns == {"put Product", "get Product", "other"}


def test_table_names_with_a_prefix_have_keys() -> None:
    registry = CollectorRegistry()
    design = shop()
    observer = metrics_observer(design, registry=registry, prefix="prod-")
    connect(design, prefix="prod-", observers=[observer]).put(Product(sku="s1"))
    [(labels, _)] = samples(registry, "stator_hot_key_units_per_second")
    assert labels["table"] == "prod-shop"


def test_opentelemetry_has_the_metrics_of_its_conventions() -> None:
    reader = InMemoryMetricReader()
    meter = MeterProvider(metric_readers=[reader]).get_meter("test")
    design = shop()
    db = connect(design, observers=[metrics_observer(design, meter=meter)])
    db.write_many(order(n) for n in range(3))
    list(db.fetch(orders_of_user("u1")))
    with pytest.raises(ItemExists):
        db.create(Product(sku="s1"))
        db.create(Product(sku="s1"))
    data = reader.get_metrics_data()
    assert data is not None
    metrics = {
        metric.name: metric
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    duration = metrics["db.client.operation.duration"]
    assert duration.unit == "s"
    attributes = [dict(point.attributes or {}) for point in duration.data.data_points]
    query = next(each for each in attributes if each["db.operation.name"] == "Query")
    assert query == {
        "db.system.name": "aws.dynamodb",
        "db.collection.name": "shop",
        "db.operation.name": "Query",
        "stator.pattern": "orders_of_user",
        "stator.entity": "Order",
    }
    assert "ConditionalCheckFailedException" in {each.get("error.type") for each in attributes}
    [rows] = [
        point
        for point in metrics["db.client.response.returned_rows"].data.data_points
        if dict(point.attributes or {})["stator.pattern"] == "orders_of_user"
    ]
    assert rows.sum == 3  # type: ignore[union-attr]
    assert metrics["stator.write_units"].unit == "{unit}"
