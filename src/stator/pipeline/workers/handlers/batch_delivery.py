"""Delivers a batch to all subscribers, and stores the changes that they could not handle.

Exact subscribers, which count every change once by themselves, get the whole batch first. The
others get it one after the other. An item that a subscriber cannot handle is set aside for that
subscriber from the failing change on (``parking``): it is stored with the time of its next attempt,
and the batch continues with other items and other subscribers. Later changes to the item are stored
with it. ``set_aside_retry`` handles them all. Everything that failed is stored before ``run``
returns, so the checkpoint may then pass the batch.

Setting aside costs writes, and an outage can make every item fail. So only about
``_MOST_SET_ASIDE`` items of the group are set aside for a subscriber. Beyond that the shard itself
waits, after all subscribers have had the batch. The remaining items are retried here until each one
is handled, set aside or parked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from stator.errors import ConnectionTrouble, LeaseLost, SlowDown, StatorError, TryLater
from stator.pipeline.workers.handlers.change import Record, key_mark
from stator.pipeline.workers.handlers.parking import (
    FailedAttempt,
    ParkedRecord,
    Parking,
    parked_mark,
)
from stator.pipeline.workers.handlers.subscribers import (
    AttendingSubscriber,
    HandlerFailure,
    HandlerScope,
    Subscriber,
    exact_subscribers,
    lanes,
)
from stator.pipeline.workers.options import WorkerOptions
from stator.pipeline.workers.shards.leases import ShardLease
from stator.tables.context import Context
from stator.tables.work import Pause, Work

log = logging.getLogger("stator.workers")

# A dependency is down, and the change is not at fault: it is retried for as long as it takes.
OUTAGES = (TryLater, SlowDown, ConnectionTrouble)
_MOST_SET_ASIDE = 100


@dataclass(slots=True)
class DeliveryCount:
    """Counts of a batch: records that all subscribers handled, and records set aside or parked.

    A record that is set aside for two subscribers counts twice in ``set_aside``, and likewise in
    ``parked``. ``retried`` counts retries of items.
    """

    handled: int = 0
    set_aside: int = 0
    parked: int = 0
    retried: int = 0


@dataclass(slots=True)
class _FailingItem:
    """An item that a subscriber could not handle, and its records from the failing one on.

    ``attempts`` counts the failures of the first record. ``tries`` also counts attempts that an
    outage ended.
    """

    subscriber: Subscriber
    records: list[Record]
    failure: HandlerFailure
    attempts: int
    tries: int = 1

    @property
    def handler(self) -> str:
        return self.failure.handler or self.subscriber.name

    def parked(self) -> list[ParkedRecord]:
        first, *later = self.records
        return [
            ParkedRecord(first, self.failure.done),
            *(ParkedRecord(record, ()) for record in later),
        ]


@dataclass(slots=True)
class _Batch:
    """The state of a batch during its delivery.

    ``failing`` lists the items that are retried before the delivery ends. ``waiting`` holds the
    id() of each record that was set aside or parked for a subscriber.
    """

    count: DeliveryCount = field(default_factory=DeliveryCount)
    failing: list[_FailingItem] = field(default_factory=list)
    waiting: set[int] = field(default_factory=set)
    # By the id() of a record: the exact subscribers that failed to count it.
    uncounted: dict[int, dict[str, _FailingItem]] = field(default_factory=dict)


def next_attempt(
    context: Context, options: WorkerOptions, attempts: int, tries: int
) -> float | None:
    """Return when to try a change again, or None if its attempts are used up.

    ``attempts`` counts the failures of the change. ``tries`` also counts attempts during outages,
    and the wait grows with ``tries``.
    """
    if attempts >= options.max_attempts:
        return None
    return context.now() + context.backoff(tries - 1, options.retry_backoff)


def counts_as_attempt(error: BaseException) -> bool:
    return not isinstance(error, OUTAGES)


class BatchDelivery:
    def __init__(
        self,
        subscribers: Sequence[Subscriber],
        parking: Parking,
        options: WorkerOptions,
        scope: HandlerScope,
        check: Callable[[], ShardLease],
        is_to_stop: Callable[[], bool] = lambda: False,
        on_set_aside: Callable[[float], None] = lambda retry_at: None,
    ) -> None:
        """Create an object that delivers the batches of one shard.

        ``check`` returns the shard's lease, and raises LeaseLost once the lease is over.
        ``is_to_stop`` says whether the worker is stopping: a batch then does not wait for retries.
        When an item is set aside, ``on_set_aside`` is called with the time of its next attempt.
        """
        self._exact = exact_subscribers(subscribers)
        self._exact_names = tuple(each.name for each in self._exact)
        self._attending = [each for each in subscribers if isinstance(each, AttendingSubscriber)]
        self._subscribers = [each for each in subscribers if each not in self._exact]
        self._parking = parking
        self._options = options
        self._scope = scope
        self._check = check
        self._is_to_stop = is_to_stop
        self._on_set_aside = on_set_aside
        # The marks of items that wait, and the subscriber for which each is set aside.
        self._marks: dict[str, str | None] | None = None

    def wants(self, record: Record) -> bool:
        """Whether any subscriber wants the record."""
        return any(
            each.wants(record, self._scope.context) for each in (*self._exact, *self._subscribers)
        )

    @property
    def needs_attention(self) -> bool:
        return bool(self._attending)

    def attend(self, position: str) -> Work[None]:
        """Let subscribers do their periodic work. Everything up to ``position`` has been handled.

        An exact subscriber cannot continue if this work fails, so its error is raised. Other
        subscribers try again at the next call.
        """
        for subscriber in self._attending:
            self._check()
            try:
                yield from subscriber.attend(self._scope, position)
            except LeaseLost:
                raise
            except StatorError as error:
                if subscriber.name in self._exact_names:
                    raise
                log.warning("the periodic work of %s failed: %s", subscriber.name, error)

    def run(self, records: Sequence[Record]) -> Work[DeliveryCount]:
        if self._marks is None:
            yield from self._load_marks()
        batch = _Batch()
        yield from self._count_exactly(records, batch)
        left = yield from self._behind_old(records, batch)
        for record in left:
            for uncounted in batch.uncounted.get(id(record), {}).values():
                yield from self._park_alone(uncounted, batch)
        for subscriber in self._subscribers:
            wanted = [each for each in left if subscriber.wants(each, self._scope.context)]
            free = yield from self._behind_waiting(subscriber, wanted, batch)
            if free:
                failing = yield from self._handled(subscriber, free, self._scope)
                yield from self._keep_all(failing, batch)
        yield from self._wait_for_room(batch)
        batch.count.handled = len(records) - len(batch.waiting)
        return batch.count

    def _load_marks(self) -> Work[None]:
        heads = yield from self._parking.keys()
        self._marks = {each.mark: each.subscriber if each.is_set_aside else None for each in heads}

    # -- exact subscribers

    def _count_exactly(self, records: Sequence[Record], batch: _Batch) -> Work[None]:
        """Give the records to the exact subscribers. Record their failures in ``batch.uncounted``.

        A failure concerns one change alone: the item's later changes have been counted.
        """
        for subscriber in self._exact:
            wanted = [record for record in records if subscriber.wants(record, self._scope.context)]
            if not wanted:
                continue
            self._check()
            for failure in (yield from subscriber.handle(wanted, self._scope)):
                failing = _FailingItem(subscriber, [failure.record], failure, attempts=1)
                batch.uncounted.setdefault(id(failure.record), {})[subscriber.name] = failing

    def _park_alone(self, failing: _FailingItem, batch: _Batch) -> Work[None]:
        """Park a single change that an exact subscriber could not count.

        If its item is already parked for the subscriber, add the change to the parked changes.
        """
        [record] = failing.records
        mark = parked_mark(record, failing.subscriber.name)
        if not (yield from self._added(mark, ParkedRecord(record, ()), batch)):
            yield from self._park(failing, None, batch)

    # -- items that wait already

    def _behind_old(self, records: Sequence[Record], batch: _Batch) -> Work[list[Record]]:
        """Store changes to items that an earlier version of Stator parked in format 1.

        In format 1, an item is parked for all subscribers. The changes are added behind those that
        were parked earlier. Returns the changes to all other items.
        """
        if not self._marks:
            return list(records)
        left = []
        for record in records:
            uncounted = batch.uncounted.get(id(record), ())
            done = tuple(name for name in self._exact_names if name not in uncounted)
            mark = key_mark(record.table, record.key)
            if not (yield from self._added(mark, ParkedRecord(record, done), batch)):
                left.append(record)
        return left

    def _behind_waiting(
        self, subscriber: Subscriber, records: Sequence[Record], batch: _Batch
    ) -> Work[list[Record]]:
        """Store changes to items that are set aside or parked for this subscriber.

        The changes are added behind those that were stored earlier. Returns the changes to all
        other items, which the subscriber can handle now.
        """
        if not self._marks:
            return list(records)
        left = []
        for record in records:
            mark = parked_mark(record, subscriber.name)
            if not (yield from self._added(mark, ParkedRecord(record, ()), batch)):
                left.append(record)
        return left

    def _added(self, mark: str, parked: ParkedRecord, batch: _Batch) -> Work[bool]:
        assert self._marks is not None
        if mark not in self._marks:
            return False
        if not (yield from self._parking.add(self._check(), mark, parked)):
            del self._marks[mark]  # all its changes have been handled, or it was dropped
            return False
        if self._marks[mark] is None:
            batch.count.parked += 1
        else:
            batch.count.set_aside += 1
        batch.waiting.add(id(parked.record))
        return True

    # -- items that fail

    def _handled(
        self, subscriber: Subscriber, records: Sequence[Record], scope: HandlerScope
    ) -> Work[list[_FailingItem]]:
        """Give records to a subscriber, in the stream's order. Return the items that failed."""
        self._check()
        failures = yield from subscriber.handle(records, scope)
        if not failures:
            return []
        first: dict[str, HandlerFailure] = {}
        for failure in failures:
            mark = parked_mark(failure.record, subscriber.name)
            known = first.get(mark)
            if known is None or _number(failure.record) < _number(known.record):
                first[mark] = failure
        found = []
        for group in lanes(records):
            failed = first.get(parked_mark(group[0], subscriber.name))
            if failed is not None:
                left = [record for record in group if _number(record) >= _number(failed.record)]
                attempts = int(counts_as_attempt(failed.error))
                found.append(_FailingItem(subscriber, left, failed, attempts))
        return found

    def _keep_all(self, failing: Sequence[_FailingItem], batch: _Batch) -> Work[None]:
        """Set failing items aside, or park items whose attempts are used up.

        Once ``_MOST_SET_ASIDE`` items are set aside for a subscriber, further failing items stay in
        the batch.
        """
        for each in failing:
            retry_at = next_attempt(self._scope.context, self._options, each.attempts, each.tries)
            if retry_at is None or self._has_room(each.subscriber):
                yield from self._park(each, retry_at, batch)
            else:
                batch.failing.append(each)

    def _has_room(self, subscriber: Subscriber) -> bool:
        assert self._marks is not None
        if self._is_to_stop():
            return True  # another worker continues: nothing may be left in memory
        waiting = sum(each == subscriber.name for each in self._marks.values())
        return waiting < _MOST_SET_ASIDE

    def _park(self, failing: _FailingItem, retry_at: float | None, batch: _Batch) -> Work[None]:
        assert self._marks is not None
        name, error = failing.subscriber.name, failing.failure.error
        first = failing.records[0]
        attempt = FailedAttempt(failing.handler, error, failing.attempts, failing.tries, retry_at)
        yield from self._parking.park(self._check(), name, failing.parked(), attempt)
        self._marks[parked_mark(first, name)] = None if retry_at is None else name
        batch.waiting.update(id(record) for record in failing.records)
        if retry_at is None:
            batch.count.parked += len(failing.records)
            log_parked(failing.handler, first, error, len(failing.records))
            return
        batch.count.set_aside += len(failing.records)
        self._on_set_aside(retry_at)
        log_set_aside(failing.handler, first, error, retry_at - self._scope.context.now())

    def _wait_for_room(self, batch: _Batch) -> Work[None]:
        """Retry the items for which there was no room to set them aside.

        Returns when each of them is handled, set aside or parked.
        """
        timer = self._scope.context.timer(self._options.retry_backoff)
        while batch.failing:
            first = batch.failing[0]
            log.warning(
                "%d items fail, the first in %s (%s: %s); the shard waits",
                len(batch.failing),
                first.handler,
                type(first.failure.error).__name__,
                first.failure.error,
            )
            yield Pause(timer.next_delay())
            self._check()
            yield from self._load_marks()
            again, batch.failing = batch.failing, []
            for subscriber in self._subscribers:
                mine = [each for each in again if each.subscriber is subscriber]
                if mine:
                    yield from self._retried(subscriber, mine, batch)

    def _retried(
        self, subscriber: Subscriber, items: list[_FailingItem], batch: _Batch
    ) -> Work[None]:
        batch.count.retried += len(items)
        scope = replace(
            self._scope, done={id(each.records[0]): each.failure.done for each in items}
        )
        before = {id(each.records[0]): each for each in items}
        records = sorted((record for each in items for record in each.records), key=_number)
        failing = yield from self._handled(subscriber, records, scope)
        for each in failing:
            earlier = before.get(id(each.records[0]))  # none if a later change fails now
            if earlier is not None:
                each.attempts += earlier.attempts
                each.tries += earlier.tries
        yield from self._keep_all(failing, batch)


def _number(record: Record) -> int:
    return int(record.sequence or 0)


def log_set_aside(handler: str, record: Record, error: BaseException, wait_seconds: float) -> None:
    log.warning(
        "%s failed for %s of %s (%s: %s); the item is set aside and retried in %.1f seconds",
        handler,
        record.key,
        record.table,
        type(error).__name__,
        error,
        wait_seconds,
    )


def log_parked(handler: str, record: Record, error: BaseException, changes: int) -> None:
    log.error(
        "%s cannot be handled by %s (%s: %s): parked with %d changes",
        record.key,
        handler,
        type(error).__name__,
        error,
        changes,
    )
