"""Readings with roll-ups: each in one transaction with what it adds to them.

The transaction holds on condition that the reading is not there yet: so it is counted once, even when the answer was lost and the program sends it again an
hour later. A reading that is there already and is the same is passed over; one that is there with other values is refused (ItemExists), because a sum can be
corrected but a least value cannot. In a bucket that has grown, the places where the reading would have been before are checked in the same transaction.

Many readings go into as few transactions as hold them, with one update for all that count in the same roll-up. Those of one ``by`` are sent one after the
other, as they would only be in each other's way; others side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final

import orjson

from stator.errors import (
    ConditionFailed,
    ItemExists,
    ServiceError,
    SlowDown,
    StatorError,
    TransactionConflict,
    TransactionFailed,
    ValidationFailed,
)
from stator.model.limits import TRANSACTION_BYTES, TRANSACTION_ITEMS
from stator.model.values import Item
from stator.patterns.rollups.rollup import RollupKey, RollupTally
from stator.patterns.rollups.writes import RollupBook
from stator.patterns.series.batches import NO_ROOM
from stator.patterns.series.directory import Bucket
from stator.patterns.series.layout import SeriesLayout
from stator.patterns.series.placement import PlacedReading, SeriesPlacement
from stator.tables.work import Gather, Pause, Work, gathered
from stator.tables.writes.batches import BatchResult, FailedWrite
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.sender import items_equal, send_all
from stator.tables.writes.statements import Kind, Statement

_ATTEMPTS: Final = 25
_ROOM_BYTES: Final = TRANSACTION_BYTES // 2


class ReadingTransactionWriter:
    def __init__(self, placement: SeriesPlacement, book: RollupBook) -> None:
        self.placement = placement
        self.context = placement.context
        self.layout = placement.layout
        self.book = book

    def write_many(self, entities: list[Any]) -> Work[BatchResult]:
        ordered = sorted(
            entities, key=lambda each: (self.layout.by.of(each), self.layout.sort_text(each))
        )
        placed = gathered((yield Gather([self.placement.place(entity) for entity in ordered])))
        chains = [list(group) for _, group in groupby(placed, key=lambda each: each.bucket.by)]
        result = BatchResult()
        for part in gathered(
            (yield Gather([self._one_after_the_other(chain) for chain in chains]))
        ):
            result.add(part)
        return result

    def _one_after_the_other(self, placed: list[PlacedReading]) -> Work[BatchResult]:
        result = BatchResult()
        for group in self._groups(placed):
            result.add((yield from self.write([each.entity for each in group])))
        return result

    def _groups(self, placed: list[PlacedReading]) -> Iterator[list[PlacedReading]]:
        """As many as fit into a transaction, with the roll-ups they share."""
        group: list[PlacedReading] = []
        readings, size = 0, 0
        touched: set[RollupKey] = set()
        for each in placed:
            places = len({self.layout.shard(each.entity, count) for count in each.bucket.counts})
            keys = self.book.tallies(each.entity, each.shard).keys()
            size_bytes = len(orjson.dumps(each.item))
            is_full = (
                readings + places + len(touched | keys) > TRANSACTION_ITEMS
                or size + size_bytes > _ROOM_BYTES
            )
            if group and is_full:
                yield group
                group, readings, size, touched = [], 0, 0, set()
            group.append(each)
            touched |= keys
            readings, size = readings + places, size + size_bytes
        if group:
            yield group

    def write(self, entities: list[Any]) -> Work[BatchResult]:
        """All of them in one transaction, those left out that are there already or cannot be written."""
        result = BatchResult()
        left = self._distinct(entities, result)
        for attempt in range(_ATTEMPTS):
            try:
                left = yield from self._attempt(left, result, attempt)
            except StatorError as error:
                result.failures += [FailedWrite(entity, error) for entity in left]
                return result
            if not left:
                return result
        late = TransactionConflict(
            f"{self.placement.label}: its roll-ups are changed by others all the time"
        )
        result.failures += [FailedWrite(entity, late) for entity in left]
        return result

    def _distinct(self, entities: list[Any], result: BatchResult) -> list[Any]:
        """Of a reading that is given twice one is sent; the other must be the same."""
        found: dict[tuple[str, str], Any] = {}
        for entity in entities:
            first = found.setdefault(
                (self.layout.by.of(entity), self.layout.sort_text(entity)), entity
            )
            if first is not entity:
                bucket = self.layout.bucket_of(entity)
                wanted, there = (self.layout.item(each, bucket, 1) for each in (entity, first))
                self._settle(entity, wanted, there, result)
        return list(found.values())

    def _attempt(self, entities: list[Any], result: BatchResult, attempt: int) -> Work[list[Any]]:
        """Send them once; gives those that are to be sent again."""
        placed = list(
            gathered((yield Gather([self.placement.place(entity) for entity in entities])))
        )
        transaction = ReadingTransaction(self.layout, self.book, placed)
        if len(transaction.statements) > TRANSACTION_ITEMS and len(placed) > 1:
            return (yield from self._in_halves(entities, result))
        result.requests += 1
        try:
            yield from send_all(self.context, transaction.statements, self.placement.label)
        except TransactionFailed as failed:
            if len(placed) > 1 and any(
                isinstance(error, ValidationFailed) for _, _, error in failed.failures
            ):
                return (yield from self._in_halves(entities, result))
            if not any(isinstance(error, ConditionFailed) for _, _, error in failed.failures):
                yield Pause(self.context.backoff(attempt))
            return (yield from self._sorted_out(transaction, failed, result))
        except NO_ROOM as error:
            if not (yield from self._made_room_for(placed, error)):
                raise
            return entities
        except ValidationFailed:
            if len(placed) == 1:
                raise
            return (yield from self._in_halves(entities, result))
        transaction.succeeded()
        result.written += len(placed)
        return []

    def _made_room_for(self, placed: list[PlacedReading], error: StatorError) -> Work[bool]:
        has_room = False
        for bucket in {each.bucket for each in placed}:
            has_room = (yield from self.placement.make_room(bucket, error)) or has_room
        return has_room

    def _in_halves(self, entities: list[Any], result: BatchResult) -> Work[list[Any]]:
        middle = len(entities) // 2
        for half in (entities[:middle], entities[middle:]):
            result.add((yield from self.write(half)))
        return []

    def _sorted_out(
        self, transaction: ReadingTransaction, failed: TransactionFailed, result: BatchResult
    ) -> Work[list[Any]]:
        """What is to be sent again after a failure, now that more is known."""
        yield from self._grown(transaction, failed)
        settled: set[int] = set()
        for at, _, error in failed.failures:
            about = transaction.about[at]
            if isinstance(about, RollupKey):
                if isinstance(error, ConditionFailed):
                    transaction.book.is_stored(about, error.item)
            elif isinstance(error, ConditionFailed):
                if id(about) not in settled:
                    self._settle(about.entity, about.item, error.item, result)
                settled.add(id(about))
            elif not error.retryable:
                result.failures.append(FailedWrite(about.entity, error))
                settled.add(id(about))
        return [placed.entity for placed in transaction.placed if id(placed) not in settled]

    def _grown(self, transaction: ReadingTransaction, failed: TransactionFailed) -> Work[None]:
        """Raises what no later attempt can put right."""
        busy: dict[Bucket, ServiceError] = {}
        for at, _, error in failed.failures:
            if isinstance(error, SlowDown):
                busy[transaction.bucket_of(transaction.about[at])] = error
            elif isinstance(transaction.about[at], RollupKey) and not isinstance(
                error, ConditionFailed
            ):
                raise error
        for bucket, error in busy.items():
            if not (yield from self.placement.make_room(bucket, error)):
                raise error

    def _settle(self, entity: Any, wanted: Item, stored: Item | None, result: BatchResult) -> None:
        """The reading is there already: done, if it is the same."""
        if stored and items_equal(self._content(stored), self._content(wanted)):
            result.written += 1
            return
        shown = f"{self.layout.info.name} at {self.layout.sort_text(entity)}"
        exists = ItemExists(
            f"{shown} exists already, with other values",
            item=stored,
            hint="its roll-ups have counted it: change it with replace(), which rebuilds them",
        )
        exists.entity = self.layout.decode(stored) if stored else None
        result.failures.append(FailedWrite(entity, exists))

    def _content(self, item: Item) -> Item:
        return {
            name: value
            for name, value in item.items()
            if name not in (self.layout.place.partition, self.layout.place.ttl)
        }


class ReadingTransaction:
    """The statements of one transaction, and what each is about."""

    def __init__(self, layout: SeriesLayout, book: RollupBook, placed: list[PlacedReading]) -> None:
        self.layout = layout
        self.book = book
        self.placed = placed
        self.statements: list[Statement] = []
        self.about: list[PlacedReading | RollupKey] = []
        self.tallies: dict[RollupKey, RollupTally] = {}
        self._bucket_of: dict[RollupKey, Bucket] = {}
        for each in placed:
            self._reading(each)
        for key, tally in self.tallies.items():
            self.statements.append(book.addition(key, tally))
            self.about.append(key)

    def _reading(self, placed: PlacedReading) -> None:
        self._absent("Put", {"Item": placed.item}, placed)
        for shard in {self.layout.shard(placed.entity, count) for count in placed.bucket.counts} - {
            placed.shard
        }:
            partition = self.layout.partition(placed.bucket.by, placed.bucket.text, shard)
            key = self.layout.place.key(partition, self.layout.sort_of(placed.item))
            self._absent("ConditionCheck", {"Key": key}, placed)
        for rollup, tally in self.book.tallies(placed.entity, placed.shard).items():
            self.tallies[rollup] = self.tallies[rollup] + tally if rollup in self.tallies else tally
            self._bucket_of[rollup] = placed.bucket

    def _absent(self, kind: Kind, what: dict[str, Any], placed: PlacedReading) -> None:
        written = Expressions()
        request = {
            "TableName": self.layout.table(placed.bucket.text),
            **what,
            "ConditionExpression": f"attribute_not_exists({written.name(self.layout.place.partition)})",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        shown = f"add {self.layout.sort_of(placed.item)}"
        self.statements.append(
            Statement(kind, written.into(request), shown, lambda item: ConditionFailed(item=item))
        )
        self.about.append(placed)

    def bucket_of(self, about: PlacedReading | RollupKey) -> Bucket:
        return about.bucket if isinstance(about, PlacedReading) else self._bucket_of[about]

    def succeeded(self) -> None:
        for key, tally in self.tallies.items():
            self.book.was_added(key, tally)
