"""Retries of items that are set aside: every worker of a group looks for items that are due.

A worker takes a lease on the item (``Parking.claim_due``), handles its changes in order and removes
the item. If a change fails again, the item is stored with the time of its next attempt, or parked
once its attempts are used up. It does not matter which worker set the item aside, or whether the
item's shard has ended since. ``Worker.renew`` renews the leases, so a handler may take long.

All due items of a subscriber are retried together, one change of each at a time, so that sinks
and batch handlers get batches.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from stator.errors import ConnectionTrouble, LeaseLost, ServiceError, StatorError
from stator.pipeline.workers.handlers.batch_delivery import (
    DeliveryCount,
    counts_as_attempt,
    log_parked,
    log_set_aside,
    next_attempt,
)
from stator.pipeline.workers.handlers.parking import (
    FailedAttempt,
    ParkedKey,
    ParkedRecord,
    Parking,
    parked_mark,
)
from stator.pipeline.workers.handlers.subscribers import (
    HandlerFailure,
    HandlerScope,
    Subscriber,
    subscribers_of,
)
from stator.pipeline.workers.options import WorkerOptions
from stator.tables.context import Context
from stator.tables.work import Gather, Pause, Work, gathered

log = logging.getLogger("stator.workers")

_AT_ONCE: Final = 50
_SHORTEST_PAUSE_SECONDS: Final = 0.02


@dataclass(slots=True, eq=False)
class _ClaimedItem:
    """An item that this worker is retrying under a lease.

    ``until`` is the end of the lease; ``records`` are the changes that are still to be handled.
    ``attempts`` and ``tries`` concern the first of them, as in ``ParkedKey``.
    """

    head: ParkedKey
    until: float
    records: list[ParkedRecord]
    attempts: int
    tries: int

    @property
    def mark(self) -> str:
        return self.head.mark

    def pass_first(self) -> None:
        """Drop the first change, which has been handled, and count attempts anew for the next."""
        self.records = self.records[1:]
        self.attempts = self.tries = 0


class SetAsideRetry:
    """The part of a worker that retries items that are set aside."""

    def __init__(
        self,
        context: Context,
        group: str,
        subscribers: Sequence[Subscriber],
        parking: Parking,
        options: WorkerOptions,
    ) -> None:
        self._context = context
        self._group = group
        self._subscribers = subscribers
        self._parking = parking
        self._options = options
        self._look_at = self._looked_at = 0.0
        self._claimed: dict[str, _ClaimedItem] = {}
        self._is_stopping = False
        self.count = DeliveryCount()

    # -- from outside

    def stop(self) -> None:
        self._is_stopping = True

    @property
    def is_idle(self) -> bool:
        return not self._claimed

    def expect(self, retry_at: float) -> None:
        """Note that this worker set an item aside until ``retry_at``, to look for it by then.

        Items that other workers set aside are found by looking at regular intervals.
        """
        self._look_at = min(self._look_at, retry_at)

    def renew(self) -> Work[None]:
        """Renew the leases on the items that this worker is retrying."""
        yield Gather([self._renew_one(each) for each in list(self._claimed.values())])

    def _renew_one(self, item: _ClaimedItem) -> Work[None]:
        lease_seconds = self._options.lease_seconds
        until = self._context.now() + lease_seconds
        try:
            renewed = yield from self._parking.renew(item.head, lease_seconds)
        except (ServiceError, ConnectionTrouble) as error:
            log.warning("the lease on %s was not renewed: %s", item.head.key, error)
            return
        item.until = until if renewed else 0.0

    # -- the work

    def run(self) -> Work[None]:
        options = self._options
        while not self._is_stopping:
            # Items that are due within a short time are retried together.
            if self._context.now() >= max(self._look_at, self._looked_at + options.idle_seconds):
                try:
                    yield from self._look()
                except StatorError as error:
                    log.warning("items that are set aside could not be retried: %s", error)
                    self._look_at = self._context.now()
            left = self._look_at - self._context.now()
            yield Pause(min(max(left, _SHORTEST_PAUSE_SECONDS), options.idle_seconds))

    def _look(self) -> Work[None]:
        """Retry the items that are due, and find out when to look again."""
        now = self._looked_at = self._context.now()
        self._look_at = now + self._options.sync_seconds
        due: dict[str, list[ParkedKey]] = {}
        for head in (yield from self._parking.keys()):
            if head.retry_at is None or head.subscriber is None:
                continue
            if head.retry_at <= now:
                due.setdefault(head.subscriber, []).append(head)
            else:
                self.expect(head.retry_at)
        for subscriber in self._subscribers:
            heads = due.get(subscriber.name, [])
            self._context.random.shuffle(heads)  # other workers take others
            if heads and not self._is_stopping:
                claimed = yield from self._retry(subscriber, heads[:_AT_ONCE])
                if claimed and len(heads) > _AT_ONCE:
                    self.expect(now)

    def _retry(self, subscriber: Subscriber, heads: Sequence[ParkedKey]) -> Work[int]:
        """Retry items that are due. Return how many were retried.

        Items that another worker is already retrying are skipped.
        """
        items: list[_ClaimedItem] = []
        try:
            claimed = gathered((yield Gather([self._claim(head) for head in heads])))
            items = [item for item in claimed if item is not None]
            self.count.retried += len(items)
            left = items
            while left:
                left = yield from self._wave(subscriber, left)
        finally:
            for head in heads:
                self._claimed.pop(head.mark, None)
        return len(items)

    def _claim(self, head: ParkedKey) -> Work[_ClaimedItem | None]:
        now = self._context.now()
        claimed = yield from self._parking.claim_due(head.mark, self._options.lease_seconds)
        if claimed is None:
            return None
        until = now + self._options.lease_seconds
        item = _ClaimedItem(claimed, until, [], claimed.attempts, claimed.tries)
        self._claimed[head.mark] = item
        item.records = yield from self._parking.records(head.mark)
        return item

    def _wave(
        self, subscriber: Subscriber, items: Sequence[_ClaimedItem]
    ) -> Work[list[_ClaimedItem]]:
        """Handle the first change of each item. Return the items that have further changes.

        Leaves out items whose lease is over. If the worker is stopping, handles nothing and gives
        up the leases; the items then wait as before.
        """
        held = [each for each in items if self._context.now() < each.until]
        if self._is_stopping:
            for each in held:
                yield from self._parking.give_back(each.head)
            return []
        ready = [each for each in held if each.records]
        failures = yield from self._handled(subscriber, ready)
        parts = [self._passed(item, failures.get(item.mark)) for item in held]
        has_more = gathered((yield Gather(parts)))
        return [item for item, more in zip(held, has_more) if more]

    def _passed(self, item: _ClaimedItem, failure: HandlerFailure | None) -> Work[bool]:
        """Record the result for the first change of an item. Return whether to go on with the item.

        Returns True if the change succeeded and the item has further changes. After a failure, the
        item waits for its next attempt, or is parked.
        """
        if failure is not None:
            yield from self._failed(item, failure)
            return False
        if item.records:
            yield from self._parking.done(item.mark, item.records[0].record)
            self.count.handled += 1
            item.pass_first()
        return bool(item.records) or not (yield from self._released(item))

    def _handled(
        self, subscriber: Subscriber, items: Sequence[_ClaimedItem]
    ) -> Work[dict[str, HandlerFailure]]:
        """Give the first change of each item to the subscriber.

        Returns the failures, by the mark of the item.
        """
        wanted = [
            each
            for each in items
            if subscriber in subscribers_of([subscriber], each.head.table, self._context)
            and subscriber.wants(each.records[0].record, self._context)
        ]
        if not wanted:
            return {}
        scope = HandlerScope(
            self._context,
            self._group,
            wanted[0].records[0].record.shard,
            0,
            _check(wanted, self._context.now),
            is_retry=True,
            done={id(each.records[0].record): each.records[0].done for each in wanted},
        )
        records = [each.records[0].record for each in wanted]
        try:
            failures = yield from subscriber.handle(records, scope)
        except LeaseLost:
            raise
        except Exception as error:  # of the subscriber as a whole, which may be the user's
            failures = [HandlerFailure(record, error) for record in records]
        return {parked_mark(each.record, subscriber.name): each for each in failures}

    def _failed(self, item: _ClaimedItem, failure: HandlerFailure) -> Work[None]:
        error = failure.error
        handler = failure.handler or str(item.head.subscriber)
        attempts = item.attempts + counts_as_attempt(error)
        tries = item.tries + 1
        retry_at = next_attempt(self._context, self._options, attempts, tries)
        if failure.done != item.records[0].done and failure.handler:
            yield from self._parking.handled_by(item.mark, failure.record, failure.done)
        attempt = FailedAttempt(handler, error, attempts, tries, retry_at)
        yield from self._parking.failed(item.head, attempt)
        if retry_at is None:
            self.count.parked += len(item.records)
            log_parked(handler, failure.record, error, len(item.records))
        else:
            self.expect(retry_at)
            log_set_aside(handler, failure.record, error, retry_at - self._context.now())

    def _released(self, item: _ClaimedItem) -> Work[bool]:
        """Remove the head of an item whose changes have all been handled.

        Returns False if a change was added meanwhile; ``item.records`` then holds the added
        changes.
        """
        if (yield from self._parking.release(item.head, item.head.claim)):
            return True
        head = yield from self._parking.look(item.mark)
        if head is None or head.claim != item.head.claim:
            return True  # it was dropped, or the lease is lost
        item.head = head
        item.records = yield from self._parking.records(item.mark)
        return False


def _check(items: Sequence[_ClaimedItem], now: Callable[[], float]) -> Callable[[], None]:
    """Return a function that raises LeaseLost once the lease on one of the items is over."""

    def check() -> None:
        moment = now()
        for each in items:
            if moment >= each.until:
                raise LeaseLost(
                    f"the lease on the item {each.head.key} was lost",
                    hint="nothing to do: another worker retries the item",
                )

    return check
