"""Eventually consistent reads that are stale on demand, for tests.

With a lag of some seconds, these reads see every item and index entry as it was that long ago.
``ReadLag`` remembers what each recent write replaced. ``StaleReader`` returns these former values
in place of what is stored now.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Protocol

from stator.clock import Clock
from stator.engine.keyspace import DATA
from stator.storage import Changes, Storage


class EntryReader(Protocol):
    """Reads items and ranges of entries: storage itself, or a reader in front of it."""

    def get(self, key: bytes, /) -> bytes | None: ...

    def scan(
        self, low: bytes, high: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]: ...

    def values(self, low: bytes, high: bytes, *, reverse: bool = False) -> Iterator[bytes]: ...


class ReadLag:
    """Remembers the values that the writes of the last ``seconds`` replaced (0: none)."""

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self.seconds = 0.0
        self._storage = storage
        self._clock = clock
        # Time, key and former value of each change, oldest first.
        self._replaced: deque[tuple[float, bytes, bytes | None]] = deque()

    def note(self, changes: Changes) -> None:
        """Remember the stored values that these changes are about to replace."""
        now = self._clock.now()
        for key in changes:
            if key[:1] == DATA:
                self._replaced.append((now, key, self._storage.get(key)))

    def former_values(self) -> dict[bytes, bytes | None]:
        """Return the value that each recently changed key had ``seconds`` ago."""
        oldest = self._clock.now() - self.seconds
        while self._replaced and self._replaced[0][0] <= oldest:
            self._replaced.popleft()
        former: dict[bytes, bytes | None] = {}
        for _, key, value in self._replaced:
            former.setdefault(key, value)
        return former


class StaleReader:
    """Reads storage as it was some seconds ago.

    ``former`` holds the values that the keys changed since then had at that time. A value of None
    means that the key had none.
    """

    def __init__(self, storage: Storage, former: dict[bytes, bytes | None]) -> None:
        self._storage = storage
        self._former = former

    def get(self, key: bytes, /) -> bytes | None:
        return self._former[key] if key in self._former else self._storage.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.get(key) for key in keys]

    def values(self, low: bytes, high: bytes, *, reverse: bool = False) -> Iterator[bytes]:
        for _, value in self.scan(low, high, reverse=reverse):
            yield value

    def scan(
        self, low: bytes, high: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the entries as they were, in key order or in reverse."""
        former = sorted((key for key in self._former if low <= key < high), reverse=reverse)
        at = 0
        for key, value in self._storage.scan(low, high, reverse=reverse):
            while at < len(former) and (former[at] > key if reverse else former[at] < key):
                yield from self._entry(former[at])
                at += 1
            if at < len(former) and former[at] == key:
                yield from self._entry(key)
                at += 1
            else:
                yield key, value
        for key in former[at:]:
            yield from self._entry(key)

    def _entry(self, key: bytes) -> Iterator[tuple[bytes, bytes]]:
        value = self._former[key]
        if value is not None:
            yield key, value
