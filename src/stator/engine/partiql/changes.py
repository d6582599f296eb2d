"""Translates the SET and REMOVE clauses of an UPDATE into an update expression tree.

``set_add`` and ``set_delete`` are the ADD and DELETE of update expressions, written as an
assignment. Their first argument must be the path that is assigned to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from stator.engine.partiql import syntax
from stator.engine.partiql.conditions import MISSING_COMPARED, unrecognized
from stator.engine.partiql.paths import document_path
from stator.engine.partiql.syntax import Expression
from stator.engine.partiql.values import literal_value
from stator.errors import ValidationFailed
from stator.expr import overlap
from stator.expr.bind import check_update_types
from stator.expr.parser import CONDITION_FUNCTIONS, UPDATE_FUNCTIONS
from stator.expr.tree import (
    AddAction,
    Arithmetic,
    DeleteAction,
    Function,
    Literal,
    Operand,
    Path,
    RemoveAction,
    SetAction,
    UpdateAction,
    UpdateExpression,
)
from stator.model.limits import EXPRESSION_OPERATORS
from stator.model.values import Value, kind_of

_SET_FUNCTIONS: Final = ("set_add", "set_delete")


def bind_changes(
    changes: tuple[syntax.SetClause | syntax.RemoveClause, ...], parameters: list[Value]
) -> UpdateExpression:
    binder = _Binder(parameters)
    update = UpdateExpression(tuple(map(binder.action, changes)))
    overlap.check([action.path for action in update.actions])
    check_update_types(update)
    return update


@dataclass(slots=True)
class _Binder:
    parameters: list[Value]
    operators: int = 0

    def action(self, change: syntax.SetClause | syntax.RemoveClause) -> UpdateAction:
        path = document_path(change.target)
        if isinstance(change, syntax.RemoveClause):
            return RemoveAction(path)
        if isinstance(change.value, syntax.FunctionCall) and change.value.name in _SET_FUNCTIONS:
            return self._set_function(path, change.value)
        return SetAction(path, self._operand(change.value))

    def _set_function(self, path: Path, call: syntax.FunctionCall) -> UpdateAction:
        name = call.name.upper()
        if len(call.arguments) != 2:
            raise ValidationFailed(f"{name} must have exactly two arguments at {call.at}")
        first, second = call.arguments
        if not isinstance(first, syntax.Reference) or document_path(first) != path:
            raise ValidationFailed(
                f"The first argument to {name} must equal the assignment value at {call.at}"
            )
        members = self._members(second)
        if members is None:
            raise ValidationFailed(
                f"The second argument to {name} must be a value with type SET at {first.at}"
            )
        literal = Literal(members)
        return AddAction(path, literal) if call.name == "set_add" else DeleteAction(path, literal)

    def _members(self, node: Expression) -> Value | None:
        if isinstance(node, syntax.Parameter):
            value = self.parameters[node.number]
        elif isinstance(node, syntax.SequenceLiteral) and node.kind == "bag":
            value = literal_value(node)
        else:
            return None
        return value if kind_of(value) in ("SS", "NS", "BS") else None

    def _operand(self, node: Expression) -> Operand:
        match node:
            case syntax.Reference():
                return document_path(node)
            case syntax.Parameter(number):
                return Literal(self.parameters[number])
            case syntax.Constant("missing"):
                raise ValidationFailed(MISSING_COMPARED)
            case syntax.OperatorExpression():
                return self._arithmetic(node)
            case syntax.FunctionCall():
                return self._function(node)
            case syntax.IsType():
                raise ValidationFailed("Unsupported operator in Update Expression. Operator: is")
        return Literal(literal_value(node))

    def _arithmetic(self, node: syntax.OperatorExpression) -> Operand:
        if node.operator not in ("+", "-"):
            raise ValidationFailed(
                f"Unsupported operator in Update Expression. Operator: {node.operator}"
            )
        if len(node.operands) != 2:
            raise ValidationFailed(
                "Incorrect number of operands for operator or function; operator or function: "
                f"{node.operator}, number of operands: {len(node.operands)}"
            )
        self.operators += 1
        if self.operators > EXPRESSION_OPERATORS:
            raise ValidationFailed("The expression contains too many operators")
        left, right = node.operands
        return Arithmetic(node.operator, self._operand(left), self._operand(right))

    def _function(self, call: syntax.FunctionCall) -> Operand:
        if call.name in CONDITION_FUNCTIONS:
            raise ValidationFailed(
                f"The function is not allowed in an update expression; function: {call.name}"
            )
        if call.name in _SET_FUNCTIONS:
            raise ValidationFailed(
                f"The first argument to {call.name.upper()} must equal the assignment "
                f"value at {call.at}"
            )
        if call.name not in UPDATE_FUNCTIONS:
            raise unrecognized(call)
        return Function(call.name, tuple(map(self._operand, call.arguments)))
