"""Observers for ``connect(..., observers=[...])``: log lines and OpenTelemetry spans."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from stator.tables.metrics.call_facts import result_of
from stator.tables.metrics.opentelemetry_calls import SYSTEM, opentelemetry
from stator.tables.observers import CallRecord, Observer


def log_calls(
    logger: logging.Logger | None = None, *, level: int = logging.DEBUG, slow_seconds: float = 1.0
) -> Observer:
    """Return an observer that logs each call. Failed and slow calls are logged as warnings."""
    to = logger or logging.getLogger("stator.calls")

    def observe(record: CallRecord) -> None:
        told = (
            logging.WARNING if record.error is not None or record.seconds > slow_seconds else level
        )
        to.log(
            told,
            "%s %s on %s: %.1f ms, %g read and %g write units%s",
            record.label,
            record.operation,
            record.table,
            record.seconds * 1000,
            record.read_units,
            record.write_units,
            f", {type(record.error).__name__}: {record.error}" if record.error is not None else "",
        )

    return observe


def trace_calls(tracer: Any = None) -> Observer:
    """Return an observer that creates a span for each call, under the current span.

    Attributes follow OpenTelemetry's semantic conventions for databases and for DynamoDB. A batch
    may have several tables; ``db.collection.name`` is set only if there is one.
    https://opentelemetry.io/docs/specs/semconv/database/dynamodb/
    """
    trace = opentelemetry("trace")
    made = tracer or trace.get_tracer("stator")

    def observe(record: CallRecord) -> None:
        start = int(record.started * 1e9)
        span = made.start_span(
            f"{record.operation} {record.table}",
            kind=trace.SpanKind.CLIENT,
            start_time=start,
            attributes=_attributes(record),
        )
        if record.error is not None:
            code = result_of(record.error)
            span.set_attribute("error.type", type(record.error).__name__)
            span.set_attribute("db.response.status_code", code)
            span.set_status(trace.Status(trace.StatusCode.ERROR, str(record.error)))
        span.end(start + int(record.seconds * 1e9))

    return observe


_OF_REQUEST = {
    "IndexName": "aws.dynamodb.index_name",
    "Limit": "aws.dynamodb.limit",
    "Select": "aws.dynamodb.select",
    "ConsistentRead": "aws.dynamodb.consistent_read",
    "ScanIndexForward": "aws.dynamodb.scan_forward",
    "ProjectionExpression": "aws.dynamodb.projection",
    "Segment": "aws.dynamodb.segment",
    "TotalSegments": "aws.dynamodb.total_segments",
}


def _attributes(record: CallRecord) -> dict[str, Any]:
    tables = record.table.split(",") if record.table else []
    found: dict[str, Any] = {
        "db.system.name": SYSTEM,
        "db.operation.name": record.operation,
        "db.query.summary": record.label,
        "aws.dynamodb.table_names": tables,
        "stator.read_units": record.read_units,
        "stator.write_units": record.write_units,
    }
    if len(tables) == 1:
        found["db.collection.name"] = tables[0]
    request, reply = record.request, record.reply
    found |= {name: request[member] for member, name in _OF_REQUEST.items() if member in request}
    consumed = reply.get("ConsumedCapacity")
    if consumed:
        entries = [consumed] if isinstance(consumed, Mapping) else consumed
        found["aws.dynamodb.consumed_capacity"] = [json.dumps(each) for each in entries]
    if record.is_page:
        found["aws.dynamodb.count"] = record.item_count
        found["aws.dynamodb.scanned_count"] = record.scanned_count
    if record.attempts > 1:
        found["stator.retries"] = record.attempts - 1
    if record.throttles:
        found["stator.throttle.reasons"] = [each.text for each in record.throttles]
    return found
