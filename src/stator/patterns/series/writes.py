"""Writes of readings: one by one, in batches, or each in a transaction with its roll-ups.

Without roll-ups, one reading is a PutItem, and many are BatchWriteItem requests. Readings that a
throttled bucket leaves unwritten are retried once the bucket has grown. Writing the same reading
twice stores it once. A reading that a later version of the class wrote is not replaced by ``add``;
a batch cannot have conditions, and replaces it. With roll-ups, a reading is a transaction
(``transactions``). ``placement`` decides where a reading is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import orjson

from stator.design.entities.entity_versions import VERSION_ATTRIBUTE, ShapeVersion
from stator.errors import ConditionFailed, RequestRefused, SerializationFailed, StatorError
from stator.errors.data import FailedWrite
from stator.model.limits import BATCH_WRITE_ITEMS
from stator.model.values import Item
from stator.patterns.series.buckets import Bucket
from stator.patterns.series.placement import GROWTHS, NO_ROOM, PlacedReading, SeriesPlacement
from stator.patterns.series.transactions import ReadingTransactionWriter
from stator.tables.work import Call, Gather, Pause, Work, gathered
from stator.tables.writes.batches import (
    WINDOW_REQUESTS,
    BatchResult,
    BatchWrite,
    chunks,
    keep_last_write,
    send_writes,
)
from stator.tables.writes.expressions import Expressions


class SeriesWriter:
    """Writes readings of one series, with or without roll-ups."""

    def __init__(self, placement: SeriesPlacement, *, has_rollups: bool) -> None:
        self.placement = placement
        self.layout = placement.layout
        self._has_rollups = has_rollups
        self._batches = ReadingBatchWriter(placement)
        self._transactions = (
            None if placement.book is None else ReadingTransactionWriter(placement, placement.book)
        )

    def add(self, entity: Any) -> Work[None]:
        self._refuse_expired(entity)
        if self._transactions is None:
            yield from self.put(entity)
        else:
            self.placement.check(entity)
            result = yield from self._transactions.write([entity])
            if result.failures:
                raise result.failures[0].error

    def put(self, entity: Any) -> Work[None]:
        """Write a reading without updating roll-ups.

        Raises NewerVersion instead of replacing a reading of a later version. The condition for
        this costs nothing, and is still true for a put that is sent again.
        """
        shape = self.layout.info.shape_version
        for attempt in range(GROWTHS + 1):
            placed = yield from self.placement.place(entity, again=attempt > 0)
            request = {"TableName": placed.table, "Item": placed.item} | _unless_newer(shape)
            put = Call(
                "PutItem",
                request,
                self.placement.label,
                raise_hot_key=self.placement.may_grow(placed.bucket),
                raise_table_limit=self.placement.may_widen(placed.bucket),
            )
            try:
                yield put
                return
            except ConditionFailed as error:
                shape.refuse_newer(error.item or {})
                raise
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
        """Open the buckets of all readings in parallel. Return the readings that can be written."""
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

        Raises an error if the reading is of another class, or cannot be encoded as an item.
        """
        self.placement.check(entity)
        self._refuse_expired(entity)
        bucket = self.layout.bucket_of(entity)
        try:
            orjson.dumps(self.layout.item(entity, bucket, 1))
        except TypeError as error:  # invalid Unicode, such as half of a surrogate pair
            raise SerializationFailed(
                f"a {type(entity).__name__} cannot be sent as JSON: {error}"
            ) from None
        return self.layout.by.of(entity), bucket

    def _refuse_expired(self, entity: Any) -> None:
        """Refuse a reading that has expired already, if the series has roll-ups.

        It may have been counted before and deleted since, so that it would be counted twice.
        """
        layout = self.layout
        if layout.keep is None or not self._has_rollups:
            return
        self.placement.check(entity)
        item = layout.item(entity, layout.bucket_of(entity), 1)
        if layout.is_expired(item, self.placement.context.now()):
            raise RequestRefused(
                f"{layout.info.name} at {layout.sort_text(entity)} has expired already, by keep=: "
                f"the roll-ups may have counted it before it was deleted",
                hint="leave it out, or give the series a longer keep=",
            )


