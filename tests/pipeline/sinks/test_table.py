"""The target table ends up like the source, although changes repeat or arrive late."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stator import Db, Engine, TableSettings, connect
from stator.addresses import EngineTransport, TransportOptions
from stator.clock import VirtualClock
from stator.errors import ConfigurationError
from stator.pipeline import Change, StreamApp
from stator.pipeline.sinks.table import TableSink
from stator.pipeline.workers.handlers.change import Record
from stator.pipeline.workers.handlers.subscribers import HandlerScope
from stator.testing import Fault, Faults, FaultyTransport, InterceptedCall

from ...dynamodb_local import dynamodb_local
from ..shop import Customer, Order, shop
from .worker_steps import ORDERS, QUICK, ROUNDS, Crashing, parked, work, write_orders


@pytest.fixture
def other() -> Iterator[Db]:
    """The same tables on another engine."""
    with Engine.open() as engine, connect(shop, engine) as opened:
        opened.ensure()
        yield opened


def items(db: Db) -> dict[str, dict[str, Any]]:
    """The items without the sink's own attributes, and without tombstones."""
    found = db.call("Scan", {"TableName": "shop"})["Items"]
    return {
        item["PK"]["S"]: {name: value for name, value in item.items() if name != "_sequence"}
        for item in found
        if "_deleted" not in item
    }


def test_the_target_ends_up_like_the_source(app: StreamApp, db: Db, other: Db) -> None:
    app.add(TableSink("copy", other))
    write_orders(db)
    db.put(Customer(customer_id="c1", name="Anna"))
    db.delete(Order, order_id="o3")
    work(app, db)
    assert len(items(db)) == ORDERS
    assert items(other) == items(db)
    found = other.get(Order, order_id="o1")
    assert found is not None and found.total == ROUNDS - 1


def test_the_target_can_be_another_implementation_over_http(app: StreamApp, db: Db) -> None:
    options: TransportOptions = {
        "region": "us-east-1",
        "access_key_id": "test",
        "secret_access_key": "test",
    }
    with dynamodb_local() as address, connect(shop, address, **options) as far:
        far.ensure()
        app.add(Crashing(TableSink("copy", address, connection=options), crashes=1))
        write_orders(db)
        db.delete(Order, order_id="o3")
        work(app, db)
        assert items(far) == items(db)


def test_a_tombstone_keeps_a_late_change_out_and_expires(app: StreamApp, db: Db, other: Db) -> None:
    sink = TableSink("copy", other)
    kept: list[Any] = []

    class Keeping(Crashing):
        def handle(self, records: Any, scope: HandlerScope) -> Any:
            kept.append((list(records), scope))
            return super().handle(records, scope)

    app.add(Keeping(sink, crashes=0))
    db.put(Order(order_id="o1", total=1))
    db.delete(Order, order_id="o1")
    work(app, db)
    [tombstone] = other.call("Scan", {"TableName": "shop"})["Items"]
    assert tombstone["_deleted"] == {"BOOL": True} and "total" not in tombstone
    assert int(tombstone["expires"]["N"]) == pytest.approx(db.context.now() + 48 * 3600, abs=60)
    records: list[Record] = [record for batch, _ in kept for record in batch]
    late = HandlerScope(db.context, "going-out", "shard", 1, lambda: None)
    assert db.run(sink.handle(records[:1], late)) == []
    assert items(other) == {}
    db.put(Order(order_id="o1", total=2))
    work(app, db)
    assert items(other) == items(db)


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_any_replay_in_any_order_has_the_same_result(data: st.DataObject) -> None:
    with (
        Engine.open() as engine,
        connect(shop, engine) as db,
        Engine.open() as second,
        connect(shop, second) as other,
    ):
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        other.ensure()
        app = StreamApp(shop, "going-out")
        records: list[Record] = []
        sink = TableSink("copy", other)

        class Keeping(Crashing):
            def handle(self, given: Any, scope: HandlerScope) -> Any:
                records.extend(given)
                return super().handle(given, scope)

        app.add(Keeping(sink, crashes=0))
        for name, total in data.draw(
            st.lists(st.tuples(st.sampled_from("ab"), st.integers(-3, 9)), min_size=1, max_size=8)
        ):
            if total < 0:
                db.delete(Order, order_id=name)
            else:
                db.put(Order(order_id=name, total=total))
        work(app, db)
        scope = HandlerScope(db.context, "going-out", "shard", 1, lambda: None)
        if records:
            for record in data.draw(st.lists(st.sampled_from(records), max_size=12)):
                assert db.run(sink.handle([record], scope)) == []
        assert items(other) == items(db)


