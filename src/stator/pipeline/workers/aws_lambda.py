"""Runs an app as an AWS Lambda function.

The event source mapping must have ``ReportBatchItemFailures``.

Lambda reads the shards, keeps their order and its own checkpoints, and starts again from the
lowest sequence number that is reported as failed. So nothing is set aside or parked here. The
handler handles the batch up to the first change that fails, and reports that change. Lambda then
delivers this change and everything after it again. Some subscribers may have handled some of these
changes already. Retries, bisection and on-failure destinations are Lambda's own.

Views and roll-ups count each change once. Lambda does not say which shard a change is from, divides
batches differently in each attempt, and may handle several batches of a shard at once
(``ParallelizationFactor``). So they mark each change by its sequence number instead of keeping a
position (``coordination.named_changes``). Workers keep positions. Neither sees what the other
counted, so an app with views or roll-ups runs in one of them only (``LeaseTable.claim``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from stator.coordination.retry import retry
from stator.errors import ConfigurationError
from stator.pipeline.workers.handlers.change import Record
from stator.pipeline.workers.handlers.change_handlers import ChangeHandlers
from stator.pipeline.workers.handlers.subscribers import (
    HandlerFailure,
    HandlerScope,
    Subscriber,
    exact_subscribers,
    refuse_small_stream,
    tables_of,
)
from stator.pipeline.workers.lambda_event import read_event, stream_label
from stator.pipeline.workers.shards.leases import LeaseTable
from stator.tables.context import Context
from stator.tables.db import Db
from stator.tables.work import Work

if TYPE_CHECKING:
    from stator.pipeline.workers.app import StreamApp

log = logging.getLogger("stator.workers")

LambdaHandler = Callable[[Mapping[str, Any], Any], dict[str, Any]]


def lambda_handler(app: StreamApp, db: Db) -> LambdaHandler:
    exact = exact_subscribers(app.subscribers)
    for each in exact:
        each.prepare(db.context)
    is_claimed = not exact

    def handler(event: Mapping[str, Any], context: Any = None) -> dict[str, Any]:
        nonlocal is_claimed
        records = read_event(event, db.context)
        if not is_claimed:
            db.run(_claimed(app, db.context, exact[0].name))
            is_claimed = True
        for table, view in {(each.table, _view_of(each)) for each in records}:
            if view is not None:
                refuse_small_stream(view, table, app.subscribers, db.context)
        failed = db.run(handled(app, db.context, records))
        return {"batchItemFailures": [] if failed is None else [{"itemIdentifier": failed}]}

    return handler


def _claimed(app: StreamApp, context: Context, counting: str) -> Work[None]:
    """Raise ConfigurationError if workers run an app that counts changes.

    ``counting`` is the name of one of its views or roll-ups.
    """
    leases = LeaseTable(context, app.name, 1.0, 0.0)
    runner = yield from retry(context, None, partial(leases.claim, "lambda"))
    if runner != "lambda":
        raise ConfigurationError(
            f"{app.name} is run by workers: AWS Lambda would count its changes again in {counting}",
            hint="give the app and its views other names here, or run it with `stator work` only",
        )


def _view_of(record: Record) -> str | None:
    view = record.raw["dynamodb"].get("StreamViewType")
    return None if view is None else str(view)


def handled(app: StreamApp, context: Context, records: list[Record]) -> Work[str | None]:
    """Hand the records to all subscribers. Return the lowest sequence number that failed, or None.

    After a failure, the remaining subscribers get only the records before the failed one. Exact
    subscribers come first and get all records: if Lambda gives up on a batch because of a handler,
    they have counted it.
    """
    stream = stream_label(records)
    scope = HandlerScope(context, app.name, "", 0, lambda: None, stream, is_lambda=True)
    failed: str | None = None
    exact = exact_subscribers(app.subscribers)
    for subscriber in [*exact, *(each for each in app.subscribers if each not in exact)]:
        if failed is not None and subscriber not in exact:
            records = [record for record in records if int(record.sequence) < int(failed)]
        tables = tables_of(subscriber, context)
        wanted = [
            record
            for record in records
            if record.table in tables and subscriber.wants(record, context)
        ]
        for failure in (yield from _failures(subscriber, wanted, scope, app.concurrency)):
            log.error(
                "%s failed for %s: %s",
                failure.handler or subscriber.name,
                failure.record.key,
                failure.error,
                exc_info=failure.error,
            )
            if failed is None or int(failure.record.sequence) < int(failed):
                failed = failure.record.sequence
    return failed


def _failures(
    subscriber: Subscriber, records: list[Record], scope: HandlerScope, concurrency: int
) -> Work[list[HandlerFailure]]:
    """Call one subscriber with the records, and return its failures.

    Functions for single changes stop at the first failure, because Lambda delivers everything after
    it again. Functions that run in parallel, and other subscribers, get the whole batch.
    """
    is_one_by_one = isinstance(subscriber, ChangeHandlers) and concurrency < 2
    for part in [[record] for record in records] if is_one_by_one else [records]:
        failures = (yield from subscriber.handle(part, scope)) if part else []
        if failures:
            return failures
    return []
