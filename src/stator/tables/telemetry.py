"""Observers for ``connect(..., observers=[...])``: log lines and OpenTelemetry spans."""

from __future__ import annotations

import logging
from typing import Any

from stator.errors import ConfigurationError
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

    Attributes follow OpenTelemetry's semantic conventions for databases.
    """
    try:
        from opentelemetry import trace
        from opentelemetry.trace import SpanKind, Status, StatusCode
    except ImportError:
        raise ConfigurationError(
            "OpenTelemetry is not installed", hint="pip install 'stator[opentelemetry]'"
        ) from None
    made = tracer or trace.get_tracer("stator")

    def observe(record: CallRecord) -> None:
        start = int(record.started * 1e9)
        span = made.start_span(
            f"{record.operation} {record.table}",
            kind=SpanKind.CLIENT,
            start_time=start,
            attributes={
                "db.system.name": "aws.dynamodb",
                "db.operation.name": record.operation,
                "db.collection.name": record.table,
                "db.query.summary": record.label,
                "aws.dynamodb.consumed_read_units": record.read_units,
                "aws.dynamodb.consumed_write_units": record.write_units,
            },
        )
        if record.error is not None:
            span.set_attribute("error.type", type(record.error).__name__)
            span.set_status(Status(StatusCode.ERROR, str(record.error)))
        span.end(start + int(record.seconds * 1e9))

    return observe
