"""Snapshots: several items as they were at one moment, read with TransactGetItems.

A batch read may show one item before a transaction and another after it. A snapshot shows all of
them before it, or all after it. It reads up to 100 items and 4 MB, and costs twice the units of a
strongly consistent read. It is sent again if a transaction is changing one of its items.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from stator.errors import BlobMissing, RequestRefused, TransactionCanceled, TransactionConflict
from stator.model.limits import TRANSACTION_ITEMS
from stator.model.values import Item
from stator.tables.context import Context
from stator.tables.reads.items import decoded, key_text
from stator.tables.schema.entity_map import EntityMap
from stator.tables.work import Call, Pause, Work
from stator.tables.writes.sender import is_transient

E = TypeVar("E", covariant=True)
_CONFLICTS = 8


class Get(Generic[E]):
    """Names an item to read in a snapshot: ``Get(Order, order_id="o1")``."""

    __slots__ = ("entity", "values")

    def __init__(self, entity: type[E], /, **identity: Any) -> None:
        self.entity = entity
        self.values = identity

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.values.items())
        return f"Get({self.entity.__name__}, {shown})"


def read_snapshot(
    context: Context, gets: Sequence[Get[Any]], *, include_expired: bool = False
) -> Work[list[Any]]:
    """Return the entities in the order of ``gets``, with None for each missing one."""
    wanted = [_located(context, each) for each in gets]
    keys = {(of.table.name, key_text(key)): (of, key) for of, key in wanted}
    if not keys:
        return []
    if len(keys) > TRANSACTION_ITEMS:
        raise RequestRefused(
            f"the snapshot has {len(keys)} items; DynamoDB takes at most {TRANSACTION_ITEMS}",
            hint="read fewer items, or use get_many, which does not read all items at one moment",
        )
    for is_last in (False, True):
        items = yield from _items(context, list(keys.values()))
        found = dict(zip(keys, items))
        try:
            return (yield from _entities(context, gets, wanted, found, include_expired))
        except BlobMissing:
            if is_last:
                raise
            # A writer replaced a value between reading its item and reading its blob.
    raise AssertionError


def _located(context: Context, get: Get[Any]) -> tuple[EntityMap, Item]:
    if not isinstance(get, Get):
        raise RequestRefused(
            f"a snapshot reads Get(...), not a {type(get).__name__}",
            hint='for example Get(Order, order_id="o1")',
        )
    of = context.schema.of_class(get.entity)
    values = of.given(get.values)
    if not of.has_base(values):
        raise RequestRefused(
            f"{get!r} lacks fields of the key of {of.name}, and a snapshot reads by key only",
            hint=f"pass {of.info.listed(of.base_fields)}",
        )
    return of, of.key_from(values)


def _items(context: Context, keys: list[tuple[EntityMap, Item]]) -> Work[list[Item | None]]:
    request = {
        "TransactItems": [{"Get": {"TableName": of.table.name, "Key": key}} for of, key in keys]
    }
    for attempt in range(_CONFLICTS + 1):
        try:
            reply = yield Call("TransactGetItems", request, "snapshot")
        except TransactionCanceled as canceled:
            if not is_transient(canceled):
                raise
            yield Pause(context.backoff(attempt))
        else:
            return [each.get("Item") for each in reply["Responses"]]
    raise TransactionConflict(
        f"the snapshot failed in {_CONFLICTS + 1} attempts, because other transactions were "
        "changing its items; try again later"
    )


def _entities(
    context: Context,
    gets: Sequence[Get[Any]],
    wanted: list[tuple[EntityMap, Item]],
    found: dict[Any, Item | None],
    include_expired: bool,
) -> Work[list[Any]]:
    now = context.now()
    entities: list[Any] = []
    for get, (of, key) in zip(gets, wanted):
        item = found[of.table.name, key_text(key)]
        if item is None or of.is_hidden(
            item, now, include_expired=include_expired, include_deleted=False
        ):
            entities.append(None)
            continue
        [entity] = yield from decoded(context, of, [item])
        beside = of.beside_the_key(of.given(get.values))
        fits = all(getattr(entity, name) == value for name, value in beside.items())
        entities.append(entity if fits else None)
    return entities
