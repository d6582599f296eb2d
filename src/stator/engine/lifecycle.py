"""Tables that change state (CREATING, UPDATING, DELETING), and the backfill of new indexes.

A status lasts ``status_delay_seconds`` (0 by default). No timer ends it: the first request
that uses the table after that time ends it. So statuses behave the same with a virtual clock.

An index added to a table with items is backfilled in chunks. The first few chunks are filled before
the request is answered. A background thread fills the other chunks, and lets requests run between
them. The progress is part of the table's definition and is written with each chunk. So after a
crash the backfill resumes where it stopped.
"""

from __future__ import annotations

import copy
import logging
import threading

from stator.engine import keyspace
from stator.engine.database import Database
from stator.engine.expiry import Expiry
from stator.engine.items import records
from stator.engine.items.write_path import Mutation, Writer
from stator.engine.recovery import Recovery
from stator.engine.tables.table import Index, Table, TableDefinition
from stator.errors import StorageError
from stator.storage import Changes
from stator.storage.protocol import after_prefix

CHUNK_ITEMS = 500
# Tables up to this many chunks are indexed before UpdateTable answers; larger ones afterwards.
CHUNKS_AT_ONCE = 8

_log = logging.getLogger("stator.engine")


class Lifecycle:
    """Ends statuses whose time is over, removes deleted tables, and backfills indexes."""

    def __init__(
        self, database: Database, recovery: Recovery, expiry: Expiry, delay_seconds: float
    ) -> None:
        self._database = database
        self._recovery = recovery
        self._expiry = expiry
        self.delay_seconds = delay_seconds
        self._stopping = threading.Event()
        self._fillers: list[threading.Thread] = []

    def begin(self, definition: TableDefinition, status: str) -> None:
        definition.status = status
        definition.status_until = self._database.clock.now() + self.delay_seconds

    def changes_time_to_live(self, definition: TableDefinition) -> bool:
        """Whether a change to the time-to-live setting is still in progress."""
        changed = definition.ttl_changed
        return changed is not None and self._database.clock.now() < changed + self.delay_seconds

    def settle(self, table: Table) -> None:
        """Complete a transition, such as CREATING or DELETING, whose time is over.

        The caller holds the engine's lock.
        """
        definition = table.definition
        if not definition.in_transition or self._database.clock.now() < definition.status_until:
            return
        if definition.status == "DELETING":
            self._remove_table(table)
            return
        leaving = {index.number for index in definition.indexes if index.status == "DELETING"}
        definition.status = None
        for index in definition.indexes:
            index.status = None
        definition.drop_indexes(leaving)
        changes: Changes = {}
        settled = self._database.catalog.put(definition, changes)
        self._database.storage.write(changes)
        self._database.meter.adopt(settled, definition.status_until)
        for number in leaving:
            self._remove_data(keyspace.data_prefix(definition.number, number))

    def settle_all(self) -> None:
        """Complete the transitions of all tables whose time is over, and remove deleted tables.

        Call it before an operation that uses all tables, such as ListTables.
        """
        for table in list(self._database.catalog.all()):
            self.settle(table)

    def _remove_table(self, table: Table) -> None:
        if self._database.traffic is not None:  # its metrics outlive the table
            self._database.traffic.fold(self._database.clock.now())
        changes: Changes = {}
        self._database.catalog.remove(table, changes)
        self._database.meter.forget(table, changes)
        self._database.storage.write(changes)
        number, recovery = table.definition.number, self._recovery
        # The items may have become a backup. Index entries are useless without their table.
        low = (
            keyspace.data_prefix(number, 1)
            if recovery.keeps_data_of(table.prefix)
            else table.prefix
        )
        self._database.storage.delete_range(low, after_prefix(keyspace.table_prefix(number)))
        if table.definition.recovery is not None:
            recovery.log.drop(number)
        self._expiry.forget(number)

    def _remove_data(self, prefix: bytes) -> None:
        self._database.storage.delete_range(prefix, after_prefix(prefix))

    def resume(self) -> None:
        """Continue after opening: resume backfills, and finish interrupted deletions."""
        self.settle_all()
        self._remove_orphans()
        for table in list(self._database.catalog.all()):
            if any(index.backfilled_to is not None for index in table.indexes):
                self.fill(table, at_once=False)

    def _remove_orphans(self) -> None:
        """Remove the data of tables and indexes that are not in the catalogue.

        A crash during a deletion can leave such data behind.
        """
        known = {
            prefix
            for table in self._database.catalog.all()
            for prefix in (table.prefix, *(index.prefix for index in table.indexes))
        } | self._recovery.backups.prefixes()
        position, end = keyspace.DATA, after_prefix(keyspace.DATA)
        while found := next(iter(self._database.storage.scan(position, end)), None):
            prefix = found[0][: keyspace.PREFIX_BYTES]
            if prefix not in known:
                self._remove_data(prefix)
            position = after_prefix(prefix)

    # -- backfill

    def fill(self, table: Table, *, at_once: bool = True) -> None:
        if at_once:
            for _ in range(CHUNKS_AT_ONCE):
                if self._fill_or_end(table.definition.number):
                    return
        thread = threading.Thread(
            target=self._fill_all,
            args=(table.definition.number,),
            name="stator-backfill",
            daemon=True,
        )
        self._fillers.append(thread)
        thread.start()

    def _fill_all(self, number: int) -> None:
        while not self._stopping.is_set():
            with self._database.lock:
                if self._stopping.is_set() or self._fill_or_end(number):
                    return
            # Let waiting requests take the lock.
            self._stopping.wait(0.0005)

    def _fill_or_end(self, number: int) -> bool:
        """Add the next chunk of items to the new indexes. Return True once the backfill has ended.

        A storage error is raised, and the backfill resumes when the folder is opened again. After
        any other error, the new indexes are removed, because the backfill would fail at every
        opening.
        """
        try:
            return self._fill_chunk(number)
        except StorageError:
            raise
        except Exception:
            _log.exception("a backfill failed; the index is removed")
            self._remove_unfilled(number)
            return True

    def _remove_unfilled(self, number: int) -> None:
        """Remove indexes whose backfill failed: an index that lacks entries must not be read."""
        table = next(t for t in self._database.catalog.all() if t.definition.number == number)
        unfilled = {
            index.definition.number for index in table.indexes if index.backfilled_to is not None
        }
        definition = copy.deepcopy(table.definition)
        definition.drop_indexes(unfilled)
        changes: Changes = {}
        self._database.catalog.put(definition, changes)
        self._database.storage.write(changes)
        for each in unfilled:
            self._remove_data(keyspace.data_prefix(number, each))

    def _fill_chunk(self, number: int) -> bool:
        """Add the next chunk of a table's items to the indexes that are being backfilled.

        Returns True when no items are left.
        """
        table = next(
            (t for t in self._database.catalog.all() if t.definition.number == number), None
        )
        filling = [] if table is None else [i for i in table.indexes if i.backfilled_to is not None]
        if table is None or not filling:
            return True
        start = min(index.backfilled_to or b"" for index in filling)
        writer = Writer()
        end = after_prefix(table.prefix)
        last: bytes | None = None
        for count, (key, record) in enumerate(
            self._database.storage.scan(max(start, table.prefix), end)
        ):
            if count == CHUNK_ITEMS:
                last = key
                break
            self._index_item(writer, table, filling, key, record)
        definition = table.definition
        for index in filling:
            index.backfilled_to = last
            index.definition.backfilled_to = None if last is None else last.hex()
        changes = writer.finish()
        self._database.catalog.put(definition, changes)
        self._database.storage.write(changes)
        return last is None

    def _index_item(
        self, writer: Writer, table: Table, filling: list[Index], key: bytes, record: bytes
    ) -> None:
        item = records.unpack(record)
        mutation = Mutation(table, key, None, None, item, records.size_of(record))
        for index in filling:
            if index.backfilled_to is not None and key >= index.backfilled_to:
                entry = index.entry_key(item, key)
                if entry is not None:
                    writer.enter(index, mutation, record, entry)

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._fillers:
            thread.join()
