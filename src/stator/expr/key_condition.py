"""Key conditions: a condition tree reduced to one test per key attribute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.errors import ValidationFailed
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
    Path,
)
from stator.model.values import Value

_FLIPPED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_IN_KEY_CONDITION = "Invalid condition in KeyConditionExpression: "


@dataclass(frozen=True, slots=True)
class KeyTest:
    """A test of one key attribute. ``operator`` is =, <, <=, >, >=, BETWEEN or begins_with.

    BETWEEN has two values, the others have one.
    """

    operator: str
    values: tuple[Value, ...]


def key_tests(condition: Condition) -> dict[str, KeyTest]:
    """Return the test of each key attribute, by the attribute's name.

    Raises AWS's error if the condition cannot be a key condition.
    """
    tests: dict[str, KeyTest] = {}
    for node in _conjuncts(condition):
        attribute, test = _test(node)
        if attribute in tests:
            raise ValidationFailed(
                "Invalid KeyConditionExpression: "
                "KeyConditionExpressions must only contain one condition per key"
            )
        tests[attribute] = test
    return tests


def _conjuncts(node: Condition) -> list[Condition]:
    if isinstance(node, And):
        return [inner for operand in node.operands for inner in _conjuncts(operand)]
    return [node]


def _test(node: Condition) -> tuple[str, KeyTest]:
    match node:
        case Compare("<>", _, _):
            raise _operator("<>")
        case Compare(operator, left, right):
            return _comparison(operator, left, right)
        case Between(operand, low, high):
            return _first_operand("BETWEEN", (operand, low, high))
        case Function("begins_with", arguments):
            return _first_operand("begins_with", arguments)
        case Function(name, _):
            raise _operator(name)
        case In():
            raise _operator("IN")
        case Not():
            raise _operator("NOT")
        case Or():
            raise _operator("OR")
    raise AssertionError(node)


def _comparison(operator: str, left: Operand, right: Operand) -> tuple[str, KeyTest]:
    _refuse_nested((left, right))
    if isinstance(left, Path) and isinstance(right, Path):
        raise ValidationFailed(_IN_KEY_CONDITION + "Multiple attribute names used in one condition")
    if isinstance(left, Path) and isinstance(right, Literal):
        return str(left.parts[0]), KeyTest(operator, (right.value,))
    if isinstance(right, Path) and isinstance(left, Literal):
        return str(right.parts[0]), KeyTest(_FLIPPED[operator], (left.value,))
    raise ValidationFailed(_IN_KEY_CONDITION + "No key attribute specified")


def _first_operand(operator: str, operands: tuple[Operand, ...]) -> tuple[str, KeyTest]:
    _refuse_nested(operands)
    first, rest = operands[0], operands[1:]
    values: list[Any] = [operand.value for operand in rest if isinstance(operand, Literal)]
    if not isinstance(first, Path):
        if any(isinstance(operand, Path) for operand in rest):
            raise ValidationFailed(
                f"{_IN_KEY_CONDITION}{operator} operator must have the key attribute as its "
                "first operand"
            )
        raise ValidationFailed(_IN_KEY_CONDITION + "No key attribute specified")
    if len(values) != len(rest):
        raise ValidationFailed(_IN_KEY_CONDITION + "Multiple attribute names used in one condition")
    return str(first.parts[0]), KeyTest(operator, tuple(values))


def _refuse_nested(operands: tuple[Operand, ...]) -> None:
    if any(isinstance(operand, Function) for operand in operands):
        raise ValidationFailed("KeyConditionExpressions cannot contain nested operations")
    if any(isinstance(operand, Path) and len(operand.parts) > 1 for operand in operands):
        raise ValidationFailed(
            "KeyConditionExpressions cannot have conditions on nested attributes"
        )


def _operator(name: str) -> ValidationFailed:
    return ValidationFailed(f"Invalid operator used in KeyConditionExpression: {name}")
