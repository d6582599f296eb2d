"""Stream records.

A record is rendered once, when its change is written; GetRecords only copies it.
"""

from __future__ import annotations

from hashlib import md5
from typing import Final

import orjson

from stator.engine.items import records
from stator.engine.items.write_path import ItemChange
from stator.engine.streams.stream import Stream, sequence_text
from stator.model.values import Item, item_size

HEADER_BYTES: Final = 12
# The identity of the service itself, on records of expired items. In GetRecords its members begin
# with a capital letter, in an event of AWS Lambda with a small one.
_BY_SERVICE: Final = b',"userIdentity":{"PrincipalId":"dynamodb.amazonaws.com","Type":"Service"}'
_OLD: Final = frozenset({"OLD_IMAGE", "NEW_AND_OLD_IMAGES"})
_NEW: Final = frozenset({"NEW_IMAGE", "NEW_AND_OLD_IMAGES"})


def is_unchanged(old: bytes | None, new: bytes | None) -> bool:
    """Whether the item is the same before and after. Such a write leaves no stream record."""
    if old is None or new is None:
        return old is new
    if records.size_of(old) != records.size_of(new):
        return False
    return old == new or records.unpack(old) == records.unpack(new)


def event_name(change: ItemChange) -> str:
    if change.old is None:
        return "INSERT"
    return "REMOVE" if change.new is None else "MODIFY"


def render(
    stream: Stream, sequence: int, change: ItemChange, now: float, *, by_service: bool
) -> bytes:
    """Return the stored form of a record.

    SizeBytes is the size of the key and of the images, counted like the size of an item.
    """
    keys = _keys(change)
    size = item_size(keys)
    images = b""
    if change.new is not None and stream.view_type in _NEW:
        images += b',"NewImage":' + change.new[records.HEADER_BYTES :]
        size += records.size_of(change.new)
    if change.old is not None and stream.view_type in _OLD:
        images += b',"OldImage":' + change.old[records.HEADER_BYTES :]
        size += records.size_of(change.old)
    name = f"{stream.arn}/{sequence}".encode()
    event_id = md5(name).hexdigest()  # noqa: S324 - not a secret
    text = (
        f'{{"eventID":"{event_id}","eventName":"{event_name(change)}","eventVersion":"1.1",'
        f'"eventSource":"aws:dynamodb",'
        f'"awsRegion":"{stream.region}","dynamodb":{{'
        f'"ApproximateCreationDateTime":{int(now)},"Keys":'
    ).encode()
    tail = (
        f',"SequenceNumber":"{sequence_text(sequence)}","SizeBytes":{size},'
        f'"StreamViewType":"{stream.view_type}"}}'
    )
    header = round(now * 1000).to_bytes(8, "big") + size.to_bytes(4, "big")
    identity = _BY_SERVICE if by_service else b""
    return header + text + orjson.dumps(keys) + images + tail.encode() + identity + b"}"


def _keys(change: ItemChange) -> Item:
    item = change.item
    return {name: item[name] for name in change.table.schema.names}


def created_at(record: bytes) -> float:
    return int.from_bytes(record[:8], "big") / 1000


def size_of(record: bytes) -> int:
    return int.from_bytes(record[8:HEADER_BYTES], "big")


def fragment(record: bytes) -> orjson.Fragment:
    return orjson.Fragment(record[HEADER_BYTES:])
