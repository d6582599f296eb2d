"""A checksum of a set of items that does not depend on their order: the sum of their hashes.

Each item is written in one form (attributes by name, numbers in DynamoDB's spelling, sets sorted)
and hashed to 128 bits; the hashes are added modulo 2**128. If counts and sums agree, two tables, or
a table and a file, hold the same items; the chance of an error is one in 10**38. The sums of parts
add up to the sum of the whole, so parts can be processed in parallel and a job can resume.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import orjson

from stator.model.values import Item, normalise_item

_MODULUS = 1 << 128


@dataclass(frozen=True, slots=True)
class Digest:
    """The number of items in a set, and the sum of the items' hashes."""

    items: int = 0
    total: int = 0

    def __add__(self, other: Digest) -> Digest:
        return Digest(self.items + other.items, (self.total + other.total) % _MODULUS)

    @property
    def checksum(self) -> str:
        return f"{self.total:032x}"

    def to_data(self) -> dict[str, Any]:
        return {"items": self.items, "checksum": self.checksum}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Digest:
        return cls(data["items"], int(data["checksum"], 16))


def digest(items: list[Item]) -> Digest:
    """Return the number of items and the sum of their hashes.

    Changes the items in place: numbers and sets are written in the one form that is hashed.
    """
    return Digest(len(items), sum(map(hash_of, items)) % _MODULUS)


def hash_of(item: Item) -> int:
    normalise_item(item)
    return int.from_bytes(
        blake2b(orjson.dumps(item, None, orjson.OPT_SORT_KEYS), digest_size=16).digest()
    )
