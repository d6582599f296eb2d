"""The event that a sink sends for a change: one JSON object.

    {"id": "8f0c...",                  the event id: the same each time this change is delivered
     "kind": "MODIFY",                 INSERT, MODIFY or REMOVE
     "table": "shop",
     "entity": "Order",                null for an item that is not of the design
     "key": {"PK": "ORDER#o1"},        the table's key
     "old": {"order_id": "o1", ...},   null if there was no item, or the stream does not show it
     "new": {"order_id": "o1", ...},
     "sequence": "1000...42",          the stream's number, as text; null in a snapshot
     "time": "2026-11-16T08:12:40Z",   when the change was made, to the second
     "expired": false}                 whether the time to live had passed

``old`` and ``new`` have the entity's fields as stored, or all attributes of an item without an
entity. There are no type letters: numbers have all their digits, sets are lists, binary values are
base64 text. Large values are fetched first. With ``images="dynamodb"``, ``key``, ``old`` and
``new`` are the items of the stream record in DynamoDB JSON.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal

import orjson

from stator.formats.plain import plain_item, plain_value
from stator.model.values import Item
from stator.pipeline.workers.handlers.change import Change, Record, entity_of
from stator.tables.context import Context
from stator.tables.schema.entity_map import EntityMap

Images = Literal["plain", "dynamodb"]


def event_id(record: Record) -> str:
    """Return the id by which receivers recognise a repeated change.

    It is the id of the stream record or, for an item of a snapshot, a hash of its content.
    """
    if record.event_id:
        return record.event_id
    content = orjson.dumps([record.table, record.keys, record.new], option=orjson.OPT_SORT_KEYS)
    return f"snapshot-{hashlib.sha256(content).hexdigest()[:32]}"


def event_of(change: Change[Any], context: Context, images: Images = "plain") -> dict[str, Any]:
    """Return the event of a change as a dictionary, which ``encoded`` turns into JSON.

    A number is an ``orjson.Fragment`` with the digits as stored, so that none is lost.
    """
    record = change.record
    of = entity_of(record, context)
    raw = images == "dynamodb"
    return {
        "id": event_id(record),
        "kind": record.kind,
        "table": record.table,
        "entity": change.entity,
        "key": record.keys if raw else plain_item(record.keys),
        "old": record.old if raw else _fields(of, change, "old", record.old),
        "new": record.new if raw else _fields(of, change, "new", record.new),
        "sequence": record.sequence or None,
        "time": time_text(record.at),
        "expired": change.expired,
    }


def _fields(
    of: EntityMap | None, change: Change[Any], name: str, item: Item | None
) -> dict[str, Any] | None:
    if item is None:
        return None
    if of is None:
        return plain_item(item)
    item = of.codec.encode(getattr(change, name)) if of.large else of.current(item)
    python = of.info.python_names
    return {
        python.get(field, field): plain_value(item[field]) for field in of.fields if field in item
    }


def time_text(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def encoded(body: Any) -> bytes:
    """Return the bytes to send: bytes and text unchanged, any other value as JSON.

    Raises TypeError if JSON cannot express the value.
    """
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode()
    return json_encoded(body)


def json_encoded(body: Any) -> bytes:
    return orjson.dumps(body, default=_plain)


def _plain(value: Any) -> Any:
    """Convert a Decimal, set or dataclass in a transform's result to a value that JSON has.

    Raises TypeError for any other value.
    """
    if isinstance(value, Decimal):
        return orjson.Fragment(str(value))
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(
        f"the transform returned a {type(value).__name__}, which JSON does not have; "
        "convert it to text, a number, a list or a dict"
    )
