"""``stator work`` with an app that maintains patterns; workers are killed with SIGKILL."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from stator import Db, connect
from stator.patterns.links import Link

from ..test_work_command import Commands, children_of, served
from ..test_workers import eventually
from .greenhouse import START, Bed, Plant, Reading, greenhouse, plantings, readings

APP = "tests.pipeline.maintenance.greenhouse:app"
BEDS = [f"b{number}" for number in range(4)]
DAY = timedelta(days=1)


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    yield from served(tmp_path)


@pytest.fixture
def db(commands: Commands) -> Iterator[Db]:
    with connect(greenhouse, commands.url) as opened:
        opened.ensure()
        yield opened


def expected(turns: int) -> tuple[int, int, int, int]:
    """Count, sum, minimum and maximum of a bed's hour.

    Each turn adds ten readings, changes one and removes one.
    """
    values = [1000 + turn if number == 0 else turn for turn in range(turns) for number in range(9)]
    return len(values), sum(values), min(values), max(values)


def test_roll_ups_are_exact_when_workers_are_killed(commands: Commands, db: Db) -> None:
    started = (
        "--workers",
        "2",
        "--from",
        "oldest",
        "--lease",
        "2",
        "--ensure",
        "--batch",
        "7",
        "--json",
    )
    parent = commands.start("work", APP, *started)
    series, links = readings(db), plantings(db)
    bed = Bed(bed_id="b0", title="t0")
    db.put(bed)
    plants = [Plant(plant_id=f"p{number}", name="x") for number in range(12)]
    for each in plants:
        db.put(each)
        links.link(each, bed)

    def write(turn: int) -> None:
        for name in BEDS:
            added = [
                Reading(bed_id=name, at=START + timedelta(seconds=100 * turn + number), value=turn)
                for number in range(10)
            ]
            assert series.add_many(added).ok
            series.replace(Reading(bed_id=name, at=added[0].at, value=1000 + turn))
            series.remove(added[9])
        with db.update(Bed, bed_id="b0") as change:
            change.title = f"t{turn}"

    def told() -> list[tuple[int, int, int, int]]:
        hours = readings(db).rollup("hour", of=Reading.value)
        found = [each for name in BEDS for each in hours.range(name, START, START + DAY)]
        return [(each.count, int(each.sum), int(each.min), int(each.max)) for each in found]

    try:
        eventually(lambda: len(children_of(parent.pid)) >= 2 and has_stream(db))
        killed: set[int] = set()
        for turn in range(12):
            write(turn)
            if turn % 4 == 2:
                eventually(lambda: len(children_of(parent.pid) - killed) >= 1)
                victim = min(children_of(parent.pid) - killed)
                os.kill(victim, signal.SIGKILL)
                killed.add(victim)
            time.sleep(0.1)
        eventually(lambda: told() == [expected(12)] * len(BEDS))
        eventually(lambda: {each.copy["title"] for each in links_of(db, plants)} == {"t11"})
        _, out, _ = commands.run("top", APP, "--json")
        state = json.loads(out)
        assert {shard["table"] for shard in state["shards"]} == {"greenhouse", "greenhouse-stator"}
        time.sleep(3)  # time for repeated work, if there is any
        assert told() == [expected(12)] * len(BEDS)
    finally:
        parent.terminate()
        _, err = parent.communicate(timeout=60)
    assert parent.returncode == 0, err
    assert "was killed by signal 9" in err


def has_stream(db: Db) -> bool:
    tables = [db.context.schema.place.table, db.context.schema.of(Bed).table.name]
    return all(
        "LatestStreamArn" in db.call("DescribeTable", {"TableName": table})["Table"]
        for table in tables
    )


def links_of(db: Db, plants: list[Plant]) -> list[Link]:
    return [each for plant in plants for each in plantings(db).of_left(plant)]
