"""The live part of the demo: simulated routers that report tests at a given rate.

Each test also goes to its provider's live feed. One provider starts to report far more often, which
makes its partition hot. Two collectors write the feed, as two processes would. Each collector alone
stays below the limit of a partition, so only DynamoDB's refusals tell them that the key is hot.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from stator.demo.app import BAD_LATENCY_MS
from stator.demo.fleet import ISPS, Feed, Test
from stator.demo.history import isp_of
from stator.patterns.series.series import Series
from stator.tables.db import Db
from stator.tables.observers import WRITES, CallRecord
from stator.tables.shards.adaptive_shards import AdaptiveShards
from stator.tables.shards.shard_change import ShardChange

BATCH: Final = 50
HOT: Final = ISPS[0]
TRACE: Final = " ".join(f"{12 + number % 9}.{number % 10}" for number in range(1_150))
"""The single measurements of a test, some 6 KB: an entry of the feed costs six write units."""


def feed_of(db: Db, on_change: Callable[[ShardChange], None] | None = None) -> Series[Db, Feed]:
    """Return the live feed: a Series of each provider's newest connection tests, in time order.

    It divides each provider's tests into hours, and each hour into as many partitions as it needs.
    """
    shards = AdaptiveShards(most=16, target=1.0, on_change=on_change)
    return Series(db, Feed, by=Feed.isp, at=Feed.at, bucket="hour", shards=shards)


@dataclass(slots=True)
class Written:
    """The routers' reports so far: tests, alerts, counts by provider and partition."""

    tests: int = 0
    alerts: set[str] = field(default_factory=set)
    by_isp: Counter[str] = field(default_factory=Counter)
    # Writes by feed partition since the last sample.
    partitions: Counter[str] = field(default_factory=Counter)


class RefusedWrites:
    """Counts the writes of the feed that DynamoDB refused. An observer of the feed's connection.

    Each attempt counts. A batch of which some items were refused counts these items.
    """

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()

    def __call__(self, call: CallRecord) -> None:
        if call.operation not in WRITES:
            return
        left = sum(map(len, call.reply.get("UnprocessedItems", {}).values()))
        if call.throttles:
            batch = sum(map(len, call.request.get("RequestItems", {}).values()))
            left += len(call.throttles) * max(1, batch)
        with self._lock:
            self.count += left


class LiveFleet:
    """Simulated routers that report tests from a background thread.

    Tests go to ``db``, and the feed to ``feed_db``. ``is_hot`` makes one provider report far more
    often. ``on_change`` is called when a provider's feed gets more shards.
    """

    def __init__(
        self,
        db: Db,
        feed_db: Db,
        routers: int,
        per_second: float,
        on_change: Callable[[ShardChange], None] | None = None,
        seed: int = 7,
    ) -> None:
        self._db = db
        self._routers = routers
        self._per_second = per_second
        self._chance = random.Random(seed)  # noqa: S311 - a simulation
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._hot = [number for number in range(routers) if isp_of(number) == HOT]
        self.collectors = [feed_of(feed_db, on_change) for _ in range(2)]
        self._reports = 0
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

    @property
    def feed(self) -> Series[Db, Feed]:
        return self.collectors[0]

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
            Feed(
                isp=test.isp,
                at=test.at,
                router_id=test.router_id,
                latency_ms=test.latency_ms,
                trace=TRACE,
            )
            for test in tests
        ]
        series = self.collectors[self._reports % len(self.collectors)]
        self._reports += 1
        series.add_many(feed)
        for each, test in zip(feed, tests):
            self.written.tests += 1
            self.written.by_isp[test.isp] += 1
            shard = series.layout.shard(each, self._shards(series, each))
            self.written.partitions[f"{test.isp} / {shard}"] += 1
            if test.latency_ms >= BAD_LATENCY_MS:
                self.written.alerts.add(f"{test.router_id}@{test.at.isoformat()}")

    def _shards(self, series: Series[Db, Feed], entry: Feed) -> int:
        """Return the number of shards that the collector knows; this makes no request."""
        by, bucket = series.layout.by.of(entry), series.layout.bucket_of(entry)
        return series.db.run(series.directory.open(by, bucket)).shards

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
