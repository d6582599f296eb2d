"""Tickets by status: an index with few values, whose shards follow the traffic."""

from __future__ import annotations

import random
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from stator import Design, Entity, Query, connect, find, ident, read
from stator.addresses import EngineTransport
from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import ItemNotFound, OutcomeUnknown, Throttled, ThroughputExceeded
from stator.model.values import Item
from stator.tables.db import Db
from stator.tables.reads.pattern_read import Page, PatternRead, ReadOptions
from stator.tables.reads.pattern_read import page as page_of
from stator.tables.work import Work
from stator.tables.writes.recorder import Recorder, Recording
from stator.tables.writes.sender import write
from stator.tables.writes.writes import WritePlanner
from stator.testing import Fault, FaultyTransport, InterceptedCall
from tests.patterns.interleaved import Process, Schedule

T0 = datetime(2096, 11, 14, 12, tzinfo=UTC)


class Ticket(Entity):
    ticket_id: str = ident()
    status: str
    at: datetime
    note: str = ""


@read(rps=5, returns=50, shards="adaptive", paged=True)
def tickets_by_status(status: str) -> Query[Ticket]:
    """Return the tickets with a status, the earliest first."""
    return find(Ticket).where(Ticket.status == status).order_by(Ticket.at)


@read(rps=5)
def ticket(ticket_id: str) -> Query[Ticket]:
    return find(Ticket).where(Ticket.ticket_id == ticket_id)


@cache
def design() -> Design:
    """Return the design, which is planned only once."""
    return Design("tickets", [Ticket], [tickets_by_status, ticket], volumes={Ticket: 10_000})


def made(number: int, status: str = "open", note: str = "") -> Ticket:
    return Ticket(
        ticket_id=f"t{number}", status=status, at=T0 + timedelta(seconds=number), note=note
    )


def enforced() -> tuple[VirtualClock, Engine, Db]:
    """Tickets on an engine whose index starts with 40 partitions of 1,000 units a second each."""
    clock = VirtualClock(T0.timestamp())
    engine = Engine.open(clock=clock, throughput="enforced")
    db = connect(design(), engine, clock=clock, random=random.Random(1))
    warm = {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 40_000}
    update = {"IndexName": "GSI1", "WarmThroughput": warm}
    engine.call(
        "UpdateTable",
        {
            "TableName": "tickets",
            "WarmThroughput": warm,
            "GlobalSecondaryIndexUpdates": [{"Update": update}],
        },
    )
    return clock, engine, db


def shards_of(engine: Engine) -> dict[str, str]:
    """Return the shard in which the index has each ticket, by ticket id."""
    return {each["ticket_id"]["S"]: each["GSI1PK"]["S"][-1] for each in entries_of(engine)}


def entries_of(engine: Engine) -> list[Item]:
    """Return every entry of the index."""
    request: dict[str, Any] = {"TableName": "tickets", "IndexName": "GSI1"}
    found: list[Item] = []
    while True:
        reply = engine.call("Scan", request)
        found += reply["Items"]
        if "LastEvaluatedKey" not in reply:
            return found
        request["ExclusiveStartKey"] = reply["LastEvaluatedKey"]


HOT_INDEX = [
    {
        "reason": "IndexWriteKeyRangeThroughputExceeded",
        "resource": "arn:aws:dynamodb:us-east-1:000000000000:table/tickets/index/GSI1",
    }
]
_PASSING = (ThroughputExceeded, Throttled, OutcomeUnknown)  # each job may be repeated


