"""Three processes of one group, killed and suspended while producers write: every total is exact.

A suspended process that wakes up after its partitions went to others is a zombie: it goes on with
the writes it had in hand. The guards refuse them. The tests assert that this happened.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from stator import Db, Engine, TableSettings, connect
from stator.pipeline import Ingest, KafkaOptions
from tests.engine.streams.reading import read_all
from tests.targets import stator_server

from ...kafka_server import KafkaServer, kafka_server
from .kafka_log import new_topic, produce
from .meters import Reading, Total, meters

ROOT = Path(__file__).parents[3]
METERS = 40
PARTITIONS = 6


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    settings = {
        "group.consumer.session.timeout.ms": 3000,
        "group.consumer.min.session.timeout.ms": 3000,
        "group.consumer.heartbeat.interval.ms": 500,
        "group.consumer.min.heartbeat.interval.ms": 500,
        "group.min.session.timeout.ms": 3000,
    }
    with kafka_server(tmp_path_factory.mktemp("kafka"), settings) as server:
        yield server


class Group:
    """Processes of ``stator ingest`` for one topic."""

    def __init__(self, kafka: str, topic: str, tables: str, protocol: str, folder: Path) -> None:
        self._kafka = kafka
        self._tables = tables
        self._protocol = protocol
        self._folder = folder
        self._environment = os.environ | {
            "TOPIC": topic,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        }
        self._outputs: list[Path] = []
        self.processes: dict[Path, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        command = [
            *(sys.executable, "-m", "stator", "ingest", "tests.pipeline.ingest.counting_app:app"),
            *("--kafka", self._kafka, "--at", self._tables, "--group-protocol", self._protocol),
            *("--session", "3", "--every", "0.3", "--json"),
        ]
        path = self._folder / f"out{len(self._outputs)}"
        self._outputs.append(path)
        with path.open("wb") as out, path.with_suffix(".err").open("wb") as err:
            self.processes[path] = subprocess.Popen(
                command, cwd=ROOT, env=self._environment, stdout=out, stderr=err
            )

    def busy(self) -> list[Path]:
        """The processes that have partitions."""
        return [path for path in self.processes if self._last(path).get("partitions")]

    def wait_busy(self, count: int) -> None:
        deadline = time.monotonic() + 60
        while len(self.busy()) < count:
            assert time.monotonic() < deadline, [self._last(path) for path in self.processes]
            time.sleep(0.1)

    def _last(self, path: Path) -> dict[str, Any]:
        lines = [line for line in path.read_text().splitlines() if line.endswith("}")]
        return json.loads(lines[-1]) if lines else {}

    def kill(self, chance: random.Random) -> None:
        """End one process with -9. A new one takes its place."""
        process = self.processes.pop(chance.choice(self.busy()))
        process.kill()
        process.wait()
        self.start()

    def suspend(self, chance: random.Random, seconds: float) -> None:
        """Stop one process for longer than its session lasts, and let it go on."""
        process = self.processes[chance.choice(self.busy())]
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)

    def stop(self) -> int:
        """End all processes. Returns how many records they found in the table already."""
        for process in self.processes.values():
            process.terminate()
        for path, process in self.processes.items():
            assert process.wait(60) == 0, path.with_suffix(".err").read_text()
        return sum(self._last(path).get("stale", 0) for path in self._outputs)

    def end(self) -> None:
        """End what is still running."""
        for process in self.processes.values():
            process.kill()
            process.wait()


def _run(kafka: KafkaServer, folder: Path, protocol: str, rounds: int, per_second: int) -> None:
    chance = random.Random(7)
    topic = new_topic(kafka.address, PARTITIONS)
    with stator_server() as url, connect(meters, url) as db:
        db.ensure(TableSettings(stream="NEW_IMAGE"))
        group = Group(kafka.address, topic, url, protocol, folder)
        for _ in range(3):
            group.start()
        sent: list[tuple[str, int]] = []
        stopping = threading.Event()

        def write() -> None:
            while not stopping.is_set():
                some = [(f"m{chance.randrange(METERS)}", len(sent) + n) for n in range(100)]
                values = [(meter, {"meter": meter, "value": value}) for meter, value in some]
                produce(kafka.address, topic, values)
                sent.extend(some)
                stopping.wait(100 / per_second)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            group.wait_busy(3)
            for _ in range(rounds):
                group.kill(chance)
                group.wait_busy(1)
                group.suspend(chance, 4.5)
                group.wait_busy(2)
            stopping.set()
            writer.join()
            _wait_for_totals(db, sent)
            time.sleep(1)  # for zombies
            stale = group.stop()
        finally:
            stopping.set()
            writer.join()
            group.end()
        _check(db, sent)
        _check_that_nothing_went_back(db)
        assert stale > 0, "no write was refused: the run proved nothing"


def _wait_for_totals(db: Db, sent: list[tuple[str, int]]) -> None:
    wanted = len(sent)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if sum(each.readings for each in db.scan(Total, allow=True)) >= wanted:
            return
        time.sleep(0.2)


def _check(db: Db, sent: list[tuple[str, int]]) -> None:
    counts = Counter(meter for meter, _ in sent)
    sums: Counter[str] = Counter()
    last: dict[str, int] = {}
    for meter, value in sent:
        sums[meter] += value
        last[meter] = value
    totals = {each.meter: each for each in db.scan(Total, allow=True)}
    assert {name: each.readings for name, each in totals.items()} == counts
    assert {name: each.sum for name, each in totals.items()} == sums
    assert {name: each.last for name, each in totals.items()} == last
    assert {each.meter: each.value for each in db.scan(Reading, allow=True)} == last


def _check_that_nothing_went_back(db: Db) -> None:
    """In the table's own stream, the marks of each item only rise."""
    marks: dict[tuple[str, str], int] = {}
    changes = 0
    for table in db.context.schema.tables:
        described = db.call("DescribeTable", {"TableName": table})["Table"]
        for image, key in _images(db, described["LatestStreamArn"]):
            for name, value in image.items():
                if name.startswith("_in:"):
                    place = (key, name)
                    assert int(value["N"]) > marks.get(place, -1), place
                    marks[place] = int(value["N"])
                    changes += 1
    assert changes > METERS


