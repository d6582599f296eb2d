"""Copies of a table as it was at one moment, made while others write to it.

An area holds records under the items' own keys, without the table's prefix. An empty value means
that there was no item.

*copy* reads the table in key order, a chunk per step, under the lock, and copies the items that the
area does not have. Meanwhile, a write to an item that is not in the area yet saves the item's old
record in the area, in the same batch (``observe``). So an item enters the area as it was when the
copy began, whether the copy or a write reaches it first.

*count* compares the number of items in the area with the table's count when the copy began. If the
numbers differ, the data is damaged, and the task ends with an error.

*undo* reads the log's entries from the moment of the copy back to T, newest first. It puts the old
record of each entry into the area in place of the present one. Repeating a step changes nothing, so
a crash is harmless.

*gather* reads a window of the log forwards. For each item it stores the first old record, the last
new record, and the time of the last change.

*drop* removes the area.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

from stator.engine import keyspace
from stator.engine.database import Database
from stator.engine.items.write_path import ItemChange
from stator.engine.recovery.log import Log, LogEntry, pack_pair, start_of, unpack_pair
from stator.engine.recovery.tasks import Task, Tasks
from stator.engine.tables.table import Table
from stator.errors import StorageCorrupt
from stator.storage import Changes
from stator.storage.protocol import after_prefix

CHUNK_ITEMS = 500
CHUNK_BYTES = 1024 * 1024
COUNTED_ITEMS = 5_000
_NOTHING = b""


class Captures:
    def __init__(self, database: Database, tasks: Tasks, log: Log) -> None:
        self._database = database
        self._tasks = tasks
        self._log = log
        for name, stage in (
            ("copy", self._copy),
            ("count", self._count),
            ("undo", self._undo),
            ("gather", self._gather),
            ("drop", self._drop),
        ):
            tasks.register(name, stage)

    # -- beginning

    def begin(self, table: Table, task: Task, changes: Changes) -> None:
        """Begin the copy of a table: save a task whose first stage is *copy*.

        The caller starts the task after it has written ``changes``.

        From now on, ``observe`` saves the old records of items that the copy has not reached.
        """
        definition = copy.deepcopy(table.definition)
        definition.captures += 1
        self._database.catalog.put(definition, changes)
        task.facts["table"] = definition.number
        task.facts["items"] = table.counts.items
        self._tasks.save(task, changes)

    def undo_facts(self, table: Table, moment_micros: int) -> dict[str, str]:
        """Return the facts that *undo* needs: the range of log entries after the given moment."""
        number = table.definition.number
        return {
            "undo_from": start_of(moment_micros + 1).hex(),
            "undo_to": self._log.head(number).hex(),
        }

    def give_up(self, task: Task, changes: Changes) -> None:
        """End a task early. Only *drop* remains, the stage that removes the task's area."""
        if any(stage in task.stages for stage in ("copy", "undo", "gather")):
            self._release(task, changes)
        task.stages[:] = ["drop"]
        task.cursor = None
        self._tasks.save(task, changes)

    # -- observing writes

    def observe(self, change: ItemChange, changes: Changes) -> None:
        """Save an item's old record in each copy of its table that has not reached the item."""
        for task in self._tasks:
            if "copy" in task.stages and task.facts["table"] == change.table.definition.number:
                self._save_old(task, change, changes)

    def _save_old(self, task: Task, change: ItemChange, changes: Changes) -> None:
        suffix = change.key[keyspace.PREFIX_BYTES :]
        if task.stage == "copy" and task.cursor is not None and suffix < bytes.fromhex(task.cursor):
            return
        key = keyspace.area_prefix(task.number) + suffix
        if key not in changes and self._database.storage.get(key) is None:
            changes[key] = _NOTHING if change.old is None else change.old

    # -- stages

    def _copy(self, task: Task) -> None:
        database = self._database
        with database.lock:
            source = keyspace.data_prefix(task.facts["table"], 0)
            area = keyspace.area_prefix(task.number)
            start = b"" if task.cursor is None else bytes.fromhex(task.cursor)
            changes: Changes = {}
            size = 0
            for count, (suffix, record) in enumerate(self._items(source, start)):
                if count == CHUNK_ITEMS or size >= CHUNK_BYTES:
                    task.cursor = suffix.hex()
                    self._tasks.save(task, changes)
                    break
                if database.storage.get(area + suffix) is None:
                    changes[area + suffix] = record
                    size += len(record)
            else:
                self._end(task, changes)
            database.storage.write(changes)

    def _count(self, task: Task) -> None:
        with self._database.lock:
            area = keyspace.area_prefix(task.number)
            position, counted = ("", 0) if task.cursor is None else task.cursor
            changes: Changes = {}
            for read, (suffix, record) in enumerate(self._items(area, bytes.fromhex(position))):
                if read == COUNTED_ITEMS:
                    task.cursor = (suffix.hex(), counted)
                    self._tasks.save(task, changes)
                    break
                counted += record != _NOTHING
            else:
                if counted != task.facts["items"]:
                    raise StorageCorrupt(
                        self._database.storage.location,
                        f"the copy has {counted} items, but its table had {task.facts['items']}",
                    )
                self._tasks.advance(task, changes)
            self._database.storage.write(changes)

    def _items(self, prefix: bytes, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        for key, record in self._database.storage.scan(prefix + start, after_prefix(prefix)):
            yield key[len(prefix) :], record

    def _end(self, task: Task, changes: Changes) -> None:
        """End the *copy* stage. Unless *undo* follows, also release the table.

        After the release, this task no longer observes the table's writes or needs its log.
        """
        if "undo" not in task.stages:
            self._release(task, changes)
        self._tasks.advance(task, changes)

    def _release(self, task: Task, changes: Changes) -> None:
        number = task.facts["table"]
        table = next(
            (each for each in self._database.catalog.all() if each.definition.number == number),
            None,
        )
        if table is not None:
            definition = copy.deepcopy(table.definition)
            definition.captures -= 1
            self._database.catalog.put(definition, changes)

    def _undo(self, task: Task) -> None:
        with self._database.lock:
            area = keyspace.area_prefix(task.number)
            changes: Changes = {}
            size = 0
            low, high = (bytes.fromhex(task.facts[name]) for name in ("undo_from", "undo_to"))
            if task.cursor is not None:
                high = bytes.fromhex(task.cursor)
            for count, entry in enumerate(
                self._log.between(task.facts["table"], low, high, reverse=True)
            ):
                if count == CHUNK_ITEMS or size >= CHUNK_BYTES:
                    task.cursor = high.hex()
                    self._tasks.save(task, changes)
                    break
                changes[area + entry.suffix] = _NOTHING if entry.old is None else entry.old
                size += len(entry.old or b"")
                high = entry.position
            else:
                self._release(task, changes)
                self._tasks.advance(task, changes)
            self._database.storage.write(changes)

    def _gather(self, task: Task) -> None:
        with self._database.lock:
            changes: Changes = {}
            size = 0
            low, high = (bytes.fromhex(task.facts[name]) for name in ("gather_from", "gather_to"))
            if task.cursor is not None:
                low = bytes.fromhex(task.cursor)
            for count, entry in enumerate(self._log.between(task.facts["table"], low, high)):
                if count == CHUNK_ITEMS or size >= CHUNK_BYTES:
                    task.cursor = entry.position.hex()
                    self._tasks.save(task, changes)
                    break
                size += self._add_change(
                    keyspace.area_prefix(task.number) + entry.suffix, entry, changes
                )
            else:
                self._release(task, changes)
                self._tasks.advance(task, changes)
            self._database.storage.write(changes)

    def _add_change(self, key: bytes, entry: LogEntry, changes: Changes) -> int:
        before = changes.get(key) or self._database.storage.get(key)
        old = entry.old if before is None else unpack_change(before)[0]
        packed = pack_pair(entry.micros.to_bytes(8, "big"), old) + (entry.new or b"")
        changes[key] = packed
        return len(packed)

    def _drop(self, task: Task) -> None:
        with self._database.lock:
            self.remove(task.number)
            changes: Changes = {}
            self._tasks.advance(task, changes)
            self._database.storage.write(changes)

    def remove(self, area_number: int) -> None:
        prefix = keyspace.area_prefix(area_number)
        self._database.storage.delete_range(prefix, after_prefix(prefix))


def unpack_change(value: bytes) -> tuple[bytes | None, bytes | None, int]:
    """Return the first old record, the last new record and the time that *gather* stored.

    A record is None if there was no item then. The time is in microseconds.
    """
    micros, old, new = unpack_pair(value)
    return old, new or None, int.from_bytes(micros, "big")
