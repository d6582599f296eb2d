"""Key schemas: the attributes of a key, and their encoding as bytes.

The checks of keys in requests and items are in ``item_keys``, those of declared schemas in
``declared_keys``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from stator.engine import keyspace
from stator.model.values import Item

SHORT_KEY = 256  # characters; no size limit is near


class KeyAttribute(NamedTuple):
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class KeySchema:
    """The key of a table or index.

    A table has one partition attribute and at most one sort attribute, a GSI up to four of each.
    """

    partition: tuple[KeyAttribute, ...]
    sort: tuple[KeyAttribute, ...]
    attributes: tuple[KeyAttribute, ...] = field(init=False)
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", self.partition + self.sort)
        object.__setattr__(self, "names", tuple(attribute.name for attribute in self.attributes))

    def covers(self, item: Item) -> bool:
        """Whether the item has every key attribute, with the right type.

        An index leaves out all other items: it is sparse.
        """
        for name, kind in self.attributes:
            value = item.get(name)
            if value is None or kind not in value:
                return False
        return True

    def has_plain_key(self, item: Item) -> bool:
        """Whether the key is present, short, not empty, and has the right types.

        False only means that the key needs the full check.
        """
        for name, kind in self.attributes:
            value = item.get(name)
            content = None if value is None else value.get(kind)
            if content is None or not 0 < len(content) <= SHORT_KEY:
                return False
        return True

    def partition_bytes(self, item: Item) -> bytes:
        if len(self.partition) == 1:
            name, kind = self.partition[0]
            return keyspace.partition(keyspace.RAW[kind](item[name][kind]))
        return keyspace.partition_of(
            [keyspace.RAW[kind](item[name][kind]) for name, kind in self.partition]
        )

    def sort_bytes(self, item: Item) -> bytes:
        return b"".join(
            keyspace.closed(keyspace.RAW[kind](item[name][kind])) for name, kind in self.sort
        )


def key_encoder(schema: KeySchema, prefix: bytes) -> Callable[[Item], bytes]:
    """Return the function that encodes a table's storage keys.

    Every request calls it, so each table has its own closure, without loops.
    """
    [(hash_name, hash_kind)] = schema.partition
    hash_raw, partition = keyspace.RAW[hash_kind], keyspace.partition
    if not schema.sort:
        return lambda item: prefix + partition(hash_raw(item[hash_name][hash_kind]))
    [(sort_name, sort_kind)] = schema.sort
    sort_raw, closed = keyspace.RAW[sort_kind], keyspace.closed
    return lambda item: (
        prefix
        + partition(hash_raw(item[hash_name][hash_kind]))
        + closed(sort_raw(item[sort_name][sort_kind]))
    )


def _wide_encoder(schema: KeySchema, prefix: bytes) -> Callable[[Item], bytes]:
    """Return an encoder for keys of several attributes, which only global indexes have."""
    return lambda item: prefix + schema.partition_bytes(item) + schema.sort_bytes(item)


def entry_encoder(schema: KeySchema, prefix: bytes) -> Callable[[Item], bytes | None]:
    """Return a function that encodes an item's key in an index, or returns None.

    None means that the index leaves the item out. The caller appends the table's key, which ends
    every index entry.
    """
    simple = len(schema.partition) == 1 and len(schema.sort) <= 1
    encode = key_encoder(schema, prefix) if simple else _wide_encoder(schema, prefix)

    def encode_entry(item: Item) -> bytes | None:
        try:
            return encode(item)
        except (
            KeyError,
            OverflowError,
        ):  # a key attribute is missing, of another type, or far too long
            return None

    return encode_entry
