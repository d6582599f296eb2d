"""Topics of a real Kafka for tests: creating them, producing, and what a group has committed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import uuid4

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic


def new_topic(address: str, partitions: int = 3) -> str:
    name = f"readings-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(30)
    return name


def produce(address: str, topic: str, values: Iterable[tuple[str | None, Any]]) -> None:
    """Produce keys with values: bytes as they are, None as a deletion, the rest as JSON."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 5})
    for key, value in values:
        raw = value if isinstance(value, bytes) or value is None else json.dumps(value)
        producer.produce(topic, raw, key)
        producer.poll(0)
    assert producer.flush(30) == 0


def committed(address: str, group: str, topic: str, partitions: Sequence[int]) -> list[int]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": group})
    try:
        found = consumer.committed([TopicPartition(topic, each) for each in partitions], 20)
    finally:
        consumer.close()
    return [max(0, each.offset) for each in found]


def read_all(address: str, topic: str, count: int) -> list[Any]:
    """The first ``count`` messages of a topic."""
    settings = {"group.id": uuid4().hex, "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": address, **settings})
    consumer.subscribe([topic])
    found: list[Any] = []
    try:
        while len(found) < count:
            message = consumer.poll(20)
            assert message is not None and message.error() is None
            found.append(message)
    finally:
        consumer.close()
    return found


def recreate(address: str, topic: str) -> None:
    """Delete a topic and create it again, with one partition."""
    admin = AdminClient({"bootstrap.servers": address})
    admin.delete_topics([topic])[topic].result(30)
    while topic in admin.list_topics(timeout=10).topics:
        time.sleep(0.05)
    while True:
        try:
            admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
            return
        except KafkaException:  # the old one is still being deleted
            time.sleep(0.1)
