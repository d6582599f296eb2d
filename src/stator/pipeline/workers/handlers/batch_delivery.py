"""One batch through all subscribers: retries, parking, and the fate of every record.

Exact subscribers, which count every change once by themselves, get the whole batch first. The
others get it one after the other. If a subscriber cannot handle a key, the key is retried alone and
then parked from the failing change on. Later subscribers get only the key's earlier changes. Each
parked change records which subscribers have handled it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from stator.errors import ConnectionTrouble, LeaseLost, SlowDown, StatorError, TryLater
from stator.pipeline.workers.handlers.change import Record, key_mark
from stator.pipeline.workers.handlers.parking import ParkedRecord, Parking
from stator.pipeline.workers.handlers.subscribers import (
    AttendingSubscriber,
    HandlerFailure,
    HandlerScope,
    Subscriber,
    exact_subscribers,
)
from stator.pipeline.workers.options import WorkerOptions
from stator.pipeline.workers.shards.leases import ShardLease
from stator.tables.work import Pause, Work

log = logging.getLogger("stator.workers")

# A dependency is down, and the change is not at fault: it is retried for as long as it takes.
_OUTAGES = (TryLater, SlowDown, ConnectionTrouble)


@dataclass(slots=True)
class DeliveryCount:
    """How many records of a batch were handled or parked. ``retried`` counts rounds of retries."""

    handled: int = 0
    parked: int = 0
    retried: int = 0


@dataclass(slots=True)
class _Parked:
    """The first change of a key that is parked in this batch, and the subscriber that failed."""

    sequence: int
    subscriber: str
    error: BaseException
    done: tuple[str, ...]
    records: list[ParkedRecord] = field(default_factory=list)


@dataclass(slots=True)
class _Counted:
    """The names of the exact subscribers, and which of them failed, by the id() of a record."""

    names: tuple[str, ...]
    failed: dict[int, set[str]] = field(default_factory=dict)

    def by(self, record: Record) -> tuple[str, ...]:
        failed = self.failed.get(id(record))
        return (
            self.names
            if failed is None
            else tuple(name for name in self.names if name not in failed)
        )


class BatchDelivery:
    def __init__(
        self,
        subscribers: Sequence[Subscriber],
        parking: Parking,
        options: WorkerOptions,
        scope: HandlerScope,
        check: Callable[[], ShardLease],
    ) -> None:
        """Create a delivery.

        ``check`` returns the lease, and raises LeaseLost once the lease is over.
        """
        self._exact = exact_subscribers(subscribers)
        self._exact_names = {each.name for each in self._exact}
        self._attending = [each for each in subscribers if isinstance(each, AttendingSubscriber)]
        self._subscribers = [each for each in subscribers if each not in self._exact]
        self._parking = parking
        self._options = options
        self._scope = scope
        self._check = check
        self._marks: set[str] | None = None

    def wants(self, record: Record) -> bool:
        """Whether any subscriber wants the record."""
        return any(
            each.wants(record, self._scope.context) for each in (*self._exact, *self._subscribers)
        )

    @property
    def needs_attention(self) -> bool:
        return bool(self._attending)

    def attend(self, position: str) -> Work[None]:
        """Let subscribers do their periodic work.

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
            self._marks = yield from self._parking.marks()
        handled = DeliveryCount()
        parked: dict[str, _Parked] = {}
        counted = yield from self._counted(records, parked)
        batch = yield from self._add_to_parked(records, counted, handled)
        parked = {mark: each for mark, each in parked.items() if mark not in self._marks}
        for number, subscriber in enumerate(self._subscribers):
            wanted = [
                record
                for record in batch
                if _is_before(record, parked) and subscriber.wants(record, self._scope.context)
            ]
            done = tuple(each.name for each in self._subscribers[:number])
            for failure in (yield from self._tried(subscriber, wanted, handled)):
                mark = key_mark(failure.record.table, failure.record.key)
                sequence = int(failure.record.sequence or 0)
                parked[mark] = _Parked(sequence, subscriber.name, failure.error, done)
        for mark, each in parked.items():
            yield from self._park(mark, each, batch, counted, handled)
        handled.handled = len(batch) - sum(len(each.records) for each in parked.values())
        return handled

    def _counted(self, records: Sequence[Record], parked: dict[str, _Parked]) -> Work[_Counted]:
        """Run the exact subscribers. A key is parked from its first failure on."""
        counted = _Counted(tuple(each.name for each in self._exact))
        for subscriber in self._exact:
            wanted = [record for record in records if subscriber.wants(record, self._scope.context)]
            if not wanted:
                continue
            self._check()
            for failure in (yield from subscriber.handle(wanted, self._scope)):
                counted.failed.setdefault(id(failure.record), set()).add(subscriber.name)
                mark = key_mark(failure.record.table, failure.record.key)
                sequence = int(failure.record.sequence or 0)
                if mark not in parked or sequence < parked[mark].sequence:
                    parked[mark] = _Parked(sequence, subscriber.name, failure.error, ())
        return counted

    def _add_to_parked(
        self, records: Sequence[Record], counted: _Counted, handled: DeliveryCount
    ) -> Work[list[Record]]:
        """Park changes whose keys are already parked. Return the other changes."""
        assert self._marks is not None
        if not self._marks:
            return list(records)
        left = []
        for record in records:
            mark = key_mark(record.table, record.key)
            if mark in self._marks:
                if (
                    yield from self._parking.add(
                        self._check(), mark, ParkedRecord(record, counted.by(record))
                    )
                ):
                    handled.parked += 1
                    continue
                self._marks.discard(mark)
            left.append(record)
        return left

    def _tried(
        self, subscriber: Subscriber, records: list[Record], handled: DeliveryCount
    ) -> Work[list[HandlerFailure]]:
        """Handle records with retries. Return the keys that failed ``max_attempts`` times.

        Attempts are counted for each change. A failure because a dependency is down does not count.
        """
        attempts: Counter[tuple[str, str, str]] = Counter()
        hopeless: list[HandlerFailure] = []
        while records:
            self._check()
            failures = yield from subscriber.handle(records, self._scope)
            again: list[HandlerFailure] = []
            for failure in failures:
                change = (failure.record.table, failure.record.key, failure.record.sequence)
                attempts[change] += not isinstance(failure.error, _OUTAGES)
                (hopeless if attempts[change] >= self._options.max_attempts else again).append(
                    failure
                )
            if not again:
                break
            handled.retried += 1
            most = max(
                attempts[each.record.table, each.record.key, each.record.sequence] for each in again
            )
            pause = self._scope.context.backoff(max(most, 1), self._options.backoff)
            first = again[0]
            log.warning(
                "%s failed for %s of %s (%s: %s); retrying in %.2f seconds",
                subscriber.name,
                first.record.key,
                first.record.table,
                type(first.error).__name__,
                first.error,
                pause,
            )
            yield Pause(pause)
            records = _remaining(records, again)
        return hopeless

    def _park(
        self,
        mark: str,
        parked: _Parked,
        batch: Sequence[Record],
        counted: _Counted,
        handled: DeliveryCount,
    ) -> Work[None]:
        assert self._marks is not None
        parked.records = records = [
            ParkedRecord(record, (*counted.by(record), *parked.done))
            for record in batch
            if int(record.sequence or 0) >= parked.sequence
            and key_mark(record.table, record.key) == mark
        ]
        yield from self._parking.park(self._check(), records, parked.subscriber, parked.error)
        self._marks.add(mark)
        handled.parked += len(records)
        log.error(
            "%s cannot be handled by %s (%s: %s): parked with %d changes",
            records[0].record.key,
            parked.subscriber,
            type(parked.error).__name__,
            parked.error,
            len(records),
        )


def _is_before(record: Record, parked: dict[str, _Parked]) -> bool:
    if not parked:
        return True
    found = parked.get(key_mark(record.table, record.key))
    return found is None or int(record.sequence or 0) < found.sequence


def _remaining(records: Sequence[Record], failures: Sequence[HandlerFailure]) -> list[Record]:
    """Return the changes to retry: for each failed key, the failing change and those after it."""
    start = {
        (failure.record.table, failure.record.key): int(failure.record.sequence or 0)
        for failure in failures
    }
    return [
        record
        for record in records
        if (place := start.get((record.table, record.key))) is not None
        and int(record.sequence or 0) >= place
    ]
