"""The legacy parameters (Expected, QueryFilter, AttributeUpdates and others) as expression trees.

AWS still accepts these parameters and has separate rules and messages for them. This module checks
them and builds the same trees that expressions have.
"""

from __future__ import annotations

from typing import Any

from stator.errors import ValidationFailed
from stator.expr.compare import compare
from stator.expr.key_condition import KeyTest
from stator.expr.tree import (
    AddAction,
    And,
    Between,
    Compare,
    Condition,
    DeleteAction,
    Function,
    In,
    Literal,
    Not,
    Or,
    Path,
    RemoveAction,
    SetAction,
    UpdateAction,
    UpdateExpression,
)
from stator.model.values import INVALID, Value, check_name, kind_of, normalise

_COMPARATORS = {"EQ": "=", "NE": "<>", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
_COUNTS = {"NULL": 0, "NOT_NULL": 0, "BETWEEN": 2}
_SCALARS = frozenset({"S", "N", "B"})
_KINDS = {
    "LE": _SCALARS,
    "LT": _SCALARS,
    "GE": _SCALARS,
    "GT": _SCALARS,
    "IN": _SCALARS,
    "BETWEEN": _SCALARS,
    "CONTAINS": _SCALARS,
    "NOT_CONTAINS": _SCALARS,
    "BEGINS_WITH": frozenset({"S", "B"}),
}


def filter_condition(
    conditions: dict[str, dict[str, Any]], operator: str | None
) -> Condition | None:
    """Turn QueryFilter or ScanFilter into a condition, or into None if it is empty."""
    for name in conditions:
        check_name(name)
    nodes = [
        _node(
            Path((name,)),
            *_checked(condition["ComparisonOperator"], condition.get("AttributeValueList") or []),
        )
        for name, condition in conditions.items()
    ]
    return _joined(nodes, operator)


def key_tests(conditions: dict[str, dict[str, Any]]) -> dict[str, KeyTest]:
    """Turn KeyConditions into key tests, by attribute name."""
    tests = {}
    for name, condition in conditions.items():
        check_name(name)
        operator, values = _checked(
            condition["ComparisonOperator"], condition.get("AttributeValueList") or []
        )
        word = {**_COMPARATORS, "BETWEEN": "BETWEEN", "BEGINS_WITH": "begins_with"}.get(operator)
        if word is None or word == "<>":
            raise ValidationFailed("Attempted conditional constraint is not an indexable operation")
        tests[name] = KeyTest(word, tuple(values))
    return tests


def expected_condition(
    expected: dict[str, dict[str, Any]], operator: str | None
) -> Condition | None:
    """Turn Expected into a condition, or into None if it is empty."""
    return _joined([_expectation(name, entry) for name, entry in expected.items()], operator)


def _expectation(name: str, entry: dict[str, Any]) -> Condition:
    check_name(name)
    path = Path((name,))
    operator, value, values = (
        entry.get("ComparisonOperator"),
        entry.get("Value"),
        entry.get("AttributeValueList"),
    )
    exists = entry.get("Exists")
    if value is not None and values is not None:
        raise ValidationFailed(
            f"{INVALID}Value and AttributeValueList cannot be used together for Attribute: {name}"
        )
    if operator is not None:
        if exists is not None:
            raise ValidationFailed(
                f"{INVALID}Exists and ComparisonOperator cannot be used together "
                f"for Attribute: {name}"
            )
        if value is None and values is None and operator not in ("NULL", "NOT_NULL"):
            raise ValidationFailed(
                f"{INVALID}Value or AttributeValueList must be used with ComparisonOperator: "
                f"{operator} for Attribute: {name}"
            )
        return _node(path, *_checked(operator, [value] if value is not None else values or []))
    if values is not None:
        raise ValidationFailed(
            f"{INVALID}AttributeValueList can only be used with a ComparisonOperator "
            f"for Attribute: {name}"
        )
    if exists is False:
        if value is not None:
            raise ValidationFailed(
                f"{INVALID}Value cannot be used when Exists is false for Attribute: {name}"
            )
        return Function("attribute_not_exists", (path,))
    if value is None:
        shown = "null" if exists is None else "true"
        raise ValidationFailed(
            f"{INVALID}Value must be provided when Exists is {shown} for Attribute: {name}"
        )
    normalise(value)
    return Compare("=", path, Literal(value))


def _checked(operator: str, values: list[Value]) -> tuple[str, list[Value]]:
    for value in values:
        normalise(value)
    count = _COUNTS.get(operator, 1)
    if len(values) != count if operator != "IN" else not values:
        raise ValidationFailed(
            f"{INVALID}Invalid number of argument(s) for the {operator} ComparisonOperator"
        )
    kinds = {kind_of(value) for value in values}
    if len(kinds) > 1:
        raise ValidationFailed(
            f"{INVALID}AttributeValues inside AttributeValueList must be of same type"
        )
    for kind in kinds:
        if kind not in _KINDS.get(operator, {kind}):
            raise ValidationFailed(
                f"{INVALID}ComparisonOperator {operator} is not valid for {kind} "
                "AttributeValue type"
            )
    if operator == "BETWEEN" and compare("<", values[1], values[0]):
        raise ValidationFailed(
            "The BETWEEN condition was provided a range where the lower bound is greater than the "
            "upper bound"
        )
    return operator, values


def _node(path: Path, operator: str, values: list[Value]) -> Condition:
    literals = tuple(Literal(value) for value in values)
    match operator:
        case "NULL":
            return Function("attribute_not_exists", (path,))
        case "NOT_NULL":
            return Function("attribute_exists", (path,))
        case "BETWEEN":
            return Between(path, literals[0], literals[1])
        case "IN":
            return In(path, literals)
        case "BEGINS_WITH":
            return Function("begins_with", (path, literals[0]))
        case "CONTAINS":
            return Function("contains", (path, literals[0]))
        case "NOT_CONTAINS":
            # Unlike NE, it does not hold for a missing attribute.
            return And(
                (
                    Function("attribute_exists", (path,)),
                    Not(Function("contains", (path, literals[0]))),
                )
            )
    return Compare(_COMPARATORS[operator], path, literals[0])


def _joined(nodes: list[Condition], operator: str | None) -> Condition | None:
    if not nodes:
        return None
    if operator == "OR":
        return Or(tuple(nodes))
    return And(tuple(nodes))


def attribute_updates(updates: dict[str, dict[str, Any]]) -> UpdateExpression:
    """Turn AttributeUpdates into an update.

    A dot in an attribute name does not start a path here.
    """
    return UpdateExpression(
        tuple(_update_action(Path((name,)), entry) for name, entry in updates.items())
    )


def _update_action(path: Path, entry: dict[str, Any]) -> UpdateAction:
    check_name(str(path.parts[0]))
    action, value = entry.get("Action") or "PUT", entry.get("Value")
    if value is None:
        if action != "DELETE":
            raise ValidationFailed(
                f"{INVALID}Only DELETE action is allowed when no attribute value is specified"
            )
        return RemoveAction(path)
    normalise(value)
    kind = kind_of(value)
    literal = Literal(value)
    if action == "PUT":
        return SetAction(path, literal)
    if action == "DELETE":
        if kind not in ("SS", "NS", "BS"):
            raise ValidationFailed(
                f"{INVALID}DELETE action with value is not supported for the type {kind}"
            )
        return DeleteAction(path, literal)
    if kind == "L":
        present = Function("if_not_exists", (path, Literal({"L": []})))
        return SetAction(path, Function("list_append", (present, literal)))
    if kind not in ("N", "SS", "NS", "BS"):
        raise ValidationFailed(f"{INVALID}ADD action is not supported for the type {kind}")
    return AddAction(path, literal)
