"""Topics of a real Kafka for tests: creating them, producing, and what a group has committed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import uuid4

from confluent_kafka import Consumer, Producer, TopicPartition
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
