"""The lines of an export's data files: an item each, or what became of one, in DynamoDB JSON or Ion.

    {"Item":{"PK":{"S":"A"},...}}
    {"Metadata":{"WriteTimestampMicros":{"N":"1680109764000000"}},"Keys":{...},"OldImage":{...},"NewImage":{...}}

The second kind is of incremental exports. An item that is new has no OldImage, one that was deleted no NewImage, and the view
NEW_IMAGE leaves out every OldImage. Ion has the same members; those of a change stand in a ``Record``.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import orjson

from stator.engine.recovery import ion
from stator.model.values import Item

Line = Callable[[Item], bytes]


def item_line(export_format: str) -> Line:
    return _ion_item if export_format == "ION" else _json_item


def _json_item(item: Item) -> bytes:
    return b'{"Item":' + orjson.dumps(item) + b"}\n"


def _ion_item(item: Item) -> bytes:
    return ion.encode_line({"Item": ion.to_ion(item)})


def change_line(
    export_format: str, keys: Item, old: Item | None, new: Item | None, micros: int
) -> bytes:
    images = {
        name: image for name, image in (("OldImage", old), ("NewImage", new)) if image is not None
    }
    if export_format == "ION":
        record: dict[str, Any] = {
            "Metadata": {"WriteTimestampMicros": Decimal(micros)},
            "Keys": ion.to_ion(keys),
            **{name: ion.to_ion(image) for name, image in images.items()},
        }
        return ion.encode_line({"Record": record})
    metadata = {"WriteTimestampMicros": {"N": str(micros)}}
    return orjson.dumps({"Metadata": metadata, "Keys": keys, **images}) + b"\n"
