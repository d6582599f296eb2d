"""The window: the rows in memory between reader and writers, shuffled and bounded.

Input is often sorted by key. Sorted writes go to one partition after the other, and a partition
takes at most 1,000 units a second while the others are idle. Writers therefore take rows at random
from a window of some thousands, which spreads them over as many partitions as the window holds. One
row in five is the oldest instead. Otherwise chance would leave some rows waiting very long, and the
journal, which records how far *every* row is done, would fall behind.

While more rows are to come, writers wait until the window is half full, so that there is enough to
choose from. Writers and readers must never wait for each other. A block enters in parts, as many
rows at a time as there is room for. While a reader waits for room, writers take whatever is there.

Rows with the same key must not overtake each other, because the last row must remain in the table.
They are written one after the other. No row replaces an earlier one in the window: DynamoDB may
refuse the later row, and then the earlier one must remain.

Rows of a hot partition key are held back (``key_paces``): writers get them as fast as the key's
pace allows, and the rows of other keys in between.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Hashable
from typing import Any

from stator.model.limits import BATCH_WRITE_BYTES, BATCH_WRITE_ITEMS
from stator.pipeline.bulk.job.key_paces import KeyPaces, partition_of
from stator.pipeline.bulk.job.pending_rows import PendingRow

_ROOM_BYTES = BATCH_WRITE_BYTES - 64 * 1024
# The place of a row that is not among those ready, because its partition key is hot.
_PACED = -1
# The least share of the window that stays filled while more rows are to come.
_LEAST_SHARE = 0.5
_OLDEST_OF = 5
"""Of this many rows that writers take, one is the oldest in the window, on average."""
# Readers wake up when this share of the window is free.
_ROOM_SHARE = 0.2
# Real time, not a Clock's: a pipe may have no rows at the moment.
_PATIENCE_SECONDS = 0.5


class Window:
    def __init__(
        self, rows: int, size_bytes: int, chance: random.Random, paces: KeyPaces | None = None
    ) -> None:
        self._paces = paces
        self._paced: dict[Hashable, deque[PendingRow]] = {}
        """Rows of hot partition keys that had to wait when they were drawn."""
        self._rows = rows
        self._bytes = size_bytes
        self._chance = chance.random
        self._ready: list[PendingRow] = []
        self._by_key: dict[Any, PendingRow] = {}
        self._by_age: deque[Any] = deque()  # keys only, so that finished rows are freed
        self._in_flight: set[Any] = set()
        self._waiting: dict[Any, deque[PendingRow]] = {}
        self._held_rows = 0
        self._held_bytes = 0
        self._readers_waiting = 0
        self.impatient_takes = 0
        """How often a writer stopped waiting and took rows from a window that was not mixed."""
        self._is_complete = False
        self._stopped = False
        lock = threading.Lock()
        self._room = threading.Condition(lock)
        self._work = threading.Condition(lock)

    def add(self, entries: list[PendingRow]) -> None:
        """Add the rows of a block. Wait whenever the window is full.

        A block may hold more rows than the window; its rows then enter in parts.
        """
        with self._room:
            at = 0
            while at < len(entries) and not self._stopped:
                at = self._admit_fitting(entries, at)
                self._work.notify_all()
                if at < len(entries):
                    self._wait_for_room()

    def _admit_fitting(self, entries: list[PendingRow], at: int) -> int:
        """Add rows from index ``at`` of ``entries`` on, for as long as there is room.

        Returns the index of the first row that was not added.
        """
        while at < len(entries):
            entry = entries[at]
            # A row that is larger than the whole window has it for itself.
            if self._held_rows and not self._fits(1, len(entry.item)):
                break
            self._admit(entry)
            at += 1
        return at

    def _wait_for_room(self) -> None:
        self._readers_waiting += 1
        self._room.wait()
        self._readers_waiting -= 1

    def _fits(self, rows: int, size: int) -> bool:
        return self._held_rows + rows <= self._rows and self._held_bytes + size <= self._bytes

    def _admit(self, entry: PendingRow) -> None:
        key = entry.key
        self._held_rows += 1
        self._held_bytes += len(entry.item)
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.append(entry)
        elif key in self._in_flight or key in self._by_key:
            self._waiting[key] = deque((entry,))
        else:
            self._make_ready(entry)

    def _make_ready(self, entry: PendingRow) -> None:
        entry.at = len(self._ready)
        self._ready.append(entry)
        self._by_key[entry.key] = entry
        self._by_age.append(entry.key)

    def complete(self) -> None:
        """Record that the readers have added all rows."""
        with self._work:
            self._is_complete = True
            self._work.notify_all()

    def stop(self) -> None:
        """Wake up every waiting thread. From now on, writers get no more rows."""
        with self._work:
            self._stopped = True
            self._work.notify_all()
            self._room.notify_all()

    def take(self, count: int = BATCH_WRITE_ITEMS) -> list[PendingRow] | None:
        """Wait for rows, and return up to ``count`` of them at random, no two with the same key.

        Returns an empty list once all rows are done, or after ``stop``. Returns None if all rows
        that are left have hot partition keys and must wait (``pause_seconds``).
        """
        with self._work:
            while not self._stopped:
                if (self._ready or self._paced) and self._is_mixed():
                    return self._taken(count) or None
                if self._is_complete and not self._held_rows:
                    self._work.notify_all()
                    return []
                is_woken = self._work.wait(_PATIENCE_SECONDS)
                if not is_woken and (self._ready or self._paced):
                    self.impatient_takes += 1  # the input is slow: write what is here
                    return self._taken(count) or None
            return []

    def pause_seconds(self) -> float:
        """Return the seconds until the first row of a hot partition key may be written."""
        with self._work:
            if self._paces is None or not self._paced:
                return 0.0
            return min(self._paces.wait_seconds(partition) for partition in self._paced)

    def refused(self, entries: list[PendingRow]) -> bool:
        """Slow down the partition keys of rows that DynamoDB refused because a partition is hot.

        Returns whether all of these keys had a pace already.
        """
        with self._work:
            if self._paces is None:
                return False
            known = [self._paces.refused(each) for each in _partitions(entries)]
            return all(known)

    def are_paced(self, entries: list[PendingRow]) -> bool:
        """Whether all rows have hot partition keys, so that the window holds them back."""
        with self._work:
            paces = self._paces
            return paces is not None and all(each in paces for each in _partitions(entries))

    def _is_mixed(self) -> bool:
        """Whether writers may take rows now, because waiting would not mix the rows better.

        This is so if the window is half full, or if no more rows will come. It is also so if a
        reader waits for room, because that reader adds no rows until some are written.
        """
        return (
            self._is_complete
            or self._readers_waiting > 0
            or self._held_rows >= self._rows * _LEAST_SHARE
            or self._held_bytes >= self._bytes * _LEAST_SHARE
        )

    def _taken(self, count: int) -> list[PendingRow]:
        if self._paces:
            return self._taken_at_pace(count, self._paces)
        ready, size = self._ready, 0
        taken: list[PendingRow] = []
        while ready and len(taken) < count:
            entry, is_by_age = self._next_ready()
            size += len(entry.item)
            if taken and size > _ROOM_BYTES:
                if is_by_age:
                    self._by_age.appendleft(entry.key)
                break
            self._take_out(entry)
            taken.append(entry)
        return taken

    def _taken_at_pace(self, count: int, paces: KeyPaces) -> list[PendingRow]:
        """Return up to ``count`` rows whose partition keys may be written now.

        Rows of a hot partition key that must wait are moved to ``_paced``. Rows that have waited
        there long enough are taken first.
        """
        ready, size = self._ready, 0
        taken: list[PendingRow] = []
        for partition in list(self._paced):
            waiting = self._paced[partition]
            while waiting and len(taken) < count and not paces.wait_seconds(partition):
                size += len(waiting[0].item)
                if taken and size > _ROOM_BYTES:
                    return taken
                entry = waiting.popleft()
                paces.take(partition, entry.units)
                del self._by_key[entry.key]
                self._in_flight.add(entry.key)
                taken.append(entry)
            if not waiting:
                del self._paced[partition]
        while ready and len(taken) < count:
            entry, is_by_age = self._next_ready()
            size += len(entry.item)
            if taken and size > _ROOM_BYTES:
                if is_by_age:
                    self._by_age.appendleft(entry.key)
                break
            partition = partition_of(entry.key)
            if partition in self._paced or paces.wait_seconds(partition):
                self._remove_ready(entry)
                entry.at = _PACED
                self._paced.setdefault(partition, deque()).append(entry)
                size -= len(entry.item)
                continue
            paces.take(partition, entry.units)
            self._take_out(entry)
            taken.append(entry)
        return taken

    def _next_ready(self) -> tuple[PendingRow, bool]:
        """Choose a row that may be written, and say whether it was chosen for its age.

        One row in a few is the oldest, so that the journal follows; the others are random.
        """
        ready, chance = self._ready, self._chance
        if chance() * _OLDEST_OF < 1:
            return self._oldest(), True
        return ready[int(chance() * len(ready))], False

    def _oldest(self) -> PendingRow:
        while True:
            entry = self._by_key.get(self._by_age.popleft())
            if entry is not None and entry.at != _PACED:
                return entry

    def _take_out(self, entry: PendingRow) -> None:
        self._remove_ready(entry)
        del self._by_key[entry.key]
        self._in_flight.add(entry.key)

    def _remove_ready(self, entry: PendingRow) -> None:
        last = self._ready.pop()
        if last is not entry:
            self._ready[entry.at] = last
            last.at = entry.at

    def settled(self, entries: list[PendingRow]) -> None:
        """Remove rows that are written or stored as dead letters, and make room for others."""
        with self._room:
            for entry in entries:
                self._held_rows -= 1
                self._held_bytes -= len(entry.item)
                self._in_flight.discard(entry.key)
                self._release(entry.key)
            # A reader that woke up after every request would find too little room most of the time.
            if not self._held_rows or self._fits(
                int(self._rows * _ROOM_SHARE), int(self._bytes * _ROOM_SHARE)
            ):
                self._room.notify_all()
            if self._waiting or (self._is_complete and not self._held_rows):
                self._work.notify_all()

    def give_back(self, entries: list[PendingRow]) -> None:
        """Put back rows that were taken but not written. Writers take them again at random."""
        with self._work:
            for entry in entries:
                self._in_flight.discard(entry.key)
                self._make_ready(entry)
            self._work.notify_all()

    def _release(self, key: Any) -> None:
        waiting = self._waiting.get(key)
        if waiting is None:
            return
        entry = waiting.popleft()
        if not waiting:
            del self._waiting[key]
        self._make_ready(entry)


def _partitions(entries: list[PendingRow]) -> set[Hashable]:
    return {partition_of(entry.key) for entry in entries}
