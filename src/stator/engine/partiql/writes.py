"""INSERT, UPDATE, DELETE and EXISTS as item actions of the write path.

PartiQL's writes differ from the item operations when the item does not exist. An UPDATE then fails,
and a DELETE does nothing, no matter what their conditions say. An INSERT requires that the item
does not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stator.engine.items.actions import (
    ItemAction,
    ItemCheck,
    ItemDelete,
    ItemInsert,
    returned_values,
)
from stator.engine.items.capacity import Consumed
from stator.engine.items.item_update import ItemUpdate
from stator.engine.operation import RequestContext
from stator.engine.partiql.keys import NO_FULL_KEY, all_of, full_key
from stator.engine.tables.key_schema import KeySchema
from stator.engine.tables.table import Table
from stator.errors import ValidationFailed
from stator.expr.tree import Condition, Function, Or, Path, UpdateExpression, paths_in
from stator.model.values import Item, normalise_item

_BARE_EXISTS = "EXISTS() must contain a single item read with additional condition"


@dataclass(frozen=True, slots=True)
class BoundWrite:
    """A statement that writes or checks one item.

    ``action`` creates the item action once the table is known. Its second argument says whether a
    failed condition returns the item. ``returning`` is the RETURNING clause as a ReturnValues of
    UpdateItem, such as ALL_OLD, or None.
    """

    table_name: str
    action: Callable[[Table, bool], ItemAction]
    returning: str | None = None
    is_check: bool = False


def insert_write(name: str, item: Item) -> BoundWrite:
    size = normalise_item(item)
    return BoundWrite(
        name, lambda table, return_item: ItemInsert(name, item, size, None, return_item)
    )


def update_write(
    name: str,
    update: UpdateExpression,
    where: Condition | None,
    returning: str | None,
    *,
    is_nested: bool = True,
) -> BoundWrite:
    """Bind an UPDATE. ``is_nested`` is False if no path in it leads into a map or list."""

    def action(table: Table, return_item: bool) -> ItemUpdate:
        key, rest = full_key(where, table.schema)
        condition = all_of([_present(table.schema), *rest])
        nested = paths_in(update) + paths_in(where) if is_nested else ()
        return ItemUpdate(name, key, update, condition, return_item, nested, by_statement=True)

    return BoundWrite(name, action, returning)


def delete_write(name: str, where: Condition | None, returning: str | None) -> BoundWrite:
    def action(table: Table, return_item: bool) -> ItemDelete:
        key, rest = full_key(where, table.schema)
        condition = _unless_absent(table.schema, rest)
        return ItemDelete(name, key, condition, return_item, paths_in(where), by_statement=True)

    return BoundWrite(name, action, returning)


def exists_write(name: str, where: Condition | None) -> BoundWrite:
    """Bind an EXISTS: a transaction's check that an item exists and meets a condition."""

    def action(table: Table, return_item: bool) -> ItemCheck:
        key, rest = _checked_key(where, table.schema)
        condition = all_of([_present(table.schema), *rest])
        return ItemCheck(name, key, condition, return_item, paths_in(where), by_statement=True)

    return BoundWrite(name, action, is_check=True)


def _checked_key(where: Condition | None, schema: KeySchema) -> tuple[Item, list[Condition]]:
    try:
        key, rest = full_key(where, schema)
    except ValidationFailed as error:
        raise ValidationFailed(
            _BARE_EXISTS if error.message == NO_FULL_KEY else error.message
        ) from None
    if not rest:
        raise ValidationFailed(_BARE_EXISTS)
    return key, rest


def _present(schema: KeySchema) -> Condition:
    return Function("attribute_exists", (Path((schema.partition[0].name,)),))


def _unless_absent(schema: KeySchema, rest: list[Condition]) -> Condition | None:
    condition = all_of(rest)
    if condition is None:
        return None
    return Or((Function("attribute_not_exists", (Path((schema.partition[0].name,)),)), condition))


def run_write(
    context: RequestContext, table: Table, action: ItemAction, returning: str | None
) -> tuple[Item | None, Consumed]:
    """Write one item. Return the values that RETURNING asks for, or None, and the capacity used."""
    mutation, old = context.prepare(
        table, action, needs_old=returning in ("ALL_OLD", "UPDATED_OLD")
    )
    writer = context.writer()
    consumed = writer.add(mutation)
    context.commit(writer)
    return returned_values(returning or "NONE", old, mutation.new_item, action.touched()), consumed
