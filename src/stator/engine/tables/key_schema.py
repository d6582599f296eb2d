"""Key schemas: the attributes of a key, their checks, and their encoding as bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stator.engine import keyspace
from stator.errors import ValidationFailed
from stator.expr.tree import Path
from stator.model.limits import PARTITION_KEY_BYTES, SORT_KEY_BYTES
from stator.model.values import INVALID, Item, Value, kind_of

MISMATCH = "The provided key element does not match the schema"
SHORT_KEY = 256  # characters; no size limit is near
_EMPTY = "One or more parameter values are not valid. "
_KIND_WORDS = {"S": "string", "B": "binary"}


class ItemRefused(ValidationFailed):
    """A fault in one item for which AWS refuses the whole request, even a transaction."""


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

    It is hot, so each table has its own closure, without loops.
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
    """Return the encoder of an index's entry keys, without the table's key that ends an entry.

    The encoder returns None for an item that the index leaves out.
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


def check_key(schema: KeySchema, key: Item) -> None:
    """Check a Key parameter: exactly the schema's attributes, with the right types, not empty."""
    if len(key) != len(schema.attributes):
        raise ValidationFailed(MISMATCH)
    for name, kind in schema.attributes:
        value = key.get(name)
        if value is None or kind not in value:
            raise ValidationFailed(MISMATCH)
    _check_lengths(schema, key)


def check_item_key(schema: KeySchema, item: Item) -> None:
    """Check the key attributes of an item to put."""
    for name, kind in schema.attributes:
        value = item.get(name)
        if value is None:
            raise ValidationFailed(f"{INVALID}Missing the key {name} in the item")
        if kind not in value:
            raise ValidationFailed(
                f"{INVALID}Type mismatch for key {name} expected: {kind} actual: {kind_of(value)}"
            )
    _check_lengths(schema, item)


def check_statement_key(schema: KeySchema, key: Item) -> None:
    """Check the key attributes that a PartiQL statement names, with PartiQL's errors."""
    for name, kind in schema.attributes:
        value = key.get(name)
        if value is None:
            raise ValidationFailed(f"Key attribute should be present in the item: Key {name}")
        if kind not in value:
            raise wrong_statement_kind(name)


def wrong_statement_kind(name: str) -> ValidationFailed:
    return ValidationFailed(
        f"Key attribute's data type should match its data type in table's schema: Key {name}"
    )


def check_key_paths(schema: KeySchema, paths: Sequence[Path]) -> None:
    """Refuse paths that go inside a key attribute, which is always a scalar."""
    for path in paths:
        if len(path.parts) > 1 and path.parts[0] in schema.names:
            raise ValidationFailed(
                "Key attributes must be scalars; list random access '[]' and map lookup '.' "
                f"are not allowed: Key: {path.parts[0]}"
            )


def check_no_empty_key(schema: KeySchema, item: Item) -> None:
    for name, kind in schema.attributes:
        value = item.get(name)
        if value is not None and kind != "N" and value.get(kind) == "":
            raise ItemRefused(
                f"{_EMPTY}The AttributeValue for a key attribute cannot contain an empty "
                f"{_KIND_WORDS[kind]} value. Key: {name}"
            )


def _check_lengths(schema: KeySchema, item: Item) -> None:
    """Refuse empty and oversized key values. Most keys are short and pass one cheap test."""
    for name, kind in schema.attributes:
        content = item[name][kind]
        if kind != "N" and not 0 < len(content) <= SHORT_KEY:
            check_no_empty_key(schema, item)
            _check_size(schema)(item)
            return


def _check_size(schema: KeySchema) -> Callable[[Item], None]:
    def check(item: Item) -> None:
        for name, kind in schema.partition:
            if _raw_size(item[name], kind) > PARTITION_KEY_BYTES:
                raise ValidationFailed(
                    f"{INVALID}Size of hashkey has exceeded the maximum size limit "
                    f"of{PARTITION_KEY_BYTES} bytes"
                )
        for name, kind in schema.sort:
            if _raw_size(item[name], kind) > SORT_KEY_BYTES:
                raise ValidationFailed(
                    f"{INVALID}Aggregated size of all range keys has exceeded the size "
                    f"limit of {SORT_KEY_BYTES} bytes"
                )

    return check


def _raw_size(value: Value, kind: str) -> int:
    return len(keyspace.RAW[kind](value[kind]))


def check_index_keys(indexes: list[Any], item: Item) -> None:
    """Check the types and sizes of an item's attributes that are keys of an index."""
    for index in indexes:
        for name, kind in index.schema.attributes:
            value = item.get(name)
            if value is None:
                continue
            if kind not in value:
                raise ValidationFailed(
                    f"{INVALID}Type mismatch for Index Key {name} Expected: {kind} "
                    f"Actual: {kind_of(value)} IndexName: {index.name}"
                )
            content = value[kind]
            if kind != "N" and not 0 < len(content) <= SHORT_KEY:
                _check_index_value(index, name, kind, value)


def _check_index_value(index: Any, name: str, kind: str, value: Value) -> None:
    if not value[kind]:
        raise ItemRefused(
            f"{_EMPTY}A value specified for a secondary index key is not supported. The "
            f"AttributeValue for a key attribute cannot contain an empty {_KIND_WORDS[kind]} "
            f"value. IndexName: {index.name}, IndexKey: {name}"
        )
    partition = any(name == attribute.name for attribute in index.schema.partition)
    limit = PARTITION_KEY_BYTES if partition else SORT_KEY_BYTES
    if _raw_size(value, kind) > limit:
        word = "hashkey" if partition else "range key"
        raise ValidationFailed(
            f"{INVALID}Size of {word} has exceeded the maximum size limit of{limit} bytes "
            f"for index {index.name}, key {name}"
        )
