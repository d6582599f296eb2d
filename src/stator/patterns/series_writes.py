"""Readings written: one by one, in batches, or each in a transaction with the roll-ups it counts in.

Without roll-ups a reading is one PutItem, and many are BatchWriteItem. Putting the same reading twice leaves it once.

With roll-ups a reading and what it adds to them is one transaction, on condition that the reading is not there yet: so it is counted once, even when the
answer was lost and the program sends it again an hour later. A reading that is there already and is the same is passed over; one that is there with
other values is refused (ItemExists), because a sum can be corrected but a least value cannot: ``replace`` it, and the periods are rebuilt. In a bucket
that has grown, the places where the reading would have been before are checked in the same transaction.

When a shard of an adaptive series is throttled, its bucket gets twice the shards, and the write goes to where it belongs then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import orjson

from stator.errors import (
    ConditionFailed,
    ItemExists,
    RequestRefused,
    ResourceNotFound,
    SerializationFailed,
    ServiceError,
    SlowDown,
    StatorError,
    TransactionConflict,
    TransactionFailed,
    ValidationFailed,
)
from stator.model.limits import BATCH_WRITE_ITEMS, TRANSACTION_BYTES, TRANSACTION_ITEMS
from stator.model.values import Item
from stator.patterns.rollup import RollupKey, Tally
from stator.patterns.rollup_writes import RollupBook
from stator.patterns.series_directory import MAX_SHARDS, Bucket, Directory
from stator.patterns.series_layout import SeriesLayout
from stator.tables.batches import WINDOW_REQUESTS, BatchResult, Change, Failure, chunks, last_of_its_key, send_changes
from stator.tables.context import Context
from stator.tables.expressions import Expressions
from stator.tables.sending import same_item, send_all
from stator.tables.statements import Statement
from stator.tables.work import Call, Gather, Pause, Work, gathered

_ATTEMPTS: Final = 25
_GROWTHS: Final = 8
_ROOM_BYTES: Final = TRANSACTION_BYTES // 2


@dataclass(frozen=True, slots=True)
class Placed:
    """A reading and where it goes."""

    entity: Any
    bucket: Bucket
    shard: int
    item: Item


class SeriesWriter:
    def __init__(self, context: Context, layout: SeriesLayout, directory: Directory, book: RollupBook | None) -> None:
        self.context = context
        self.layout = layout
        self.directory = directory
        self.book = book
        self._label = f"series {layout.name}"

    def add(self, entity: Any) -> Work[None]:
        if self.book is not None:
            result = yield from self._transaction([entity], self.book)
            result.raise_for_failures()
        else:
            yield from self.put(entity)

    def put(self, entity: Any) -> Work[None]:
        """Without roll-ups."""
        for attempt in range(_GROWTHS + 1):
            placed = yield from self.place(entity)
            request = {"TableName": self.layout.table(placed.bucket.text), "Item": placed.item}
            try:
                yield Call("PutItem", request, self._label)
                return
            except (SlowDown, ResourceNotFound) as error:
                if attempt == _GROWTHS or not (yield from self._made_room(placed.bucket, error)):
                    raise

    def place(self, entity: Any) -> Work[Placed]:
        """Open the bucket of a reading, and say where in it the reading belongs."""
        self._check(entity)
        bucket = yield from self.directory.open(self.layout.by.of(entity), self.layout.bucket_of(entity))
        if self.book is not None:
            yield from self.book.open_shards(bucket.by, bucket.shards)
        shard = self.layout.shard(entity, bucket.shards)
        return Placed(entity, bucket, shard, self.layout.item(entity, bucket.text, bucket.shards))

    def _check(self, entity: Any) -> None:
        wanted = (self.layout.info.cls, getattr(self.layout.info, "model", self.layout.info.cls))
        if not isinstance(entity, wanted):
            raise RequestRefused(
                f"{self.layout.name} is a series of {self.layout.info.name}, not of {type(entity).__name__}",
                hint=f"add objects of {self.layout.info.name}",
            )

    def _made_room(self, bucket: Bucket, error: StatorError) -> Work[bool]:
        """Whether it is worth trying again, now that the bucket is larger or its table is there."""
        if isinstance(error, ResourceNotFound):
            self.directory.forget(bucket)  # its table was dropped, and is made again
            return self.layout.table_per is not None
        if not (self.directory.adaptive and is_partition_busy(error)) or bucket.shards >= MAX_SHARDS:
            return False
        yield from self.directory.grow(bucket)
        return True

    # -- many

    def add_many(self, entities: Iterable[Any]) -> Work[BatchResult]:
        result = BatchResult()
        source = iter(entities)
        while window := list(islice(source, WINDOW_REQUESTS * BATCH_WRITE_ITEMS)):
            ready = yield from self._opened(window, result)
            if self.book is None:
                result.add((yield from self._batched(ready)))
                continue
            groups = list(self._groups(ready, self.book))
            for part in gathered((yield Gather([self._transaction(group, self.book) for group in groups]))):
                result.add(part)
        return result

    def _opened(self, entities: Sequence[Any], result: BatchResult) -> Work[list[Any]]:
        """Open all buckets side by side; what cannot be written at all fails here."""
        ready: list[Any] = []
        wanted: dict[tuple[str, str], None] = {}
        for entity in entities:
            try:
                self._check(entity)
                item = self.layout.item(entity, self.layout.bucket_of(entity), 1)
                orjson.dumps(item)
                wanted[self.layout.by.of(entity), self.layout.bucket_of(entity)] = None
            except StatorError as error:
                result.failures.append(Failure(entity, error))
            except TypeError as error:  # text that is not Unicode, such as half of a surrogate pair
                failed = SerializationFailed(f"{entity!r} cannot be sent as JSON: {error}")
                result.failures.append(Failure(entity, failed))
            else:
                ready.append(entity)
        gathered((yield Gather([self.directory.open(by, text) for by, text in wanted])))
        return ready

    def _batched(self, entities: list[Any]) -> Work[BatchResult]:
        result = BatchResult()
        for attempt in range(_GROWTHS + 1):
            sent = yield from self._sent(entities)
            failures, sent.failures = sent.failures, []
            result.add(sent)
            entities, hopeless = yield from self._worth_another_try(failures, attempt)
            result.failures += hopeless
            if not entities:
                break
        return result

    def _sent(self, entities: list[Any]) -> Work[BatchResult]:
        changes: dict[Any, Change] = {}
        for entity in entities:
            placed = yield from self.place(entity)
            last_of_its_key(changes, self._change(placed))
        result = BatchResult()
        parts = [send_changes(self.context, chunk, self._label) for chunk in chunks(changes.values())]
        for part in gathered((yield Gather(parts))):
            result.add(part)
        return result

    def _worth_another_try(self, failures: list[Failure], attempt: int) -> Work[tuple[list[Any], list[Failure]]]:
        """The readings whose buckets have room now, and the failures of the others."""
        has_room: dict[tuple[str, str], bool] = {}
        again, hopeless = [], []
        for failure in failures:
            whose = (self.layout.by.of(failure.change), self.layout.bucket_of(failure.change))
            if attempt < _GROWTHS and isinstance(failure.error, (SlowDown, ResourceNotFound)) and whose not in has_room:
                bucket = yield from self.directory.open(*whose)
                has_room[whose] = yield from self._made_room(bucket, failure.error)
            if has_room.get(whose):
                again.append(failure.change)
            else:
                hopeless.append(failure)
        return again, hopeless

    def _change(self, placed: Placed) -> Change:
        place = self.layout.place

        def key_of(item: Item) -> tuple[str, str]:
            return item[place.partition]["S"], item[place.sort]["S"]

        entry = b'{"PutRequest":{"Item":%b}}' % orjson.dumps(placed.item)
        return Change(placed.entity, self.layout.table(placed.bucket.text), key_of, key_of(placed.item), entry)

    # -- with roll-ups

    def _groups(self, entities: list[Any], book: RollupBook) -> Iterator[list[Any]]:
        """As many as fit into a transaction, with the roll-ups they share."""
        ordered = sorted(entities, key=lambda each: (self.layout.by.of(each), self.layout.sort_text(each)))
        group: list[Any] = []
        items, size = 0, 0
        touched: set[tuple[int, str, str]] = set()
        for entity in ordered:
            new = {(rule.number, self.layout.by.of(entity), rule.period_of(entity)) for rule in book.rules} - touched
            bytes_ = len(orjson.dumps(self.layout.item(entity, self.layout.bucket_of(entity), 1)))
            # Each roll-up may be one item in every shard of its period, and each reading may be looked for in several places.
            if group and (items + 1 + len(new) > TRANSACTION_ITEMS // 4 or size + bytes_ > _ROOM_BYTES):
                yield group
                group, items, size, touched = [], 0, 0, set()
                new = {(rule.number, self.layout.by.of(entity), rule.period_of(entity)) for rule in book.rules}
            group.append(entity)
            touched |= new
            items, size = items + 1 + len(new), size + bytes_
        if group:
            yield group

    def _transaction(self, entities: list[Any], book: RollupBook) -> Work[BatchResult]:
        """All of them in one transaction, those left out that are there already or cannot be written."""
        result = BatchResult()
        left = self._distinct(entities, result)
        for attempt in range(_ATTEMPTS):
            try:
                left = yield from self._attempt(left, book, result, attempt)
            except StatorError as error:
                result.failures += [Failure(entity, error) for entity in left]
                return result
            if not left:
                return result
        late = TransactionConflict(f"{self._label}: its roll-ups are changed by others all the time")
        result.failures += [Failure(entity, late) for entity in left]
        return result

    def _distinct(self, entities: list[Any], result: BatchResult) -> list[Any]:
        """Of a reading that is given twice one is sent; the other must be the same."""
        found: dict[tuple[str, str], Any] = {}
        for entity in entities:
            first = found.setdefault((self.layout.by.of(entity), self.layout.sort_text(entity)), entity)
            if first is not entity:
                bucket = self.layout.bucket_of(entity)
                wanted, there = (self.layout.item(each, bucket, 1) for each in (entity, first))
                self._settle(entity, wanted, there, result)
        return list(found.values())

    def _attempt(self, entities: list[Any], book: RollupBook, result: BatchResult, attempt: int) -> Work[list[Any]]:
        """Send them once; gives those that are to be sent again."""
        placed = list(gathered((yield Gather([self.place(entity) for entity in entities]))))
        sending = Sending(self, book, placed)
        if len(sending.statements) > TRANSACTION_ITEMS and len(placed) > 1:
            return (yield from self._in_halves(entities, book, result))
        result.requests += 1
        try:
            yield from send_all(self.context, sending.statements, self._label)
        except TransactionFailed as failed:
            if not any(isinstance(error, ConditionFailed) for _, _, error in failed.failures):
                yield Pause(self.context.backoff(attempt))
            return (yield from self._sorted_out(sending, failed, result))
        except (SlowDown, ResourceNotFound) as error:
            if not (yield from self._made_room_for(placed, error)):
                raise
            return entities
        except ValidationFailed:
            if len(placed) == 1:
                raise
            return (yield from self._in_halves(entities, book, result))
        sending.succeeded()
        result.written += len(placed)
        return []

    def _made_room_for(self, placed: list[Placed], error: StatorError) -> Work[bool]:
        has_room = False
        for bucket in {each.bucket for each in placed}:
            has_room = (yield from self._made_room(bucket, error)) or has_room
        return has_room

    def _in_halves(self, entities: list[Any], book: RollupBook, result: BatchResult) -> Work[list[Any]]:
        middle = len(entities) // 2
        for half in (entities[:middle], entities[middle:]):
            result.add((yield from self._transaction(half, book)))
        return []

    def _sorted_out(self, sending: Sending, failed: TransactionFailed, result: BatchResult) -> Work[list[Any]]:
        """What is to be sent again after a failure, now that more is known."""
        yield from self._grown(sending, failed)
        settled: set[int] = set()
        for at, _, error in failed.failures:
            about = sending.about[at]
            if isinstance(about, RollupKey):
                if isinstance(error, ConditionFailed):
                    sending.book.is_stored(about, error.item)
            elif isinstance(error, ConditionFailed):
                if id(about) not in settled:
                    self._settle(about.entity, about.item, error.item, result)
                settled.add(id(about))
            elif not error.retryable:
                result.failures.append(Failure(about.entity, error))
                settled.add(id(about))
        return [placed.entity for placed in sending.placed if id(placed) not in settled]

    def _grown(self, sending: Sending, failed: TransactionFailed) -> Work[None]:
        """Raises what no later attempt can put right."""
        busy: dict[Bucket, ServiceError] = {}
        for at, _, error in failed.failures:
            if isinstance(error, SlowDown):
                busy[sending.bucket_of(sending.about[at])] = error
            elif isinstance(sending.about[at], RollupKey) and not isinstance(error, ConditionFailed):
                raise error
        for bucket, error in busy.items():
            if not (yield from self._made_room(bucket, error)):
                raise error

    def _settle(self, entity: Any, wanted: Item, stored: Item | None, result: BatchResult) -> None:
        """The reading is there already: done, if it is the same."""
        if stored and same_item(self._content(stored), self._content(wanted)):
            result.written += 1
            return
        shown = f"{self.layout.info.name} at {self.layout.sort_text(entity)}"
        exists = ItemExists(f"{shown} is there already, with other values", item=stored)
        exists.hint = "its roll-ups have counted it: use replace() to change it, and they are rebuilt"
        exists.entity = self.layout.decode(stored) if stored else None
        result.failures.append(Failure(entity, exists))

    def _content(self, item: Item) -> Item:
        return {
            name: value
            for name, value in item.items()
            if name not in (self.layout.place.partition, self.layout.place.ttl)
        }


class Sending:
    """The statements of one transaction, and what each is about."""

    def __init__(self, writer: SeriesWriter, book: RollupBook, placed: list[Placed]) -> None:
        self.layout = writer.layout
        self.book = book
        self.placed = placed
        self.statements: list[Statement] = []
        self.about: list[Placed | RollupKey] = []
        self.tallies: dict[RollupKey, Tally] = {}
        self._bucket_of: dict[RollupKey, Bucket] = {}
        for each in placed:
            self._reading(each)
        for key, tally in self.tallies.items():
            self.statements.append(book.addition(key, tally))
            self.about.append(key)

    def _reading(self, placed: Placed) -> None:
        self._absent("Put", {"Item": placed.item}, placed)
        for shard in {self.layout.shard(placed.entity, count) for count in placed.bucket.counts} - {placed.shard}:
            partition = self.layout.partition(placed.bucket.by, placed.bucket.text, shard)
            key = self.layout.place.key(partition, self.layout.sort_of(placed.item))
            self._absent("ConditionCheck", {"Key": key}, placed)
        for rollup, tally in self.book.tallies(placed.entity, placed.shard).items():
            self.tallies[rollup] = self.tallies[rollup] + tally if rollup in self.tallies else tally
            self._bucket_of[rollup] = placed.bucket

    def _absent(self, kind: Any, what: dict[str, Any], placed: Placed) -> None:
        written = Expressions()
        request = {
            "TableName": self.layout.table(placed.bucket.text),
            **what,
            "ConditionExpression": f"attribute_not_exists({written.name(self.layout.place.partition)})",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        shown = f"add {self.layout.sort_of(placed.item)}"
        self.statements.append(Statement(kind, written.into(request), shown, lambda item: ConditionFailed(item=item)))
        self.about.append(placed)

    def bucket_of(self, about: Placed | RollupKey) -> Bucket:
        return about.bucket if isinstance(about, Placed) else self._bucket_of[about]

    def succeeded(self) -> None:
        for key, tally in self.tallies.items():
            self.book.was_added(key, tally)


def is_partition_busy(error: StatorError) -> bool:
    """Whether more partitions would help: not when it is the table or the account that has reached its limit, and the service says so.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/throttling-diagnosing.html has the reasons; those about one partition
    end with KeyRangeThroughputExceeded.
    """
    reasons = getattr(error, "throttling_reasons", None) or ()
    texts = [str(reason.get("reason", "")) for reason in reasons]
    return not texts or any("KeyRange" in text for text in texts)
