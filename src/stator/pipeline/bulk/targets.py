"""The table that a job writes to or reads from, and its design if it has one."""

from __future__ import annotations

import os
import random
import threading
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from stator.addresses import Address, EngineTransport, TransportOptions, open_transport
from stator.clock import Clock, SystemClock
from stator.design.design import Design
from stator.design.table_settings import TableSettings
from stator.engine import Engine
from stator.errors import ConfigurationError, PartlyDone, ResourceNotFound
from stator.pipeline.bulk.retried_call import first_call, retried_call, retried_work
from stator.tables.blobs.stores import BlobStore
from stator.tables.connection import ConnectOptions, make_context
from stator.tables.context import Context
from stator.tables.db import Db
from stator.tables.lifecycle import TableSetup
from stator.tables.observers import CallRecord
from stator.tables.runner import Runner
from stator.tables.schema.entity_map import EntityMap
from stator.tables.schema.schema import Schema
from stator.tables.writes.sender import write
from stator.tables.writes.writes import WritePlanner
from stator.transport import Transport

_HTTP_WRITERS = 16
# Without a network there is no latency to hide, and more threads only slow each other down.
_NEAR_WRITERS = 4
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class EntityPuts:
    """Writes entities one by one through a ``Db``, and replaces existing entities.

    The writes maintain guards of unique values, versions and large values. Nothing is read back: a
    row is stored once its write is, whatever a later step meets. ``units`` must be an observer of
    the calls of ``db``.
    """

    def __init__(self, db: Db, units: ThreadUnits) -> None:
        self._db = db
        self._units = units
        self._planner = WritePlanner(db.context)

    def put(self, entity: Any) -> float:
        """Write an entity, and return the write units that it consumed, guards included."""
        self._units.take()
        upsert = write(self._db.context, lambda: self._planner.upsert(entity), "load")
        # If a replaced blob could not be deleted, the row is stored all the same.
        with suppress(PartlyDone):
            self._db.run(upsert)
        return self._units.take()


class ThreadUnits:
    """An observer of a ``Db``'s calls that adds up the write units of each thread."""

    def __init__(self) -> None:
        self._of_thread = threading.local()

    def __call__(self, record: CallRecord) -> None:
        self._of_thread.units = getattr(self._of_thread, "units", 0.0) + record.write_units

    def take(self) -> float:
        """Return the write units that this thread has used since its last ``take``."""
        found: float = getattr(self._of_thread, "units", 0.0)
        self._of_thread.units = 0.0
        return found


