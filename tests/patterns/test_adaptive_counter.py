"""Adaptive counters grow where they are hot, narrow again, and stay exact."""

from __future__ import annotations

import os
import random
from collections.abc import Generator
from contextlib import suppress
from typing import Any

import pytest

from stator import connect
from stator.addresses import EngineTransport
from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import ConfigurationError, StatorError, Throttled, ThroughputExceeded
from stator.patterns.counter import Counter
from stator.patterns.counter_shards import COOL_SECONDS
from stator.tables.db import Db
from stator.tables.shards.adaptive_shards import AdaptiveShards
from stator.tables.shards.shard_change import ShardChange
from stator.testing import Fault, FaultyTransport, InterceptedCall, kill_points, run_schedules
from tests.patterns.interleaved import Process, Schedule
from tests.tables.shop import shop

START = 1_790_000_000.0
SEEDS = int(os.environ.get("STATOR_SCHEDULES", "20"))
KEY_RANGE = [{"reason": "TableWriteKeyRangeThroughputExceeded", "resource": "arn"}]


def enforced() -> tuple[VirtualClock, Db]:
    clock = VirtualClock(START)
    engine = Engine.open(clock=clock, throughput="enforced")
    db = connect(shop(), engine, clock=clock, random=random.Random(1))
    warm = {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 40_000}
    for table in engine.call("ListTables", {})["TableNames"]:
        engine.call("UpdateTable", {"TableName": table, "WarmThroughput": warm})
    return clock, db


def test_its_own_rate_spreads_a_counter() -> None:
    clock, db = enforced()
    changes: list[ShardChange] = []
    counter = Counter(db, "views", shards=AdaptiveShards(on_change=changes.append))
    for _ in range(1_500):
        counter.add()
        clock.advance(1 / 1_000)  # 2,000 units a second
    assert counter.shards == 4
    assert {each.cause for each in changes} == {"rate"}
    assert Counter(db, "views").value() == counter.value() == 1_500


@pytest.mark.parametrize("exact", [True, False])
def test_throttling_spreads_a_counter(exact: bool) -> None:
    clock, db = enforced()
    changes: list[ShardChange] = []
    options = AdaptiveShards(on_change=changes.append)
    counters = [Counter(db, "views", shards=options, exact=exact) for _ in range(8)]
    for number in range(4_000):
        counters[number % 8].add()
        clock.advance(1 / (1_000 if exact else 2_000))
    assert changes[0].cause == "throttled"
    assert 2 <= changes[-1].after <= 16
    assert counters[0].value() == 4_000


def test_compaction_closes_shards_that_nobody_needs() -> None:
    clock, db = enforced()
    changes: list[ShardChange] = []
    counter = Counter(db, "views", shards=AdaptiveShards(on_change=changes.append))
    for _ in range(1_500):
        counter.add()
        clock.advance(1 / 1_000)
    other = Counter(db, "views", shards="adaptive")
    other.compact()
    assert other.shards == 4  # it was hot a moment ago
    widths = []
    for _ in range(4):
        clock.advance(COOL_SECONDS + 1)
        counter.add()
        clock.advance(COOL_SECONDS + 1)
        other.compact()
        widths.append(other.shards)
    assert widths == [2, 1, 1, 1]
    assert counter.value() == other.value() == 1_504
    for _ in range(1_500):  # and it grows again
        counter.add()
        clock.advance(1 / 1_000)
    assert counter.shards == 4
    assert other.value() == 3_004


def test_an_addition_to_a_closed_shard_goes_to_an_open_one() -> None:
    """A process that has slept since before the counter was narrowed."""
    clock = VirtualClock(START)
    db = connect(shop(), clock=clock)
    wide = Counter(db, "views", shards=AdaptiveShards(least=8))
    wide.add()
    sleeper = Counter(db, "views", shards=AdaptiveShards(least=1))
    sleeper.add()
    assert sleeper.shards == 8
    narrow = Counter(db, "views", shards=AdaptiveShards(least=1))
    clock.advance(COOL_SECONDS + 1)
    while narrow.shards != 1 or narrow.compact():
        narrow.compact()
        clock.advance(COOL_SECONDS + 1)
    sleeper._shards._fresh_until = clock.now() + 1_000
    for _ in range(50):
        sleeper.add()
    assert sleeper.shards == 1
    assert narrow.value() == 52


def test_a_counter_of_fewer_shards_reads_what_one_of_more_wrote() -> None:
    db = connect(shop())
    wide, narrow = Counter(db, "views", shards=9), Counter(db, "views", shards="adaptive")
    for _ in range(30):
        wide.add()
    assert narrow.value() == 30


def test_a_reset_counter_counts_again() -> None:
    db = connect(shop())
    wide = Counter(db, "views", shards=9)
    for _ in range(30):
        wide.add()
    Counter(db, "views", shards=2).reset()
    assert wide.value() == 0
    for _ in range(30):
        wide.add()
    assert Counter(db, "views", shards=2).value() == 30


