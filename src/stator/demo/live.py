"""The live part: routers that report tests at a given rate.

Each test also goes to its provider's live feed. One provider starts to report far more often, which
makes its partition hot.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from stator.demo.app import BAD_LATENCY_MS
from stator.demo.fleet import ISPS, Feed, Test
from stator.demo.history import isp_of
from stator.patterns.series.series import Series
from stator.tables.db import Db

BATCH: Final = 50
HOT: Final = ISPS[0]


def feed_of(db: Db, shards: int) -> Series[Db, Feed]:
    """Return the live feed, a Series with each provider's newest tests in time order.

    Each shard of each hour is a partition.
    """
    return Series(db, Feed, by=Feed.isp, at=Feed.at, bucket="hour", shards=shards)


@dataclass(slots=True)
class Written:
    """Totals of what the routers have reported."""

    tests: int = 0
    alerts: set[str] = field(default_factory=set)
    by_isp: Counter[str] = field(default_factory=Counter)
    # Writes by feed partition since the last sample.
    partitions: Counter[str] = field(default_factory=Counter)


class LiveFleet:
    """Routers that report tests from a thread.

    ``is_hot`` makes one provider report far more often.
    """

    def __init__(self, db: Db, routers: int, per_second: float, seed: int = 7) -> None:
        self._db = db
        self._routers = routers
        self._per_second = per_second
        self._chance = random.Random(seed)  # noqa: S311 - a simulation
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._hot = [number for number in range(routers) if isp_of(number) == HOT]
        self.shards = 1
        self.feed = feed_of(db, self.shards)
        self.is_hot = False
        self.written = Written()
        self.error: BaseException | None = None
        self._last = datetime.now(UTC)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        if self.error is not None:
            raise self.error

    def spread(self, shards: int) -> None:
        """Give the feed more shards from now on. Reads merge old and new shards."""
        self.feed, self.shards = feed_of(self._db, shards), shards

    def _run(self) -> None:
        try:
            due = time.monotonic()
            while not self._stopping.is_set():
                self._report(BATCH)
                due += BATCH / self._per_second
                self._stopping.wait(max(0.0, due - time.monotonic()))
        except BaseException as error:  # stop() raises it in the caller's thread
            self.error = error

    def _report(self, count: int) -> None:
        tests = [self._test() for _ in range(count)]
        self._db.write_many(tests)
        feed = [
            Feed(isp=test.isp, at=test.at, router_id=test.router_id, latency_ms=test.latency_ms)
            for test in tests
        ]
        series, shards = self.feed, self.shards
        series.add_many(feed)
        for each, test in zip(feed, tests):
            self.written.tests += 1
            self.written.by_isp[test.isp] += 1
            shard = series.layout.shard(each, shards)
            self.written.partitions[f"{test.isp} / {shard}"] += 1
            if test.latency_ms >= BAD_LATENCY_MS:
                self.written.alerts.add(f"{test.router_id}@{test.at.isoformat()}")

    def _test(self) -> Test:
        chance = self._chance
        number = (
            chance.choice(self._hot)
            if self.is_hot and chance.random() < 0.8
            else chance.randrange(self._routers)
        )
        # No two tests share a microsecond: the time identifies a router's test.
        self._last = _after(self._last)
        latency = 12 + chance.expovariate(1 / 14) + (320 if chance.random() < 0.01 else 0)
        return Test(
            router_id=f"r-{number:06d}",
            at=self._last,
            isp=isp_of(number),
            latency_ms=round(latency, 1),
            download_mbps=round(chance.uniform(40, 440), 1),
            loss_percent=round(chance.random() ** 6 * 5, 2),
        )


def _after(last: datetime) -> datetime:
    now = datetime.now(UTC)
    return now if now > last else datetime.fromtimestamp(last.timestamp() + 2e-6, UTC)