class TicketWorld:
    """Writers and readers of one status, in random order, with throttling, kills and lost replies.

    Each connection is a process with a memory of its own, so some of them learn late how many
    shards the status has.
    """

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock = VirtualClock(T0.timestamp())
        self.engine = Engine.open(clock=self.clock)
        self.network = FaultyTransport(EngineTransport(self.engine), self.fault)
        self.schedule = Schedule(self.network, self.clock, seed)
        self.seed = seed
        self.open: dict[str, Ticket] = {}
        """The tickets that are certainly open, and that no writer is changing."""
        self.made: dict[str, Ticket] = {}
        self.writing: list[Process] = []
        self.busy: set[str] = set()
        self.readers: list[set[str]] = []
        self.seen = 0
        self.number = 0

    def fault(self, call: InterceptedCall) -> Fault | None:
        chance = self.chance.random()
        if call.operation not in ("PutItem", "UpdateItem"):
            return Fault("throttled", error=Throttled("Rate exceeded")) if chance < 0.02 else None
        if chance < 0.06 and call.request.get("TableName") == "tickets":
            return Fault("throttled", error=ThroughputExceeded(throttling_reasons=HOT_INDEX))
        return Fault("duplicated") if chance < 0.1 else None

    def connection(self) -> Db:
        return connect(
            design(), self.engine, clock=self.clock, random=random.Random(self.chance.random())
        )

    def write(self, db: Db, jobs: list[tuple[str, Ticket]]) -> Generator[Any, Any, Any]:
        planner = WritePlanner(db.context)
        of = db.context.schema.of(Ticket)
        for kind, each in jobs:
            while True:
                try:
                    if kind != "update":
                        yield from self._sent(db, lambda: planner.put(each))  # noqa: B023
                    else:
                        recording = Recording(of)
                        Recorder(recording).status = each.status
                        values = {"ticket_id": each.ticket_id}
                        yield from self._sent(
                            db,
                            lambda: planner.update(of, recording, values, when=[], entity=each),  # noqa: B023
                        )
                except _PASSING:
                    continue
                except ItemNotFound:
                    pass
                break
            if kind == "put again":
                continue  # another writer may be changing it
            if each.status == "open":  # the last job of the ticket
                self.busy.discard(each.ticket_id)
                self.open[each.ticket_id] = each

    @staticmethod
    def _sent(db: Db, prepare: Any) -> Work[Any]:
        return write(db.context, prepare, "a ticket")

    def jobs(self) -> list[tuple[str, Ticket]]:
        """New tickets, tickets that are written again, and tickets that leave and come back."""
        found: list[tuple[str, Ticket]] = []
        for _ in range(self.chance.randrange(2, 9)):
            free = sorted(self.made.keys() - self.busy)
            kind = self.chance.random()
            if kind < 0.5 or not free:
                self.number += 1
                each = made(self.chance.randrange(5_000) * 10_000 + self.number)
                found.append(("put", each))
            elif kind < 0.8:  # the same value again, perhaps by a process that knows nothing
                each = self.made[self.chance.choice(free)]
                if each.ticket_id in self.open:
                    found.append(("put again", each))
                    continue  # it stays open meanwhile
                found.append(("put", each))
            else:
                each = self.made[self.chance.choice(free)]
                found.append(("update", made(int(each.ticket_id[1:]), "done")))
                found.append(("update", each))
            self._touch(each)
        return found

    def _touch(self, each: Ticket) -> None:
        self.made[each.ticket_id] = each
        self.busy.add(each.ticket_id)
        self.open.pop(each.ticket_id, None)
        for touched in self.readers:
            touched.add(each.ticket_id)

    def read(self, db: Db, *, turns: bool) -> Generator[Any, Any, Any]:
        """Page through the open tickets: those that stay open must come once, and in order.

        With ``turns``, the reader then goes back to the start.
        """
        expected, touched = set(self.open), set[str]()
        self.readers.append(touched)
        found: list[Ticket] = []
        options = ReadOptions()
        cursor: str | None = None
        back: list[Ticket] | None = None
        while True:
            try:
                page: Page[Ticket] = yield from page_of(
                    db.context, tickets_by_status("open"), 7, cursor, options
                )
            except _PASSING:
                continue
            if back is None:
                found += page.items
                cursor = page.cursor
                if cursor is None and turns:
                    back = list(page.items)
            else:
                back = [*page.items, *back]
            if back is not None:
                cursor = page.previous
            if cursor is None:
                break
        self.readers = [each for each in self.readers if each is not touched]
        for way in (found, back) if back is not None else (found,):
            steady = [each for each in way if each.ticket_id in expected - touched]
            times = [each.at for each in steady]
            assert times == sorted(set(times)), "a ticket came twice, or out of order"
            missing = expected - touched - {each.ticket_id for each in steady}
            assert not missing, f"missing: {missing}"
        self.seen += 1

    def run(self, steps: int) -> None:
        shared = [self.connection() for _ in range(3)]
        for _ in range(steps):
            if len(self.writing) < 4 and self.chance.random() < 0.1:
                db = self.chance.choice([*shared, self.connection()])
                self.writing.append(self.schedule.start("writer", self.write(db, self.jobs())))
            if self.chance.random() < 0.02:
                turns = self.chance.random() < 0.5
                self.schedule.start("reader", self.read(self.connection(), turns=turns))
            if self.writing and self.chance.random() < 0.01:
                self.schedule.kill(self.chance.choice(self.writing))
            if self.chance.random() < 0.005:
                self.clock.advance(self.chance.choice([1.0, 12.0, 61.0, 400.0]))
            self.writing = [each for each in self.writing if not each.is_over]
            self.schedule.step()
        while self.schedule.step():
            pass
        self.schedule.start("reader", self.read(self.connection(), turns=True))
        while self.schedule.step():
            pass

    def counted(self) -> int:
        """Return the number of open tickets, as the pattern reads them."""
        db = self.connection()
        return db.run(PatternRead(db.context, tickets_by_status("open"), ReadOptions()).count())

    def shards(self) -> int:
        """Return how many shards have had tickets."""
        return len(set(shards_of(self.engine).values()))
