"""A space-saving sketch: the keys with the greatest weight of a stream, in a bounded space.

The sketch has at most 256 counters. A key without a counter takes over the smallest one, and its
count with it, as the ``error`` of the new count. So a count is never too low, and too high by at
most its error, which is at most the total weight divided by 256. A key with a greater weight than
that has a counter for certain.

Source: Metwally, Agrawal, El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data
Streams" (2005), with weights instead of single counts.

At rest a sketch is a version byte (1) and zlib over JSON: the total, the number of events, and for
each counter the key in base64, count and error.
"""

from __future__ import annotations

import base64
import heapq
import zlib
from collections.abc import Iterable
from typing import Final

import orjson

from stator.errors import StorageCorrupt

MOST_KEYS: Final = 256
_VERSION: Final = b"\x01"


class TopKeys:
    """Adds weights to keys, and knows the heaviest ones."""

    __slots__ = ("_heap", "_most", "counts", "errors", "events", "total")

    def __init__(self, most: int = MOST_KEYS) -> None:
        self._most = most
        self.total = 0.0
        self.events = 0
        self.counts: dict[bytes, float] = {}
        self.errors: dict[bytes, float] = {}
        # Pairs of count and key. Counts only grow, so a pair may be out of date, but never too
        # high: the smallest pair that is up to date has the smallest count.
        self._heap: list[tuple[float, bytes]] = []

    def add(self, key: bytes, weight: float, events: int = 1) -> None:
        """Add weight to a key."""
        self.total += weight
        self.events += events
        known = self.counts.get(key)
        if known is not None:
            self.counts[key] = known + weight
            return
        error = 0.0 if len(self.counts) < self._most else self._take_smallest()
        self.counts[key] = error + weight
        self.errors[key] = error
        heapq.heappush(self._heap, (error + weight, key))

    def _take_smallest(self) -> float:
        """Remove the smallest counter, and return its count."""
        while True:
            count, key = self._heap[0]
            now = self.counts[key]
            if now > count:
                heapq.heapreplace(self._heap, (now, key))
                continue
            heapq.heappop(self._heap)
            del self.counts[key], self.errors[key]
            return count

    def heaviest(self, most: int) -> list[tuple[bytes, float]]:
        """Return the keys with the greatest counts, greatest first."""
        return heapq.nsmallest(most, self.counts.items(), key=lambda each: (-each[1], each[0]))

    def pack(self) -> bytes:
        rows = [
            [base64.b64encode(key).decode(), count, self.errors[key]]
            for key, count in self.counts.items()
        ]
        return _VERSION + zlib.compress(orjson.dumps([self.total, self.events, rows]), 1)

    @classmethod
    def unpack(cls, record: bytes) -> TopKeys:
        """Return a stored sketch. Raises StorageCorrupt if it cannot be read."""
        try:
            if record[:1] != _VERSION:
                raise ValueError
            total, events, rows = orjson.loads(zlib.decompress(record[1:]))
        except (ValueError, zlib.error):
            raise StorageCorrupt(
                "", "a stored sketch is damaged, or a newer Stator wrote it"
            ) from None
        found = cls()
        found.total, found.events = total, events
        for text, count, error in rows:
            key = base64.b64decode(text)
            found.counts[key], found.errors[key] = count, error
        found._heap = [(count, key) for key, count in found.counts.items()]
        heapq.heapify(found._heap)
        return found

    @classmethod
    def of(cls, weights: Iterable[tuple[bytes, float]]) -> TopKeys:
        """Return the sketch of these weights."""
        found = cls()
        for key, weight in weights:
            found.add(key, weight)
        return found
