"""Small records of companions, such as alarms: JSON under a prefix of the companions' key space.

    c r <kind> 0 <account> 0 <region> 0 <name>

``kind`` is a word such as "alarm". Records are written at once, not at the end of a minute. An
answer waits until the records that its request changed are durable.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from stator.engine import keyspace
from stator.model.scope import Scope
from stator.storage import Storage
from stator.storage.protocol import after_prefix

_PREFIX: Final = keyspace.COMPANIONS + b"r"


class CompanionRecords:
    """Reads and writes records. The caller holds the engine's lock."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        # The last commit, for a request that must not be answered before it is durable.
        self.commit: int | None = None

    def get(self, kind: str, scope: Scope, name: str) -> dict[str, Any] | None:
        record = self._storage.get(_key(kind, scope, name))
        return None if record is None else orjson.loads(record)

    def put(self, kind: str, scope: Scope, name: str, data: dict[str, Any]) -> None:
        changes: dict[bytes, bytes | None] = {_key(kind, scope, name): orjson.dumps(data)}
        self.commit = self._storage.write(changes, undoable=True)

    def delete(self, kind: str, scope: Scope, name: str) -> None:
        self.commit = self._storage.write({_key(kind, scope, name): None}, undoable=True)

    def all(self, kind: str, scope: Scope, prefix: str = "") -> Iterator[dict[str, Any]]:
        """Yield the records of an account and region by name, if it starts with ``prefix``."""
        yield from self._scan(_key(kind, scope, prefix))

    def everywhere(self, kind: str) -> Iterator[dict[str, Any]]:
        """Yield the records of a kind, of every account and region."""
        yield from self._scan(_PREFIX + kind.encode() + b"\0")

    def _scan(self, prefix: bytes) -> Iterator[dict[str, Any]]:
        for _, record in list(self._storage.scan(prefix, after_prefix(prefix))):
            yield orjson.loads(record)


def _key(kind: str, scope: Scope, name: str) -> bytes:
    return _PREFIX + b"\0".join(
        (kind.encode(), scope.account.encode(), scope.region.encode(), name.encode())
    )
