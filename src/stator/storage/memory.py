"""Storage in memory: a dictionary and a sorted list of its keys. Nothing is written to disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sortedcontainers import SortedList

from stator.errors import ConfigurationError, StorageClosed
from stator.storage.protocol import Changes, Durable


class MemoryStorage:
    durable_at_once = True
    location = "memory"

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}
        self._keys: Any = SortedList()
        self.get = self._values.get
        self._commit = 0
        self._closed = False

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return list(map(self._values.get, keys))

    def scan(
        self, low: bytes, high: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        values = self._values
        return ((key, values[key]) for key in self._between(low, high, reverse))

    def values(self, low: bytes, high: bytes, *, reverse: bool = False) -> Iterator[bytes]:
        return map(self._values.__getitem__, self._between(low, high, reverse))

    def _between(self, low: bytes, high: bytes, reverse: bool) -> Any:
        return self._keys.irange(low, high, inclusive=(True, False), reverse=reverse)

    def write(self, changes: Changes, *, undoable: bool = False) -> int:
        if self._closed:
            raise StorageClosed
        values = self._values
        for key, value in changes.items():
            if value is not None:
                if key not in values:
                    self._keys.add(key)
                values[key] = value
            elif key in values:
                del values[key]
                self._keys.remove(key)
        self._commit += 1
        return self._commit

    def delete_range(self, low: bytes, high: bytes) -> int:
        return self.write(dict.fromkeys(self._between(low, high, reverse=False)))

    def when_durable(self, commit: int, callback: Durable) -> None:
        callback(None)

    def wait_durable(self, commit: int) -> None:
        return

    def checkpoint(self, path: str) -> None:
        raise ConfigurationError(
            "an engine in memory has no files to checkpoint",
            hint="open the engine on a folder: Engine.open(path)",
        )

    def close(self) -> None:
        self._closed = True
        self._values.clear()
        self._keys.clear()
