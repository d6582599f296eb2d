"""Binding: puts a request's names and values into a parsed tree and runs the checks that need them.

AWS checks from left to right. For each condition it checks, in this order: undefined names and
values, operand counts, distinct operands, operand types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stator.expr import overlap
from stator.expr.compare import compare
from stator.expr.lexer import ExpressionError
from stator.expr.parser import Parsed
from stator.expr.tree import (
    AddAction,
    And,
    Arithmetic,
    Between,
    Compare,
    Condition,
    DeleteAction,
    Function,
    In,
    Literal,
    Not,
    Operand,
    Or,
    Path,
    Placeholder,
    ProjectionExpression,
    RemoveAction,
    SetAction,
    UpdateAction,
    UpdateExpression,
)
from stator.model.limits import IN_OPERANDS, NESTING_LEVELS
from stator.model.values import content_of, kind_of

_COUNTS = {
    "attribute_exists": 1,
    "attribute_not_exists": 1,
    "attribute_type": 2,
    "begins_with": 2,
    "contains": 2,
    "size": 1,
    "if_not_exists": 2,
    "list_append": 2,
}
_ORDERED = frozenset({"S", "N", "B"})
_TYPE_NAMES = ("S", "N", "B", "SS", "NS", "BS", "BOOL", "NULL", "L", "M")
_LONG_NAMES = {
    "S": "STRING",
    "N": "NUMBER",
    "B": "BINARY",
    "SS": "STRING_SET",
    "NS": "NUMBER_SET",
    "BS": "BINARY_SET",
    "BOOL": "BOOLEAN",
    "NULL": "NULL",
    "L": "LIST",
    "M": "MAP",
}


def bind_condition(
    parsed: Parsed, names: Mapping[str, str] | None, values: Mapping[str, dict[str, Any]]
) -> Condition:
    return _Binder(names, values).condition(parsed.tree)


def check_condition(condition: Condition) -> None:
    """Check a condition whose names and values are already in place, as in a PartiQL condition."""
    _Checker({}, {}).condition(condition)


def bind_projection(parsed: Parsed, names: Mapping[str, str] | None) -> ProjectionExpression:
    assert isinstance(parsed.tree, ProjectionExpression)
    binder = _Binder(names, {})
    projection = ProjectionExpression(tuple(binder.path(path) for path in parsed.tree.paths))
    overlap.check(projection.paths)
    return projection


def bind_update(
    parsed: Parsed, names: Mapping[str, str] | None, values: Mapping[str, dict[str, Any]]
) -> UpdateExpression:
    assert isinstance(parsed.tree, UpdateExpression)
    if names is not None and not parsed.names <= names.keys():
        raise _undefined_name(min(parsed.names.difference(names)))
    if not parsed.values <= values.keys():
        raise _undefined_value(min(parsed.values.difference(values)))
    update = _Binder(names, values).update(parsed.tree)
    overlap.check([action.path for action in update.actions])
    check_update_types(update)
    return update


def check_update_types(update: UpdateExpression) -> None:
    """Check the types of the literal operands of ADD, DELETE and functions, in AWS's order."""
    for action in update.actions:
        if isinstance(action, (AddAction, DeleteAction)) and isinstance(action.value, Literal):
            operator = "ADD" if isinstance(action, AddAction) else "DELETE"
            kind = kind_of(action.value.value)
            allowed = ("N", "SS", "NS", "BS") if operator == "ADD" else ("SS", "NS", "BS")
            if kind not in allowed:
                raise ExpressionError(
                    "Incorrect operand type for operator or function; "
                    f"operator: {operator}, operand type: {_LONG_NAMES[kind]}"
                )
    for action in update.actions:
        if isinstance(action, SetAction):
            _check_set_operand(action.value)


def _check_set_operand(node: Operand) -> None:
    match node:
        case Arithmetic(operator, left, right):
            for side in (left, right):
                _check_set_operand(side)
                _require_kinds(operator, side, frozenset({"N"}))
        case Function(name, arguments):
            _check_count(name, arguments)
            for argument in arguments:
                _check_set_operand(argument)
            if name == "if_not_exists":
                _require_path(name, arguments[0])
                _check_distinct(name, arguments[0], arguments[1:])
            else:
                for argument in arguments:
                    _require_kinds(name, argument, frozenset({"L"}))
        case _:
            pass


