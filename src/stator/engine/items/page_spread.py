"""The spread of a page's entries over partitions: each is charged for the entries it serves."""

from __future__ import annotations

from collections.abc import Iterator

from stator.engine.items import records
from stator.engine.items.stale_reader import EntryReader
from stator.engine.keyspace import PREFIX_BYTES
from stator.engine.partitions.capacity_meter import CapacityMeter
from stator.engine.partitions.charges import Charge
from stator.engine.tables.table import Index, Table


class PageSpread:
    """Reads entries for one page, and adds up the bytes that each partition serves."""

    def __init__(
        self, storage: EntryReader, meter: CapacityMeter, table: Table, index: Index | None
    ) -> None:
        self._storage = storage
        self._meter = meter
        self._table = table
        self._index = index
        self._first: bytes | None = None
        # The first key and the bytes of each run of entries in one partition.
        self._keys: list[bytes] = []
        self._sizes: list[int] = []
        # Key and bytes of each entry, if the table or index has Contributor Insights.
        self._entries: list[tuple[bytes, int]] | None = None
        if meter.counts_units and table.traffic.keys is not None:
            self._entries = []
        self._low = b""
        self._high: bytes | None = b""

    def scan(
        self, low: bytes, high: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        if self._first is None:
            self._first = low
        charges_partitions = self._meter.charges_keys
        for key, record in self._storage.scan(low, high, reverse=reverse):
            size = records.size_of(record)
            if self._entries is not None:
                self._entries.append((key, size))
            if not charges_partitions:  # only the keys are wanted
                yield key, record
                continue
            point = key[PREFIX_BYTES:]
            if point < self._low or (self._high is not None and point >= self._high):
                self._low, self._high = self._meter.bounds(self._table, self._index, key)
                self._keys.append(key)
                self._sizes.append(0)
            self._sizes[-1] += size
            yield key, record

    def get(self, key: bytes, /) -> bytes | None:
        return self._storage.get(key)

    def values(self, low: bytes, high: bytes, *, reverse: bool = False) -> Iterator[bytes]:
        for _, record in self.scan(low, high, reverse=reverse):
            yield record

    def charge(self, units: float) -> None:
        """Charge the page's units. Raises SlowDown if a limit of one of its partitions refuses."""
        total = sum(self._sizes)
        if not total:
            charges: list[Charge] = [(self._table, self._index, self._first or b"", units)]
        else:
            charges = [
                (self._table, self._index, key, units * size / total)
                for key, size in zip(self._keys, self._sizes)
            ]
        entries: list[Charge] | None = None
        if self._entries is not None:
            noted = sum(size for _, size in self._entries)
            entries = [
                (self._table, self._index, key, units * size / noted) for key, size in self._entries
            ]
        error = self._meter.try_read(charges, entries)
        if error is not None:
            raise error
