"""Steps shared by the tests of all sinks: write, work, crash, and list parked items."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from stator import Db
from stator.errors import LeaseLost
from stator.pipeline import StreamApp, WorkerOptions
from stator.pipeline.sinks.change_sink import ChangeSink
from stator.pipeline.workers.handlers.parked_retry import ParkedRetry
from stator.pipeline.workers.handlers.parking import ParkedKey
from stator.pipeline.workers.handlers.subscribers import HandlerFailure, HandlerScope
from stator.tables.work import Work

from ..shop import Order

QUICK = WorkerOptions(
    start="oldest",
    idle_seconds=0.02,
    retry_seconds=0.01,
    longest_retry_seconds=0.02,
    max_attempts=3,
)
ORDERS, ROUNDS = 9, 4


def work(app: StreamApp, db: Db, options: WorkerOptions = QUICK) -> None:
    """Run a worker until all changes are handled."""
    with app.start(db, options) as running:
        running.catch_up()


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def write_orders(db: Db) -> None:
    """Write orders and change each several times; ``total`` counts up."""
    for total in range(ROUNDS):
        for number in range(ORDERS):
            db.put(Order(order_id=f"o{number}", total=total))


def totals(events: Iterable[Mapping[str, Any]]) -> dict[str, list[int]]:
    """The totals of each order, as they arrived."""
    found: dict[str, list[int]] = {}
    for event in events:
        found.setdefault(event["new"]["order_id"], []).append(event["new"]["total"])
    return found


WRITTEN = {f"o{number}": list(range(ROUNDS)) for number in range(ORDERS)}


def first_of_each(events: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The events without repeats, which have the same event id."""
    return list({event["id"]: event for event in reversed(list(events))}.values())[::-1]


def parked(app: StreamApp, db: Db) -> list[ParkedKey]:
    return db.run(ParkedRetry(db.context, app).parking.keys())


class Crashing:
    """A sink whose worker dies after some deliveries, before it can write its checkpoint."""

    def __init__(self, sink: ChangeSink, crashes: int) -> None:
        self.sink = sink
        self.crashes = crashes
        self.name = sink.name
        self.wants = sink.wants
        self.close = sink.close

    def handle(self, records: Any, scope: HandlerScope) -> Work[list[HandlerFailure]]:
        failures = yield from self.sink.handle(records, scope)
        if self.crashes:
            self.crashes -= 1
            raise LeaseLost("the worker is gone")
        return failures
