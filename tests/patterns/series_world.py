"""Writers and readers of one series key, in random order, with throttling, kills and lost replies.

Used by the tests of adaptive series, in one table and in several.
"""

from __future__ import annotations

import random
from collections.abc import Generator
from datetime import datetime, timedelta
from typing import Any

from stator import connect
from stator.addresses import EngineTransport
from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import (
    BatchFailed,
    Throttled,
    ThroughputExceeded,
    TransactionConflict,
    TransactionFailed,
)
from stator.patterns.rollups.rollup import Rollup
from stator.patterns.series.series import Series
from stator.tables.db import Db
from stator.tables.shards.adaptive_shards import AdaptiveShards
from stator.tables.shards.shard_change import ShardChange
from stator.testing import Fault, FaultyTransport, InterceptedCall
from tests.patterns.interleaved import Process, Schedule
from tests.patterns.meters import T0, Reading, reading
from tests.tables.shop import shop

KEY_RANGE = [{"reason": "TableWriteKeyRangeThroughputExceeded", "resource": "arn"}]
TABLE_UNITS = [{"reason": "TableWriteProvisionedThroughputExceeded", "resource": "arn"}]
_WRITES = ("PutItem", "BatchWriteItem", "TransactWriteItems")
_PASSING = (ThroughputExceeded, Throttled, BatchFailed, TransactionConflict, TransactionFailed)


def series(db: Db, **options: Any) -> Series[Db, Reading]:
    given: dict[str, Any] = {
        "by": Reading.sensor_id,
        "at": Reading.at,
        "bucket": "hour",
        "shards": "adaptive",
    }
    return Series(db, Reading, **(given | options))


