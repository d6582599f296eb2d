"""Where backups, exports and imports are kept: in memory, and as JSON in storage under ``m <letter> <number>``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar

import orjson

from stator.engine import keyspace
from stator.model.scope import Scope
from stator.storage import Changes, Storage
from stator.storage.protocol import after_prefix


class RegistryEntry(Protocol):
    """``number`` is never used again; ``arn`` is the name that callers know it by."""

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
        self._kept: dict[str, T] = {}
        for _, value in storage.scan(self._prefix, after_prefix(self._prefix)):
            kept = read(orjson.loads(value))
            self._kept[kept.arn] = kept

    def find(self, arn: str) -> T | None:
        return self._kept.get(arn)

    def numbered(self, number: int) -> T:
        return next(kept for kept in self._kept.values() if kept.number == number)

    def put(self, kept: T, changes: Changes) -> None:
        self._kept[kept.arn] = kept
        changes[self._key(kept)] = orjson.dumps(kept.to_json())

    def remove(self, kept: T, changes: Changes) -> None:
        del self._kept[kept.arn]
        changes[self._key(kept)] = None

    def forget_ended(self, storage: Storage, before: float) -> None:
        """Those that ended before a moment. (A backup does not end.)"""
        changes: Changes = {}
        for kept in self.all():
            ended = getattr(kept, "ended", None)
            if ended is not None and ended < before:
                self.remove(kept, changes)
        if changes:
            storage.write(changes)

    def all(self) -> Iterator[T]:
        return iter(list(self._kept.values()))

    def of(self, scope: Scope) -> list[T]:
        """Those of one account and region, ordered by ARN."""
        own = scope.table_arn("")
        return sorted(
            (kept for kept in self._kept.values() if kept.arn.startswith(own)),
            key=lambda kept: kept.arn,
        )

    def _key(self, kept: T) -> bytes:
        return self._prefix + kept.number.to_bytes(4, "big")
