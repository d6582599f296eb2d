"""The same app as an AWS Lambda function, behind a mapping with ``ReportBatchItemFailures``.

Lambda reads the shards, keeps their order and its own checkpoints, and starts again from the
lowest sequence number that is reported as failed. So nothing is parked here: the batch is handled
up to the first change that fails, and that change is reported. Lambda's retries, bisection and
destinations do the rest.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from stator.errors import ConfigurationError
from stator.pipeline.workers.handlers.change import Record, read_record
from stator.pipeline.workers.handlers.subscribers import HandlerScope, exact_subscribers, tables_of
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
            f"{exact[0].name} needs the shard of every change, which Lambda does not pass",
            hint="run its app with `stator work`; put other handlers into an app for Lambda",
        )

    def handler(event: Mapping[str, Any], context: Any = None) -> dict[str, Any]:
        records = [_read(raw, db.context) for raw in event.get("Records", ())]
        failed = db.run(_handled(app, db.context, records))
        return {"batchItemFailures": [] if failed is None else [{"itemIdentifier": failed}]}

    return handler


def _read(raw: Mapping[str, Any], context: Context) -> Record:
    arn = str(raw.get("eventSourceARN", ""))
    name = arn.partition(":table/")[2].partition("/")[0]
    tables = context.schema.tables
    table = name if name in tables or name == context.schema.place.table else next(iter(tables))
    return read_record(raw, table, "")


def _handled(app: StreamApp, context: Context, records: list[Record]) -> Work[str | None]:
    """Handle records. Return the lowest sequence number that failed, or None."""
    scope = HandlerScope(context, app.name, "", 0, lambda: None)
    failed: str | None = None
    for subscriber in app.subscribers:
        tables = tables_of(subscriber, context)
        wanted = [
            record
            for record in records
            if record.table in tables and subscriber.wants(record, context)
        ]
        for failure in (yield from subscriber.handle(wanted, scope)) if wanted else ():
            log.error(
                "%s failed for %s: %s",
                subscriber.name,
                failure.record.key,
                failure.error,
                exc_info=failure.error,
            )
            if failed is None or int(failure.record.sequence) < int(failed):
                failed = failure.record.sequence
        if failed is not None:
            records = [record for record in records if int(record.sequence) < int(failed)]
    return failed