def test_limits_are_checked() -> None:
    with pytest.raises(ConfigurationError):
        Counter(connect(shop()), "views", shards=AdaptiveShards(most=100))
    text = str(Counter(connect(shop()), "views", shards="adaptive").explain())
    assert "grows up to 64 shards where it is hot" in text


# --- in any order ----------------------------------------------------------------------------


class World:
    """Processes that add, compact and read one counter in random order, with kills."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock = VirtualClock(START)
        engine = Engine.open(clock=self.clock)
        self.db = connect(shop(), engine, clock=self.clock, random=random.Random(seed))
        self.schedule = Schedule(
            FaultyTransport(EngineTransport(engine), self.fault), self.clock, seed
        )
        self.acknowledged = 0
        self.unknown = 0
        self.changes: list[ShardChange] = []

    def fault(self, call: InterceptedCall) -> Fault | None:
        chance = self.chance.random()
        if call.operation == "TransactWriteItems":
            if chance < 0.06:
                return Fault("throttled", error=ThroughputExceeded(throttling_reasons=KEY_RANGE))
            return Fault("duplicated") if chance < 0.1 else None
        return Fault("throttled", error=Throttled("Rate exceeded")) if chance < 0.01 else None

    def counter(self) -> Counter[Db]:
        shards: Any = AdaptiveShards(most=6, on_change=self.changes.append)
        if self.chance.random() < 0.1:
            shards = 3
        return Counter(self.db, "views", shards=shards)

    def add(self, counter: Counter[Db], times: int) -> Generator[Any, Any, Any]:
        for _ in range(times):
            self.unknown += 1
            while True:
                try:
                    yield from counter.add.work()
                except (Throttled, ThroughputExceeded):
                    continue
                break
            self.unknown -= 1
            self.acknowledged += 1

    def compact(self, counter: Counter[Db]) -> Generator[Any, Any, Any]:
        with suppress(StatorError):
            yield from counter.compact.work()

    def read(self, counter: Counter[Db]) -> Generator[Any, Any, Any]:
        least = self.acknowledged
        try:
            value = yield from counter.value.work()
        except Throttled:
            return
        assert least <= value <= self.acknowledged + self.unknown, (
            f"{value} is not between {least} and {self.acknowledged} + {self.unknown}"
        )

    def run(self, steps: int) -> None:
        counters = [self.counter() for _ in range(4)]
        adding: list[Process] = []
        for _ in range(steps):
            chance = self.chance.random()
            counter = self.chance.choice([*counters, self.counter()])
            adding = [each for each in adding if not each.is_over]
            if chance < 0.08 and len(adding) < 5:
                work = self.add(counter, self.chance.randrange(1, 12))
                adding.append(self.schedule.start("add", work))
            elif chance < 0.12:
                self.schedule.start("compact", self.compact(counter))
            elif chance < 0.16:
                self.schedule.start("read", self.read(counter))
            elif chance < 0.17 and self.schedule.processes:
                self.schedule.kill(self.chance.choice(self.schedule.processes))
            elif chance < 0.18:
                self.clock.advance(self.chance.choice([1.0, 12.0, 70.0]))
            self.schedule.step()
        while self.schedule.step():
            pass
        self.schedule.start("read", self.read(self.counter()))
        while self.schedule.step():
            pass


def test_no_order_of_additions_compactions_and_kills_miscounts() -> None:
    changes: list[ShardChange] = []

    def schedule(seed: int) -> None:
        world = World(seed)
        world.run(500)
        changes.extend(world.changes)

    ran = run_schedules(schedule, SEEDS)
    assert sum(each.after > each.before for each in changes) > ran
    assert sum(each.cause == "cool" for each in changes) > ran / 2


def test_a_process_that_dies_while_it_grows_or_narrows_counts_exactly() -> None:
    clock = VirtualClock(START)
    db = connect(shop(), clock=clock)
    counter = Counter(db, "views", shards="adaptive")

    def grow(dying: Db) -> None:
        Counter(dying, "views", shards=AdaptiveShards(least=4)).add()

    def narrow(dying: Db) -> None:
        clock.advance(COOL_SECONDS + 1)
        Counter(dying, "views", shards="adaptive").compact()
        clock.advance(COOL_SECONDS + 1)
        Counter(dying, "views", shards="adaptive").compact()

    points = 0
    for work in (grow, narrow):
        added = counter.value()  # the run that nothing killed has added, too
        for _ in kill_points(db, work):
            value = counter.value()
            assert value - added in ((0, 1) if work is grow else (0,))
            added = value
            narrow(db)
            assert counter.value() == added
            grow(db)
            added += 1
            assert counter.value() == added
            points += 1
    assert points >= 12
