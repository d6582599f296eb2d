"""The binder: turns the syntax tree of a statement into a bound SELECT or write.

A bound statement knows its table by name only. Errors that do not depend on the table are raised
here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
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
from stator.engine.partiql.writes import (
    BoundWrite,
    delete_write,
    exists_write,
    insert_write,
    update_write,
)
from stator.errors import ValidationFailed
from stator.expr.tree import Condition
from stator.model.values import Value

EXISTS_OUTSIDE: Final = "EXISTS can only be used in ExecuteTransaction write requests."


@dataclass(frozen=True, slots=True)
class BoundSelect:
    """A SELECT with its condition bound.

    The select list is bound later, when the index is known, because AWS reports errors about the
    index first.
    """

    table_name: str
    index_name: str | None
    projection: tuple[Expression, ...]
    where: Condition | None
    order: tuple[tuple[str, bool], ...]


Statement = Union[BoundSelect, BoundWrite]


def read_statement(request: dict[str, Any]) -> Statement:
    """Parse and bind the statement of a request or batch member.

    Its syntax is checked first, then its parameters.
    """
    text = request["Statement"]
    parse(text)
    parameters: list[Value] = request.get("Parameters") or []
    plain = _plain_insert(text)
    if plain is not None and len(plain.names) == len(parameters):
        try:
            return insert_write(plain.table_name, dict(zip(plain.names, parameters)))
        except ValidationFailed:
            pass  # the checks below have AWS's words for it
    check_parameters(parameters)
    return bind(text, parameters)


@dataclass(frozen=True, slots=True)
class _PlainInsert:
    """An INSERT whose values are all parameters. ``names`` are the attributes, in their order."""

    table_name: str
    names: tuple[str, ...]


@lru_cache(maxsize=4096)
def _plain_insert(text: str) -> _PlainInsert | None:
    """Return the table and attribute names of a plain INSERT, or None for any other statement.

    The result is cached by text: bulk writers repeat one INSERT with different parameters.
    """
    node = parse(text).statement
    if not isinstance(node, syntax.InsertStatement) or not isinstance(node.value, syntax.Struct):
        return None
    members = node.value.members
    if [value.number for _, value in members if isinstance(value, syntax.Parameter)] != list(
        range(len(members))
    ):
        return None
    try:
        placeholders: list[Value] = [{"NULL": True} for _ in members]
        write = _insert(node, placeholders)
        names = tuple(insert_item(node.value, placeholders))
    except ValidationFailed:
        return None
    return _PlainInsert(write.table_name, names)


def bind(text: str, parameters: list[Value]) -> Statement:
    """Bind a statement to checked parameters.

    Extra parameters are ignored, as on DynamoDB Local.
    """
    parsed = parse(text)
    if len(parameters) < parsed.parameters:
        raise ValidationFailed(MISMATCHED_PARAMETERS)
    try:
        return _bind(parsed.statement, parameters, is_nested="." in text or "[" in text)
    except RecursionError:
        raise malformed("Expression is nested too deeply") from None


def _bind(node: Expression, parameters: list[Value], *, is_nested: bool) -> Statement:
    """Bind a statement. ``is_nested`` is False if no path in it can lead into a map or list."""
    match node:
        case syntax.SelectStatement():
            return _select(node, parameters)
        case syntax.InsertStatement():
            return _insert(node, parameters)
        case syntax.UpdateStatement():
            return _update(node, parameters, is_nested)
        case syntax.DeleteStatement():
            return _delete(node, parameters)
        case syntax.FunctionCall("exists", (syntax.SelectStatement() as select,)):
            if select.refusal is not None:
                raise ValidationFailed(select.refusal)
            where = _where(select.where, parameters)
            return exists_write(_single_table(select.source), where)
    raise ValidationFailed(f"Unsupported operation: {operation_name(node)}")


def _select(node: syntax.SelectStatement, parameters: list[Value]) -> BoundSelect:
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
    return BoundSelect(names[0], index, node.projection, _where(node.where, parameters), order)


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


def _insert(node: syntax.InsertStatement, parameters: list[Value]) -> BoundWrite:
    names = _source_names(node.table)
    if len(names) > 1:
        raise ValidationFailed(
            "FROM clause may only contain a single table name in data manipulation statements"
        )
    if node.has_returning:
        raise ValidationFailed("RETURNING is not supported in INSERT")
    if not isinstance(node.value, syntax.Struct):
        raise ValidationFailed(
            "Unsupported format in item expression. Please use struct format {...} to "
            "express item values for "
            f"insert statement. at {node.value.at}"
        )
    item = insert_item(node.value, parameters)
    return insert_write(names[0], item)


def _update(node: syntax.UpdateStatement, parameters: list[Value], is_nested: bool) -> BoundWrite:
    if node.refusal is not None:
        raise ValidationFailed(node.refusal)
    table_name = _single_table(node.table)
    update = bind_changes(node.changes, parameters)
    returning = (
        None
        if node.returning is None
        else node.returning.replace("MODIFIED", "UPDATED").replace(" ", "_")
    )
    where = _where(node.where, parameters)
    return update_write(table_name, update, where, returning, is_nested=is_nested)


def _delete(node: syntax.DeleteStatement, parameters: list[Value]) -> BoundWrite:
    if node.refusal is not None:
        raise ValidationFailed(node.refusal)
    if node.returning not in (None, "ALL OLD"):
        raise ValidationFailed(
            f"Invalid returning clause: RETURNING {node.returning} *. Only RETURNING ALL OLD * "
            "is allowed in DELETE statements."
        )
    returning = None if node.returning is None else "ALL_OLD"
    table_name = _single_table(node.table)
    return delete_write(table_name, _where(node.where, parameters), returning)


def _where(node: Expression | None, parameters: list[Value]) -> Condition | None:
    return None if node is None else bind_condition(node, parameters)


def _single_table(source: Expression) -> str:
    names = _source_names(source)
    if len(names) > 1:
        raise ValidationFailed("This operation is not supported on an index")
    return names[0]


def _source_names(source: Expression) -> list[str]:
    """Return the parts of a FROM clause's source: the table name and, if given, the index name."""
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
