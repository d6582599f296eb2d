"""Writes of readings: one by one, in batches, or each in a transaction with its roll-ups.

Without roll-ups, one reading is a PutItem, and many are BatchWriteItem requests. Readings that a
throttled bucket leaves unwritten are retried once the bucket has grown. Writing the same reading
twice stores it once. With roll-ups, a reading is a transaction (``transactions``). ``placement``
decides where a reading is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import orjson

from stator.errors import SerializationFailed, StatorError
from stator.errors.data import FailedWrite
from stator.model.limits import BATCH_WRITE_ITEMS
from stator.model.values import Item
from stator.patterns.series.placement import GROWTHS, NO_ROOM, PlacedReading, SeriesPlacement
from stator.patterns.series.transactions import ReadingTransactionWriter
from stator.tables.work import Call, Gather, Work, gathered
from stator.tables.writes.batches import (
    WINDOW_REQUESTS,
    BatchResult,
    BatchWrite,
    chunks,
    keep_last_write,
    send_writes,
)


class SeriesWriter:
    """Writes readings of one series, with or without roll-ups."""

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
            if result.failures:
                raise result.failures[0].error

    def put(self, entity: Any) -> Work[None]:
        """Write a reading without updating roll-ups."""
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
            ready = yield from self._open_buckets(window, result)
            if ready:
                result.add((yield from write(ready)))
        return result

    def _open_buckets(self, entities: Sequence[Any], result: BatchResult) -> Work[list[Any]]:
        """Open all buckets in parallel. Return the readings that can be written."""
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
        """Return the series key and bucket of a reading.

        Raises an error if it cannot be written.
        """
        self.placement.check(entity)
        bucket = self.layout.bucket_of(entity)
        try:
            orjson.dumps(self.layout.item(entity, bucket, 1))
        except TypeError as error:  # invalid Unicode, such as half of a surrogate pair
            raise SerializationFailed(
                f"a {type(entity).__name__} cannot be sent as JSON: {error}"
            ) from None
        return self.layout.by.of(entity), bucket


class ReadingBatchWriter:
    """Writes readings without roll-ups, 25 per BatchWriteItem.

    Retries readings that were throttled.
    """

    def __init__(self, placement: SeriesPlacement) -> None:
        self.placement = placement
        self.layout = placement.layout

    def write(self, entities: list[Any]) -> Work[BatchResult]:
        result = BatchResult()
        for attempt in range(GROWTHS + 1):
            sent = yield from self._send(entities)
            failures, sent.failures = sent.failures, []
            result.add(sent)
            if attempt == GROWTHS:
                result.failures += failures
                break
            entities, hopeless = yield from self._make_room(failures)
            result.failures += hopeless
            if not entities:
                break
        return result

    def _send(self, entities: list[Any]) -> Work[BatchResult]:
        writes: dict[Any, BatchWrite] = {}
        for entity in entities:
            placed = yield from self.placement.place(entity)
            keep_last_write(writes, self._batch_write(placed))
        result = BatchResult()
        context, label = self.placement.context, self.placement.label
        parts = [send_writes(context, chunk, label) for chunk in chunks(writes.values())]
        for part in gathered((yield Gather(parts))):
            result.add(part)
        return result

    def _make_room(self, failures: list[FailedWrite]) -> Work[tuple[list[Any], list[FailedWrite]]]:
        """Try to make room in full buckets.

        Return the readings to retry, and the failures that remain.
        """
        has_room: dict[tuple[str, str], bool] = {}
        retried, hopeless = [], []
        for failure in failures:
            bucket_key = (self.layout.by.of(failure.change), self.layout.bucket_of(failure.change))
            is_crowded = isinstance(failure.error, NO_ROOM)
            if is_crowded and bucket_key not in has_room:
                bucket = yield from self.placement.directory.open(*bucket_key)
                has_room[bucket_key] = yield from self.placement.make_room(bucket, failure.error)
            if is_crowded and has_room[bucket_key]:
                retried.append(failure.change)
            else:
                hopeless.append(failure)
        return retried, hopeless

    def _batch_write(self, placed: PlacedReading) -> BatchWrite:
        place = self.layout.place

        def key_of(item: Item) -> tuple[str, str]:
            return item[place.partition]["S"], item[place.sort]["S"]

        entry = b'{"PutRequest":{"Item":%b}}' % orjson.dumps(placed.item)
        return BatchWrite(
            placed.entity, self.layout.table(placed.bucket.text), key_of, key_of(placed.item), entry
        )
