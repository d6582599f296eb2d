"""A small design that tests ingest into, and a log in memory."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import field
from datetime import UTC, datetime
from typing import Any

from stator import Db, Design, Entity, Query, find, ident, read, ttl
from stator.pipeline.ingest.app import Ingest
from stator.pipeline.ingest.dead_records import DeadRecordList
from stator.pipeline.ingest.intake import Intake
from stator.pipeline.ingest.options import IngestOptions
from stator.pipeline.ingest.source_record import Lane, SourceRecord


class Reading(Entity):
    meter: str = ident()
    value: int
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    site: str = "none"
    expires: int | None = ttl(default=None)


class Total(Entity):
    meter: str = ident()
    readings: int = 0
    sum: int = 0
    last: int | None = None
    sites: set[str] = field(default_factory=set)


class Account(Entity):
    account_id: str = ident()
    balance: int = 0


@read()
def readings_of(site: str) -> Query[Reading]:
    return find(Reading).where(Reading.site == site)


@read()
def total(meter: str) -> Query[Total]:
    return find(Total).where(Total.meter == meter)


@read()
def account(account_id: str) -> Query[Account]:
    return find(Account).where(Account.account_id == account_id)


meters = Design("meters", [Reading, Total, Account], [readings_of, total, account])


def add_to_total(event: dict[str, Any], into: Total) -> None:
    into.readings += 1
    into.sum += event["value"]
    into.last = event["value"]
    into.sites.add(event.get("site", "none"))


def totalling(name: str = "totals") -> Ingest:
    app = Ingest(meters, name)
    app.fold(Total, topic="readings", by=lambda event: {"meter": event["meter"]})(add_to_total)
    return app


class MemoryLog:
    """Topics with partitions, and what a group has committed."""

    def __init__(self) -> None:
        self.lanes: dict[Lane, list[SourceRecord]] = defaultdict(list)
        self.committed: dict[Lane, int] = {}

    def add(
        self,
        value: Any,
        key: str | None = None,
        *,
        partition: int = 0,
        topic: str = "readings",
        at: float = 0.0,
    ) -> SourceRecord:
        lane = Lane(topic, partition)
        raw = value if isinstance(value, bytes) or value is None else json.dumps(value).encode()
        named = None if key is None else key.encode()
        record = SourceRecord(topic, partition, len(self.lanes[lane]), named, raw, at)
        self.lanes[lane].append(record)
        return record


class Consumer:
    """An intake that reads a log from what was committed on."""

    def __init__(
        self, app: Ingest, db: Db, log: MemoryLog, options: IngestOptions | None = None
    ) -> None:
        self.letters = DeadRecordList()
        self.log = log
        self.intake = Intake(
            app.name,
            app.declared(),
            db.context,
            db.runner,
            self.letters,
            options or IngestOptions(),
        )
        self.positions = dict(log.committed)

    def read(self, most: int = 1_000_000) -> None:
        for lane, records in self.log.lanes.items():
            start = self.positions.get(lane, 0)
            found = records[start : start + most]
            self.positions[lane] = start + len(found)
            self.intake.take_in(found)

    def write(self) -> None:
        while self.intake.write_once():
            pass

    def commit(self) -> None:
        marks = self.intake.uncommitted()
        self.log.committed |= marks
        self.intake.marks.committed(marks)

    def run(self) -> None:
        self.read()
        self.write()
        self.commit()