class SeriesWorld:
    """One run under one seed.

    With ``tables``, limits of whole tables refuse writes as well. With ``rollups``, writers keep
    one, and it must be exact in the end. With ``hours``, readings follow the clock, which jumps to
    later hours. The last third of the steps and some hours after are cool, so that buckets narrow.
    """

    def __init__(
        self, seed: int, *, tables: int = 1, rollups: bool = False, hours: bool = False
    ) -> None:
        self.chance = random.Random(seed)
        self.clock = VirtualClock(T0.timestamp())
        engine = Engine.open(clock=self.clock)
        self.db = connect(shop(), engine, clock=self.clock, random=random.Random(seed))
        network = FaultyTransport(EngineTransport(engine), self.fault)
        self.schedule = Schedule(network, self.clock, seed)
        self.tables, self.rollups, self.hours = tables, rollups, hours
        self.is_hot = True
        self.acknowledged: set[datetime] = set()
        self.started: dict[datetime, Reading] = {}
        self.writing: dict[int, Process] = {}
        self.grown = self.narrowed = self.widened = 0
        self.seen = 0
        self.number = 0

    def fault(self, call: InterceptedCall) -> Fault | None:
        chance = self.chance.random()
        if call.operation not in _WRITES or "BillingMode" in call.request:
            return Fault("throttled", error=Throttled("Rate exceeded")) if chance < 0.02 else None
        share = 0.2 if call.operation == "TransactWriteItems" else 0.05  # there are fewer of them
        if chance < share and self.is_hot:
            is_table = self.tables > 1 and self.chance.random() < 0.5
            reasons = TABLE_UNITS if is_table else KEY_RANGE
            return Fault("throttled", error=ThroughputExceeded(throttling_reasons=reasons))
        if chance < 0.08 and call.operation == "BatchWriteItem":
            return Fault("unprocessed", processed=0.5)
        return Fault("duplicated") if chance < 0.1 else None

    def series(self) -> Series[Db, Reading]:
        rollups = [Rollup("hour", of=Reading.value)] if self.rollups else []
        shards = AdaptiveShards(most=8, on_change=self.changed, tables=self.tables)
        return series(self.db, shards=shards, rollups=rollups)

    def changed(self, change: ShardChange) -> None:
        before = change.before, change.tables_before
        after = change.after, change.tables_after
        if change.cause == "cool":
            assert after != before and after[0] <= before[0] and after[1] <= before[1]
            self.narrowed += 1
        else:
            assert after != before and after[0] >= before[0] and after[1] >= before[1]
            self.grown += after[0] > before[0]
            self.widened += after[1] > before[1]

    def write(
        self, mine: Series[Db, Reading], lots: list[list[Reading]]
    ) -> Generator[Any, Any, Any]:
        for lot in lots:
            self.started.update({each.at: each for each in lot})
            while True:
                try:
                    if len(lot) == 1:
                        yield from mine.add.work(lot[0])
                    else:
                        yield from mine.add_many.work(lot)
                except _PASSING:
                    continue
                break
            self.acknowledged.update(each.at for each in lot)

    def read(self, mine: Series[Db, Reading]) -> Generator[Any, Any, Any]:
        """Page through everything. What was acknowledged before must be there, once, in order."""
        expected, found, cursor = set(self.acknowledged), [], None
        while True:
            try:
                page = yield from mine.page.work(
                    "s1", limit=20, cursor=cursor, newest_first=False, consistent=True
                )
            except Throttled:
                continue
            found += page.items
            cursor = page.cursor
            if cursor is None:
                break
        times = [each.at for each in found]
        assert times == sorted(set(times)), "a reading came twice, or out of order"
        missing = expected - set(times)
        assert not missing, f"missing: {missing}"
        assert found == [self.started[at] for at in times]
        self.seen += 1

    def lots(self) -> list[list[Reading]]:
        """New readings, and now and then one that another process writes as well.

        Not with roll-ups: a process that has not learned of a growth counts such a reading twice,
        as the docstring of ``Series`` says.
        """
        lots = []
        for _ in range(self.chance.randrange(2, 8)):
            count = self.chance.choice([1, 1, 1, 6, 30])
            lot = []
            for _ in range(count):
                if self.started and not self.rollups and self.chance.random() < 0.1:
                    lot.append(self.started[self.chance.choice(sorted(self.started))])
                else:
                    self.number += 1
                    lot.append(reading(self._seconds() / 60))
            lots.append(lot)
        return lots

    def _seconds(self) -> float:
        """Return the time of a new reading, in seconds after T0; no two are the same."""
        unique = self.number / 10_000
        if not self.hours:
            return self.chance.randrange(3_000) + unique
        return int(self.clock.now() - T0.timestamp()) - self.chance.randrange(900) + unique

    def run(self, steps: int) -> None:
        shared = [self.series() for _ in range(3)]
        for number in range(steps):
            if len(self.writing) < 4 and self.chance.random() < 0.1:
                mine = self.chance.choice([*shared, self.series()])
                self.writing[number] = self.schedule.start("writer", self.write(mine, self.lots()))
            if self.chance.random() < 0.02:
                self.schedule.start("reader", self.read(self.series()))
            if self.writing and self.chance.random() < 0.01:
                self.schedule.kill(self.chance.choice(list(self.writing.values())))
            if self.chance.random() < 0.005:
                self.clock.advance(self.chance.choice([1.0, 12.0, 61.0]))
            if self.hours and self.chance.random() < 0.03:
                self.clock.advance(3_600.0)
                self.is_hot = number < steps * 2 / 3
            self.writing = {key: each for key, each in self.writing.items() if not each.is_over}
            self.schedule.step()
        self.finish()

    def finish(self) -> None:
        """Let all processes end, read once more, and compare the roll-ups with the readings."""
        while self.schedule.step():
            pass
        for _ in range(4 if self.hours else 0):  # cool hours, in which two writers meet
            self.clock.advance(3_600.0)
            for mine in (self.series(), self.series()):
                self.number += 1
                lot = [reading(self._seconds() / 60)]
                self.schedule.start("writer", self.write(mine, [lot]))
            while self.schedule.step():
                pass
        self.schedule.start("reader", self.read(self.series()))
        while self.schedule.step():
            pass
        if self.rollups:
            hours = self.series().rollup("hour", of=Reading.value)
            span = (T0 - timedelta(days=1), T0 + timedelta(days=30))
            stored = self.series().count("s1", consistent=True)
            assert sum(each.count for each in hours.range("s1", *span)) == stored
            assert hours.rebuild("s1", *span) == 0
