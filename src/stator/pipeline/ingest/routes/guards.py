"""Guards: the conditions that make a replayed, late or stale record harmless.

    position     the item's mark of the lane is below the record's offset
    version      a field of the record is newer; of equal ones, the offset decides
    id           no item with the record's key exists
    checksum     like position, and the content differs from the stored one
    none         no condition

A *mark* is an attribute of the item, one for each partition: offsets of two partitions cannot be
compared. Its name has the source, which is the topic unless the route names another.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final, Literal, get_args

import orjson

from stator.model.values import Item, Value
from stator.tables.writes.guarded.guard_condition import GuardCondition

PutGuard = Literal["position", "version", "id", "checksum", "none"]
HandlerGuard = Literal["transaction", "none"]
PUT_GUARDS: Final = get_args(PutGuard)
HANDLER_GUARDS: Final = get_args(HandlerGuard)

MARK: Final = "_in:"
CHECKSUM: Final = "_sum"


def mark_attribute(source: str, partition: int) -> str:
    """Return the attribute that holds the mark of a partition."""
    return f"{MARK}{source}:{partition}"


def offset_value(offset: int) -> Value:
    return {"N": str(offset)}


def position_guard(mark: str, offset: int) -> GuardCondition:
    """Return the condition that no record from ``offset`` on is in the item."""
    return GuardCondition.newer(mark, offset_value(offset))


def version_guard(field: str, value: Value, mark: str, offset: int) -> GuardCondition:
    """Return the condition that the stored field is older, or as old and from an earlier offset."""
    return GuardCondition(
        "attribute_not_exists(#version) OR #version < :version"
        " OR (#version = :version AND (attribute_not_exists(#mark) OR #mark < :offset))",
        (("#version", field), ("#mark", mark)),
        {":version": value, ":offset": offset_value(offset)},
    )


def checksum_guard(mark: str, offset: int, checksum: Value) -> GuardCondition:
    """Return the condition of ``position_guard``, and that the stored content differs."""
    return GuardCondition(
        "(attribute_not_exists(#mark) OR #mark < :offset)"
        " AND (attribute_not_exists(#sum) OR #sum <> :sum)",
        (("#mark", mark), ("#sum", CHECKSUM)),
        {":offset": offset_value(offset), ":sum": checksum},
    )


def checksum_of(item: Item) -> Value:
    """Return the checksum of an item's content, as an attribute value."""
    text = orjson.dumps(_sorted(item), option=orjson.OPT_SORT_KEYS)
    return {"S": hashlib.blake2b(text, digest_size=12).hexdigest()}


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: sorted(inner) if name in ("SS", "NS", "BS") else _sorted(inner)
            for name, inner in value.items()
        }
    return [_sorted(each) for each in value] if isinstance(value, list) else value
