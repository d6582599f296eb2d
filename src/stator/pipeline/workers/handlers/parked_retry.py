"""Retries or drops set-aside and parked changes when an operator asks for it."""

from __future__ import annotations

from dataclasses import dataclass

from stator.errors import StreamError
from stator.pipeline.workers.app import StreamApp
from stator.pipeline.workers.handlers.parking import (
    RETRY_SECONDS,
    FailedAttempt,
    ParkedKey,
    ParkedRecord,
    Parking,
)
from stator.pipeline.workers.handlers.subscribers import (
    HandlerFailure,
    HandlerScope,
    Subscriber,
    subscribers_of,
)
from stator.pipeline.workers.options import WorkerOptions
from stator.pipeline.workers.shards.leases import LeaseTable
from stator.tables.context import Context
from stator.tables.work import Work


@dataclass(frozen=True, slots=True)
class RetryOutcome:
    """The outcome of an operator's retry or drop of one item.

    ``parked`` is the item's head. ``handled`` counts the changes that were handled or dropped.
    ``error`` says why the item still waits; None means that it no longer waits.
    """

    parked: ParkedKey
    handled: int
    error: str | None = None


class ParkedRetry:
    """Handles set-aside and parked changes in the caller's process, outside of any worker.

    In its methods, ``mark`` is the name under which an item waits (``parking.parked_mark``).
    """

    def __init__(self, context: Context, app: StreamApp) -> None:
        self._context = context
        self._app = app
        defaults = WorkerOptions()
        leases = LeaseTable(context, app.name, defaults.lease_seconds, defaults.drift_seconds)
        self.parking = Parking(context, app.name, leases)

    def retry(self, mark: str) -> Work[RetryOutcome | None]:
        """Handle the stored changes of a set-aside or parked item, in order. Then release the item.

        The first failure ends the retry, and the item waits as before. Returns None if the item
        does not wait. If another process is retrying the item, the outcome's ``error`` says so.
        """
        head = yield from self.parking.look(mark)
        if head is None:
            return None
        self._subscribers_of(head)
        parked = claimed = yield from self.parking.claim(mark)
        if claimed is None:
            return (yield from self._busy(mark))
        handled = 0
        renewed = self._context.now()
        while parked is not None and claimed is not None:
            for each in (yield from self.parking.records(mark)):
                if self._context.now() - renewed > RETRY_SECONDS / 3:
                    if not (yield from self.parking.renew(claimed, RETRY_SECONDS)):
                        return (yield from self._busy(mark))
                    renewed = self._context.now()
                failure = yield from self._handled(parked, each)
                if failure is not None:
                    attempt = FailedAttempt(
                        failure.handler,
                        failure.error,
                        parked.attempts + 1,
                        parked.tries + 1,
                        parked.retry_at,
                    )
                    if failure.done != each.done:
                        yield from self.parking.handled_by(mark, each.record, failure.done)
                    yield from self.parking.failed(claimed, attempt)
                    error = f"{type(failure.error).__name__}: {failure.error}"
                    return RetryOutcome(parked, handled, error)
                yield from self.parking.done(mark, each.record)
                handled += 1
            if (yield from self.parking.release(parked, claimed.claim)):
                return RetryOutcome(parked, handled)
            parked = yield from self.parking.look(mark)  # a worker added a change
        return None

    def _busy(self, mark: str) -> Work[RetryOutcome | None]:
        """Return the outcome for an item that could not be claimed.

        Its error says that another process is retrying the item. Returns None if the item no longer
        waits.
        """
        head = yield from self.parking.look(mark)
        if head is None:
            return None
        problem = "another process is retrying it, or died doing so; try again in a minute"
        return RetryOutcome(head, 0, problem)

    def _handled(self, head: ParkedKey, parked: ParkedRecord) -> Work[HandlerFailure | None]:
        """Call the subscribers that the change waits for. Return the first failure, or None."""
        done = parked.done
        for subscriber in self._subscribers_of(head):
            if subscriber.name in done or not subscriber.wants(parked.record, self._context):
                continue
            scope = HandlerScope(
                self._context,
                self._app.name,
                parked.record.shard,
                0,
                lambda: None,
                is_retry=True,
                done={id(parked.record): done},
            )
            failures: list[HandlerFailure] = yield from subscriber.handle([parked.record], scope)
            if failures:
                [failure, *_] = failures
                names = tuple(dict.fromkeys((*done, *failure.done)))
                handler = failure.handler or subscriber.name
                return HandlerFailure(parked.record, failure.error, handler, names)
            if head.subscriber is None:
                done = (*done, subscriber.name)
        return None

    def _subscribers_of(self, head: ParkedKey) -> list[Subscriber]:
        """Return the subscribers that an item waits for.

        Raises StreamError if the app has no subscriber of the stored name.
        """
        found = subscribers_of(self._app.subscribers, head.table, self._context)
        if head.subscriber is None:
            return found
        mine = [each for each in found if each.name == head.subscriber]
        if not mine:
            raise StreamError(
                f"the item {head.key} waits for {head.subscriber}, which the app {self._app.name}"
                " does not have",
                hint="register a handler or subscriber of this name again, or delete the stored"
                " changes with `stator parked drop`",
            )
        return mine

    def drop(self, mark: str) -> Work[RetryOutcome | None]:
        """Delete the stored changes of an item without handling them, and release the item.

        Later changes are handled as usual. Returns None if the item does not wait. If another
        process is retrying the item, the outcome's ``error`` says so.
        """
        parked = claimed = yield from self.parking.claim(mark)
        if claimed is None:
            return (yield from self._busy(mark))
        dropped = 0
        while parked is not None and claimed is not None:
            for each in (yield from self.parking.records(mark)):
                yield from self.parking.done(mark, each.record)
                dropped += 1
            if (yield from self.parking.release(parked, claimed.claim)):
                return RetryOutcome(parked, dropped)
            parked = yield from self.parking.look(mark)
        return None
