"""Keeps a sketch for each rule and minute, with the data, for 15 days.

    c i <table> <index> <kind> <minute>    a packed sketch (see top_keys.py)

``table`` is four bytes, ``index`` two, ``kind`` three letters such as PKC, and ``minute`` eight
bytes of epoch seconds. New counts wait in memory until ``flush``, at the end of each minute and
when the engine closes. After a kill the counts of the current minute are lost.

The caller holds the engine's lock.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

from stator.engine import keyspace
from stator.engine.companions.insights.contributor_key import ContributorKeys
from stator.engine.companions.insights.top_keys import TopKeys
from stator.engine.tables.table import Table
from stator.engine.tables.traffic import KeyTraffic
from stator.storage import Changes, Storage
from stator.storage.protocol import after_prefix

_PREFIX: Final = keyspace.COMPANIONS + b"i"
_KEPT_SECONDS: Final = 15 * 86_400


class InsightStore:
    """Counts the keys that requests noted, and returns sketches; see the module's header."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._pending: dict[bytes, TopKeys] = {}

    def take(self, table: Table, minute: int) -> None:
        """Take the keys that the requests of a minute noted."""
        for name, keys in (table.traffic.keys or {}).items():
            index = table.index(name) if name else None
            if name and index is None:
                continue
            number = 0 if index is None else index.definition.number
            reader = ContributorKeys(table.schema if index is None else index.schema)
            self._take(table.definition.number, number, reader, keys, minute)

    def _take(
        self, table: int, index: int, reader: ContributorKeys, keys: KeyTraffic, minute: int
    ) -> None:
        weights: defaultdict[bytes, float] = defaultdict(float)
        events: Counter[bytes] = Counter()
        for key, weight in keys.accessed or ():
            weights[key] += weight
            events[key] += 1
        throttled = Counter(keys.throttled)
        refused = {key: float(times) for key, times in throttled.items()}
        for letter, found, times in (("C", weights, events), ("T", refused, throttled)):
            if not found:
                continue
            partitions = self._sketch(table, index, f"PK{letter}", minute)
            wholes = self._sketch(table, index, f"SK{letter}", minute)
            for key, weight in found.items():
                partitions.add(reader.partition(key), weight, times[key])
                if reader.schema.sort:
                    wholes.add(reader.whole(key), weight, times[key])
        if keys.accessed is not None:
            keys.accessed.clear()
        keys.throttled.clear()

    def _sketch(self, table: int, index: int, kind: str, minute: int) -> TopKeys:
        key = _key(table, index, kind, minute)
        found = self._pending.get(key)
        if found is None:
            stored = self._storage.get(key)
            found = self._pending[key] = TopKeys() if stored is None else TopKeys.unpack(stored)
        return found

    def flush(self) -> None:
        """Store the counts that are only in memory, as one batch."""
        changes: Changes = {key: top.pack() for key, top in self._pending.items() if top.counts}
        if changes:
            self._storage.write(changes, undoable=True)
        self._pending.clear()

    def expire(self, now: float) -> None:
        """Remove sketches that are older than 15 days."""
        horizon = int(now) - _KEPT_SECONDS
        changes: Changes = {
            key: None
            for key, _ in self._storage.scan(_PREFIX, after_prefix(_PREFIX))
            if int.from_bytes(key[-8:], "big") < horizon
        }
        if changes:
            self._storage.write(changes, undoable=True)

    def minutes(
        self, table: int, index: int, kind: str, start: int, end: int
    ) -> Iterator[tuple[int, TopKeys]]:
        """Yield the minutes from ``start`` to before ``end`` that have counts, and their sketch."""
        low, high = _key(table, index, kind, max(start, 0)), _key(table, index, kind, max(end, 0))
        found = {key: TopKeys.unpack(record) for key, record in self._storage.scan(low, high)}
        found.update((key, top) for key, top in self._pending.items() if low <= key < high)
        for key in sorted(found):
            if found[key].counts:
                yield int.from_bytes(key[-8:], "big"), found[key]


def _key(table: int, index: int, kind: str, minute: int) -> bytes:
    place = table.to_bytes(4, "big") + index.to_bytes(2, "big")
    return _PREFIX + place + kind.encode() + minute.to_bytes(8, "big")
