"""A statement ready to run: its table by name, its condition and changes as expression trees.

Everything that can be said against a statement without looking at a table is said here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Union

from stator.engine.partiql import syntax
from stator.engine.partiql.changes import bind_changes
from stator.engine.partiql.conditions import bind_condition
from stator.engine.partiql.lexer import malformed
from stator.engine.partiql.parser import parse
from stator.engine.partiql.syntax import Expression
from stator.engine.partiql.values import (
    EMPTY_NAME,
    MISMATCHED_PARAMETERS,
    check_parameters,
    insert_item,
    operation_name,
)
from stator.errors import ValidationFailed
from stator.expr import tree
from stator.expr.tree import Condition
from stator.model.values import Item, Value, normalise_item

EXISTS_OUTSIDE: Final = "EXISTS can only be used in ExecuteTransaction write requests."


@dataclass(frozen=True, slots=True)
class Select:
    """``projection`` is bound only when the index is known: AWS speaks of the index before the select list."""

    table_name: str
    index_name: str | None
    projection: tuple[Expression, ...]
    where: Condition | None
    order: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class Insert:
    table_name: str
    item: Item
    size: int
    returning: None = None


@dataclass(frozen=True, slots=True)
class Update:
    """``returning`` is the ReturnValues of UpdateItem that does the same."""

    table_name: str
    update: tree.Update
    where: Condition | None
    returning: str | None


@dataclass(frozen=True, slots=True)
class Delete:
    table_name: str
    where: Condition | None
    returning: str | None


@dataclass(frozen=True, slots=True)
class Exists:
    """A transaction's check that an item is there and as it should be."""

    table_name: str
    where: Condition | None
    returning: None = None


Write = Union[Insert, Update, Delete, Exists]
Statement = Union[Select, Insert, Update, Delete, Exists]


def read_statement(request: dict[str, Any]) -> Statement:
    """The statement of a request or of a member of one: its syntax is checked first, then its parameters."""
    parse(request["Statement"])
    parameters: list[Value] = request.get("Parameters") or []
    check_parameters(parameters)
    return bind(request["Statement"], parameters)


def bind(text: str, parameters: list[Value]) -> Statement:
    """A statement with parameters that are checked already. As on DynamoDB Local, more of them than needed do no harm."""
    parsed = parse(text)
    if len(parameters) < parsed.parameters:
        raise ValidationFailed(MISMATCHED_PARAMETERS)
    try:
        return _bind(parsed.statement, parameters)
    except RecursionError:
        raise malformed("Expression is nested too deeply") from None


def _bind(node: Expression, parameters: list[Value]) -> Statement:
    match node:
        case syntax.Select():
            return _select(node, parameters)
        case syntax.Insert():
            return _insert(node, parameters)
        case syntax.Update():
            return _update(node, parameters)
        case syntax.Delete():
            return _delete(node, parameters)
        case syntax.Call("exists", (syntax.Select() as select,)):
            if select.refusal is not None:
                raise ValidationFailed(select.refusal)
            return Exists(_single_table(select.source), _where(select.where, parameters))
    raise ValidationFailed(f"Unsupported operation: {operation_name(node)}")


def _select(node: syntax.Select, parameters: list[Value]) -> Select:
    if node.refusal is not None:
        raise ValidationFailed(node.refusal)
    names = _source_names(node.source)
    if len(names) > 2:
        raise ValidationFailed("A path may contain at most 2 components in the FROM clause")
    order = tuple(_order(term) for term in node.order)
    if order and node.where is None:
        raise ValidationFailed(
            "Must have WHERE clause in the statement when using ORDER BY clause."
        )
    index = names[1] if len(names) == 2 else None
    return Select(names[0], index, node.projection, _where(node.where, parameters), order)


def _order(term: syntax.OrderTerm) -> tuple[str, bool]:
    if not isinstance(term.value, syntax.Reference) or term.value.steps:
        shown = (
            term.value.text
            if isinstance(term.value, syntax.Constant)
            else operation_name(term.value).upper()
        )
        raise ValidationFailed(
            f"Argument to ORDER BY must be of type VariableReference. Type: {shown}"
        )
    return term.value.name, term.descending


def _insert(node: syntax.Insert, parameters: list[Value]) -> Insert:
    names = _source_names(node.table)
    if len(names) > 1:
        raise ValidationFailed(
            "FROM clause may only contain a single table name in data manipulation statements"
        )
    if node.has_returning:
        raise ValidationFailed("RETURNING is not supported in INSERT")
    if not isinstance(node.value, syntax.Struct):
        raise ValidationFailed(
            "Unsupported format in item expression. Please use struct format {...} to express item values for "
            f"insert statement. at {node.value.at}"
        )
    item = insert_item(node.value, parameters)
    return Insert(names[0], item, normalise_item(item))


def _update(node: syntax.Update, parameters: list[Value]) -> Update:
    if node.refusal is not None:
        raise ValidationFailed(node.refusal)
    table_name = _single_table(node.table)
    update = bind_changes(node.changes, parameters)
    returning = (
        None
        if node.returning is None
        else node.returning.replace("MODIFIED", "UPDATED").replace(" ", "_")
    )
    return Update(table_name, update, _where(node.where, parameters), returning)


def _delete(node: syntax.Delete, parameters: list[Value]) -> Delete:
    if node.refusal is not None:
        raise ValidationFailed(node.refusal)
    if node.returning not in (None, "ALL OLD"):
        raise ValidationFailed(
            f"Invalid returning clause: RETURNING {node.returning} *. "
            "Only RETURNING ALL OLD * is allowed in DELETE statements."
        )
    returning = None if node.returning is None else "ALL_OLD"
    return Delete(_single_table(node.table), _where(node.where, parameters), returning)


def _where(node: Expression | None, parameters: list[Value]) -> Condition | None:
    return None if node is None else bind_condition(node, parameters)


def _single_table(source: Expression) -> str:
    names = _source_names(source)
    if len(names) > 1:
        raise ValidationFailed("This operation is not supported on an index")
    return names[0]


def _source_names(source: Expression) -> list[str]:
    """``"table"."index"`` as its names."""
    if not isinstance(source, syntax.Reference):
        raise ValidationFailed("Unexpected from source")
    names = [source.name]
    for step in source.steps:
        if not isinstance(step, syntax.Key):
            raise ValidationFailed("Invalid list expression in source.")
        names.append(step.name)
    if "" in names:
        raise ValidationFailed(EMPTY_NAME)
    return names
