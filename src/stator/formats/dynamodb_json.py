"""DynamoDB JSON with one record per line, the format of exports and imports.

    {"Item":{"PK":{"S":"A"},...}}
    {"Metadata":{"WriteTimestampMicros":{"N":"1680109764000000"}},"Keys":{...},
     "OldImage":{...},"NewImage":{...}}

The second form, which is one line in the file, is a change in an incremental export. An inserted
item has no OldImage, a deleted item no NewImage.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import orjson

from stator.errors import DataDamaged
from stator.model.values import Item

KINDS: Final = ("S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M")
"""The types of attribute values, by their names on the wire."""
LINE_BYTES: Final = 8 << 20
"""The size of the longest line that is read.

An item of 400 KB takes at most 4 MB of JSON, if it consists of empty strings.
"""
_DECODER: Final = json.JSONDecoder()
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def item_line(item: Item) -> bytes:
    return encoded_item_line(orjson.dumps(item))


def encoded_item_line(item: bytes) -> bytes:
    """Return the line of an export file that holds an item. ``item`` is its DynamoDB JSON."""
    return b'{"Item":%b}\n' % item


def change_line(keys: Item, images: dict[str, Item], micros: int) -> bytes:
    """Return the line of a change in an incremental export.

    ``images`` holds OldImage, NewImage or both. ``micros`` is the time of the change, in
    microseconds since 1970.
    """
    metadata = {"WriteTimestampMicros": {"N": str(micros)}}
    return orjson.dumps({"Metadata": metadata, "Keys": keys, **images}) + b"\n"


def read_records(stream: BinaryIO) -> Iterator[Any]:
    """Yield every JSON value in the stream. Blank lines are skipped.

    A line usually has one value, but may have more. Raises DataDamaged at a line that is not JSON,
    or that is too long or nested too deeply to be an item.
    """
    for number, line in enumerate(iter(lambda: stream.readline(LINE_BYTES + 1), b""), 1):
        if len(line) > LINE_BYTES:
            raise DataDamaged(f"line {number:,} is longer than {LINE_BYTES:,} bytes")
        if number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        if line.isspace() or not line:
            continue
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            yield from _several(line, number, error)
        else:
            yield record


def _several(line: bytes, number: int, error: orjson.JSONDecodeError) -> Iterator[Any]:
    """Yield the JSON values of a line that holds several, with or without blanks between them."""
    damaged = DataDamaged(f"line {number:,} is not JSON: {error}")
    try:
        text = line.decode().strip()
    except UnicodeDecodeError:
        raise damaged from None
    at = 0
    while at < len(text):
        try:
            record, at = _DECODER.raw_decode(text, at)
        except ValueError:
            raise damaged from None
        except RecursionError:
            raise DataDamaged(f"line {number:,} is nested too deeply") from None
        yield record
        while at < len(text) and text[at].isspace():
            at += 1


def read_items(stream: BinaryIO) -> Iterator[Item]:
    """Yield the item of every line. Raises DataDamaged at a line without an item."""
    for record in read_records(stream):
        yield item_of(record)


def item_of(record: Any) -> Item:
    """Return the item in ``{"Item": ...}``. Raises DataDamaged if there is none."""
    item = record.get("Item") if isinstance(record, dict) else None
    if not isinstance(item, dict):
        raise DataDamaged(
            'a line has no item; it should look like {"Item": {"pk": {"S": "user-1"}}}'
        )
    return item


def is_attribute_value(value: Any) -> bool:
    """Whether a value looks like ``{"S": ...}``. Its content is not checked."""
    return type(value) is dict and len(value) == 1 and next(iter(value)) in KINDS


def unwrap(record: dict[str, Any]) -> tuple[Item, bool]:
    """Return the item in a record, and whether it was wrapped in ``{"Item": ...}``.

    A record without that wrapper is the item itself. A bare item whose only attribute is named
    Item, such as ``{"Item": {"S": "a"}}``, is recognised as bare.
    """
    inner = record.get("Item")
    if len(record) == 1 and type(inner) is dict and not is_attribute_value(inner):
        return inner, True
    return record, False
