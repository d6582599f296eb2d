"""Ingest from a real Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stator import Db, connect
from stator.pipeline.ingest.app import Ingest
from stator.pipeline.ingest.dead_records import DeadRecordList
from stator.pipeline.ingest.kafka_source import KafkaOptions

from ...kafka_server import KafkaServer, kafka_server
from .kafka_log import committed, new_topic, produce
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
