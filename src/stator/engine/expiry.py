"""Time to live: deletes expired items in the background.

The idea. Nothing searches tables for expired items. A table with time to live has an expiry list,
ordered by time:

    x <table> <seconds> <item>    seconds since the epoch (8 bytes), then the item's storage key
                                  from its hash on; the value is empty

A write adds the item's line to the list in the same batch as the item (``Expiry.observe``). A line
stays when its item changes or is deleted, because it says only that the item *may* expire then.
When the time comes, the item itself is checked. Items that existed before time to live was enabled
have no line yet. A walk through the table, a chunk at a time, adds their lines. The walk's position
is part of the table's definition.

An item expires if its time-to-live attribute is a Number of epoch seconds in the past, but not more
than five years ago. These are AWS's rules; items with other values are left alone. Until an expired
item is deleted, it is read, changed and charged like any other item.

A sweep works in small steps, so that requests do not wait long for the engine's lock. One step
lists and deletes at most ``BATCH_ITEMS`` items of each table. The background thread deletes at most
``ITEMS_PER_SECOND`` items of each table.
"""

from __future__ import annotations

import copy
from typing import Final

from stator.engine import keyspace
from stator.engine.database import Database
from stator.engine.items import records
from stator.engine.items.write_path import Mutation, Writer
from stator.engine.tables.table import Table
from stator.model.values import Item
from stator.storage import Changes
from stator.storage.protocol import after_prefix

LINES: Final = b"x"
BATCH_ITEMS: Final = 100
ITEMS_PER_SECOND: Final = 5000
_OLDEST_SECONDS: Final = 5 * 365.25 * 86400
_LARGEST: Final = 2**63 - 1


def time_of(item: Item, attribute: str) -> int | None:
    """Return when the item expires, in epoch seconds, or None if the attribute is no valid time."""
    text = item.get(attribute, {}).get("N")
    if not isinstance(text, str):
        return None
    try:
        seconds = int(text)
    except ValueError:
        seconds = int(float(text))
    return seconds if 0 <= seconds <= _LARGEST else None


def is_over(seconds: int, now: float) -> bool:
    return now - _OLDEST_SECONDS <= seconds < now


def prefix_of(table_number: int) -> bytes:
    return LINES + table_number.to_bytes(4, "big")


class Expiry:
    """Maintains the expiry lists as a write observer, and deletes items that are due."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # -- the expiry list

    def observe(self, writer: Writer, changes: Changes) -> None:
        for change in writer.item_changes:
            attribute = change.table.definition.ttl_attribute
            if attribute is not None and change.new is not None:
                self._enter(change.table, change.key, change.item, attribute, changes)

    def _enter(
        self, table: Table, key: bytes, item: Item, attribute: str, changes: Changes
    ) -> None:
        seconds = time_of(item, attribute)
        if seconds is not None:
            line = (
                prefix_of(table.definition.number)
                + seconds.to_bytes(8, "big")
                + key[keyspace.PREFIX_BYTES :]
            )
            changes[line] = b""

    def forget(self, table_number: int) -> None:
        """Delete a table's expiry list.

        Call it when time to live is disabled or the table is deleted.
        """
        prefix = prefix_of(table_number)
        self._database.storage.delete_range(prefix, after_prefix(prefix))

    # -- the sweep

    def tables(self) -> list[Table]:
        return [
            table
            for table in self._database.catalog.all()
            if table.definition.ttl_attribute is not None
        ]

    def step(self) -> int:
        """Add a chunk of unlisted items to each expiry list, and delete a batch of due items.

        Returns the number of items examined. Zero means that nothing is left to do now.
        """
        with self._database.lock:
            if self._database.traffic is not None:
                self._database.traffic.turn()
            return sum(self._fill(table) + self._delete_due(table) for table in self.tables())

    def _fill(self, table: Table) -> int:
        definition = table.definition
        if definition.ttl_filled_to is None or definition.ttl_attribute is None:
            return 0
        start = max(bytes.fromhex(definition.ttl_filled_to), table.prefix)
        changes: Changes = {}
        place: bytes | None = None
        count = 0
        for key, record in self._database.storage.scan(start, after_prefix(table.prefix)):
            if count == BATCH_ITEMS:
                place = key
                break
            self._enter(table, key, records.unpack(record), definition.ttl_attribute, changes)
            count += 1
        filled = copy.deepcopy(definition)
        filled.ttl_filled_to = None if place is None else place.hex()
        self._database.catalog.put(filled, changes)
        self._database.storage.write(changes)
        return max(count, 1)

    def _delete_due(self, table: Table) -> int:
        now = self._database.clock.now()
        prefix = prefix_of(table.definition.number)
        due: list[bytes] = []
        end = prefix + max(0, int(now) + (now > int(now))).to_bytes(8, "big")
        for line, _ in self._database.storage.scan(prefix, end):
            due.append(line)
            if len(due) == BATCH_ITEMS:
                break
        if not due:
            return 0
        writer = Writer(by_service=True)
        gone = [line for line in due if self._delete(table, line, now, writer)]
        writer.changes.update(dict.fromkeys(gone))
        self._database.commit(writer)
        return len(gone)

    def _delete(self, table: Table, line: bytes, now: float, writer: Writer) -> bool:
        """Delete the item that a line names if it is due. Return whether the line can be deleted.

        The line must stay while a transaction holds the item.
        """
        attribute = table.definition.ttl_attribute
        key = table.prefix + line[len(LINES) + 4 + 8 :]
        if self._database.transaction_locks.holds(key):
            return False
        record = self._database.storage.get(key)
        if record is None or attribute is None:
            return True
        item = records.unpack(record)
        seconds = time_of(item, attribute)
        listed = int.from_bytes(line[len(LINES) + 4 : len(LINES) + 12], "big")
        if seconds == listed and is_over(listed, now):
            writer.add(Mutation(table, key, record, item, None))
            if self._database.traffic is not None:
                table.traffic.count("TimeToLiveDeletedItemCount")
        return True
