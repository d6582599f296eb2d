"""Measure a stream worker: changes per second, and the lag from a write to its handler.

    python -m bench.streams [--changes 50000] [--seconds 3] [--json figures.json]

One worker runs in this process, with handlers that do nothing and with views: on the engine in
memory, and on one that another process serves over HTTP.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import machine
from stator import Db, Design, Engine, Entity, Query, TableSettings, connect, find, ident, read
from stator.pipeline import (
    Change,
    StreamApp,
    View,
    WorkerOptions,
    avg,
    count,
    percentiles,
    sum_of,
    top,
)

console = Console()
START = datetime(2026, 11, 16, tzinfo=UTC)


class Test(Entity):
    test_id: str = ident()
    isp: str
    at: datetime
    latency_ms: float
    size: int
    sent: float = 0.0


@read()
def test_by_id(test_id: str) -> Query[Test]:
    return find(Test).where(Test.test_id == test_id)


fleet = Design("fleet", [Test], [test_by_id])


@dataclass(frozen=True, slots=True)
class Figures:
    where: str
    handler: str
    changes_per_second: float
    lag_p50_ms: float
    lag_p99_ms: float


def one_by_one(app: StreamApp) -> None:
    @app.on.any(Test)
    def nothing(change: Change[Test]) -> None:
        pass


def in_batches(app: StreamApp) -> None:
    @app.on.batch(Test)
    def nothing(changes: list[Change[Test]]) -> None:
        pass


def with_sums(app: StreamApp) -> None:
    app.add(
        View(
            "isp_hours",
            of=Test,
            by=Test.isp,
            bucket=(Test.at, "hour"),
            tests=count(),
            total=sum_of(Test.size),
            latency=avg(Test.latency_ms),
            spread=percentiles(Test.latency_ms),
        )
    )


def with_ranks(app: StreamApp) -> None:
    app.add(
        View("isp_top", of=Test, by=Test.isp, tests=count(), slowest=top(10, by=Test.latency_ms))
    )


HANDLERS: dict[str, Callable[[StreamApp], None]] = {
    "a handler that does nothing": one_by_one,
    "one that takes batches": in_batches,
    "a view of sums and percentiles": with_sums,
    "a view with a top 10": with_ranks,
}


def a_test(number: int) -> Test:
    at = START + timedelta(seconds=number % (3600 * 24))
    return Test(
        test_id=f"t{number}",
        isp=f"isp{number % 20}",
        at=at,
        latency_ms=5 + number * 7919 % 1000 / 3,
        size=number % 1500,
    )


@contextmanager
def embedded() -> Iterator[Db]:
    with Engine.open() as engine, connect(fleet, engine) as db:
        yield db


@contextmanager
def served() -> Iterator[Db]:
    command = [sys.executable, "-m", "stator", "serve", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            with connect(fleet, json.loads(server.stdout.readline())["url"]) as db:
                yield db
        finally:
            server.terminate()


PLACES = {"in memory": embedded, "over HTTP": served}


def throughput(db: Db, make: Callable[[StreamApp], None], changes: int) -> float:
    """Changes per second with a backlog."""
    db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
    db.write_many(a_test(number) for number in range(changes))
    app = StreamApp(fleet, "bench")
    make(app)
    started = time.perf_counter()
    with app.start(db, WorkerOptions(start="oldest")) as running:
        while running.progress().handled < changes:
            time.sleep(0.002)
        return changes / (time.perf_counter() - started)


def lags(db: Db, make: Callable[[StreamApp], None], seconds: float, per_second: int) -> list[float]:
    """Milliseconds from before a write to its handler, at a steady rate.

    Views run before handlers, so their time is included.
    """
    db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
    app = StreamApp(fleet, "bench")
    make(app)
    found: list[float] = []

    @app.on.insert(Test, name="clock")
    def clock(change: Any) -> None:
        found.append((time.time() - change.new.sent) * 1000)

    with app.start(db, WorkerOptions(start="oldest")) as running:
        running.catch_up()
        started = time.perf_counter()
        for number in range(int(seconds * per_second)):
            made = a_test(number)
            made.sent = time.time()
            db.put(made)
            time.sleep(max(0.0, started + (number + 1) / per_second - time.perf_counter()))
        running.catch_up()
    return sorted(found)


def measure(options: argparse.Namespace) -> list[Figures]:
    results = []
    for place, opened in PLACES.items():
        for name, make in HANDLERS.items():
            if not any(word in f"{place} {name}" for word in options.only.split(",")):
                continue
            with opened() as db:
                rate = throughput(db, make, options.changes)
            with opened() as db:
                found = lags(db, make, options.seconds, options.rate)
            middle, high = found[len(found) // 2], found[int(len(found) * 0.99)]
            results.append(Figures(place, name, round(rate), round(middle, 1), round(high, 1)))
            console.print(f"{place}, {name}: {rate:,.0f}/s, {middle:.1f} ms, {high:.1f} ms")
    return results


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.streams",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--changes", type=int, default=50_000, help="changes in the backlog (default: 50,000)")
    add("--seconds", type=float, default=3.0, help="duration of the lag measurement (default: 3)")
    add("--rate", type=int, default=200, help="writes per second while it runs (default: 200)")
    add("--only", default="", help="measurements to run, as parts of their names: memory,view")
    add("--json", metavar="FILE", help="also write the figures to FILE")
    options = parser.parse_args()
    console.print(machine.describe())
    results = measure(options)
    table = Table("", "worker with", "changes/s", "lag p50", "p99", box=None)
    for each in results:
        table.add_row(
            each.where,
            each.handler,
            f"{each.changes_per_second:,.0f}",
            f"{each.lag_p50_ms:.1f} ms",
            f"{each.lag_p99_ms:.1f} ms",
        )
    console.print(table)
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(each) for each in results], indent=1))


if __name__ == "__main__":
    main()
