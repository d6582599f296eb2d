"""The key space: the byte order of everything the engine stores.

    m ...                                      the catalogue (see tables/catalog.py), tasks and
                                               registries (see recovery/)
    s | table                                  item counts and sizes of a table and its indexes
    d | table | index | hash | partition key | sort key ...    items (index 0), index entries
    l | table | time | count                   the recovery log (see recovery/log.py)
    b | area | hash | partition key | sort key ...    copies of items: backups, and work areas of
                                               restores and exports
    t | stream                                 a stream and its shards (see streams/)
    r | stream | shard | sequence number       stream records
    x | table | time | hash | ...              items by the time they expire (see expiry.py)
    h | table | index                          partitions and their history (see partitions/)
    c | companion ...                          metrics, alarms, scaling (see companions/)

``table`` is four bytes and ``index`` two; both are numbers that are never reused. ``hash`` is the
first eight bytes of the MD5 of the partition key. It spreads keys, so that scans return items in
scattered order, as DynamoDB does, and it divides a table into parallel segments. The partition key
is preceded by its length. Each sort key value is escaped (00 becomes 00 FF) and closed with 00 00.
So values of any length keep their order, and one value never runs into the next. An index entry
ends with the table's own key, which makes it unique:

    table PK=U1 SK=A:   d 00000001 0000 <md5(U1)[:8]> 0002 "U1" "A" 00 00
    GSI1  GPK=X GSK=7:  d 00000001 0001 <md5(X)[:8]>  0001 "X"  C00101 70 00 00  0002 "U1" "A" 00 00
    LSI1  LSK=Q:        d 00000001 0002 <md5(U1)[:8]> 0002 "U1" "Q" 00 00        "A" 00 00
"""

from __future__ import annotations

import hashlib
from base64 import b64decode
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from stator.model.numbers import encode_ordered

try:
    # CPython's own MD5 costs a third of OpenSSL's for the few bytes of a key.
    md5: Callable[[bytes], Any] = import_module("_md5").md5
except ImportError:  # an interpreter built without it
    md5 = hashlib.md5

META: Final = b"m"
STATS: Final = b"s"
DATA: Final = b"d"
LOG: Final = b"l"
AREAS: Final = b"b"
HEAT: Final = b"h"
COMPANIONS: Final = b"c"
HASH_BYTES: Final = 8
PREFIX_BYTES: Final = 7
PARTITION_BYTES: Final = PREFIX_BYTES + HASH_BYTES
"""The length of the prefix that all keys of one partition share."""


def data_prefix(table_number: int, index_number: int) -> bytes:
    return DATA + table_number.to_bytes(4, "big") + index_number.to_bytes(2, "big")


def table_prefix(table_number: int) -> bytes:
    return DATA + table_number.to_bytes(4, "big")


def log_prefix(table_number: int) -> bytes:
    return LOG + table_number.to_bytes(4, "big")


def area_prefix(area_number: int) -> bytes:
    return AREAS + area_number.to_bytes(4, "big")


def heat_prefix(table_number: int) -> bytes:
    return HEAT + table_number.to_bytes(4, "big")


def stats_key(table_number: int) -> bytes:
    return STATS + table_number.to_bytes(4, "big")


def _encode_string(content: str) -> bytes:
    return content.encode()


def _encode_binary(content: str) -> bytes:
    return b64decode(content)


RAW: dict[str, Callable[[Any], bytes]] = {
    "S": _encode_string,
    "N": encode_ordered,
    "B": _encode_binary,
}


def partition(raw: bytes) -> bytes:
    """Encode a partition key of one attribute as hash, length and bytes."""
    digest: bytes = md5(raw).digest()
    return digest[:HASH_BYTES] + len(raw).to_bytes(2, "big") + raw


def partition_of(raws: list[bytes]) -> bytes:
    """Encode a partition key of several attributes."""
    joined = b"".join(len(raw).to_bytes(2, "big") + raw for raw in raws)
    digest: bytes = md5(joined).digest()
    return digest[:HASH_BYTES] + joined


def after_hash(key: bytes) -> bytes:
    """Return the encoded partition key and sort key at the end of a table's storage key."""
    return key[PREFIX_BYTES + HASH_BYTES :]


def sort_part(key: bytes) -> bytes:
    """Return the encoded sort key at the end of a table's storage key."""
    length = PREFIX_BYTES + HASH_BYTES
    return key[length + 2 + int.from_bytes(key[length : length + 2], "big") :]


def escape(raw: bytes) -> bytes:
    return raw.replace(b"\0", b"\0\xff")


def closed(raw: bytes) -> bytes:
    """Encode a sort key value with its closing 00 00."""
    return raw.replace(b"\0", b"\0\xff") + b"\0\0"


def segment_bounds(prefix: bytes, segment: int, total: int) -> tuple[bytes, bytes]:
    """Return the first storage key of a parallel scan's segment, and the end of its key range.

    ``total`` is the number of segments into which the table or index is divided.
    """
    low = _segment_start(segment, total)
    high = _segment_start(segment + 1, total)
    first = prefix + low.to_bytes(HASH_BYTES, "big")
    last = prefix + (
        high.to_bytes(HASH_BYTES, "big") if high < 2**64 else b"\xff" * HASH_BYTES + b"\xff\xff\xff"
    )
    return first, last


def _segment_start(segment: int, total: int) -> int:
    return segment * 2**64 // total


def segment_of(key: bytes, total: int) -> int:
    position = int.from_bytes(key[PREFIX_BYTES : PREFIX_BYTES + HASH_BYTES], "big")
    segment = position * total // 2**64
    # Integer division rounds the starts down, so the estimate can be one too low.
    return segment + 1 if position >= _segment_start(segment + 1, total) else segment
