"""Retries or drops the changes of parked keys."""

from __future__ import annotations

from dataclasses import dataclass

from stator.pipeline.workers.app import StreamApp
from stator.pipeline.workers.handlers.parking import ParkedKey, ParkedRecord, Parking
from stator.pipeline.workers.handlers.subscribers import (
    HandlerFailure,
    HandlerScope,
    subscribers_of,
)
from stator.pipeline.workers.options import WorkerOptions
from stator.pipeline.workers.shards.leases import LeaseTable
from stator.tables.context import Context
from stator.tables.work import Work


@dataclass(frozen=True, slots=True)
class RetryOutcome:
    """The outcome of a retry.

    ``handled`` counts changes; ``error`` says why the key is still parked.
    """

    parked: ParkedKey
    handled: int
    error: str | None = None


class ParkedRetry:
    """Handles parked changes in the caller's process, outside of any worker."""

    def __init__(self, context: Context, app: StreamApp) -> None:
        self._context = context
        self._app = app
        defaults = WorkerOptions()
        leases = LeaseTable(context, app.name, defaults.lease_seconds, defaults.drift_seconds)
        self.parking = Parking(context, app.name, leases)

    def retry(self, mark: str) -> Work[RetryOutcome | None]:
        """Handle the changes of a parked key, in order, and unpark it.

        Returns None if the key is not parked, or if another process is retrying it.
        """
        parked = claimed = yield from self.parking.claim(mark)
        handled = 0
        while parked is not None:
            for each in (yield from self.parking.records(mark)):
                failure = yield from self._handled(each)
                if failure is not None and claimed is not None:
                    name, error = failure
                    yield from self.parking.failed(claimed, name, error)
                    return RetryOutcome(parked, handled, f"{type(error).__name__}: {error}")
                yield from self.parking.done(mark, each.record)
                handled += 1
            if (yield from self.parking.release(parked)):
                return RetryOutcome(parked, handled)
            parked = yield from self.parking.look(mark)  # a worker added a change
        return None

    def _handled(self, parked: ParkedRecord) -> Work[tuple[str, BaseException] | None]:
        scope = HandlerScope(
            self._context, self._app.name, parked.record.shard, 0, lambda: None, is_retry=True
        )
        for subscriber in subscribers_of(self._app.subscribers, parked.record.table, self._context):
            if subscriber.name in parked.done or not subscriber.wants(parked.record, self._context):
                continue
            failures: list[HandlerFailure] = yield from subscriber.handle([parked.record], scope)
            if failures:
                return subscriber.name, failures[0].error
        return None

    def drop(self, mark: str) -> Work[RetryOutcome | None]:
        """Forget the changes of a parked key. The next change to its item is handled again."""
        parked = yield from self.parking.claim(mark)
        dropped = 0
        while parked is not None:
            for each in (yield from self.parking.records(mark)):
                yield from self.parking.done(mark, each.record)
                dropped += 1
            if (yield from self.parking.release(parked)):
                return RetryOutcome(parked, dropped)
            parked = yield from self.parking.look(mark)
        return None
