"""Finds and deletes blobs that no item refers to: the remains of writes that failed half-way."""

from __future__ import annotations

from functools import partial
from typing import Any

from stator.errors import ConfigurationError
from stator.model.seconds import check_seconds
from stator.model.values import Item
from stator.patterns.item_pages import ItemPages
from stator.tables.argument_rules import checks_arguments
from stator.tables.blobs.blobs import blob_keys, blob_prefix
from stator.tables.operation import D, OnDb, operation
from stator.tables.work import BlockingCall, Work


@checks_arguments("BlobAudit")
class BlobAudit(OnDb[D]):
    """Finds and deletes blobs of an entity that no item refers to.

    Use it as ``BlobAudit(db, Document).sweep()``. Each call scans the entity's whole table to find
    the blobs that items refer to.
    """

    def __init__(self, db: D, entity: type[Any]) -> None:
        super().__init__(db)
        self._of = self.context.schema.of(entity)
        if self.context.blobs is None or not self._of.offloads:
            raise ConfigurationError(
                f"{self._of.name} has no blobs",
                hint="declare a field as large(offload_over_bytes=...) and connect with blobs=...",
            )
        self._store = self.context.blobs

    @operation
    def unnamed(self, *, older_than_seconds: float = 3600.0) -> Work[list[str]]:
        """Return the keys of blobs that no item refers to, without deleting them.

        A blob is written before its item. Blobs younger than ``older_than_seconds`` are therefore
        skipped: their item may not have been written yet.
        """
        # A negative age includes blobs that a clock ahead of this one has dated.
        is_ahead = type(older_than_seconds) in (int, float) and older_than_seconds < 0
        age = -older_than_seconds if is_ahead else older_than_seconds
        check_seconds("unnamed", or_zero=True, older_than_seconds=age)
        # The store before the table: the scan then sees every item that refers to a listed blob.
        listed = yield BlockingCall(partial(lambda: list(self._store.keys(blob_prefix(self._of)))))
        oldest = self.context.now() - older_than_seconds
        candidates = {key for key, written in listed if written <= oldest}
        in_use = yield from self._in_use() if candidates else _nothing()
        return sorted(candidates - in_use)

    def _in_use(self) -> Work[set[str]]:
        request = {"TableName": self._of.table.name, "ConsistentRead": True}
        pages = ItemPages[Item](request, f"audit of {self._of.name}", lambda item: item, "Scan")
        found: set[str] = set()
        while not pages.is_done:
            for item in (yield from pages.page()):
                found.update(blob_keys(self._of, item))
        return found

    @operation
    def sweep(self, *, older_than_seconds: float = 3600.0) -> Work[list[str]]:
        """Delete the blobs that no item refers to. Return their keys.

        Blobs younger than ``older_than_seconds`` stay: their item may not have been written yet.
        """
        unnamed = yield from self.unnamed.work(older_than_seconds=older_than_seconds)
        if unnamed:
            yield BlockingCall(partial(self._store.delete, unnamed))
        return unnamed


def _nothing() -> Work[set[str]]:
    yield from ()
    return set()
