"""Ingest from a real Apache Kafka."""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from stator import Db, connect
from stator.errors import ConfigurationError, ResourceNotFound
from stator.pipeline import (
    DeadRecordList,
    DeadRecordTopic,
    Ingest,
    IngestOptions,
    KafkaOptions,
)
from stator.pipeline.ingest.metrics import serve_metrics
from stator.testing import InterceptedCall, faulty

from ...kafka_server import KafkaServer, kafka_server
from .kafka_log import committed, new_topic, produce, read_all, recreate
from .meters import Reading, Total, add_to_total, meters


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    with kafka_server(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture
def db() -> Iterator[Db]:
    with connect(meters, ":memory:") as opened:
        opened.ensure()
        yield opened


@pytest.mark.parametrize("protocol", ["auto", "classic"])
def test_records_become_items_and_offsets_are_committed(
    kafka: KafkaServer, db: Db, protocol: str
) -> None:
    topic = new_topic(kafka.address)
    values = [(f"m{n % 7}", {"meter": f"m{n % 7}", "value": n}) for n in range(500)]
    produce(kafka.address, topic, values[:300])
    app = Ingest(meters, f"all-{topic}")
    app.put(Reading, topic=topic)
    app.fold(Total, topic=topic, by=lambda event: {"meter": event["meter"]})(add_to_total)
    letters = DeadRecordList()
    options = KafkaOptions(kafka.address, protocol=protocol)  # type: ignore[arg-type]
    with app.start(db, options, dead_letters=letters) as running:
        running.catch_up(30)
        produce(kafka.address, topic, [*values[300:], ("m0", b"no JSON")])
        running.catch_up(30)
        progress = running.progress()
    assert progress.partitions == 3 and progress.records == 501
    for meter in range(7):
        mine = [n for n in range(500) if n % 7 == meter]
        total = db.get_one(Total, meter=f"m{meter}")
        assert (total.readings, total.sum, total.last) == (len(mine), sum(mine), mine[-1])
        assert db.get_one(Reading, meter=f"m{meter}").value == mine[-1]
    assert len(letters.letters) == 2  # one for each route
    assert sum(committed(kafka.address, app.name, topic, range(3))) == 501


def totals(topic: str) -> Ingest:
    app = Ingest(meters, f"totals-{topic}")
    app.fold(Total, topic=topic, by=lambda event: {"meter": event["meter"]})(add_to_total)
    return app


def some(count: int, start: int = 0) -> list[tuple[str, dict[str, object]]]:
    numbers = range(start, start + count)
    return [(f"m{n % 7}", {"meter": f"m{n % 7}", "value": n}) for n in numbers]


def test_a_full_window_pauses_and_memory_stays_bounded(kafka: KafkaServer, db: Db) -> None:
    topic = new_topic(kafka.address)
    values = [(f"k{n}", {"meter": f"k{n}", "value": n}) for n in range(1500)]
    produce(kafka.address, topic, values)
    slow = threading.Event()
    most = 0

    def wait(call: InterceptedCall) -> None:
        if call.operation == "BatchExecuteStatement":
            slow.wait(5)

    app = totals(topic)
    options = IngestOptions(window_records=100, writers=2)
    with faulty(db, wait), app.start(db, KafkaOptions(kafka.address), options) as running:
        deadline = time.monotonic() + 20
        while not running._source.is_paused and time.monotonic() < deadline:
            time.sleep(0.02)
        assert running._source.is_paused
        most = running.progress().waiting
        time.sleep(0.5)
        assert running.progress().waiting <= most
        slow.set()
        running.catch_up(30)
    assert most <= 100 + 1000  # the window, and one batch
    assert len(list(db.scan(Total, allow=True))) == 1500


def test_a_second_consumer_takes_over_what_is_drained_and_committed(
    kafka: KafkaServer, db: Db
) -> None:
    topic = new_topic(kafka.address, 4)
    app = totals(topic)
    produce(kafka.address, topic, some(400))
    kafka_options = KafkaOptions(kafka.address)
    with app.start(db, kafka_options) as first:
        first.catch_up(30)
        with app.start(db, kafka_options) as second:
            deadline = time.monotonic() + 40
            while second.progress().partitions != 2 and time.monotonic() < deadline:
                produce(kafka.address, topic, some(10, 400))
                time.sleep(0.1)
            assert (first.progress().partitions, second.progress().partitions) == (2, 2)
            first.catch_up(30)
        first.catch_up(30)
        ends = committed(kafka.address, app.name, topic, range(4))
        counted = sum(each.readings for each in db.scan(Total, allow=True))
        assert counted == sum(ends)
        # What was drained and committed was not read again.
        assert first.progress().stale == second.progress().stale == 0


def test_dead_letters_go_to_a_topic_with_their_origin(kafka: KafkaServer, db: Db) -> None:
    topic, dead = new_topic(kafka.address, 1), new_topic(kafka.address, 1)
    produce(kafka.address, topic, [*some(3), ("bad", b"\xff"), *some(2, 3)])
    app = totals(topic)
    options = KafkaOptions(kafka.address)
    letters = DeadRecordTopic(options, dead)
    with app.start(db, options, dead_letters=letters) as running:
        running.catch_up(30)
    [letter] = read_all(kafka.address, dead, 1)
    assert (letter.key(), letter.value()) == (b"bad", b"\xff")
    headers = dict(letter.headers())
    assert headers["dead.topic"] == topic.encode() and headers["dead.offset"] == b"3"
    assert b"not JSON" in headers["dead.reason"]
    assert sum(each.readings for each in db.scan(Total, allow=True)) == 5
    with pytest.raises(ConfigurationError, match="for dead letters does not exist"):
        DeadRecordTopic(options, f"{dead}-not")


def test_a_wrong_topic_is_an_error_at_once_and_names_a_close_one(
    kafka: KafkaServer, db: Db
) -> None:
    topic = new_topic(kafka.address)
    with pytest.raises(ConfigurationError, match=f"did you mean {topic}"):
        totals(f"{topic}x").start(db, KafkaOptions(kafka.address))
    with pytest.raises(ConfigurationError, match="refuses its configuration"):
        totals(topic).start(db, KafkaOptions(kafka.address, config={"no.such": 1}))


def test_a_topic_that_was_created_again_stops_the_ingest(kafka: KafkaServer, db: Db) -> None:
    topic = new_topic(kafka.address, 1)
    produce(kafka.address, topic, some(50))
    app = totals(topic)
    with app.start(db, KafkaOptions(kafka.address)) as running:
        running.catch_up(30)
    recreate(kafka.address, topic)
    produce(kafka.address, topic, some(5))
    with pytest.raises(ConfigurationError, match="deleted and created again"):
        app.start(db, KafkaOptions(kafka.address))
    renamed = Ingest(meters, app.name)
    renamed.fold(
        Total, topic=topic, source="readings-2", by=lambda event: {"meter": event["meter"]}
    )(add_to_total)
    with renamed.start(db, KafkaOptions(kafka.address)) as running:
        running.catch_up(30)
    assert sum(each.readings for each in db.scan(Total, allow=True)) == 55


def test_a_group_that_begins_at_the_latest_record_keeps_its_place(
    kafka: KafkaServer, db: Db
) -> None:
    topic = new_topic(kafka.address, 1)
    produce(kafka.address, topic, some(5))
    app = totals(topic)
    options = IngestOptions(start="latest")
    with app.start(db, KafkaOptions(kafka.address), options) as running:
        running.catch_up(30)
    produce(kafka.address, topic, some(3))
    with app.start(db, KafkaOptions(kafka.address), options) as running:
        running.catch_up(30)
    assert sum(each.readings for each in db.scan(Total, allow=True)) == 3


def test_a_missing_table_stops_the_ingest_and_commits_nothing(kafka: KafkaServer, db: Db) -> None:
    topic = new_topic(kafka.address, 1)
    app = totals(topic)
    running = app.start(db, KafkaOptions(kafka.address))
    running.catch_up(30)
    db.call("DeleteTable", {"TableName": db.context.schema.of(Total).table.name})
    produce(kafka.address, topic, some(5))
    with pytest.raises(ResourceNotFound):
        running.wait(30)
    with pytest.raises(ResourceNotFound):
        running.stop()
    assert committed(kafka.address, app.name, topic, [0]) == [0]


def test_metrics_show_what_an_ingest_has_done(kafka: KafkaServer, db: Db) -> None:
    topic = new_topic(kafka.address, 1)
    produce(kafka.address, topic, some(10))
    app = totals(topic)
    with app.start(db, KafkaOptions(kafka.address)) as running:
        running.catch_up(30)
        port = serve_metrics(running, 0)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as reply:
            text = reply.read().decode()
    assert f'stator_ingest_records_total{{group="{app.name}"}} 10.0' in text
    assert f'stator_ingest_partitions{{group="{app.name}"}} 1.0' in text
    assert "stator_ingest_waiting_records" in text


def test_without_the_consumer_protocol_the_classic_one_is_used(tmp_path: Path, db: Db) -> None:
    with kafka_server(tmp_path, {"group.coordinator.rebalance.protocols": "classic"}) as old:
        topic = new_topic(old.address)
        produce(old.address, topic, some(20))
        app = totals(topic)
        with app.start(db, KafkaOptions(old.address)) as running:
            running.catch_up(30)
            assert running._source.protocol == "classic"
    assert sum(each.readings for each in db.scan(Total, allow=True)) == 20
