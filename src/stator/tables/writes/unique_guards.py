"""Unique fields: no two items of an entity have the same value, even with concurrent writes.

DynamoDB supports one kind of uniqueness: keys. So each unique value is a separate item, a guard,
whose key is the value:

    PK  UNIQUE#User#email#ann@example.com      SK  GUARD      owner  the key of the user

The guard is written, changed and removed in the transaction that writes, changes or removes its
item, on condition that no other item owns it. A write that replaces an item must know its old
value. So the item is read first, and the transaction requires that the value is unchanged;
otherwise it starts over. A guard expires with its item, so TTL deletes both. Until the service
deletes it, an expired guard counts as free.

An identity has a guard of the same kind if the table's key holds more than the identity. With the
key ``USER#{user_id} / {placed_at}#{order_id}``, the key alone would accept the order o1 twice:

    PK  UNIQUE#Order#ident()#o1                SK  GUARD      owner  the key of the order
"""

from __future__ import annotations

from typing import Any

import orjson

from stator.design.entities.entity_versions import version_of
from stator.design.plan import key_text as keys
from stator.design.plan.guard_text import GUARD, OWNER, guard_partition, guard_prefix
from stator.design.plan.key_text import encoding_of
from stator.design.plan.own_table import ENTITY, FIELD, IDENTITY
from stator.errors import ConditionFailed, DesignError, ItemExists, ItemMismatch, UniqueTaken
from stator.model.values import Item, Value
from stator.tables.schema.entity_map import EntityMap
from stator.tables.schema.place import Place
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.statements import Guard, Statement


def guard_key(place: Place, of: EntityMap, field: str, value: Any) -> Item:
    """Return the key of a value's guard.

    If ``field`` is IDENTITY, ``value`` is the tuple of the identity's values.
    """
    if field == IDENTITY:
        text = keys.SEPARATOR.join(_text(of, *each) for each in zip(of.identity, value))
    else:
        text = _text(of, field, value)
    return place.key(guard_partition(guard_prefix(of.name, field), text), GUARD)


def _text(of: EntityMap, field: str, value: Any) -> str:
    encoding = encoding_of(of.fields[field].shape)
    if encoding is None:
        raise DesignError(
            f"{of.name}.{field} cannot be unique: a key cannot hold values of its type",
            hint="use text, a number, a time or a UUID",
        )
    return keys.encode(encoding.name, value)


def owner_of(key: Item) -> Value:
    return {"S": orjson.dumps(key, option=orjson.OPT_SORT_KEYS).decode()}


def guard_put(
    place: Place,
    of: EntityMap,
    field: str,
    value: Any,
    owner: Item,
    expires: Value | None,
    now: float,
    freed_by: Value | None = None,
) -> Statement:
    """Return the statement that takes a unique value for the item ``owner``.

    The statement succeeds if the value is free, if ``owner`` has it already, or if the item
    ``freed_by`` frees it in the same transaction.
    """
    item: Item = guard_key(place, of, field, value) | {
        OWNER: owner_of(owner),
        ENTITY: {"S": of.name},
        FIELD: {"S": field},
    }
    if expires is not None:
        item[place.ttl] = expires
    written = Expressions()
    condition = (
        f"attribute_not_exists({written.name(place.partition)})"
        f" OR {written.name(OWNER)} = {written.value(owner_of(owner))}"
        f" OR {written.name(place.ttl)} <= {written.value({'N': str(int(now))})}"
    )
    if freed_by is not None:
        condition += f" OR {written.name(OWNER)} = {written.value(freed_by)}"
    request = written.into(
        {"TableName": place.table, "Item": item, "ConditionExpression": condition}
    )
    request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"

    def taken(item: Item | None) -> ConditionFailed:
        if field == IDENTITY:
            shown = of.shown(dict(zip(of.identity, value)))
            return ItemExists(f"{shown} exists already, under another key", item=None)
        return UniqueTaken(
            f"another {of.name} has this {field} already",
            item=item,
            field=field,
            value=value,
        )

    made = Statement("Put", request, f"guard {of.name}.{field}", taken)
    made.guard = Guard(
        orjson.dumps(guard_key(place, of, field, value)),
        owner_of(owner),
        lambda freed: guard_put(place, of, field, value, owner, expires, now, freed),
    )
    return made


