"""Router tests from a Kafka topic: they arrive twice, late and out of order, and count once.

Three producers send the results of speed tests. A producer that gets no answer sends again, so some
tests are in the topic twice. One producer was offline and sends yesterday's tests today.

What is kept:

- Every test, by its id. A test that arrives twice is refused: its item exists.
- The newest test of each router, by the time of the test. A late test does not replace it.
- A total for each provider: tests, megabits, regions. The producer's duplicates must not count, and
  a counter cannot see them: they are new records. So totals are counted from the stored tests, by a
  view that follows the table's changes. Each test is one item, so it counts once.
- How many records each producer sent, duplicates included: a fold, which counts each record once,
  whatever crashes.

    python examples/router_tests.py [ADDRESS] [KAFKA]

Without a Kafka, the records come from a list. With one, ``stator ingest examples/router_tests.py``
does what ``main`` does, for good.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterable
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import Any

from stator import Db, Design, Entity, Query, TableSettings, connect, find, ident, read
from stator.pipeline import (
    DeadRecordList,
    Ingest,
    SourceRecord,
    StreamApp,
    View,
    WorkerOptions,
    count,
    sum_of,
)

TOPIC = "router-tests"


class Test(Entity):
    test_id: str = ident()
    router: str
    isp: str
    region: str
    at: datetime
    mbps: int


class LastTest(Entity):
    """The newest test of a router."""

    router: str = ident()
    at: datetime
    mbps: int


class Producer(Entity):
    """What a producer has sent, duplicates included."""

    name: str = ident()
    records: int = 0
    regions: set[str] = field(default_factory=set)


@read()
def test_by_id(test_id: str) -> Query[Test]:
    return find(Test).where(Test.test_id == test_id)


@read()
def last_test(router: str) -> Query[LastTest]:
    return find(LastTest).where(LastTest.router == router)


@read()
def producer(name: str) -> Query[Producer]:
    return find(Producer).where(Producer.name == name)


fleet = Design("fleet", [Test, LastTest, Producer], [test_by_id, last_test, producer])

app = Ingest(fleet, "router-tests")
app.put(Test, topic=TOPIC, guard="id")
app.put(LastTest, topic=TOPIC, version=LastTest.at)


@app.fold(Producer, topic=TOPIC, by=lambda test: {"name": test["sent_by"]})
def count_sent(test: dict[str, Any], sender: Producer) -> None:
    sender.records += 1
    sender.regions.add(test["region"])


by_isp = View("by_isp", of=Test, by=Test.isp, tests=count(), megabits=sum_of(Test.mbps))
summaries = StreamApp(fleet, "summaries")
summaries.add(by_isp)


def messages(tests: int = 300, seed: int = 1) -> list[tuple[str, dict[str, Any]]]:
    """What three producers send: some tests twice, some late, none in order."""
    chance = random.Random(seed)
    start = datetime(2026, 11, 19, 12, tzinfo=UTC)
    sent: list[tuple[str, dict[str, Any]]] = []
    for number in range(tests):
        sender = number % 3
        late = timedelta(days=1) if sender == 2 and number % 2 else timedelta()
        router = f"r{chance.randrange(20)}"
        test = {
            "test_id": f"t{number}",
            "router": router,
            "isp": ("acme", "bolt")[number % 2],
            "region": ("north", "south", "west")[chance.randrange(3)],
            "at": (start + timedelta(seconds=number) - late).isoformat(),
            "mbps": 10 + number % 90,
            "sent_by": f"p{sender}",
        }
        sent += [(router, test)] * (2 if chance.random() < 0.2 else 1)
    chance.shuffle(sent)
    return sent


def records(sent: Iterable[tuple[str, dict[str, Any]]], partitions: int = 3) -> list[SourceRecord]:
    """The messages as records of a topic, each router in one partition."""
    offsets = [0] * partitions
    found: list[SourceRecord] = []
    for router, test in sent:
        at = int(router[1:]) % partitions
        value = json.dumps(test).encode()
        found.append(SourceRecord(TOPIC, at, offsets[at], router.encode(), value))
        offsets[at] += 1
    return found


def summarise(db: Db) -> dict[str, tuple[int, int]]:
    """Bring the totals of the providers up to date, and return tests and megabits of each."""
    with summaries.start(db, WorkerOptions(start="oldest")) as running:
        running.catch_up()
    rows = {isp: by_isp.on(db).get(isp=isp) for isp in ("acme", "bolt")}
    return {isp: (row.tests, row.megabits) for isp, row in rows.items() if row is not None}


def main(address: str = "memory", kafka: str | None = None) -> None:
    with connect(fleet, address) as db:
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        sent = messages()
        if kafka is None:
            log = records(sent)
            letters = DeadRecordList()
            first = app.write(db, log[:200], dead_letters=letters)  # it is killed here,
            again = app.write(db, log[50:], dead_letters=letters)  # and begins before its end
            print(f"{first.records + again.records} records read, of {len(log)}")
        else:
            run_with_kafka(db, sent, kafka)
        for isp, (tests, megabits) in sorted(summarise(db).items()):
            print(f"{isp}: {tests} tests, {megabits} megabits")
        for name in ("p0", "p1", "p2"):
            print(f"{name} sent {db.get_one(Producer, name=name).records} records")


def run_with_kafka(db: Db, sent: Iterable[tuple[str, dict[str, Any]]], kafka: str) -> None:
    from confluent_kafka import Producer as KafkaProducer

    from stator.pipeline import KafkaOptions

    producing = KafkaProducer({"bootstrap.servers": kafka})
    for router, test in sent:
        producing.produce(TOPIC, json.dumps(test), router)
    producing.flush()
    with app.start(db, KafkaOptions(kafka)) as running:
        running.catch_up()
        print(running.progress())


if __name__ == "__main__":
    main(*sys.argv[1:])