class BulkTarget:
    """A table at an address, which a job reads or writes.

    ``close``, or the end of a ``with`` block, closes the transport if it is ``owned``.
    """

    def __init__(
        self,
        transport: Transport,
        table: str,
        *,
        address: str = "",
        schema: Schema | None = None,
        entity: EntityMap | None = None,
        db: Db | None = None,
        units: ThreadUnits | None = None,
        context: Context | None = None,
        owned: bool = True,
    ) -> None:
        self._owned = owned
        self._context = context
        self.has_answered = False
        """Whether the address has answered a request of this job."""
        self.transport = transport
        self.table = table
        self.address = address
        self.schema = schema
        self.entity = entity
        self.entity_name = None if entity is None else entity.name
        self.is_written_alone = entity is not None and entity.is_written_alone
        self.entity_writer: EntityPuts | None = None
        if self.is_written_alone and db is not None:
            self.entity_writer = EntityPuts(db, units or ThreadUnits())

    @classmethod
    def open(
        cls,
        address: str | os.PathLike[str] | Engine | None,
        table: str | None = None,
        *,
        design: Design | None = None,
        entity: type[Any] | None = None,
        prefix: str = "",
        blobs: str | None = None,
        clock: Clock | None = None,
        options: TransportOptions | None = None,
    ) -> BulkTarget:
        """Open ``table``, or the table of ``entity`` in ``design``, at an address.

        The address is a folder, a URL or an engine. On the embedded engine, a design's tables are
        created if they do not exist.
        """
        where = Address.parse(address)
        settings: TransportOptions = dict(options or {})  # type: ignore[assignment]
        # The job's writers must see every throttling: they retry and slow down themselves.
        settings.setdefault("max_attempts", 1)
        if not where.is_embedded:
            settings.setdefault("max_connections", 64)
        transport = open_transport(where, clock, settings)
        shown = "memory" if isinstance(address, Engine) or address is None else os.fspath(address)
        try:
            if design is None:
                return cls(transport, table or "", address=shown)
            return cls._designed(
                transport, where, shown, design, entity, table, prefix, blobs, clock
            )
        except BaseException:
            transport.close()
            raise

    @classmethod
    def _designed(
        cls,
        transport: Transport,
        where: Address,
        address: str,
        design: Design,
        entity: type[Any] | None,
        table: str | None,
        prefix: str,
        blobs: str | None,
        clock: Clock | None,
    ) -> BulkTarget:
        settings: ConnectOptions = {"prefix": prefix, "clock": clock or SystemClock()}
        if blobs is not None:
            settings["blobs"] = blobs
        context = make_context(design, settings)
        schema = context.schema
        entity_map = None if entity is None else schema.of(entity)
        name = _table_of(schema, table) if entity_map is None else entity_map.table.name
        units = ThreadUnits()
        runner = Runner(transport, context.clock, observers=(units,), threads=1)
        if where.is_embedded:
            runner.run(TableSetup(context, TableSettings()).run())
        return cls(
            transport,
            name,
            address=address,
            schema=schema,
            entity=entity_map,
            db=Db(context, runner),
            units=units,
            context=context,
        )

    @property
    def default_writers(self) -> int:
        """The number of requests that a job keeps in flight, unless its options set another."""
        is_near = not self.transport.parallel or urlsplit(self.address).hostname in _LOOPBACK
        return _NEAR_WRITERS if is_near else _HTTP_WRITERS

    def is_at(self, other: BulkTarget) -> bool:
        """Whether both targets are at the same address.

        Two spellings of one address count as different.
        """
        here, there = self.transport, other.transport
        if isinstance(here, EngineTransport) and isinstance(there, EngineTransport):
            return here.engine is there.engine
        return here is there or (self.address == other.address and type(here) is type(there))

    @property
    def blob_store(self) -> BlobStore | None:
        """The store of offloaded ``large()`` values, if the target was opened with one."""
        return None if self._context is None else self._context.blobs

    def create_design_tables(self, chance: random.Random) -> None:
        """Create the missing tables of the design, as ``db.ensure()`` does."""
        context = self._context
        assert context is not None
        settings = context.schema.design.settings or TableSettings()
        retried_work(
            self.transport, context.clock, chance, lambda: TableSetup(context, settings).run()
        )

    def __enter__(self) -> BulkTarget:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def owned_transport(self) -> Transport | None:
        """The transport if this target opened it, else None.

        An interrupted job closes it to end the requests in flight.
        """
        return self.transport if self._owned else None

    def close(self) -> None:
        """Close the connection, if this target opened it."""
        if self._owned:
            self.transport.close()


def _table_of(schema: Schema, table: str | None) -> str:
    """Return ``table`` if the design has that table, or the design's only table if it is None.

    Raises ConfigurationError otherwise.
    """
    names = list(schema.tables)
    if table is None and len(names) == 1:
        return names[0]
    if table is None or table not in schema.tables:
        problem = "no table was chosen from" if table is None else f"there is no table {table} in"
        raise ConfigurationError(
            f"{problem} design {schema.design.name}", hint=f"name one of {', '.join(names)}"
        )
    return table


def find_description(
    target: BulkTarget, clock: Clock, chance: random.Random
) -> dict[str, Any] | None:
    """Return the table's description from DescribeTable, or None if there is no such table.

    Raises Unreachable at once if the address has not answered before and does not answer now.
    """
    request = {"TableName": target.table}
    try:
        if target.has_answered:
            reply = retried_call(target.transport, clock, chance, "DescribeTable", request)
        else:
            reply = first_call(
                target.transport, target.address, clock, chance, "DescribeTable", request
            )
    except ResourceNotFound:
        target.has_answered = True
        return None
    target.has_answered = True
    found: dict[str, Any] = reply["Table"]
    return found


def described(
    target: BulkTarget, clock: Clock, chance: random.Random, *, advice: str = ""
) -> dict[str, Any]:
    """Return the table's description from DescribeTable.

    Raises ConfigurationError if there is no such table. The hint begins with ``advice`` and then
    lists the tables that exist.
    """
    found = find_description(target, clock, chance)
    if found is None:
        raise ConfigurationError(
            f"there is no table {target.table} at {target.address}",
            hint=f"{advice}choose one of the tables there: {_tables(target)}",
        )
    return found


def _tables(target: BulkTarget) -> str:
    reply = target.transport.call("ListTables", {})
    more = ["..."] if "LastEvaluatedTableName" in reply else []
    return ", ".join([*reply["TableNames"], *more]) or "none"
