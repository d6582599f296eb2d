"""INSERT, UPDATE, DELETE and EXISTS as actions of the one write path.

PartiQL's writes differ from the item operations in what they make of an item that is not there: UPDATE fails its
condition whatever that says, DELETE does nothing whatever its condition says, and INSERT wants exactly that.
"""

from __future__ import annotations

from stator.engine.items import actions as item_writes
from stator.engine.items.actions import Action, prepare, returned_values
from stator.engine.items.capacity import Consumed
from stator.engine.items.write_path import Writer
from stator.engine.operation import RequestContext
from stator.engine.partiql import actions
from stator.engine.partiql.keys import NO_FULL_KEY, all_of, full_key
from stator.engine.partiql.statements import Delete, Exists, Insert, Update, Write
from stator.engine.tables.key_schema import KeySchema
from stator.engine.tables.table import Table
from stator.errors import ValidationFailed
from stator.expr.tree import Condition, Function, Or, Path, paths_in
from stator.model.values import Item

_BARE_EXISTS = "EXISTS() must contain a single item read with additional condition"


def write_action(statement: Write, table: Table, *, return_item: bool) -> Action:
    """The action a statement stands for, now that its table is known."""
    match statement:
        case Insert(name, item, size):
            return actions.Insert(name, item, size, None, return_item)
        case Update(name, update, where):
            key, rest = full_key(where, table.schema)
            condition = all_of([_present(table.schema), *rest])
            nested = paths_in(update) + paths_in(where)
            return actions.Update(name, key, update, condition, return_item, nested)
        case Delete(name, where):
            key, rest = full_key(where, table.schema)
            return actions.Delete(
                name, key, _unless_absent(table.schema, rest), return_item, paths_in(where)
            )
        case Exists(name, where):
            key, rest = _checked_key(where, table.schema)
            condition = all_of([_present(table.schema), *rest])
            return actions.Check(name, key, condition, return_item, paths_in(where))


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


# --- running one by itself --------------------------------------------------------------------------------


def run_write(
    context: RequestContext, table: Table, action: Action, returning: str | None
) -> tuple[Item | None, Consumed]:
    """Write one action; the item its RETURNING clause asks for, and the capacity used."""
    mutation, old = prepare(
        context.database.storage,
        context.database.transaction_locks,
        table,
        action,
        needs_old=returning in ("ALL_OLD", "UPDATED_OLD"),
    )
    writer = Writer()
    consumed = writer.add(mutation)
    context.commit(writer)
    touched = action.touched() if isinstance(action, item_writes.UpdateItem) else []
    return returned_values(returning or "NONE", old, mutation.new_item, touched), consumed