def test_a_transform_returns_the_items_of_the_target(
    app: StreamApp, db: Db, engine: Engine
) -> None:
    """The target has other keys and is beside the source."""
    db.call(
        "CreateTable",
        {
            "TableName": "totals",
            "KeySchema": [{"AttributeName": "order", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "order", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )

    def total(change: Change[Order]) -> Any:
        entity = change.new or change.old
        assert entity is not None
        if entity.order_id == "bad":
            return {"id": "no key"}
        return (
            {"order": entity.order_id, "total": entity.total, "tags": ["a"]}
            if entity.total
            else None
        )

    app.add(
        TableSink(
            "copy", EngineTransport(engine, owned=False), "totals", only=Order, transform=total
        )
    )
    for number in range(3):
        db.put(Order(order_id=f"o{number}", total=number))
    db.put(Order(order_id="bad"))
    db.delete(Order, order_id="o2")
    work(app, db)
    found = {item["order"]["S"]: item for item in db.call("Scan", {"TableName": "totals"})["Items"]}
    assert set(found) == {"o1", "o2"} and "_deleted" in found["o2"]
    assert found["o1"]["total"] == {"N": "1"} and found["o1"]["tags"] == {"L": [{"S": "a"}]}
    [key] = parked(app, db)
    assert "bad" in key.key and "has no 'order'" in key.error


def shaky(call: InterceptedCall) -> Fault | None:
    """Two writes in five are throttled or find no connection."""
    writes = ("PutItem", "BatchExecuteStatement")
    if call.operation not in writes or call.number % 5 not in (1, 3):
        return None
    return Fault("throttled" if call.number % 5 == 1 else "lost request")


def test_the_sink_waits_during_throttling_and_lost_connections(
    app: StreamApp, db: Db, other: Db
) -> None:
    transport = other.runner.transport
    assert isinstance(transport, EngineTransport)
    app.add(TableSink("copy", FaultyTransport(transport, shaky, parallel=True)))
    write_orders(db)
    work(app, db)
    assert items(other) == items(db)
    assert parked(app, db) == []


@pytest.mark.parametrize("seed", range(8))
def test_the_target_ends_up_like_the_source_through_faults_of_every_kind(
    app: StreamApp, db: Db, other: Db, seed: int
) -> None:
    faults = Faults.mixed(seed, 0.4)
    clock = VirtualClock()
    transport = FaultyTransport(other.runner.transport, faults, clock=clock)
    app.add(Crashing(TableSink("copy", transport), crashes=2))
    write_orders(db)
    db.put(Customer(customer_id="c1", name="Anna"))
    db.delete(Order, order_id="o3")
    work(app, db, replace(QUICK, max_attempts=100))
    assert transport.injected
    assert items(other) == items(db)
    assert parked(app, db) == []


def test_new_items_share_requests(app: StreamApp, db: Db, other: Db) -> None:
    operations: list[str] = []

    def see(call: InterceptedCall) -> Fault | None:
        operations.append(call.operation)
        return None

    transport = FaultyTransport(other.runner.transport, see)
    app.add(TableSink("copy", transport))
    for number in range(100):
        db.put(Order(order_id=f"o{number}", total=1))
    work(app, db)
    assert items(other) == items(db)
    assert "PutItem" not in operations
    assert operations.count("BatchExecuteStatement") < 100


def test_the_sink_waits_for_a_missing_table(app: StreamApp, db: Db) -> None:
    with Engine.open() as engine, connect(shop, engine) as late:
        app.add(TableSink("copy", late))
        with app.start(db) as running:
            write_orders(db)
            late.ensure()
            running.catch_up()
        db.put(Order(order_id="o1", total=77))
        work(app, db)
        found = late.get(Order, order_id="o1")
        assert found is not None and found.total == 77
    assert parked(app, db) == []


@pytest.mark.parametrize("deleted", [{"BOOL": True}, {"BOOL": False}, {"NULL": True}])
def test_only_the_tombstones_of_a_sink_are_hidden(
    app: StreamApp, db: Db, other: Db, deleted: Any
) -> None:
    app.add(TableSink("copy", other))
    db.put(Order(order_id="gone"))
    db.delete(Order, order_id="gone")
    work(app, db)
    assert other.get(Order, order_id="gone") is None
    other.put(Order(order_id="o1", total=5))  # another program marks items in its own way
    [item] = [
        each
        for each in other.call("Scan", {"TableName": "shop"})["Items"]
        if "_sequence" not in each
    ]
    other.call("PutItem", {"TableName": "shop", "Item": item | {"_deleted": deleted}})
    found = other.get(Order, order_id="o1")
    assert found is not None and found.total == 5
    assert [each.order_id for each in other.scan(Order, allow=True)] == ["o1"]


def test_invalid_arguments_are_refused_at_once(other: Db) -> None:
    with pytest.raises(ConfigurationError, match="not events"):
        TableSink("copy", other, images="dynamodb")
    with pytest.raises(ConfigurationError, match="are lost when the worker exits"):
        TableSink("copy", "memory")
    with pytest.raises(ConfigurationError, match="not an address"):
        TableSink("copy", other, connection={"region": "eu-west-1"})
    with pytest.raises(ConfigurationError, match="threads"):
        TableSink("copy", other, threads=0)
