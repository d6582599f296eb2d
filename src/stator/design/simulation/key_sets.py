"""Sets of keys that a simulation charges together, and the partitions they fall into.

Keys have the form that the engine gives them: the first eight bytes of the MD5 of the partition
key, its length, the partition key, and the sort key. So a comparison of bytes finds the partition
of a key, whether partitions are cut by hash, between partition keys or inside an item collection.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import md5
from random import Random
from typing import Final, Literal

from stator.model.heat.sample import collection_of

KeySetKind = Literal["item", "newest", "end", "collection", "hashes", "cursor"]
"""What a set holds.

``item`` is one item. ``newest`` is a key that rises from call to call, at the end of one item
collection. ``end`` is the key at which a query begins that reads the newest items. ``collection``
is spread over the sort keys of one partition key, and ``hashes`` over very many partition keys.
``cursor`` is the key that a load in the order of the keys has reached.
"""

_HASHES: Final = 2**64
_HASH_BYTES: Final = 8
_CLOCK: Final = b"\x80"
_END: Final = b"\xff" * 9
_LAST: Final = _HASHES - 1
"""A time after all others: a key that rises lies beyond every cut that it caused."""


@dataclass(frozen=True, slots=True)
class KeySet:
    """Keys that get equal traffic. ``partition`` is the encoded partition key, if there is one."""

    kind: KeySetKind
    partition: bytes = b""

    def parts(self, lows: Sequence[bytes], progress: float = 0.0) -> list[tuple[int, float]]:
        """Return the partitions that hold keys of the set, each with its share of the keys.

        A partition is identified by its position in ``lows``, the lower bounds of all partitions.
        ``progress`` is the share of a load that is done.
        """
        if len(lows) == 1:
            return [(0, 1.0)]
        if self.kind == "hashes":
            return _shares([_hash_number(low) for low in lows], _HASHES)
        if self.kind == "collection":
            return _shares([self._position(low) for low in lows], _HASHES)
        return [(bisect_right(lows, self.key(_LAST, progress)) - 1, 1.0)]

    def key(self, second: int = 0, progress: float = 0.0) -> bytes:
        """Return the only key that the set has at this second.

        This is for kinds of sets with one key at a time, such as the newest item of a collection.
        ``progress`` is the share of a load that is done.
        """
        if self.kind == "newest":
            return self.partition + _CLOCK + second.to_bytes(_HASH_BYTES, "big")
        if self.kind == "end":
            return self.partition + _END
        if self.kind == "cursor":
            at = min(_HASHES - 1, int(progress * _HASHES))
            return at.to_bytes(_HASH_BYTES, "big") + b"\0"
        return self.partition

    def sample(
        self, low: bytes, high: bytes | None, second: int, chance: Random, progress: float = 0.0
    ) -> bytes:
        """Return one key of the set that lies in the partition from ``low`` to ``high``.

        ``high`` is None for the last partition. If the set has several such keys, ``chance``
        chooses.
        """
        if self.kind not in ("hashes", "collection"):
            return self.key(second, progress)
        if self.kind == "hashes":
            first, last = _hash_number(low), _HASHES if high is None else _hash_number(high)
            head = b""
        else:
            first = self._position(low)
            last = _HASHES if high is None else self._position(high)
            head = self.partition
        at = first + int(chance.random() * (last - first))
        return max(low, head + min(at, _HASHES - 1).to_bytes(_HASH_BYTES, "big"))

    def _position(self, low: bytes) -> int:
        """Return how much of the collection lies below the bound ``low``, in parts of 2**64."""
        if low <= self.partition:
            return 0
        if not low.startswith(self.partition):
            return _HASHES
        return _hash_number(low[len(self.partition) :])


def partition_bytes(text: str, seed: int) -> bytes:
    """Return a partition key as the engine encodes it. Another seed spreads keys differently."""
    raw = text.encode()
    salted = raw if not seed else f"{seed}:".encode() + raw
    return collection_of(md5(salted, usedforsecurity=False).digest()) + (
        len(raw).to_bytes(2, "big") + raw
    )


def _hash_number(low: bytes) -> int:
    return int.from_bytes(low[:_HASH_BYTES].ljust(_HASH_BYTES, b"\0"), "big")


def _shares(bounds: list[int], end: int) -> list[tuple[int, float]]:
    ends = [*bounds[1:], end]
    return [
        (place, (high - low) / end)
        for place, (low, high) in enumerate(zip(bounds, ends))
        if high > low
    ]
