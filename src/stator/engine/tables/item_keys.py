"""Checks of keys in requests and of key attributes in items, with AWS's texts.

Every write passes here (PutItem, batches, transactions, PartiQL, imports), and so does every read
by key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stator.engine import keyspace
from stator.engine.tables.key_schema import SHORT_KEY, KeySchema
from stator.errors import ValidationFailed
from stator.expr.tree import Path
from stator.model.limits import PARTITION_KEY_BYTES, SORT_KEY_BYTES
from stator.model.values import INVALID, Item, Value, kind_of

MISMATCH = "The provided key element does not match the schema"
_EMPTY = "One or more parameter values are not valid. "
_KIND_WORDS = {"S": "string", "B": "binary"}


class ItemRefused(ValidationFailed):
    """A fault in one item for which AWS refuses the whole request.

    Other faults in an item of a transaction cancel the transaction, with a reason for each action.
    """


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
            _check_size(schema, item)
            return


def _check_size(schema: KeySchema, item: Item) -> None:
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
