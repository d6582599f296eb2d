"""Readings with roll-ups: one transaction writes a reading and updates its roll-ups.

The transaction requires that the reading does not exist yet. A reading is therefore counted once,
even if the reply was lost and the program sends it again an hour later. If an identical reading
exists, it is skipped. If it exists with different values, it is refused (ItemExists), because a sum
can be corrected but a minimum cannot. In a bucket that has grown, the same transaction also checks
the shards in which the reading would have been stored earlier.

Many readings are written in as few transactions as possible, with one update for all readings of
the same roll-up. Transactions of one series key are sent one after another, because they would only
conflict. Transactions of different series keys are sent in parallel.
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
from stator.errors.data import FailedWrite
from stator.model.limits import TRANSACTION_BYTES, TRANSACTION_ITEMS
from stator.model.values import Item
from stator.patterns.rollups.rollup import RollupKey, RollupTally
from stator.patterns.rollups.writes import RollupBook
from stator.patterns.series.buckets import Bucket
from stator.patterns.series.layout import SeriesLayout
from stator.patterns.series.placement import NO_ROOM, PlacedReading, SeriesPlacement
from stator.patterns.series.spread import ShardLocation
from stator.tables.unknown_outcome import unproven
from stator.tables.work import Gather, Pause, Work, gathered
from stator.tables.writes.batches import BatchResult
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.sender import items_equal, send_all
from stator.tables.writes.statements import Kind, Statement
from stator.throttle_reason import throttle_scope

_ATTEMPTS: Final = 25
_ROOM_BYTES: Final = TRANSACTION_BYTES // 2


class ReadingTransactionWriter:
    """Writes readings together with the roll-ups they count in."""

    def __init__(self, placement: SeriesPlacement, book: RollupBook) -> None:
        self.placement = placement
        self.context = placement.context
        self.layout = placement.layout
        self.book = book

    def write_many(self, entities: list[Any]) -> Work[BatchResult]:
        ordered = sorted(
            entities, key=lambda each: (self.layout.by.of(each), self.layout.sort_text(each))
        )
        places = [self.placement.place(entity, again=True) for entity in ordered]
        placed = gathered((yield Gather(places)))
        chains = [list(group) for _, group in groupby(placed, key=lambda each: each.bucket.by)]
        result = BatchResult()
        for part in gathered((yield Gather([self._write_chain(chain) for chain in chains]))):
            result.add(part)
        return result

    def _write_chain(self, placed: list[PlacedReading]) -> Work[BatchResult]:
        """Write the readings of one series key, one transaction after another."""
        result = BatchResult()
        for group in self._groups(placed):
            result.add((yield from self.write([each.entity for each in group])))
        return result

    def _groups(self, placed: list[PlacedReading]) -> Iterator[list[PlacedReading]]:
        """Split readings into groups, each of which fits into one transaction with its roll-ups."""
        group: list[PlacedReading] = []
        readings, size = 0, 0
        touched: set[RollupKey] = set()
        for each in placed:
            places = len(locations_of(self.layout, each))
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
        """Write readings in one transaction. Split it in halves if DynamoDB rejects it as invalid.

        A reading that is already stored with the same values counts as written. The result lists
        the readings that could not be written.
        """
        result = BatchResult()
        left = self._distinct(entities, result)
        for attempt in range(_ATTEMPTS):
            try:
                left = yield from self._attempt(left, result, attempt)
            except StatorError as error:
                failed = unproven(error)
                result.failures += [FailedWrite(entity, failed) for entity in left]
                return result
            if not left:
                return result
        late = TransactionConflict(
            f"{self.placement.label}: other writers changed its roll-ups"
            f" in each of {_ATTEMPTS} attempts",
            hint="try again with fewer writers at once, or use more shards",
        )
        result.failures += [FailedWrite(entity, late) for entity in left]
        return result

    def _distinct(self, entities: list[Any], result: BatchResult) -> list[Any]:
        """Return the readings without repetitions, which ``result`` then accounts for.

        A repeated reading counts as written if it has the same values, and as failed otherwise.
        """
        found: dict[tuple[str, str], Any] = {}
        for entity in entities:
            first = found.setdefault(
                (self.layout.by.of(entity), self.layout.sort_text(entity)), entity
            )
            if first is not entity:
                bucket = self.layout.bucket_of(entity)
                new, earlier = (self.layout.item(each, bucket, 1) for each in (entity, first))
                self._settle_existing(entity, new, earlier, result)
        return list(found.values())

    def _attempt(self, entities: list[Any], result: BatchResult, attempt: int) -> Work[list[Any]]:
        """Send the readings in one transaction. Return the readings to be sent again."""
        places = [self.placement.place(entity, again=attempt > 0) for entity in entities]
        placed = list(gathered((yield Gather(places))))
        transaction = ReadingTransaction(self.layout, self.book, placed)
        if len(transaction.statements) > TRANSACTION_ITEMS and len(placed) > 1:
            return (yield from self._write_halves(entities, result))
        result.requests += 1
        try:
            yield from send_all(
                self.context,
                transaction.statements,
                self.placement.label,
                raise_hot_key=any(self.placement.may_grow(each.bucket) for each in placed),
                raise_table_limit=any(self.placement.may_widen(each.bucket) for each in placed),
            )
        except TransactionFailed as failed:
            if len(placed) > 1 and any(
                isinstance(error, ValidationFailed) for _, _, error in failed.failures
            ):
                return (yield from self._write_halves(entities, result))
            if not any(isinstance(error, ConditionFailed) for _, _, error in failed.failures):
                yield Pause(self.context.backoff(attempt))
            return (yield from self._sort_out(transaction, failed, result))
        except NO_ROOM as error:
            if not (yield from self._make_room(placed, error)):
                raise
            return entities
        except ValidationFailed:
            if len(placed) == 1:
                raise
            return (yield from self._write_halves(entities, result))
        transaction.succeeded()
        result.written += len(placed)
        return []

    def _make_room(self, placed: list[PlacedReading], error: StatorError) -> Work[bool]:
        has_room = False
        for bucket in {each.bucket for each in placed}:
            has_room = (yield from self.placement.make_room(bucket, error)) or has_room
        return has_room

    def _write_halves(self, entities: list[Any], result: BatchResult) -> Work[list[Any]]:
        middle = len(entities) // 2
        for half in (entities[:middle], entities[middle:]):
            result.add((yield from self.write(half)))
        return []

    def _sort_out(
        self, transaction: ReadingTransaction, failed: TransactionFailed, result: BatchResult
    ) -> Work[list[Any]]:
        """Handle each failure of a transaction. Return the readings to be sent again.

        Throttled buckets grow. If the writer guessed wrong about the minimum, maximum or last value
        of a roll-up, the stored roll-up is cached for the next attempt. Readings that exist or
        cannot be written are entered in ``result``.
        """
        yield from self._grow(transaction, failed)
        settled: set[int] = set()
        for at, _, error in failed.failures:
            about = transaction.about[at]
            if isinstance(about, RollupKey):
                if isinstance(error, ConditionFailed):
                    transaction.book.is_stored(about, error.item)
            elif isinstance(error, ConditionFailed):
                if id(about) not in settled:
                    self._settle_existing(about.entity, about.item, error.item, result)
                settled.add(id(about))
            elif not error.retryable:
                result.failures.append(FailedWrite(about.entity, error))
                settled.add(id(about))
        return [placed.entity for placed in transaction.placed if id(placed) not in settled]

    def _grow(self, transaction: ReadingTransaction, failed: TransactionFailed) -> Work[None]:
        """Give the throttled buckets of a failed transaction more shards.

        Raises the error of a bucket that cannot grow. Raises the error of a roll-up as well, unless
        the roll-up was throttled or its condition failed. If DynamoDB did not name the limit that
        was reached, a test write finds out, and the transaction is sent again in any case.
        """
        busy: dict[Bucket, ServiceError] = {}
        for at, _, error in failed.failures:
            if isinstance(error, SlowDown):
                bucket = transaction.bucket_of(transaction.about[at])
                may_get_room = self.placement.may_grow(bucket) or self.placement.may_widen(bucket)
                if may_get_room and throttle_scope(error) is None:
                    request = transaction.statements[at].request
                    key = request.get("Key") or self.layout.key_of(request["Item"])
                    yield from self.placement.make_room_if_hot(bucket, request["TableName"], key)
                else:
                    busy[bucket] = error
            elif isinstance(transaction.about[at], RollupKey) and not isinstance(
                error, ConditionFailed
            ):
                raise error
        for bucket, error in busy.items():
            if not (yield from self.placement.make_room(bucket, error)):
                raise error

    def _settle_existing(
        self, entity: Any, item: Item, stored: Item | None, result: BatchResult
    ) -> None:
        """Account in ``result`` for a reading that is already stored as the item ``stored``.

        The reading counts as written if the stored values are the same, and as failed otherwise.
        Values that an earlier version of the entity wrote are compared in the current shape.
        """
        try:
            existing = self.layout.decode(stored) if stored else None
        except StatorError as error:  # such as NewerVersion
            result.failures.append(FailedWrite(entity, error))
            return
        encode = self.layout.info.codec.encode
        if stored and (
            items_equal(self._content(stored), self._content(item))
            or items_equal(encode(existing), encode(entity))
        ):
            result.written += 1
            return
        shown = f"{self.layout.info.name} at {self.layout.sort_text(entity)}"
        exists = ItemExists(
            f"{shown} already exists with other values",
            item=stored,
            hint="its roll-ups have counted it; change it with replace(), which rebuilds them",
        )
        exists.entity = existing
        result.failures.append(FailedWrite(entity, exists))

    def _content(self, item: Item) -> Item:
        return {
            name: value
            for name, value in item.items()
            if name not in (self.layout.place.partition, self.layout.place.ttl)
        }


def locations_of(layout: SeriesLayout, placed: PlacedReading) -> set[ShardLocation]:
    """Return the locations in which a reading may be stored, under any spread of its bucket."""
    return {layout.location(placed.entity, spread) for spread in placed.bucket.spreads}


class ReadingTransaction:
    """The statements of one transaction; ``about`` has the reading or roll-up each one writes."""

    def __init__(self, layout: SeriesLayout, book: RollupBook, placed: list[PlacedReading]) -> None:
        self.layout = layout
        self.book = book
        self.placed = placed
        self.statements: list[Statement] = []
        self.about: list[PlacedReading | RollupKey] = []
        self.tallies: dict[RollupKey, RollupTally] = {}
        self._bucket_of: dict[RollupKey, Bucket] = {}
        for each in placed:
            self._add_reading(each)
        for key, tally in self.tallies.items():
            self.statements.append(book.addition(key, tally))
            self.about.append(key)

    def _add_reading(self, placed: PlacedReading) -> None:
        self._require_absent("Put", {"Item": placed.item}, placed, placed.table)
        bucket = placed.bucket
        for location in sorted(locations_of(self.layout, placed) - {placed.location}):
            partition = self.layout.partition(bucket.by, bucket.text, location.shard)
            key = self.layout.place.key(partition, self.layout.sort_of(placed.item))
            table = self.layout.table(bucket.text, location.table)
            self._require_absent("ConditionCheck", {"Key": key}, placed, table)
        for rollup, tally in self.book.tallies(placed.entity, placed.shard).items():
            self.tallies[rollup] = self.tallies[rollup] + tally if rollup in self.tallies else tally
            self._bucket_of[rollup] = placed.bucket

    def _require_absent(
        self, kind: Kind, what: dict[str, Any], placed: PlacedReading, table: str
    ) -> None:
        written = Expressions()
        partition = written.name(self.layout.place.partition)
        request = {
            "TableName": table,
            **what,
            "ConditionExpression": f"attribute_not_exists({partition})",
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
