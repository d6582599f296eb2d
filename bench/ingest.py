"""Measure an ingest from a real Kafka: records per second with each guard, beside a plain consumer.

    python -m bench.ingest --kafka localhost:9092 [--records 20000] [--keys 4000]

One process reads one topic and writes to an engine in memory that another process serves over
HTTP. The plain consumer is what most programs are: confluent-kafka, and boto3's batch_writer,
without a condition. Each figure is from the start of the consumer until its last commit. All run
one after the other on the same machine, so trust the ratios.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.console import Console
from rich.table import Table

from bench import machine
from stator import Db, Design, Entity, Query, connect, find, ident, read
from stator.data import Transaction
from stator.pipeline import Ingest, KafkaOptions

console = Console()
PARTITIONS = 4


class Reading(Entity):
    meter: str = ident()
    value: int
    at: int
    note: str = ""


class Total(Entity):
    meter: str = ident()
    readings: int = 0
    sum: int = 0


@read()
def reading(meter: str) -> Query[Reading]:
    return find(Reading).where(Reading.meter == meter)


@read()
def total(meter: str) -> Query[Total]:
    return find(Total).where(Total.meter == meter)


meters = Design("meters", [Reading, Total], [reading, total])
Subject = Callable[[str, str, str, int], float]


@contextmanager
def served() -> Iterator[str]:
    """An engine in memory, in a process of its own."""
    command = [sys.executable, "-m", "stator", "serve", "--memory", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield json.loads(server.stdout.readline())["url"]
        finally:
            server.terminate()


def fill(servers: str, records: int, keys: int) -> str:
    """Produce the records of a new topic: each meter in one partition, in a random order."""
    topic = f"bench-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    chance = random.Random(1)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20})
    for number in range(records):
        meter = f"meter-{chance.randrange(keys):08}"
        value = {"meter": meter, "value": number % 100, "at": number, "note": "x" * 100}
        producer.produce(topic, json.dumps(value), meter)
        producer.poll(0)
    producer.flush()
    return topic


# -- subjects: each returns the seconds it took


def plain(servers: str, topic: str, url: str, records: int) -> float:
    """A consumer that writes batches with boto3 and commits after each."""
    resource = boto3.resource(
        "dynamodb",
        endpoint_url=url,
        region_name="eu-west-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
    )
    table = resource.create_table(
        TableName="plain",
        KeySchema=[{"AttributeName": "meter", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "meter", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    started = time.perf_counter()
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": uuid4().hex,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    done = 0
    while done < records:
        messages = consumer.consume(1000, 0.2)
        with table.batch_writer(overwrite_by_pkeys=["meter"]) as batch:
            for message in messages:
                batch.put_item(Item=json.loads(message.value() or b"", parse_float=Decimal))
        if messages:
            done += len(messages)
            consumer.commit(asynchronous=False)
    took = time.perf_counter() - started
    consumer.close()
    return took


def putting(**options: Any) -> Subject:
    def run(servers: str, topic: str, url: str, records: int) -> float:
        app = Ingest(meters, uuid4().hex)
        app.put(Reading, topic=topic, **options)
        return ingest(app, servers, url)

    return run


def folding(servers: str, topic: str, url: str, records: int) -> float:
    app = Ingest(meters, uuid4().hex)

    @app.fold(Total, topic=topic, by=lambda event: {"meter": event["meter"]})
    def add(event: dict[str, Any], into: Total) -> None:
        into.readings += 1
        into.sum += event["value"]

    return ingest(app, servers, url)


def handling(servers: str, topic: str, url: str, records: int) -> float:
    app = Ingest(meters, uuid4().hex)

    @app.on(topic)
    def add(event: dict[str, Any], tx: Transaction) -> None:
        with tx.update(Total, meter=event["meter"], or_create=True) as into:
            into.readings += 1
            into.sum += event["value"]

    return ingest(app, servers, url)


def ingest(app: Ingest, servers: str, url: str) -> float:
    with connect(meters, url) as db:
        db.ensure()
        started = time.perf_counter()
        with app.start(db, KafkaOptions(servers)) as running:
            running.catch_up(600)
            took = time.perf_counter() - started
            progress = running.progress()
        check(db, progress.dead)
        return took


def check(db: Db, dead: int) -> None:
    if dead:
        raise SystemExit(f"{dead} records became dead letters")


SUBJECTS: dict[str, Subject] = {
    "boto3 batch_writer": plain,
    "put, position": putting(),
    "put, version": putting(version=Reading.at),
    "put, id": putting(guard="id"),
    "put, checksum": putting(guard="checksum"),
    "put, none": putting(guard="none"),
    "fold": folding,
    "handler, transaction": handling,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", required=True, help="bootstrap servers")
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--keys", type=int, default=0, help="default: as many as records")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    keys = given.keys or given.records
    topic = fill(given.kafka, given.records, keys)
    console.print(f"{machine.describe()}; {given.records:,} records of {keys:,} keys")
    best: dict[str, float] = {}
    for _ in range(given.rounds):
        for name, subject in SUBJECTS.items():
            with served() as url:
                rate = given.records / subject(given.kafka, topic, url, given.records)
            best[name] = max(best.get(name, 0.0), rate)
    shown = Table("subject", "records/s", "beside batch_writer")
    for name, rate in best.items():
        shown.add_row(name, f"{rate:,.0f}", f"{rate / best['boto3 batch_writer']:.2f}")
    console.print(shown)
    if given.json:
        given.json.write_text(json.dumps({"records": given.records, "keys": keys, **best}))


if __name__ == "__main__":
    main()
