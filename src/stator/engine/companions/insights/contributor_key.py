"""From storage keys to contributors: the partition key, or the partition and sort key."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from stator.engine import keyspace
from stator.engine.keyspace import PARTITION_BYTES
from stator.engine.tables.key_schema import KeyAttribute, KeySchema
from stator.model.numbers import decode_ordered


@dataclass(frozen=True, slots=True)
class ContributorKeys:
    """Reads the keys of one table or global index; see ``keyspace`` for their layout."""

    schema: KeySchema

    def partition(self, key: bytes) -> bytes:
        """Return the encoded partition key of a storage key."""
        return key[PARTITION_BYTES : self._partition_end(key)]

    def whole(self, key: bytes) -> bytes:
        """Return the encoded partition and sort key of a storage key.

        An index entry ends with the key of the table's item, which is left out.
        """
        at = self._partition_end(key)
        for _ in self.schema.sort:
            at = _value_end(key, at)
        return key[PARTITION_BYTES:at]

    def _partition_end(self, key: bytes) -> int:
        at = PARTITION_BYTES
        for _ in self.schema.partition:
            at += 2 + int.from_bytes(key[at : at + 2], "big")
        return at

    def names(self, *, whole: bool) -> list[str]:
        """Return the names of the key attributes."""
        attributes = self.schema.attributes if whole else self.schema.partition
        return [attribute.name for attribute in attributes]

    def values(self, encoded: bytes) -> list[str]:
        """Return the values of an encoded key as texts; binary values are base64."""
        found: list[str] = []
        at = 0
        for attribute in self.schema.partition:
            length = int.from_bytes(encoded[at : at + 2], "big")
            found.append(_text(attribute, encoded[at + 2 : at + 2 + length]))
            at += 2 + length
        for attribute in self.schema.sort:
            if at < len(encoded):
                end = _value_end(encoded, at)
                found.append(_text(attribute, encoded[at : end - 2].replace(b"\0\xff", b"\0")))
                at = end
        return found


def _value_end(key: bytes, at: int) -> int:
    """Return where the value of a sort key that begins at ``at`` ends, with its closing 00 00."""
    while True:
        at = key.index(b"\0", at)
        if key[at + 1 : at + 2] != b"\xff":
            return at + len(keyspace.closed(b""))
        at += 2


def _text(attribute: KeyAttribute, raw: bytes) -> str:
    if attribute.kind == "N":
        return decode_ordered(raw)
    return raw.decode() if attribute.kind == "S" else base64.b64encode(raw).decode()
