"""A registry of backups, exports or imports: in memory, and in storage.

Each entry is stored as JSON under ``m <letter> <number>``.

The data folder's FORMAT version covers the JSON: a new required field needs a new version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar

import orjson

from stator.engine import keyspace
from stator.model.scope import Scope
from stator.storage import Changes, Storage
from stator.storage.protocol import after_prefix


class RegistryEntry(Protocol):
    """An entry. ``number`` is never reused; callers know the entry by its ``arn``."""

    @property
    def number(self) -> int: ...

    @property
    def arn(self) -> str: ...

    def to_json(self) -> dict[str, Any]: ...


T = TypeVar("T", bound=RegistryEntry)


class Registry(Generic[T]):
    def __init__(
        self, storage: Storage, letter: bytes, read: Callable[[dict[str, Any]], T]
    ) -> None:
        self._prefix = keyspace.META + letter
        self._storage = storage
        self._read = read
        self._entries: dict[str, T] = {}
        for _, value in storage.scan(self._prefix, after_prefix(self._prefix)):
            entry = read(orjson.loads(value))
            self._entries[entry.arn] = entry

    def find(self, arn: str) -> T | None:
        return self._entries.get(arn)

    def numbered(self, number: int) -> T:
        return next(entry for entry in self._entries.values() if entry.number == number)

    def restored(self, number: int) -> T | None:
        """Read an entry from storage again, in place of the one in memory, and return it.

        Changes in memory that were never written are lost. Returns None if storage has no entry
        with this number.
        """
        entry = next((each for each in self.all() if each.number == number), None)
        stored = None if entry is None else self._storage.get(self._key(entry))
        if stored is None:
            return None
        entry = self._read(orjson.loads(stored))
        self._entries[entry.arn] = entry
        return entry

    def put(self, entry: T, changes: Changes) -> None:
        self._entries[entry.arn] = entry
        changes[self._key(entry)] = orjson.dumps(entry.to_json())

    def remove(self, entry: T, changes: Changes) -> None:
        del self._entries[entry.arn]
        changes[self._key(entry)] = None

    def forget_ended(self, storage: Storage, before: float) -> None:
        """Remove exports or imports that ended before a given moment. Backups have no end."""
        changes: Changes = {}
        for entry in self.all():
            ended = getattr(entry, "ended", None)
            if ended is not None and ended < before:
                self.remove(entry, changes)
        if changes:
            storage.write(changes)

    def all(self) -> Iterator[T]:
        return iter(list(self._entries.values()))

    def of(self, scope: Scope) -> list[T]:
        """Return the entries of one account and region, ordered by ARN."""
        own = scope.table_arn("")
        return sorted(
            (entry for entry in self._entries.values() if entry.arn.startswith(own)),
            key=lambda entry: entry.arn,
        )

    def _key(self, entry: T) -> bytes:
        return self._prefix + entry.number.to_bytes(4, "big")
