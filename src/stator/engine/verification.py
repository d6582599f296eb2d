"""Verification: reads everything in a data folder, and checks its parts against each other.

The write path promises that an item, its index entries, its counts, its expiry line and its stream
record are written together (see ``items.write_path``). ``verify`` checks that promise on the folder
as it is. It reads storage directly, without an engine, so nothing expires or continues meanwhile.

- Every record can be read, has the size that its header says, and is stored under the key that its
  attributes encode to.
- An index holds the entries of the items that belong in it, with their projected content, and no
  others. An index whose backfill is in progress is checked up to the item that it has reached.
- The stored counts of tables and indexes match their items and entries.
- An item with a time to live has its line in the expiry list.
- Stream records are readable and lie in their shards. The last record of an item shows the item as
  it is now.
- A backup has as many items as it recorded.
- Everything else (the recovery log, copies in progress, expiry lists) can be read.

Damage does not end the verification: it is reported with the part it was found in, and the next
part is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from stator.engine import keyspace
from stator.engine.expiry import LINES, prefix_of, time_of
from stator.engine.items import records
from stator.engine.recovery.backups import Backup
from stator.engine.recovery.log import unpack_pair
from stator.engine.recovery.registry import Registry
from stator.engine.streams import events
from stator.engine.streams.stream import STREAMS, Shard, Stream
from stator.engine.tables.catalog import Catalog
from stator.engine.tables.table import Index, ItemCounts, Table
from stator.errors import ConfigurationError, StorageError
from stator.model.values import Item, item_size
from stator.storage import Storage
from stator.storage.protocol import after_prefix

# The last record of an item is found by remembering which items have been seen. Past this many
# items of one stream, records are no longer compared with their items.
_REMEMBERED_ITEMS: Final = 2_000_000
# Faults of one kind and place are counted; this many are described.
_DESCRIBED: Final = 3

_REST: Final = (
    ("the recovery log", keyspace.LOG),
    ("backups and copies in progress", keyspace.AREAS),
    ("the expiry lists", LINES),
    ("the partitions", keyspace.HEAT),
    ("metrics, alarms and scaling", keyspace.COMPANIONS),
)

# Gets the share that is done, from 0 to 1, and what is being read.
Progress = Callable[[float, str], None]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A fault: two parts of the data disagree, or a part cannot be read.

    ``where`` names the table, index, stream or backup. ``count`` is how often ``problem`` was found
    in that place. ``examples`` shows some of the items or keys.
    """

    where: str
    problem: str
    count: int
    examples: tuple[str, ...] = ()


@dataclass(slots=True)
class Verification:
    """The result of a verification: how much was read, and the faults that were found."""

    tables: int = 0
    items: int = 0
    index_entries: int = 0
    stream_records: int = 0
    backups: int = 0
    faults: list[Disagreement] = field(default_factory=list)


def verify_folder(path: str, progress: Progress | None = None) -> Verification:
    """Verify a data folder that no engine has open. Return what was read and the faults found.

    ``progress`` is called with the share of the data read so far (0 to 1), and with the name of the
    part that is being read.
    """
    from stator.storage.rocks import RocksStorage  # slow to import

    if not (Path(path) / "CURRENT").exists():
        raise ConfigurationError(
            f"{path} is not a data folder", hint="name the folder that `stator serve --data` uses"
        )
    storage = RocksStorage(path, prefix_bytes=keyspace.PARTITION_BYTES, read_only=True)
    try:
        return verify(storage, progress)
    finally:
        storage.close()


def verify(storage: Storage, progress: Progress | None = None) -> Verification:
    """Verify everything in a storage. Return what was read and the faults found."""
    return _Verifier(storage, progress or (lambda share, part: None)).run()


class _Faults:
    """Collects the disagreements of one table, index or stream, grouped by their kind."""

    def __init__(self, where: str) -> None:
        self._where = where
        # Whether something could not be read. Items that are then missing are no further faults.
        self.is_damaged = False
        self._found: dict[str, list[str]] = {}
        self._counts: dict[str, int] = {}

    def add(self, problem: str, example: str = "") -> None:
        self._counts[problem] = self._counts.get(problem, 0) + 1
        examples = self._found.setdefault(problem, [])
        if example and len(examples) < _DESCRIBED:
            examples.append(example)

    def add_damage(self, problem: str) -> None:
        self.is_damaged = True
        self.add(problem)

    def all(self) -> list[Disagreement]:
        return [
            Disagreement(self._where, problem, self._counts[problem], tuple(examples))
            for problem, examples in self._found.items()
        ]