def guard_delete(place: Place, of: EntityMap, field: str, value: Any, owner: Item) -> Statement:
    """Return the statement that frees a unique value. It fails if another item has the value."""
    written = Expressions()
    condition = (
        f"attribute_not_exists({written.name(place.partition)}) "
        f"OR {written.name(OWNER)} = {written.value(owner_of(owner))}"
    )
    request = written.into(
        {
            "TableName": place.table,
            "Key": guard_key(place, of, field, value),
            "ConditionExpression": condition,
        }
    )

    def not_ours(item: Item | None) -> ConditionFailed:
        return ConditionFailed(f"the guard of {of.name}.{field} belongs to another item", item=item)

    made = Statement("Delete", request, f"free {of.name}.{field}", not_ours)
    made.guard = Guard(orjson.dumps(guard_key(place, of, field, value)), owner_of(owner), None)
    return made


def merge_guard_handovers(statements: list[Statement]) -> list[Statement]:
    """Return the statements with at most one guard write for each unique value.

    If one item frees a value and another takes it, their two guard writes become one, because a
    transaction may write each item only once.
    """
    freed = {
        each.guard.key: each
        for each in statements
        if each.guard is not None and each.guard.taking is None
    }
    taken = {
        each.guard.key
        for each in statements
        if each.guard is not None and each.guard.taking is not None
    }
    found: list[Statement] = []
    for each in statements:
        guard = each.guard
        if guard is None or guard.key not in freed or guard.key not in taken:
            found.append(each)
        elif guard.taking is not None:
            giver = freed[guard.key].guard
            assert giver is not None
            found.append(guard.taking(giver.owner))
    return found


def guards(
    place: Place, of: EntityMap, old: Item | None, new: Item | None, key: Item, now: float
) -> list[Statement]:
    """Return the guard statements for a write that turns ``old`` into ``new``.

    None stands for no item. ``key`` is the key of the item. If a value does not change, its guard
    is written again only if the item's expiry changes.
    """
    found = []
    if old is not None and of.is_gone(old, now):
        old = None  # its guards have expired or were freed, and may belong to another item by now
    if new is not None and of.is_deleted(new):
        new = None
    expires_before, expires_after = (
        None if item is None or of.ttl is None else item.get(of.ttl) for item in (old, new)
    )
    for field in of.guarded:
        before, after = (unique_value(of, field, item) for item in (old, new))
        if before is not None and before != after:
            found.append(guard_delete(place, of, field, before, key))
        if after is not None and (before != after or expires_before != expires_after):
            found.append(guard_put(place, of, field, after, key, expires_after, now))
    return found


def unique_value(of: EntityMap, field: str, item: Item | None) -> Any:
    """Return the value of a guarded field in an item, or None if the item has none.

    The value of IDENTITY is the tuple of the identity's values.
    """
    if item is None or of.is_deleted(item):
        return None
    if field == IDENTITY:
        return tuple(of.codec.decode_field[name](item[name]) for name in of.identity)
    stored = item.get(field)
    if stored is None:
        return None
    try:
        return of.codec.decode_field[field](stored)
    except ItemMismatch:
        if version_of(item) == of.shape_version.version:
            raise
        return None  # the field had another type in an earlier version


def watched_attributes(of: EntityMap, old: Item | None) -> dict[str, Value | None]:
    """Return the attributes of ``old`` that must be unchanged when the guards are written.

    None stands for an attribute that must be missing. If the identity itself has a guard, the
    result has only the first attribute of the identity. It shows whether the item exists, and that
    is enough: the identity of a stored item never changes.
    """
    names = [of.identity[0] if name == IDENTITY else name for name in of.guarded]
    names += [of.deleted] if of.deleted is not None else []
    return {name: None if old is None else old.get(name) for name in names}
