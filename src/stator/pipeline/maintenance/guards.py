"""``app.release_guards()``: deletes the guards of items that were deleted without the data layer.

A guard is an item that reserves a unique value for another item. ``db.delete`` deletes both. The
guard stays behind if its item expires, or if another program deletes the item. The transaction that
deletes the guard also checks that the item does not exist: an item that was created again needs its
guard.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stator.design.plan.guard_text import OWNER
from stator.design.table_settings import StreamView
from stator.errors import (
    ConditionFailed,
    ImageNotShown,
    ItemExists,
    LeaseLost,
    StatorError,
    TransactionFailed,
)
from stator.model.values import Item
from stator.pipeline.workers.handlers.change import Record, entity_of
from stator.pipeline.workers.handlers.subscribers import HandlerFailure, HandlerScope
from stator.tables.context import Context
from stator.tables.schema.entity_map import EntityMap
from stator.tables.work import Call, Work
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.sender import send_all
from stator.tables.writes.statements import Statement
from stator.tables.writes.unique_guards import guard_delete, guard_key, owner_of, unique_value

_LABEL = "release guards"


class GuardReleaser:
    """The subscriber that deletes the guards of deleted items of the given entities."""

    name = _LABEL

    def __init__(self, entities: tuple[type[Any], ...]) -> None:
        self._entities = entities

    def needs(self, table: str, context: Context) -> StreamView | None:
        has_guards = any(context.schema.of(cls).table.name == table for cls in self._entities)
        return "OLD_IMAGE" if has_guards else "KEYS_ONLY"

    def wants(self, record: Record, context: Context) -> bool:
        if record.kind != "REMOVE":
            return False
        of = entity_of(record, context)
        return of is not None and of.cls in self._entities

    def handle(self, records: Sequence[Record], scope: HandlerScope) -> Work[list[HandlerFailure]]:
        failures: list[HandlerFailure] = []
        for record in records:
            scope.check()
            try:
                yield from _release(record, scope.context)
            except LeaseLost:
                raise
            except StatorError as error:
                failures.append(HandlerFailure(record, error))
        return failures


def _release(record: Record, context: Context) -> Work[None]:
    if record.old is None:
        raise ImageNotShown("OLD_IMAGE")
    of = context.schema.of_item(record.old, record.table)
    assert of is not None
    place = context.schema.place
    for name in of.guarded:
        value = unique_value(of, name, record.old)
        if value is None:
            continue
        request = {
            "TableName": place.table,
            "Key": guard_key(place, of, name, value),
            "ConsistentRead": True,
        }
        guard = (yield Call("GetItem", request, _LABEL)).get("Item")
        if guard is None or guard[OWNER] != owner_of(record.keys):
            continue
        statements = [guard_delete(place, of, name, value, record.keys), _absent(of, record.keys)]
        try:
            yield from send_all(context, statements, _LABEL)
        except TransactionFailed as failed:
            # A failed condition: the value has another owner now, or the item exists again.
            if any(not isinstance(error, ConditionFailed) for _, _, error in failed.failures):
                raise


def _absent(of: EntityMap, key: Item) -> Statement:
    written = Expressions()
    condition = f"attribute_not_exists({written.name(of.table.partition)})"
    request = {"TableName": of.table.name, "Key": key, "ConditionExpression": condition}
    return Statement(
        "ConditionCheck",
        written.into(request),
        f"no {of.name}",
        lambda item: ItemExists(f"the {of.name} exists", item=item),
    )