class _Verifier:
    def __init__(self, storage: Storage, progress: Progress) -> None:
        self._storage = storage
        self._progress = progress
        self._result = Verification()
        self._read = 0
        self._total = 1

    def run(self) -> Verification:
        try:
            catalog = Catalog(self._storage)
            streams = [
                Stream.from_json(orjson.loads(value))
                for _, value in self._storage.scan(STREAMS, after_prefix(STREAMS))
            ]
            backups = list(Registry[Backup](self._storage, b"b", lambda data: Backup(**data)).all())
        except (StorageError, ValueError, TypeError, KeyError) as error:
            self._result.faults.append(
                Disagreement("the catalogue", f"cannot be read: {_shown(error)}", 1)
            )
            return self._result
        tables = {table.definition.number: table for table in catalog.all()}
        self._total = max(1, sum(_entry_count(table) for table in tables.values()))
        for table in tables.values():
            self._table(table)
        for stream in streams:
            self._stream(stream, tables.get(stream.table_number))
        for backup in backups:
            self._backup(backup)
        self._rest()
        return self._result

    # -- tables

    def _table(self, table: Table) -> None:
        where = f"table {table.name}"
        faults = _Faults(where)
        counted, expected = ItemCounts(), {index.name: ItemCounts() for index in table.indexes}
        for key, record in self._scan(table.prefix, faults, where):
            item = _readable(record, faults)
            if item is None:
                continue
            counted.items += 1
            counted.size_bytes += records.size_of(record)
            self._item(table, key, item, faults)
            for index in table.indexes:
                self._entry(index, key, item, expected[index.name], faults)
        _compare(counted, table.counts, "items", faults)
        self._result.tables += 1
        self._result.items += counted.items
        self._result.faults += faults.all()
        for index in table.indexes:
            self._index(table, index, None if faults.is_damaged else expected[index.name])

    def _item(self, table: Table, key: bytes, item: Item, faults: _Faults) -> None:
        try:
            is_placed = table.encode_key(item) == key
        except (KeyError, ValueError):
            is_placed = False
        if not is_placed:
            faults.add("an item is stored under a key that is not its own", key.hex())
        definition = table.definition
        if definition.ttl_attribute is None or definition.ttl_filled_to is not None:
            return
        seconds = time_of(item, definition.ttl_attribute)
        if seconds is not None:
            line = prefix_of(definition.number) + seconds.to_bytes(8, "big")
            listed = self._get(line + key[keyspace.PREFIX_BYTES :], faults) is not None
            if not listed and not faults.is_damaged:
                faults.add("an item with a time to live is not in the expiry list", _text(item))

    def _entry(
        self, index: Index, key: bytes, item: Item, expected: ItemCounts, faults: _Faults
    ) -> None:
        """Check that an item's index entry exists and has the right content.

        Adds the entry to ``expected``, the counts that the whole index should have.
        """
        if index.backfilled_to is not None and key >= index.backfilled_to:
            return
        entry_key = index.entry_key(item, key)
        if entry_key is None:
            return
        content = item if index.projected is None else index.project(item)
        expected.items += 1
        expected.size_bytes += item_size(content)
        record = self._get(entry_key, faults)
        if record is None and faults.is_damaged:
            return
        if record is None:
            faults.add(f"an item has no entry in the index {index.name}", _text(item))
        elif _readable(record, faults) != content:
            faults.add(f"an entry of the index {index.name} differs from its item", _text(item))

    def _index(self, table: Table, index: Index, expected: ItemCounts | None) -> None:
        """Compare an index with its stored counts, and with the items that belong in it.

        ``expected`` counts the entries that the table's items should have. It is None if damage
        kept some items from being read.
        """
        where = f"index {table.name}.{index.name}"
        faults = _Faults(where)
        counted = ItemCounts()
        for _, record in self._scan(index.prefix, faults, where):
            if _readable(record, faults) is not None:
                counted.items += 1
                counted.size_bytes += records.size_of(record)
        if expected is not None and counted.items > expected.items:
            faults.add(
                f"the index has {counted.items - expected.items} entries that belong to no item"
            )
        _compare(counted, index.counts, "entries", faults)
        self._result.index_entries += counted.items
        self._result.faults += faults.all()

    # -- streams

    def _stream(self, stream: Stream, table: Table | None) -> None:
        faults = _Faults(f"stream of {stream.table_name} ({stream.label})")
        follows = table is not None and stream.disabled is None
        seen: set[bytes] = set()
        for shard in sorted(stream.shards, key=lambda shard: shard.number, reverse=True):
            for key, record in self._records(stream, shard, faults):
                self._result.stream_records += 1
                sequence = int.from_bytes(key[-8:], "big")
                if sequence < shard.first or (shard.last is not None and sequence > shard.last):
                    faults.add("a record lies outside its shard", shard.id)
                change = _event(record, faults)
                if change is not None and follows and len(seen) < _REMEMBERED_ITEMS:
                    assert table is not None
                    self._last_change(table, change, seen, faults)
        self._result.faults += faults.all()

    def _records(
        self, stream: Stream, shard: Shard, faults: _Faults
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the records of a shard, the newest first."""
        where = f"stream of {stream.table_name}"
        yield from self._scan(stream.shard_prefix(shard), faults, where, reverse=True)

    def _last_change(
        self, table: Table, change: dict[str, Any], seen: set[bytes], faults: _Faults
    ) -> None:
        """Compare an item's last stream record with the item.

        Records come newest first, so only the first record of each item is compared. ``seen`` holds
        the keys of items already compared.
        """
        details = change["dynamodb"]
        try:
            key = table.encode_key(details["Keys"])
        except (KeyError, ValueError):
            faults.add("a record has keys that the table does not have")
            return
        if key in seen:
            return
        seen.add(key)
        record = self._get(key, faults)
        if record is None and faults.is_damaged:
            return
        item = None if record is None else _readable(record, faults)
        if (change["eventName"] == "REMOVE") != (item is None):
            faults.add(
                "the last record of an item disagrees with the table on whether it exists",
                _text(details["Keys"]),
            )
        elif item is not None and "NewImage" in details and details["NewImage"] != item:
            faults.add("the last record of an item differs from the item", _text(details["Keys"]))

    # -- backups

    def _backup(self, backup: Backup) -> None:
        if not backup.complete:
            return
        faults = _Faults(f"backup {backup.arn}")
        count = 0
        for _, record in self._scan(bytes.fromhex(backup.prefix), faults, "backup"):
            if record and _readable(record, faults) is not None:
                count += 1
        if count != backup.items and not faults.is_damaged:
            faults.add(f"it has {count} items, and its record says {backup.items}")
        self._result.backups += 1
        self._result.faults += faults.all()

    # -- the rest

    def _rest(self) -> None:
        for where, prefix in _REST:
            faults = _Faults(where)
            for key, value in self._scan(prefix, faults, where):
                if prefix == keyspace.LOG:
                    self._log_entry(key, value, faults)
            self._result.faults += faults.all()

    def _log_entry(self, key: bytes, value: bytes, faults: _Faults) -> None:
        suffix, old, new = unpack_pair(value)
        if not suffix or not (old or new):
            faults.add(
                "an entry is not a change: it lacks the item's key, or both records", key.hex()
            )
        for image in (old, new):
            if image:
                _readable(image, faults)

    # -- reading

    def _scan(
        self, prefix: bytes, faults: _Faults, part: str, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries under a prefix. Damage is added to the faults and ends the scan.

        ``part`` is the name of this data in progress reports.
        """
        try:
            for entry in self._storage.scan(prefix, after_prefix(prefix), reverse=reverse):
                yield entry
                self._read += 1
                if self._read % 1000 == 0:
                    self._progress(min(1.0, self._read / self._total), part)
        except StorageError as error:
            faults.add_damage(f"cannot be read to its end: {_shown(error)}")

    def _get(self, key: bytes, faults: _Faults) -> bytes | None:
        try:
            return self._storage.get(key)
        except StorageError as error:
            faults.add_damage(f"cannot be read: {_shown(error)}")
            return None


def _entry_count(table: Table) -> int:
    return table.counts.items + sum(index.counts.items for index in table.indexes)


def _readable(record: bytes, faults: _Faults) -> Item | None:
    try:
        item = records.unpack(record)
        size = item_size(item)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        faults.add(f"a record is not an item: {_shown(error)}")
        return None
    if size != records.size_of(record):
        faults.add("the size of a record differs from the size in its header", _text(item))
    return item


def _event(record: bytes, faults: _Faults) -> dict[str, Any] | None:
    try:
        change: dict[str, Any] = orjson.loads(record[events.HEADER_BYTES :])
        if not isinstance(change["dynamodb"]["Keys"], dict) or "eventName" not in change:
            raise ValueError("it lacks dynamodb.Keys or eventName")
    except (ValueError, TypeError, KeyError) as error:
        faults.add(f"a record is not a change: {_shown(error)}")
        return None
    return change


def _compare(counted: ItemCounts, recorded: ItemCounts, what: str, faults: _Faults) -> None:
    if faults.is_damaged:
        return
    if counted.items != recorded.items:
        faults.add(f"it has {counted.items} {what}, and the stored count is {recorded.items}")
    elif counted.size_bytes != recorded.size_bytes:
        faults.add(
            f"its {what} have {counted.size_bytes} bytes, "
            f"and the stored size is {recorded.size_bytes}"
        )


def _text(item: Item) -> str:
    shown = orjson.dumps(item).decode()
    return shown if len(shown) <= 100 else f"{shown[:97]}..."


def _shown(error: BaseException) -> str:
    return getattr(error, "detail", None) or str(error) or type(error).__name__
