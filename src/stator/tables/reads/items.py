"""Reads by identity and by key: one item, many items, batches of keys."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from stator.backoff import Backoff
from stator.errors import BlobMissing
from stator.model.limits import BATCH_GET_KEYS
from stator.model.values import Item
from stator.tables.blobs.blobs import unpacked
from stator.tables.context import Context
from stator.tables.reads.item_list import ItemList
from stator.tables.reads.locator import locate
from stator.tables.reads.page_stream import comparable
from stator.tables.schema.entity_map import EntityMap
from stator.tables.work import Call, Gather, Pause, Work, gathered

_BACKOFF = Backoff()


def get(
    context: Context,
    of: EntityMap,
    values: Mapping[str, Any],
    *,
    consistent: bool = False,
    include_expired: bool = False,
    include_deleted: bool = False,
) -> Work[Any]:
    """Return the entity that ``values`` identify, or None if it does not exist or is hidden.

    Values of fields that are not in the key must equal the stored ones. Expired and deleted items
    are hidden unless ``include_expired`` or ``include_deleted`` is set.
    """
    key = of.key_from(values) if of.has_base(values) else (yield from locate(of, values))
    if key is None:
        return None
    request: dict[str, Any] = {"TableName": of.table.name, "Key": key}
    if consistent:
        request["ConsistentRead"] = True
    for is_last in (False, True):
        reply = yield Call("GetItem", request, f"get {of.name}")
        item = reply.get("Item")
        if item is None or of.is_hidden(
            item, context.now(), include_expired=include_expired, include_deleted=include_deleted
        ):
            return None
        try:
            [entity] = yield from decoded(context, of, [item])
        except BlobMissing:
            if is_last:
                raise
            continue  # a writer replaced the value between reading the item and reading its blob
        return entity if _has(entity, of.beside_the_key(values)) else None
    return None


def _has(entity: Any, values: Mapping[str, Any]) -> bool:
    return all(getattr(entity, name) == value for name, value in values.items())


def decoded(context: Context, of: EntityMap, items: list[Item]) -> Work[list[Any]]:
    """Decode items to entities; large values are read from the blob store."""
    if of.large:
        items = yield from unpacked(of, items, context.blobs)
    return [of.decode(item) for item in items]


def get_many(
    context: Context,
    of: EntityMap,
    identities: Sequence[Mapping[str, Any]],
    *,
    consistent: bool = False,
    include_expired: bool = False,
    include_deleted: bool = False,
) -> Work[list[Any]]:
    """Return entities in the order of ``identities``, with None for each missing one.

    An identity that occurs twice is read once.
    """
    keys: list[Item | None] = gathered(
        (yield Gather([locate(of, values) for values in identities]))
    )  # type: ignore[assignment]
    distinct = {key_text(key): key for key in keys if key is not None}
    found = yield from batch_get(
        context, of.table.name, list(distinct.values()), f"get {of.name}", consistent
    )
    now = context.now()
    found = [
        item
        for item in found
        if not of.is_hidden(
            item, now, include_expired=include_expired, include_deleted=include_deleted
        )
    ]
    entities = yield from decoded(context, of, found)
    by_key = {key_text(of.stored_key(item)): entity for item, entity in zip(found, entities)}
    read = [None if key is None else by_key.get(key_text(key)) for key in keys]
    return ItemList(
        entity if entity is not None and _has(entity, of.beside_the_key(values)) else None
        for entity, values in zip(read, identities)
    )


def batch_get(
    context: Context, table: str, keys: list[Item], label: str, consistent: bool = False
) -> Work[list[Item]]:
    """Return the items with these keys, in any order. Unprocessed keys are retried."""
    return (yield from batch_get_with(context.random, table, keys, label, consistent=consistent))


def batch_get_with(
    chance: random.Random, table: str, keys: list[Item], label: str, *, consistent: bool
) -> Work[list[Item]]:
    """Do what ``batch_get`` does, without a Context. ``chance`` supplies the back-off's jitter."""
    chunks = [keys[at : at + BATCH_GET_KEYS] for at in range(0, len(keys), BATCH_GET_KEYS)]
    parts = [_batch_get_chunk(chance, table, chunk, label, consistent) for chunk in chunks]
    if len(parts) == 1:
        return (yield from parts[0])
    results = gathered((yield Gather(parts)))
    return [item for part in results for item in part]


def _batch_get_chunk(
    chance: random.Random, table: str, keys: list[Item], label: str, consistent: bool
) -> Work[list[Item]]:
    found: list[Item] = []
    request: dict[str, Any] = {"Keys": keys}
    if consistent:
        request["ConsistentRead"] = True
    attempt = 0
    while True:
        reply = yield Call("BatchGetItem", {"RequestItems": {table: request}}, label)
        items = reply["Responses"].get(table, [])
        found += items
        unprocessed = reply.get("UnprocessedKeys") or {}
        if table not in unprocessed:
            return found
        request = unprocessed[table]
        attempt = 0 if items else attempt + 1
        yield Pause(_BACKOFF.delay(attempt, chance.random()))


def key_text(key: Item) -> tuple[tuple[str, Any], ...]:
    """Return a key as a tuple that can be compared and hashed.

    Numbers compare by value, not by spelling: 1 equals 1.0.
    """
    return tuple(sorted((name, comparable(value)) for name, value in key.items()))
