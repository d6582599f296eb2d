"""Translates WHERE clauses into condition trees, with their values in place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from stator.engine.partiql import syntax
from stator.engine.partiql.paths import document_path
from stator.engine.partiql.syntax import Expression
from stator.engine.partiql.values import literal_value
from stator.errors import ValidationFailed
from stator.expr.bind import check_condition
from stator.expr.parser import BOOLEAN_FUNCTIONS, CONDITION_FUNCTIONS, UPDATE_FUNCTIONS
from stator.expr.tree import (
    And,
    Between,
    Compare,
    Condition,
    Function,
    In,
    Literal,
    Not,
    Operand,
    Or,
)
from stator.model.values import Value

_COMPARATORS: Final = frozenset({"=", "<>", "<", "<=", ">", ">="})
_NOT_BOOLEAN: Final = "WHERE clause must contain an expression that resolves to a boolean"
MISSING_COMPARED: Final = "MISSING must be compared using IS operator"
_IN: Final = (
    "IN operator must have a left hand argument of type Variable Reference and right hand "
    "argument of type Seq with at least one member"
)
_TYPES: Final = {
    "NULL": "NULL",
    "BOOLEAN": "BOOL",
    "BLOB": "B",
    "STRING": "S",
    "NUMERIC": "N",
    "STRUCT": "M",
    "TUPLE": "M",
    "LIST": "L",
}


def bind_condition(node: Expression, parameters: list[Value]) -> Condition:
    """Translate a WHERE clause into a condition tree.

    Then check its operand counts, distinct operands and operand types.
    """
    condition = _Binder(parameters).condition(node)
    check_condition(condition)
    return condition


def unrecognized(call: syntax.FunctionCall) -> ValidationFailed:
    return ValidationFailed(f"Unrecognized function: {call.name} at {call.at}")


@dataclass(slots=True)
class _Binder:
    parameters: list[Value]

    def condition(self, node: Expression) -> Condition:
        match node:
            case syntax.OperatorExpression("and", operands):
                return And(tuple(map(self.condition, operands)))
            case syntax.OperatorExpression("or", operands):
                return Or(tuple(map(self.condition, operands)))
            case syntax.OperatorExpression("not", (operand,)):
                return _negated(self.condition(operand))
            case syntax.OperatorExpression(operator, (left, right)) if operator in _COMPARATORS:
                return self._comparison(operator, left, right)
            case syntax.OperatorExpression("between", (operand, low, high)):
                return Between(self.operand(operand), self.operand(low), self.operand(high))
            case syntax.OperatorExpression("in", (operand, options)):
                return self._in(operand, options)
            case syntax.IsType():
                return self._is_type(node)
            case syntax.FunctionCall(name) if name != "size":
                return self._function(node)
            case syntax.OperatorExpression(operator):
                raise _unsupported(operator)
        raise ValidationFailed(_NOT_BOOLEAN)

    def _comparison(self, operator: str, left: Expression, right: Expression) -> Condition:
        """Bind a comparison of two operands, or of a condition and a truth value.

        ``attribute_exists(a) = true`` compares a condition with a truth value.
        """
        for condition, truth in ((left, right), (right, left)):
            if _is_condition(condition) and operator in ("=", "<>"):
                truth_value = self.operand(truth)
                if isinstance(truth_value, Literal) and "BOOL" in truth_value.value:
                    bound = self.condition(condition)
                    return (
                        bound if truth_value.value["BOOL"] == (operator == "=") else _negated(bound)
                    )
        return Compare(operator, self.operand(left), self.operand(right))

    def _in(self, operand: Expression, options: Expression) -> Condition:
        named = isinstance(operand, (syntax.Reference, syntax.FunctionCall))
        if not named or not isinstance(options, syntax.SequenceLiteral) or not options.members:
            raise ValidationFailed(_IN)
        return In(self.operand(operand), tuple(map(self.operand, options.members)))

    def _is_type(self, node: syntax.IsType) -> Condition:
        operand = self.operand(node.operand)
        if node.type_name == "MISSING":
            return Function("attribute_not_exists", (operand,))
        kind = _TYPES.get(node.type_name)
        if kind is None:
            raise ValidationFailed(
                f"Unsupported data type for IS operator: {node.type_name}. Supported data types "
                "are [MISSING, NULL, BOOLEAN, BLOB, STRING, NUMERIC, STRUCT, TUPLE, LIST] at "
                f"{node.at}"
            )
        return Function("attribute_type", (operand, Literal({"S": kind})))

    def _function(self, call: syntax.FunctionCall) -> Function:
        for argument in call.arguments:
            if isinstance(argument, syntax.SelectStatement):
                raise ValidationFailed(f"Unsupported token in expression: SELECT at {argument.at}")
        if call.name in UPDATE_FUNCTIONS:
            raise ValidationFailed(
                f"The function is not allowed in a condition expression; function: {call.name}"
            )
        if call.name not in CONDITION_FUNCTIONS:
            raise unrecognized(call)
        return Function(call.name, tuple(map(self.operand, call.arguments)))

    def operand(self, node: Expression) -> Operand:
        match node:
            case syntax.Reference():
                return document_path(node)
            case syntax.Parameter(number):
                return Literal(self.parameters[number])
            case syntax.Constant("missing"):
                raise ValidationFailed(MISSING_COMPARED)
            case syntax.FunctionCall(name):
                function = self._function(node)
                if name in BOOLEAN_FUNCTIONS:
                    raise ValidationFailed(
                        f"The function is not allowed as an operand; function: {name}"
                    )
                return function
            case syntax.OperatorExpression(operator):
                raise _unsupported(operator)
        return Literal(literal_value(node))


def _is_condition(node: Expression) -> bool:
    if isinstance(node, syntax.FunctionCall):
        return node.name in BOOLEAN_FUNCTIONS
    if isinstance(node, syntax.OperatorExpression):
        return node.operator in _COMPARATORS or node.operator in (
            "and",
            "or",
            "not",
            "between",
            "in",
        )
    return isinstance(node, syntax.IsType)


def _negated(condition: Condition) -> Condition:
    return condition.operand if isinstance(condition, Not) else Not(condition)


def _unsupported(operator: str) -> ValidationFailed:
    return ValidationFailed(f"Unsupported operator in Condition Expression. Operator: {operator}")
