"""Runs an app as an AWS Lambda function.

The event source mapping must have ``ReportBatchItemFailures``.

Lambda reads the shards, keeps their order and its own checkpoints, and starts again from the
lowest sequence number that is reported as failed. So nothing is set aside or parked here. The
handler handles the batch up to the first change that fails, and reports that change. Lambda then
delivers this change and everything after it again. Some subscribers may have handled some of these
changes already. Retries, bisection and on-failure destinations are Lambda's own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

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
from stator.pipeline.workers.lambda_event import read_event
from stator.tables.context import Context
from stator.tables.db import Db
from stator.tables.work import Work

if TYPE_CHECKING:
    from stator.pipeline.workers.app import StreamApp

log = logging.getLogger("stator.workers")

LambdaHandler = Callable[[Mapping[str, Any], Any], dict[str, Any]]


def lambda_handler(app: StreamApp, db: Db) -> LambdaHandler:
    if exact := exact_subscribers(app.subscribers):
        raise ConfigurationError(
            f"{exact[0].name} cannot run on Lambda: it needs the shard of every change, which"
            " Lambda does not pass",
            hint="run this app with `stator work`, or move the other handlers to an app of their"
            " own for Lambda",
        )

    def handler(event: Mapping[str, Any], context: Any = None) -> dict[str, Any]:
        records = read_event(event, db.context)
        for table, view in {(each.table, _view_of(each)) for each in records}:
            if view is not None:
                refuse_small_stream(view, table, app.subscribers, db.context)
        failed = db.run(_handled(app, db.context, records))
        return {"batchItemFailures": [] if failed is None else [{"itemIdentifier": failed}]}

    return handler


def _view_of(record: Record) -> str | None:
    view = record.raw["dynamodb"].get("StreamViewType")
    return None if view is None else str(view)


def _handled(app: StreamApp, context: Context, records: list[Record]) -> Work[str | None]:
    """Hand the records to all subscribers. Return the lowest sequence number that failed, or None.

    After a failure, the remaining subscribers get only the records before the failed one.
    """
    scope = HandlerScope(context, app.name, "", 0, lambda: None)
    failed: str | None = None
    for subscriber in app.subscribers:
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
        if failed is not None:
            records = [record for record in records if int(record.sequence) < int(failed)]
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
