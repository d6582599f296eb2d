"""The recovery log: every change to a table with continuous backups, in order.

    l | table | microseconds (8) | count (4)
        ->  length of key (4) | key | length of old + 1 (4) | old | new

``key`` is the item's storage key without its table's prefix. ``old`` and ``new`` are its records. A
length of 0 means that there was no old item; an empty ``new`` means that there is no new item.
Times never decrease: if the clock goes back, entries keep the latest time seen, so the order of
keys is always the order of changes. ``count`` separates changes within one microsecond.

An entry is written in the same batch as its change, so log and table cannot disagree. Old records
allow undo: the state at T is the current state after the changes since T are undone, newest first.
This needs no snapshots, and a restore costs only as much as the changes since T. One range deletion
trims the old end of the log. New records are for incremental exports: they show what changed in a
window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from stator.engine import keyspace
from stator.engine.items.write_path import ItemChange
from stator.storage import Changes, Storage
from stator.storage.protocol import after_prefix

# Moments are shown to the millisecond, and what was shown must be accepted.
ROUNDING_SECONDS: Final = 0.001
_POSITION_BYTES: Final = 12
_LONGEST: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One change to an item. Entries are ordered by ``position``.

    ``suffix`` is the item's storage key without its table's prefix. ``old`` and ``new`` are its
    records before and after the change, or None.
    """

    position: bytes
    suffix: bytes
    old: bytes | None
    new: bytes | None

    @property
    def micros(self) -> int:
        return int.from_bytes(self.position[:8], "big")


class Log:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._heads: dict[int, tuple[int, int]] = {}

    def add(self, change: ItemChange, now: float, changes: Changes) -> None:
        number = change.table.definition.number
        micros, count = self._next(number, now)
        self._heads[number] = (micros, count)
        key = keyspace.log_prefix(number) + _position(micros, count)
        changes[key] = _pack(change.key[keyspace.PREFIX_BYTES :], change.old, change.new)

    def _next(self, number: int, now: float) -> tuple[int, int]:
        micros = to_micros(now)
        last, count = self._head(number)
        if micros > last:
            return micros, 0
        return (last, count + 1) if count < _LONGEST else (last + 1, 0)

    def _head(self, number: int) -> tuple[int, int]:
        head = self._heads.get(number)
        if head is None:
            prefix = keyspace.log_prefix(number)
            newest = next(
                iter(self._storage.scan(prefix, after_prefix(prefix), reverse=True)), None
            )
            head = (0, -1) if newest is None else _read_position(newest[0][len(prefix) :])
            self._heads[number] = head
        return head

    def head(self, number: int) -> bytes:
        """Return the position right after the newest entry of the table with this number."""
        micros, count = self._head(number)
        return _position(micros, count + 1) if count < _LONGEST else _position(micros + 1, 0)

    def between(
        self, number: int, low: bytes, high: bytes, *, reverse: bool = False
    ) -> Iterator[LogEntry]:
        """Yield a table's entries from position ``low`` up to, but not including, ``high``.

        ``number`` is the table's number.
        """
        prefix = keyspace.log_prefix(number)
        for key, value in self._storage.scan(prefix + low, prefix + high, reverse=reverse):
            yield _unpack(key[len(prefix) :], value)

    def trim(self, number: int, before: float) -> None:
        """Delete the entries of table ``number`` that are older than ``before``."""
        prefix = keyspace.log_prefix(number)
        low, high = prefix, prefix + start_of(to_micros(before))
        if next(iter(self._storage.scan(low, high)), None) is not None:
            self._head(number)  # read now: the newest entry may be among the deleted
            self._storage.delete_range(low, high)

    def drop(self, number: int) -> None:
        prefix = keyspace.log_prefix(number)
        self._storage.delete_range(prefix, after_prefix(prefix))
        self._heads.pop(number, None)


def to_micros(seconds: float) -> int:
    return round(seconds * 1_000_000)


def iso(seconds: float) -> str:
    """Return a time as manifests and messages show it: ``2026-10-08T20:00:00.000Z``."""
    return (
        datetime.fromtimestamp(round(seconds, 3), UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    )


def start_of(micros: int) -> bytes:
    """Return the position before all entries of this microsecond."""
    return _position(micros, 0)


def _position(micros: int, count: int) -> bytes:
    return micros.to_bytes(8, "big") + count.to_bytes(4, "big")


def _read_position(position: bytes) -> tuple[int, int]:
    return int.from_bytes(position[:8], "big"), int.from_bytes(position[8:_POSITION_BYTES], "big")


def _pack(suffix: bytes, old: bytes | None, new: bytes | None) -> bytes:
    return b"".join((pack_pair(suffix, old), new or b""))


def pack_pair(first: bytes, second: bytes | None) -> bytes:
    """Join two byte strings; ``second`` may be None. ``unpack_pair`` separates them again."""
    size = 0 if second is None else len(second) + 1
    return len(first).to_bytes(4, "big") + first + size.to_bytes(4, "big") + (second or b"")


def unpack_pair(value: bytes) -> tuple[bytes, bytes | None, bytes]:
    """Return both byte strings that ``pack_pair`` joined, and the bytes after them.

    The second string is None if it was None when packed.
    """
    middle = 4 + int.from_bytes(value[:4], "big")
    size = int.from_bytes(value[middle : middle + 4], "big")
    start = middle + 4
    if size == 0:
        return value[4:middle], None, value[start:]
    end = start + size - 1
    return value[4:middle], value[start:end], value[end:]


def _unpack(position: bytes, value: bytes) -> LogEntry:
    suffix, old, new = unpack_pair(value)
    return LogEntry(position, suffix, old, new or None)
