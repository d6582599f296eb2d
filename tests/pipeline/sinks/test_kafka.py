"""Changes into a real Apache Kafka, which is killed in between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from stator import Db
from stator.errors import ConfigurationError
from stator.pipeline import Change, StreamApp
from stator.pipeline.sinks.kafka import KafkaSink

from ...kafka_server import KafkaServer, kafka_server
from ..shop import Customer, Order
from .worker_steps import (
    ORDERS,
    QUICK,
    ROUNDS,
    WRITTEN,
    Crashing,
    eventually,
    first_of_each,
    parked,
    totals,
    work,
    write_orders,
)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    with kafka_server(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture
def topic(kafka: KafkaServer) -> str:
    """A topic with three partitions that accepts only small messages."""
    name = f"changes-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": kafka.address})
    admin.create_topics([NewTopic(name, 3, 1, config={"max.message.bytes": "20000"})])[name].result(
        30
    )
    return name


def read(kafka: KafkaServer, topic: str, count: int) -> list[Any]:
    """At least ``count`` messages, in the order of their partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.address,
            "group.id": uuid4().hex,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe([topic])
    found: list[Any] = []
    ended: set[Any] = set()
    try:
        while len(ended) < 3 or len(found) < count:
            message = consumer.poll(20)
            assert message is not None, f"{len(found)} messages"
            if message.error():
                ended.add(message.partition())
            else:
                found.append(message)
    finally:
        consumer.close()
    return found


def events(messages: list[Any]) -> list[Any]:
    return [json.loads(message.value()) for message in messages]


def test_all_changes_arrive_in_the_order_of_their_items(
    app: StreamApp, db: Db, kafka: KafkaServer, topic: str
) -> None:
    app.add(KafkaSink("events", kafka.address, topic))
    write_orders(db)
    work(app, db)
    messages = read(kafka, topic, ORDERS * ROUNDS)
    assert totals(events(messages)) == WRITTEN
    assert {message.partition() for message in messages} == {0, 1, 2}
    first = messages[0]
    event = json.loads(first.value())
    assert dict(first.headers()) == {
        "id": event["id"].encode(),
        "kind": b"INSERT",
        "table": b"shop",
    }
    assert "ORDER" in first.key().decode().upper()
    partitions: dict[bytes, set[int]] = {}
    for message in messages:
        partitions.setdefault(message.key(), set()).add(message.partition())
    assert len(partitions) == ORDERS and all(len(each) == 1 for each in partitions.values())


def test_a_function_chooses_the_topic(
    app: StreamApp, db: Db, kafka: KafkaServer, topic: str
) -> None:
    def chosen(change: Change[Any]) -> str:
        if change.entity == "Customer" and change.new and change.new.name == "nobody":
            raise ValueError("nobody has no topic")
        return f"{topic}-{change.entity}"

    app.add(KafkaSink("events", kafka.address, chosen, transform=lambda change: change.entity))
    db.put(Order(order_id="o1"))
    db.put(Customer(customer_id="c1", name="Anna"))
    db.put(Customer(customer_id="c2", name="nobody"))
    work(app, db)
    assert [each.value() for each in read(kafka, f"{topic}-Order", 1)] == [b"Order"]
    assert [each.value() for each in read(kafka, f"{topic}-Customer", 1)] == [b"Customer"]
    [key] = parked(app, db)
    assert "nobody has no topic" in key.error


@pytest.mark.parametrize("limit", [{"message.max.bytes": 5000}, {}])
def test_a_message_that_kafka_refuses_is_parked(
    app: StreamApp, db: Db, kafka: KafkaServer, topic: str, limit: dict[str, Any]
) -> None:
    """The client refuses by its own limit, the broker by that of the topic."""
    app.add(KafkaSink("events", kafka.address, topic, config=limit))
    write_orders(db)
    db.put(Order(order_id="bad", total=1))
    db.put(Order(order_id="bad", total=2, status="x" * 30_000))
    db.put(Order(order_id="bad", total=3))
    work(app, db)
    found = first_of_each(events(read(kafka, topic, ORDERS * ROUNDS + 1)))
    assert totals(found) == {**WRITTEN, "bad": [1]}
    [key] = parked(app, db)
    assert "bad" in key.key and key.count == 2 and "SinkRefused" in key.error


def test_after_a_crash_the_same_events_are_repeated(
    app: StreamApp, db: Db, kafka: KafkaServer, topic: str
) -> None:
    app.add(Crashing(KafkaSink("events", kafka.address, topic), crashes=1))
    write_orders(db)
    work(app, db)
    found = events(read(kafka, topic, ORDERS * ROUNDS + 1))
    assert len(found) > ORDERS * ROUNDS
    assert totals(first_of_each(found)) == WRITTEN


@pytest.mark.parametrize("how", ["stopped", pytest.param("killed", marks=pytest.mark.slow)])
def test_the_sink_waits_while_the_broker_is_down(
    app: StreamApp,
    db: Db,
    kafka: KafkaServer,
    topic: str,
    caplog: pytest.LogCaptureFixture,
    how: str,
) -> None:
    app.add(KafkaSink("events", kafka.address, topic, timeout_seconds=2))
    with app.start(db, QUICK) as running:
        write_orders(db)
        running.catch_up()
        kafka.kill() if how == "killed" else kafka.pause()
        for number in range(ORDERS):
            db.put(Order(order_id=f"o{number}", total=ROUNDS))
        eventually(lambda: "Kafka did not accept" in caplog.text)
        for number in range(ORDERS):
            db.put(Order(order_id=f"o{number}", total=ROUNDS + 1))
        kafka.start() if how == "killed" else kafka.go_on()
        running.catch_up()
    found = first_of_each(events(read(kafka, topic, ORDERS * (ROUNDS + 2))))
    assert totals(found) == {name: list(range(ROUNDS + 2)) for name in WRITTEN}
    assert parked(app, db) == []


def test_invalid_arguments_are_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="must not set 'acks'"):
        KafkaSink("events", "127.0.0.1:1", "topic", config={"acks": 0})
    with pytest.raises(ConfigurationError, match="refuses its configuration"):
        KafkaSink("events", "127.0.0.1:1", "topic", config={"no.such": 1})._producer.get()
