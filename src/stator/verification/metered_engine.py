"""An embedded engine whose calls are counted: units by table and index, items, requests, time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Unpack

from stator.addresses import EngineTransport
from stator.clock import VirtualClock
from stator.design.design import Design
from stator.design.plan.plan import Plan
from stator.engine import Engine
from stator.model.limits import BATCH_WRITE_ITEMS
from stator.tables.connection import connect
from stator.tables.db import Db
from stator.tables.observers import MEASURED, WRITES
from stator.tables.runner import Runner
from stator.transport import CallOptions
from stator.verification.unit_boundaries import PageRead, StoredSizes

_NOW = 1_800_000_000.0
"""A moment in January 2027: after every generated time, and before every expiry."""


@dataclass(slots=True)
class Consumption:
    """The capacity, items and requests of some calls.

    ``read_units`` and ``write_units`` are by table or index name.
    """

    read_units: dict[str, float] = field(default_factory=dict)
    write_units: dict[str, float] = field(default_factory=dict)
    items_read: float = 0.0
    pages: float = 0.0
    """The number of answers to Query and Scan."""
    reads: list[PageRead] = field(default_factory=list)
    requests: float = 0.0
    seconds: float = 0.0

    def add(self, operation: str, reply: Mapping[str, Any], seconds: float) -> None:
        self.requests += 1
        self.seconds += seconds
        count = 0
        if operation in ("Query", "Scan"):
            self.pages += 1
            count = reply.get("ScannedCount", 0)
        elif operation == "GetItem":
            count = int("Item" in reply)
        elif operation == "BatchGetItem":
            count = sum(map(len, reply.get("Responses", {}).values()))
        self.items_read += count
        found = reply.get("ConsumedCapacity") or ()
        units = self.write_units if operation in WRITES else self.read_units
        for entry in [found] if isinstance(found, dict) else found:
            for place, amount in _places(entry):
                units[place] = units.get(place, 0.0) + amount
                if operation in ("Query", "Scan"):
                    self.reads.append(PageRead(place, count, amount))
                elif units is self.read_units and count:  # each item is rounded up by itself
                    self.reads += [PageRead(place, 1, amount / count)] * count


def _places(entry: Mapping[str, Any]) -> Iterable[tuple[str, float]]:
    """Yield the tables and indexes of a ConsumedCapacity entry that consumed something."""
    table = entry.get("Table", entry)["CapacityUnits"]
    if table:
        yield entry["TableName"], table
    for kind in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes"):
        for index, used in entry.get(kind, {}).items():
            yield f"{entry['TableName']} / {index}", used["CapacityUnits"]


class MeteredTransport:
    """Calls the embedded engine and adds up what the calls consume."""

    parallel = False

    def __init__(self, inside: EngineTransport) -> None:
        self._inside = inside
        self.consumed = Consumption()

    def call(
        self, operation: str, request: Mapping[str, Any], **options: Unpack[CallOptions]
    ) -> dict[str, Any]:
        if operation in MEASURED:
            request = {**request, "ReturnConsumedCapacity": "INDEXES"}
        started = time.perf_counter()
        reply = self._inside.call(operation, request)
        self.consumed.add(operation, reply, time.perf_counter() - started)
        return reply

    def close(self) -> None:
        self._inside.close()


class MeteredEngine:
    """A design's tables on an engine in memory, with a ``Db`` whose calls are counted."""

    def __init__(self, design: Design, plan: Plan) -> None:
        self.clock = clock = VirtualClock(_NOW)
        self._engine = Engine.open(None, clock=clock)
        made = connect(design, self._engine, plan=plan, clock=clock)
        self.transport = MeteredTransport(EngineTransport(self._engine))
        self.db = Db(made.context, Runner(self.transport, clock, threads=1))
        self.sizes = StoredSizes(plan)

    def __enter__(self) -> MeteredEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.db.close()

    def load(self, entities: Iterable[Any], *, guarded: bool = False) -> None:
        """Store objects as they are, with the versions and times they have. Nothing is counted.

        ``guarded`` objects are created one by one, with the guards of their unique values.
        """
        schema = self.db.context.schema
        waiting: dict[str, list[Any]] = {}
        whole = []
        for entity in entities:
            of = schema.of_object(entity)
            self.weigh(entity)
            if guarded and of.guarded:
                self.db.create(entity)
                continue
            if of.large:
                whole.append(entity)
                continue
            requests = waiting.setdefault(of.plan.table, [])
            requests.append({"PutRequest": {"Item": of.item(entity)}})
            if len(requests) == BATCH_WRITE_ITEMS:
                self._send(of.plan.table, requests)
                waiting[of.plan.table] = []
        for table, requests in waiting.items():
            if requests:
                self._send(table, requests)
        if whole:  # large values are packed on the way
            self.db.write_many(whole)
        self.start()

    def weigh(self, entity: Any) -> None:
        """Add the size of an object's item, and of its index entries, to ``sizes``."""
        of = self.db.context.schema.of_object(entity)
        if not of.large:  # packed when it is written
            self.sizes.add(of.plan.table, of.plan.name, of.item(entity))

    def _send(self, table: str, requests: list[Any]) -> None:
        self._engine.call("BatchWriteItem", {"RequestItems": {table: requests}})

    def start(self) -> None:
        """Set the consumption counted so far back to zero."""
        self.transport.consumed = Consumption()

    @property
    def consumed(self) -> Consumption:
        return self.transport.consumed
