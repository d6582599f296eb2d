"""Reads the event of an AWS Lambda function: the records of one shard of a DynamoDB stream.

Anything may invoke a function. So every part of the event that is used is checked first, and if any
part is wrong, no record is handled.

Records are returned in the order of their sequence numbers, which is also Lambda's order. The order
matters: a function that reports a sequence number as failed promises that it has handled all
records with lower numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from stator.errors import ConfigurationError
from stator.pipeline.workers.handlers.change import CHANGES, Record, read_record
from stator.tables.context import Context

_SOURCE: Final = "aws:dynamodb"
_HINT: Final = "invoke the function through an event source mapping of the table's stream"


def read_event(event: Any, context: Context) -> list[Record]:
    """Return the records of an event, in the order of their sequence numbers.

    Raises ConfigurationError if it is not an event of one stream of the design's tables.
    """
    records = [_read(raw, context) for raw in _records(event)]
    streams = sorted({str(record.raw.get("eventSourceARN", "")) for record in records})
    if len(streams) > 1:
        raise ConfigurationError(
            f"the event has records of several streams: {', '.join(streams)}; their sequence"
            " numbers cannot be compared",
            hint="create an event source mapping for each stream",
        )
    return sorted(records, key=lambda record: int(record.sequence))


def stream_label(records: Sequence[Record]) -> str:
    """Return the label of the stream of an event's records: the time at which it was enabled."""
    arn = str(records[0].raw.get("eventSourceARN", "")) if records else ""
    return arn.partition("/stream/")[2]


def _records(event: Any) -> Sequence[Any]:
    if not isinstance(event, Mapping):
        raise ConfigurationError(
            f"the event is a {type(event).__name__}, not from a DynamoDB stream", hint=_HINT
        )
    records = event.get("Records")
    if not isinstance(records, list):
        raise ConfigurationError(
            f"the event is not from a DynamoDB stream: it has no list Records; it has"
            f" {_shown(event)}",
            hint=_HINT,
        )
    return records


def _read(raw: Any, context: Context) -> Record:
    """Return a record of a Lambda event as a ``Record``.

    Raises ConfigurationError if it is from another service or table.
    """
    if not isinstance(raw, Mapping):
        raise _malformed(f"a record is a {type(raw).__name__}")
    source = raw.get("eventSource") or raw.get("EventSource")
    if source != _SOURCE:
        raise ConfigurationError(
            f"the event is from {source or 'an unknown source'}, not from a DynamoDB stream",
            hint=_HINT,
        )
    _check_form(raw)
    arn = str(raw.get("eventSourceARN", ""))
    name = arn.partition(":table/")[2].partition("/")[0]
    tables = (*context.schema.tables, context.schema.place.table)
    if name not in tables:
        raise ConfigurationError(
            f"the event is from table {name or arn or '(none)'}; the design has the tables"
            f" {', '.join(tables)}",
            hint="map the stream of one of these tables, or pass the right prefix= to connect()",
        )
    if not arn.partition("/stream/")[2]:
        raise _malformed(f"eventSourceARN is {arn}, which names no stream")
    return read_record(raw, name, "")


def _check_form(raw: Mapping[str, Any]) -> None:
    """Raise ConfigurationError if a member of a record is missing or has a wrong type.

    Checks only the members that ``read_record`` uses.
    """
    kind, body = raw.get("eventName"), raw.get("dynamodb")
    if not isinstance(kind, str) or kind not in CHANGES:
        raise _malformed(f"eventName is {kind!r}, not one of {', '.join(CHANGES)}")
    if not isinstance(body, Mapping):
        raise _malformed(f"dynamodb is a {type(body).__name__}")
    sequence = body.get("SequenceNumber")
    if not isinstance(sequence, str) or not (sequence.isascii() and sequence.isdecimal()):
        raise _malformed(f"SequenceNumber is {sequence!r}, not digits")
    if not body.get("Keys"):
        raise _malformed("it has no Keys")
    for name in ("Keys", "OldImage", "NewImage"):
        if name in body and not _is_item(body[name]):
            raise _malformed(f"{name} is not an item in DynamoDB JSON")
    at = body.get("ApproximateCreationDateTime", 0.0)
    if isinstance(at, bool) or not isinstance(at, (int, float)):
        raise _malformed(f"ApproximateCreationDateTime is {at!r}, not a number")
    if not isinstance(raw.get("userIdentity") or {}, Mapping):
        raise _malformed("userIdentity is not an object")


def _is_item(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(each, Mapping) and len(each) == 1 for each in value.values()
    )


def _malformed(problem: str) -> ConfigurationError:
    return ConfigurationError(f"a record of the event is malformed: {problem}", hint=_HINT)


def _shown(event: Mapping[str, Any]) -> str:
    return ", ".join(sorted(map(str, event))[:5]) or "nothing"
