"""The stored form of an item: a header of five bytes, then the item's DynamoDB JSON.

    01 | 00 00 04 1f | {"PK":{"S":"USER#1"}, ...}
    ^format  ^item size in bytes as DynamoDB counts it, big-endian

A read without projection copies the JSON into the answer untouched. The size is known without
decoding.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from stator.expr.paths import project
from stator.expr.tree import ProjectionExpression
from stator.model.values import Item

HEADER_BYTES: Final = 5
_FORMAT: Final = b"\x01"


def pack(item: Item, size: int) -> bytes:
    return _FORMAT + size.to_bytes(4, "big") + orjson.dumps(item)


def size_of(record: bytes) -> int:
    # Compiled, this takes a tenth of the time of int.from_bytes, and every read charges its size.
    return (record[1] << 24) | (record[2] << 16) | (record[3] << 8) | record[4]


def unpack(record: bytes) -> Item:
    item: Any = orjson.loads(record[HEADER_BYTES:])
    return item  # type: ignore[no-any-return]


def fragment(record: bytes) -> orjson.Fragment:
    """Return the item's JSON, to be copied into an answer unchanged."""
    return orjson.Fragment(record[HEADER_BYTES:])


def shown(record: bytes, projection: ProjectionExpression | None) -> Any:
    """Return an item for an answer: its stored JSON, or only the projected part."""
    if projection is None:
        return fragment(record)
    return project(unpack(record), projection.paths)
