"""Readings without roll-ups, many at a time: BatchWriteItem, and what it leaves tried again where there is room."""

from __future__ import annotations

from typing import Any, Final

import orjson

from stator.errors import DeadlineExceeded, ResourceNotFound, SlowDown
from stator.model.values import Item
from stator.patterns.series.placement import PlacedReading, SeriesPlacement
from stator.tables.work import Gather, Work, gathered
from stator.tables.writes.batches import (
    BatchResult,
    BatchWrite,
    FailedWrite,
    chunks,
    keep_last_write,
    send_writes,
)

GROWTHS: Final = 8
NO_ROOM: Final = (SlowDown, DeadlineExceeded, ResourceNotFound)


class ReadingBatchWriter:
    def __init__(self, placement: SeriesPlacement) -> None:
        self.placement = placement
        self.layout = placement.layout

    def write(self, entities: list[Any]) -> Work[BatchResult]:
        result = BatchResult()
        for attempt in range(GROWTHS + 1):
            sent = yield from self._sent(entities)
            failures, sent.failures = sent.failures, []
            result.add(sent)
            if attempt == GROWTHS:
                result.failures += failures
                break
            entities, hopeless = yield from self._worth_another_try(failures)
            result.failures += hopeless
            if not entities:
                break
        return result

    def _sent(self, entities: list[Any]) -> Work[BatchResult]:
        changes: dict[Any, BatchWrite] = {}
        for entity in entities:
            placed = yield from self.placement.place(entity)
            keep_last_write(changes, self._change(placed))
        result = BatchResult()
        context, label = self.placement.context, self.placement.label
        parts = [send_writes(context, chunk, label) for chunk in chunks(changes.values())]
        for part in gathered((yield Gather(parts))):
            result.add(part)
        return result

    def _worth_another_try(
        self, failures: list[FailedWrite]
    ) -> Work[tuple[list[Any], list[FailedWrite]]]:
        """The readings whose buckets have room now, and the failures of the others."""
        has_room: dict[tuple[str, str], bool] = {}
        again, hopeless = [], []
        for failure in failures:
            whose = (self.layout.by.of(failure.change), self.layout.bucket_of(failure.change))
            is_crowded = isinstance(failure.error, NO_ROOM)
            if is_crowded and whose not in has_room:
                bucket = yield from self.placement.directory.open(*whose)
                has_room[whose] = yield from self.placement.make_room(bucket, failure.error)
            if is_crowded and has_room[whose]:
                again.append(failure.change)
            else:
                hopeless.append(failure)
        return again, hopeless

    def _change(self, placed: PlacedReading) -> BatchWrite:
        place = self.layout.place

        def key_of(item: Item) -> tuple[str, str]:
            return item[place.partition]["S"], item[place.sort]["S"]

        entry = b'{"PutRequest":{"Item":%b}}' % orjson.dumps(placed.item)
        return BatchWrite(
            placed.entity, self.layout.table(placed.bucket.text), key_of, key_of(placed.item), entry
        )
