"""Random schedules: consumers that crash, stall, lose partitions and replies; every total is exact.

One thread decides what happens next. Partitions change hands while the earlier owner still holds
what it has read, so every schedule has zombies. The clock is virtual.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from stator import Engine, connect
from stator.clock import VirtualClock
from stator.data import Transaction
from stator.pipeline import Ingest, IngestOptions, Lane
from stator.testing import Faults, faulty

from .meters import Account, Consumer, MemoryLog, Reading, Total, add_to_total, meters

METERS = 6
PARTITIONS = 3
RECORDS = 240


def ingest() -> Ingest:
    app = Ingest(meters, "all")
    app.put(Reading, topic="readings")
    app.fold(Total, topic="readings", by=lambda event: {"meter": event["meter"]})(add_to_total)

    @app.on("readings", when=lambda event: event["value"] % 5 == 0)
    def book(event: dict[str, Any], tx: Transaction) -> None:
        with tx.update(Account, account_id=event["meter"], or_create=True) as account:
            account.balance += event["value"]

    return app


class Schedule:
    """Consumers of one log, and a network that throttles and loses replies."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock = VirtualClock(1_791_489_600.0)
        self.engine = Engine.open(clock=self.clock)
        self.faults = Faults.mixed(seed, 0.1)
        self.db = connect(meters, self.engine, clock=self.clock, random=random.Random(seed + 1))
        self.db.ensure()
        self.log = MemoryLog()
        self.sent: list[tuple[str, int]] = []
        self.owners: dict[Lane, Consumer] = {}
        self.zombies: list[Consumer] = []
        self.ended: list[Consumer] = []

    def produce(self) -> None:
        for _ in range(self.chance.randrange(1, 12)):
            meter = self.chance.randrange(METERS)
            value = len(self.sent)
            self.sent.append((f"m{meter}", value))
            event = {"meter": f"m{meter}", "value": value}
            self.log.add(event, f"m{meter}", partition=meter % PARTITIONS)

    def consumer(self) -> Consumer:
        options = IngestOptions(window_records=50, max_attempts=100)
        return Consumer(ingest(), self.db, self.log, options)

    def assign(self) -> None:
        """Give a partition to another consumer. The earlier owner may not know it yet."""
        lane = Lane("readings", self.chance.randrange(PARTITIONS))
        earlier = self.owners.pop(lane, None)
        if earlier is not None:
            if self.chance.random() < 0.4:
                self.zombies.append(earlier)  # it goes on with what it has read
            elif self.chance.random() < 0.5:
                earlier.intake.forget([lane])
            else:
                self.step(earlier)
                self.commit(earlier, lane)
                earlier.intake.forget([lane])
        others = list({id(each): each for each in self.owners.values()}.values())
        taker = self.chance.choice([*others, self.consumer()])
        taker.intake.forget([lane])
        taker.intake.start({lane: self.log.committed.get(lane, 0)})
        taker.positions[lane] = self.log.committed.get(lane, 0)
        self.owners[lane] = taker

    def step(self, consumer: Consumer) -> None:
        consumer.intake.write_once(runs=self.chance.randrange(1, 6))

    def read(self) -> None:
        for lane, consumer in self.owners.items():
            start = consumer.positions[lane]
            found = self.log.lanes[lane][start : start + self.chance.randrange(0, 20)]
            consumer.positions[lane] = start + len(found)
            consumer.intake.take_in(found)

    def commit(self, consumer: Consumer, lane: Lane) -> None:
        marks = consumer.intake.uncommitted()
        if lane in marks:
            self.log.committed[lane] = marks[lane]

    def run(self) -> None:
        with faulty(self.db, self.faults):
            self._run_with_faults()
        self._end()

    def _run_with_faults(self) -> None:
        while len(self.sent) < RECORDS:
            match self.chance.randrange(12):
                case 0 | 1:
                    self.produce()
                case 2:
                    self.assign()
                case 3 | 4:
                    self.read()
                case 5:
                    for lane, consumer in self.owners.items():
                        if self.chance.random() < 0.5:
                            self.commit(consumer, lane)
                case 6:
                    self.clock.advance(self.chance.random() * 3)
                case 7 | 8 if self.zombies:
                    self.step(self.chance.choice(self.zombies))
                case _ if self.owners:
                    self.step(self.chance.choice(list(self.owners.values())))

    def _end(self) -> None:
        final = self.consumer()
        while any(
            self.log.committed.get(lane, 0) < len(records)
            for lane, records in self.log.lanes.items()
        ):
            final.read()
            while final.intake.write_once():
                pass
            self.clock.advance(1.0)
            final.commit()
        for zombie in self.zombies:
            for _ in range(100):
                zombie.intake.write_once()
                self.clock.advance(0.2)
        everyone = [final, *self.zombies, *self.owners.values()]
        self.stale = sum(
            each.intake.progress().stale for each in {id(each): each for each in everyone}.values()
        )

    def check(self) -> None:
        counts = Counter(meter for meter, _ in self.sent)
        sums: Counter[str] = Counter()
        booked: Counter[str] = Counter()
        last: dict[str, int] = {}
        for meter, value in self.sent:
            sums[meter] += value
            booked[meter] += value if value % 5 == 0 else 0
            last[meter] = value
        totals = {each.meter: each for each in self.db.scan(Total, allow=True)}
        assert {name: each.readings for name, each in totals.items()} == counts
        assert {name: each.sum for name, each in totals.items()} == sums
        assert {name: each.last for name, each in totals.items()} == last
        readings = {each.meter: each.value for each in self.db.scan(Reading, allow=True)}
        assert readings == last
        accounts = {each.account_id: each.balance for each in self.db.scan(Account, allow=True)}
        assert accounts == {
            name: amount for name, amount in booked.items() if amount or name in accounts
        }


def _run(seeds: range) -> None:
    stale = 0
    for seed in seeds:
        schedule = Schedule(seed)
        with schedule.engine:
            schedule.run()
            schedule.check()
        stale += schedule.stale
    assert stale > len(seeds), "the schedules have no zombies"


def test_every_total_is_exact_under_random_schedules() -> None:
    _run(range(8))


@pytest.mark.slow
def test_every_total_is_exact_under_many_random_schedules() -> None:
    _run(range(1000, 1500))
