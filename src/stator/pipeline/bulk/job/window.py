"""The window: the rows in memory between reader and writers, shuffled and bounded.

Input is often sorted by key. Sorted writes go to one partition after the other, and a partition
takes at most 1,000 units a second while the others are idle. Writers therefore take rows at random
from a window of some thousands, which spreads them over as many partitions as the window holds. One
row in five is the oldest instead. Otherwise chance would leave some rows waiting very long, and the
journal, which records how far *every* row is done, would fall behind.

While more rows are to come, writers wait until the window is half full, so that there is enough to
choose from. They never wait for a reader that waits for them. A block enters in parts, as many rows
at a time as there is room for. While a reader waits for room, writers take whatever is there.

Rows with the same key must not overtake each other, because the last row must remain in the table.
They are written one after the other. No row replaces an earlier one in the window: DynamoDB may
refuse the later row, and then the earlier one must remain.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from typing import Any

from stator.model.limits import BATCH_WRITE_BYTES, BATCH_WRITE_ITEMS
from stator.pipeline.bulk.job.pending_rows import PendingRow

_ROOM_BYTES = BATCH_WRITE_BYTES - 64 * 1024
# The least share of the window that stays filled while more rows are to come.
_LEAST_SHARE = 0.5
_OLDEST_OF = 5
"""One row in this many is the oldest."""
# Readers wake up when this share of the window is free.
_ROOM_SHARE = 0.2
# Real time, not a Clock's: a pipe may have no rows at the moment.
_PATIENCE_SECONDS = 0.5


class Window:
    def __init__(self, rows: int, size_bytes: int, chance: random.Random) -> None:
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
        """Add rows. Wait for room whenever the window is full.

        A block may hold more rows than the window; it enters in parts.
        """
        with self._room:
            at = 0
            while at < len(entries) and not self._stopped:
                at = self._admit_fitting(entries, at)
                self._work.notify_all()
                if at < len(entries):
                    self._wait_for_room()

    def _admit_fitting(self, entries: list[PendingRow], at: int) -> int:
        """Admit rows from position ``at`` on, as long as they fit.

        Return the position of the first row that was not admitted.
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
        """Note that no more rows will come."""
        with self._work:
            self._is_complete = True
            self._work.notify_all()

    def stop(self) -> None:
        """Wake up every waiting thread; writers get no more rows."""
        with self._work:
            self._stopped = True
            self._work.notify_all()
            self._room.notify_all()

    def take(self, count: int = BATCH_WRITE_ITEMS) -> list[PendingRow]:
        """Wait for rows, and return up to ``count`` of them at random, with different keys.

        Returns an empty list once all rows are done, or after ``stop``.
        """
        with self._work:
            while not self._stopped:
                if self._ready and self._is_mixed():
                    return self._taken(count)
                if self._is_complete and not self._held_rows:
                    self._work.notify_all()
                    return []
                is_woken = self._work.wait(_PATIENCE_SECONDS)
                if not is_woken and self._ready:  # the input is slow: write what is here
                    self.impatient_takes += 1
                    return self._taken(count)
            return []

    def _is_mixed(self) -> bool:
        """Whether writers may take rows now, because waiting would not mix the rows better.

        That is so if the window is half full, or if no more rows will come. It is also so if a
        reader waits for room, because that reader adds no rows until some are written.
        """
        return (
            self._is_complete
            or self._readers_waiting > 0
            or self._held_rows >= self._rows * _LEAST_SHARE
            or self._held_bytes >= self._bytes * _LEAST_SHARE
        )

    def _taken(self, count: int) -> list[PendingRow]:
        ready, chance = self._ready, self._chance
        taken: list[PendingRow] = []
        size = 0
        while ready and len(taken) < count:
            is_by_age = chance() * _OLDEST_OF < 1
            entry = self._oldest() if is_by_age else ready[int(chance() * len(ready))]
            size += len(entry.item)
            if taken and size > _ROOM_BYTES:
                if is_by_age:
                    self._by_age.appendleft(entry.key)
                break
            self._take_out(entry)
            taken.append(entry)
        return taken

    def _oldest(self) -> PendingRow:
        while True:
            entry = self._by_key.get(self._by_age.popleft())
            if entry is not None:
                return entry

    def _take_out(self, entry: PendingRow) -> None:
        last = self._ready.pop()
        if last is not entry:
            self._ready[entry.at] = last
            last.at = entry.at
        del self._by_key[entry.key]
        self._in_flight.add(entry.key)

    def settled(self, entries: list[PendingRow]) -> None:
        """Remove rows that are done."""
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
        """Put back rows that were not written, to be retried among others."""
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
