"""Readings written: one by one, in batches, or each in a transaction with the roll-ups it counts in.

Without roll-ups a reading is one PutItem, and many are BatchWriteItem (``series_batches``). Putting the same reading twice leaves it once. With roll-ups
it is a transaction (``series_transactions``). ``series_placing`` says where a reading goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import orjson

from stator.errors import SerializationFailed, StatorError
from stator.model.limits import BATCH_WRITE_ITEMS
from stator.patterns.series.batches import GROWTHS, NO_ROOM, ReadingBatchWriter
from stator.patterns.series.placement import SeriesPlacement
from stator.patterns.series.transactions import ReadingTransactionWriter
from stator.tables.work import Call, Gather, Work
from stator.tables.writes.batches import WINDOW_REQUESTS, BatchResult, FailedWrite


class SeriesWriter:
    def __init__(self, placement: SeriesPlacement) -> None:
        self.placement = placement
        self.layout = placement.layout
        self._batches = ReadingBatchWriter(placement)
        self._transactions = (
            None if placement.book is None else ReadingTransactionWriter(placement, placement.book)
        )

    def add(self, entity: Any) -> Work[None]:
        if self._transactions is None:
            yield from self.put(entity)
        else:
            self.placement.check(entity)
            result = yield from self._transactions.write([entity])
            result.raise_for_failures()

    def put(self, entity: Any) -> Work[None]:
        """Whatever roll-ups there are, they are left alone."""
        for attempt in range(GROWTHS + 1):
            placed = yield from self.placement.place(entity)
            request = {"TableName": self.layout.table(placed.bucket.text), "Item": placed.item}
            try:
                yield Call("PutItem", request, self.placement.label)
                return
            except NO_ROOM as error:
                if attempt == GROWTHS or not (
                    yield from self.placement.make_room(placed.bucket, error)
                ):
                    raise

    def add_many(self, entities: Iterable[Any]) -> Work[BatchResult]:
        result = BatchResult()
        source = iter(entities)
        write = self._batches.write if self._transactions is None else self._transactions.write_many
        while window := list(islice(source, WINDOW_REQUESTS * BATCH_WRITE_ITEMS)):
            ready = yield from self._opened(window, result)
            if ready:
                result.add((yield from write(ready)))
        return result

    def _opened(self, entities: Sequence[Any], result: BatchResult) -> Work[list[Any]]:
        """Open all buckets side by side; what cannot be written at all fails here."""
        by_bucket: dict[tuple[str, str], list[Any]] = {}
        for entity in entities:
            try:
                by_bucket.setdefault(self._checked(entity), []).append(entity)
            except StatorError as error:
                result.failures.append(FailedWrite(entity, error))
        opened = yield Gather([self.placement.directory.open(by, text) for by, text in by_bucket])
        ready: list[Any] = []
        for found, readings in zip(opened, by_bucket.values()):
            if isinstance(found, StatorError):
                result.failures += [FailedWrite(reading, found) for reading in readings]
            else:
                ready += readings
        return ready

    def _checked(self, entity: Any) -> tuple[str, str]:
        """Whose reading it is, and in which bucket; raises if it cannot be written."""
        self.placement.check(entity)
        bucket = self.layout.bucket_of(entity)
        try:
            orjson.dumps(self.layout.item(entity, bucket, 1))
        except TypeError as error:  # text that is not Unicode, such as half of a surrogate pair
            raise SerializationFailed(f"{entity!r} cannot be sent as JSON: {error}") from None
        return self.layout.by.of(entity), bucket
