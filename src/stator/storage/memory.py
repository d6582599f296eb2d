"""Storage in memory: a sorted dictionary. Durable at once, gone with the process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sortedcontainers import SortedDict

from stator.errors import ConfigurationError, StorageClosed
from stator.storage.protocol import Changes, Durable


class MemoryStorage:
    durable_at_once = True

    def __init__(self) -> None:
        self._entries: Any = SortedDict()
        self.get = self._entries.get
        self._commit = 0
        self._closed = False

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return list(map(self._entries.get, keys))

    def scan(self, low: bytes, high: bytes, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        entries = self._entries
        keys = entries.irange(low, high, inclusive=(True, False), reverse=reverse)
        return ((key, entries[key]) for key in keys)

    def values(self, low: bytes, high: bytes, *, reverse: bool = False) -> Iterator[bytes]:
        keys = self._entries.irange(low, high, inclusive=(True, False), reverse=reverse)
        return map(self._entries.__getitem__, keys)

    def write(self, changes: Changes) -> int:
        if self._closed:
            raise StorageClosed
        entries = self._entries
        for key, value in changes.items():
            if value is not None:
                entries[key] = value
            elif key in entries:
                del entries[key]
        self._commit += 1
        return self._commit

    def delete_range(self, low: bytes, high: bytes) -> int:
        return self.write(dict.fromkeys(self._entries.irange(low, high, inclusive=(True, False))))

    def when_durable(self, commit: int, callback: Durable) -> None:
        callback(None)

    def wait_durable(self, commit: int) -> None:
        return

    def checkpoint(self, path: str) -> None:
        raise ConfigurationError(
            "an engine in memory has no files to copy", hint="open the engine on a folder to checkpoint it"
        )

    def close(self) -> None:
        self._closed = True
        self._entries.clear()