def _unless_newer(shape: ShapeVersion) -> dict[str, Any]:
    """Return the condition of a put that must not replace an item of a later entity version."""
    if shape.on_newer != "raise":
        return {}
    written = Expressions()
    name = written.name(VERSION_ATTRIBUTE)
    condition = f"attribute_not_exists({name})"
    if shape.value is not None:
        condition += f" OR {name} <= {written.value(shape.value)}"
    return written.into(
        {"ConditionExpression": condition, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    )


@dataclass(slots=True)
class _Sent:
    """The outcome of one attempt to write readings in batches.

    ``failures`` are readings that DynamoDB refused, ``unprocessed`` those that it left out of a
    batch. ``buckets`` has the bucket of each reading, with its number of shards at the attempt.
    """

    failures: list[FailedWrite] = field(default_factory=list)
    unprocessed: list[Any] = field(default_factory=list)
    buckets: dict[tuple[str, str], Bucket] = field(default_factory=dict)


class ReadingBatchWriter:
    """Writes readings without roll-ups, 25 in each BatchWriteItem request.

    Throttled readings are retried. If their bucket gets more shards, the retry follows without a
    back-off. DynamoDB does not say why it leaves items of a batch unprocessed. A test write to an
    item's partition therefore finds out whether the partition is throttled (``shards.hot_key``).
    """

    def __init__(self, placement: SeriesPlacement) -> None:
        self.placement = placement
        self.layout = placement.layout

    def write(self, entities: list[Any]) -> Work[BatchResult]:
        result = BatchResult()
        for attempt in range(GROWTHS + 1):
            is_last = attempt == GROWTHS
            sent = yield from self._send(entities, result, again=attempt > 0, is_last=is_last)
            if is_last:
                result.failures += sent.failures
                break
            entities, hopeless = yield from self._make_room(sent)
            result.failures += hopeless
            if not entities:
                break
        return result

    def _send(
        self, entities: list[Any], result: BatchResult, *, again: bool, is_last: bool
    ) -> Work[_Sent]:
        sent = _Sent()
        writes: dict[Any, BatchWrite] = {}
        for entity in entities:
            placed = yield from self.placement.place(entity, again=again)
            sent.buckets[placed.bucket.by, placed.bucket.text] = placed.bucket
            keep_last_write(writes, self._batch_write(placed))
        context, label = self.placement.context, self.placement.label
        buckets = sent.buckets.values()
        widens = not is_last and any(map(self.placement.may_widen, buckets))
        spreads = widens or (not is_last and any(map(self.placement.may_grow, buckets)))
        unprocessed: list[BatchWrite] = []
        by_table: dict[str, list[BatchWrite]] = {}
        for each in writes.values():  # a table at its limit does not hold up the others
            by_table.setdefault(each.table, []).append(each)
        parts = [
            send_writes(
                context,
                chunk,
                label,
                unprocessed_to=unprocessed if spreads else None,
                raise_table_limit=widens,
            )
            for group in by_table.values()
            for chunk in chunks(group)
        ]
        for part in gathered((yield Gather(parts))):
            sent.failures += part.failures
            part.failures = []
            result.add(part)
        result.written += sum(each.stands_for - 1 for each in unprocessed)
        sent.unprocessed = [each.source for each in unprocessed]
        return sent

    def _make_room(self, sent: _Sent) -> Work[tuple[list[Any], list[FailedWrite]]]:
        """Give throttled buckets more shards.

        Returns the readings to retry, and the failures that a retry would not help.
        """
        has_room: dict[tuple[str, str], bool] = {}
        retried, hopeless = [], []
        for failure in sent.failures:
            bucket_key = self._bucket_key(failure.change)
            is_crowded = isinstance(failure.error, NO_ROOM)
            if is_crowded and bucket_key not in has_room:
                has_room[bucket_key] = yield from self.placement.make_room(
                    sent.buckets[bucket_key], failure.error
                )
            if is_crowded and has_room[bucket_key]:
                retried.append(failure.change)
            else:
                hopeless.append(failure)
        asked: set[tuple[str, str]] = set()
        grown = False
        for entity in sent.unprocessed:
            bucket_key = self._bucket_key(entity)
            if bucket_key not in has_room and bucket_key not in asked:
                asked.add(bucket_key)
                bucket = sent.buckets[bucket_key]
                key = self.layout.key_of(self.layout.item(entity, bucket.text, bucket.shards))
                location = self.layout.location(entity, bucket.spread)
                table = self.layout.table(bucket.text, location.table)
                grown = (yield from self.placement.make_room_if_hot(bucket, table, key)) or grown
        if sent.unprocessed and not grown and not any(has_room.values()):
            yield Pause(self.placement.context.backoff(1))
        return retried + sent.unprocessed, hopeless

    def _bucket_key(self, entity: Any) -> tuple[str, str]:
        return self.layout.by.of(entity), self.layout.bucket_of(entity)

    def _batch_write(self, placed: PlacedReading) -> BatchWrite:
        place = self.layout.place

        def key_of(item: Item) -> tuple[str, str]:
            return item[place.partition]["S"], item[place.sort]["S"]

        entry = b'{"PutRequest":{"Item":%b}}' % orjson.dumps(placed.item)
        return BatchWrite(placed.entity, placed.table, key_of, key_of(placed.item), entry)
