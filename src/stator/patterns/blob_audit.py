"""Blobs that no item names: left behind by writes that failed half-way, found and deleted."""

from __future__ import annotations

from functools import partial
from typing import Any

from stator.errors import ConfigurationError
from stator.tables.blobs.blobs import blob_keys, blob_prefix
from stator.tables.operation import D, OnDb, operation
from stator.tables.work import BlockingCall, Call, Work


class BlobAudit(OnDb[D]):
    """``BlobAudit(db, Document).sweep()``. It reads the entity's whole table to know which blobs are named."""

    def __init__(self, db: D, entity: type[Any]) -> None:
        super().__init__(db)
        self._of = self.context.schema.of(entity)
        if self.context.blobs is None or not self._of.offloads:
            raise ConfigurationError(
                f"{self._of.name} has no blobs",
                hint="use large(offload_over_bytes=...), and connect with blobs=...",
            )
        self._store = self.context.blobs

    @operation
    def unnamed(self, *, older_than_seconds: float = 3600.0) -> Work[list[str]]:
        """Blobs that no item names and that are not just being written: the age keeps those under way out."""
        # The store first, then the table: a blob listed here and named by an item there is never missed.
        listed = yield BlockingCall(partial(lambda: list(self._store.keys(blob_prefix(self._of)))))
        oldest = self.context.now() - older_than_seconds
        candidates = {key for key, written in listed if written <= oldest}
        named = yield from self._named() if candidates else _nothing()
        return sorted(candidates - named)

    def _named(self) -> Work[set[str]]:
        found: set[str] = set()
        start = None
        while True:
            request: dict[str, Any] = {"TableName": self._of.table.name, "ConsistentRead": True}
            if start is not None:
                request["ExclusiveStartKey"] = start
            reply = yield Call("Scan", request, f"audit of {self._of.name}")
            for item in reply["Items"]:
                found.update(blob_keys(self._of, item))
            start = reply.get("LastEvaluatedKey")
            if start is None:
                return found

    @operation
    def sweep(self, *, older_than_seconds: float = 3600.0) -> Work[list[str]]:
        """Delete them; says which."""
        gone = yield from self.unnamed.work(older_than_seconds=older_than_seconds)
        if gone:
            yield BlockingCall(partial(self._store.delete, gone))
        return gone


def _nothing() -> Work[set[str]]:
    yield from ()
    return set()
