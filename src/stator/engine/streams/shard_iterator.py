"""Shard iterators: a position in a shard and the time of issue, packed and checked.

    arn:aws:dynamodb:…:table/orders/stream/2026-11-16T06:58:17.069|1|<base64>

The packed part holds the shard's number, the sequence number to read from (0 means the oldest
record left), the time in milliseconds, and a checksum. The checksum covers these values and the
ARN, and detects an iterator that was truncated or invented.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass
from struct import Struct
from typing import Final
from zlib import crc32

from stator.errors import ValidationFailed

LIFETIME_SECONDS: Final = 15 * 60.0
HORIZON: Final = 0
_PLACE: Final = Struct(">IQQ")
_CHECK: Final = Struct(">I")


@dataclass(frozen=True, slots=True)
class ShardIterator:
    arn: str
    shard_number: int
    sequence: int
    issued: float

    def encode(self) -> str:
        place = _PLACE.pack(self.shard_number, self.sequence, round(self.issued * 1000))
        return f"{self.arn}|1|{b64encode(place + _checksum(self.arn, place)).decode()}"

    @classmethod
    def decode(cls, text: str) -> ShardIterator:
        arn, _, rest = text.partition("|")
        version, _, packed = rest.partition("|")
        try:
            data = b64decode(packed, validate=True)
        except ValueError:  # not base64, or not even ASCII
            raise ValidationFailed("Invalid ShardIterator") from None
        place, check = data[: _PLACE.size], data[_PLACE.size :]
        if version != "1" or len(place) != _PLACE.size or check != _checksum(arn, place):
            raise ValidationFailed("Invalid ShardIterator")
        shard_number, sequence, issued = _PLACE.unpack(place)
        return cls(arn, shard_number, sequence, issued / 1000)


def _checksum(arn: str, place: bytes) -> bytes:
    return _CHECK.pack(crc32(arn.encode() + place))