def _images(db: Db, arn: str) -> Iterator[tuple[dict[str, Any], str]]:
    for record in read_all(cast(Engine, db), arn):  # both have the method that it calls
        image = record["dynamodb"].get("NewImage")
        if image is not None:
            yield image, json.dumps(record["dynamodb"]["Keys"], sort_keys=True)


_MEMBER = """
import sys
from confluent_kafka import Consumer
settings = {"group.id": sys.argv[3], "group.instance.id": "one", "group.protocol": "consumer"}
consumer = Consumer({"bootstrap.servers": sys.argv[1], **settings})
consumer.subscribe([sys.argv[2]], on_assign=lambda *_: print("assigned", flush=True))
while True:
    consumer.poll(0.1)
"""


def test_a_static_member_waits_for_the_name_of_its_dead_predecessor(kafka: KafkaServer) -> None:
    topic = new_topic(kafka.address)
    produce(kafka.address, topic, [("m1", {"meter": "m1", "value": 1})])
    command = [sys.executable, "-c", _MEMBER, kafka.address, topic, f"group-{topic}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as member:
        assert member.stdout is not None
        assert member.stdout.readline() == b"assigned\n"
        member.kill()
    app = Ingest(meters, f"group-{topic}")
    app.put(Reading, topic=topic)
    with connect(meters, ":memory:") as db:
        db.ensure()
        with app.start(db, KafkaOptions(kafka.address, instance="one")) as running:
            running.catch_up(60)
        assert db.get_one(Reading, meter="m1").value == 1


def test_every_total_is_exact_after_kills_and_zombies(kafka: KafkaServer, tmp_path: Path) -> None:
    _run(kafka, tmp_path, "auto", rounds=1, per_second=2000)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["auto", "classic"])
def test_every_total_is_exact_after_many_kills_and_zombies(
    kafka: KafkaServer, tmp_path: Path, protocol: str
) -> None:
    _run(kafka, tmp_path, protocol, rounds=12, per_second=3000)