@dataclass(slots=True, init=False)
class _Binder:
    # None if the tree has no names in it, or has them filled in.
    names: Mapping[str, str] | None
    values: Mapping[str, dict[str, Any]]

    def __init__(
        self, names: Mapping[str, str] | None, values: Mapping[str, dict[str, Any]]
    ) -> None:
        self.names = names
        self.values = values

    def condition(self, node: Any) -> Condition:
        match node:
            case Compare(operator, left, right):
                bound = Compare(operator, self.operand(left), self.operand(right))
                self._check_compare(bound)
                return bound
            case Between(operand, low, high):
                between = Between(self.operand(operand), self.operand(low), self.operand(high))
                self._check_between(between)
                return between
            case In(operand, options):
                inside = In(self.operand(operand), tuple(map(self.operand, options)))
                if len(options) > IN_OPERANDS:
                    raise ExpressionError(
                        "The IN operator is provided with too many operands; "
                        f"number of operands: {len(options)}"
                    )
                _check_distinct("IN", inside.operand, inside.options)
                return inside
            case Function(name, arguments):
                function = Function(name, tuple(map(self.operand, arguments)))
                self._check_function(function)
                return function
            case And(operands):
                return And(tuple(map(self.condition, operands)))
            case Or(operands):
                return Or(tuple(map(self.condition, operands)))
            case Not(operand):
                return Not(self.condition(operand))
        raise AssertionError(node)

    def operand(self, node: Operand) -> Operand:
        match node:
            case Path():
                return self.path(node)
            case Placeholder(name):
                if name not in self.values:
                    raise _undefined_value(name)
                return Literal(self.values[name])
            case Function("size", (Function("size", _), *_)):
                raise _wrong_kind("size", "N")
            case Function(name, arguments):
                function = Function(name, tuple(map(self.operand, arguments)))
                if name == "size":
                    self._check_function(function)
                return function
            case Arithmetic(operator, left, right):
                return Arithmetic(operator, self.operand(left), self.operand(right))
            case _:
                return node

    def path(self, path: Path) -> Path:
        if len(path.parts) > NESTING_LEVELS:
            raise ExpressionError(
                f"The document path has too many nesting levels; nesting levels: {len(path.parts)}"
            )
        if self.names is None:
            return path
        return Path(
            tuple(self._name(part) if isinstance(part, str) else part for part in path.parts)
        )

    def _name(self, part: str) -> str:
        assert self.names is not None
        if part[0] != "#":
            return part
        if part not in self.names:
            raise _undefined_name(part)
        return self.names[part]

    def update(self, tree: UpdateExpression) -> UpdateExpression:
        actions: list[UpdateAction] = []
        for action in tree.actions:
            path = self.path(action.path)
            if isinstance(action, RemoveAction):
                actions.append(RemoveAction(path))
            else:
                actions.append(type(action)(path, self.operand(action.value)))
        return UpdateExpression(tuple(actions))

    # -- checks

    def _check_compare(self, node: Compare) -> None:
        _check_distinct(node.operator, node.left, (node.right,))
        if node.operator not in ("=", "<>"):
            for side in (node.left, node.right):
                _require_kinds(node.operator, side, _ORDERED)

    def _check_between(self, node: Between) -> None:
        _check_distinct("BETWEEN", node.operand, (node.low, node.high))
        for side in (node.operand, node.low, node.high):
            _require_kinds("BETWEEN", side, _ORDERED)
        check_bounds(node)

    def _check_function(self, node: Function) -> None:
        name, arguments = node.name, node.arguments
        _check_count(name, arguments)
        if name in ("attribute_exists", "attribute_not_exists"):
            _require_path(name, arguments[0])
        elif name == "attribute_type":
            _check_type_name(arguments[1])
        elif name == "size":
            _require_kinds(name, arguments[0], frozenset(_TYPE_NAMES) - {"N", "BOOL", "NULL"})
        else:
            _check_distinct(name, arguments[0], arguments[1:])
            if name == "begins_with":
                for argument in arguments:
                    _require_kinds(name, argument, frozenset({"S", "B"}))


class _Checker(_Binder):
    """Checks a tree that is already bound.

    A name that starts with ``#`` is then an attribute's real name, not a placeholder.
    """

    def path(self, path: Path) -> Path:
        return path


def _check_count(name: str, arguments: tuple[Operand, ...]) -> None:
    if len(arguments) != _COUNTS[name]:
        raise ExpressionError(
            "Incorrect number of operands for operator or function; "
            f"operator or function: {name}, number of operands: {len(arguments)}"
        )


def _check_distinct(operator: str, first: Operand, rest: tuple[Operand, ...]) -> None:
    if isinstance(first, Path) and first in rest:
        raise ExpressionError(
            "The first operand must be distinct from the remaining operands for this operator or "
            f"function; operator: {operator}, first operand: {first.shown()}"
        )


def _require_kinds(operator: str, operand: Operand, kinds: frozenset[str]) -> None:
    if isinstance(operand, Literal):
        kind = kind_of(operand.value)
        if kind not in kinds:
            raise _wrong_kind(operator, kind)


def _wrong_kind(operator: str, kind: str) -> ExpressionError:
    return ExpressionError(
        "Incorrect operand type for operator or function; "
        f"operator or function: {operator}, operand type: {kind}"
    )


def _require_path(function: str, operand: Operand) -> None:
    if not isinstance(operand, Path):
        raise ExpressionError(
            f"Operator or function requires a document path; operator or function: {function}"
        )


def _check_type_name(operand: Operand) -> None:
    if not isinstance(operand, Literal):
        raise ExpressionError(
            "Incorrect operand type for operator or function; "
            "operator or function: attribute_type, operand type: {NS,SS,L,BS,N,M,B,BOOL,NULL,S}"
        )
    _require_kinds("attribute_type", operand, frozenset({"S"}))
    name = content_of(operand.value)
    if name not in _TYPE_NAMES:
        raise ExpressionError(
            f"Invalid attribute type name found; type: {name}, "
            "valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}"
        )


def check_bounds(node: Between) -> None:
    if not (isinstance(node.low, Literal) and isinstance(node.high, Literal)):
        return
    low, high = node.low.value, node.high.value
    shown = (
        f"lower bound operand: AttributeValue: {_shown(low)}, "
        f"upper bound operand: AttributeValue: {_shown(high)}"
    )
    if kind_of(low) != kind_of(high):
        raise ExpressionError(
            f"The BETWEEN operator requires same data type for lower and upper bounds; {shown}"
        )
    if compare("<", high, low):
        raise ExpressionError(
            "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "
            f"{shown}"
        )


def _shown(value: dict[str, Any]) -> str:
    return f"{{{kind_of(value)}:{content_of(value)}}}"


def _undefined_name(name: str) -> ExpressionError:
    return ExpressionError(
        "An expression attribute name used in the document path is not defined; "
        f"attribute name: {name}"
    )


def _undefined_value(name: str) -> ExpressionError:
    return ExpressionError(
        f"An expression attribute value used in expression is not defined; attribute value: {name}"
    )
