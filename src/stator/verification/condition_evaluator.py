"""Evaluates a pattern's conditions on Python objects.

The result says which of the generated items a call should find. The engine is not asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stator.design.entities.conditions import All, Any_, Comparison, Condition, FieldRef, Inverse
from stator.design.entities.derived_parts import PartComparison, argument_text
from stator.design.patterns.param import Param
from stator.verification.declared_shape import plain


def holds(condition: Condition, entity: Any, arguments: Mapping[str, Any]) -> bool:
    """Whether an object meets a condition, as DynamoDB would evaluate it.

    A comparison with a missing value does not hold, except ``!=`` and tests for absence.
    """
    match condition:
        case All(operands):
            return all(holds(each, entity, arguments) for each in operands)
        case Any_(operands):
            return any(holds(each, entity, arguments) for each in operands)
        case Inverse(operand):
            return not holds(operand, entity, arguments)
        case PartComparison(field, _, [value]):
            held, wanted = field_value(field, entity), _argument(value, entity, arguments)
            if held is None:
                return False
            return condition.derived.of(held) == argument_text(condition.part, wanted)
        case Comparison(field, operator, values):
            return _compare(
                operator,
                field_value(field, entity),
                [_argument(value, entity, arguments) for value in values],
            )
    raise AssertionError(condition)


def params_of(condition: Condition) -> tuple[Param, ...]:
    """Return the parameters that a condition compares with."""
    match condition:
        case All(operands) | Any_(operands):
            return tuple(param for each in operands for param in params_of(each))
        case Inverse(operand):
            return params_of(operand)
        case Comparison(_, _, values):
            return tuple(value for value in values if isinstance(value, Param))
    raise AssertionError(condition)


def _argument(value: Any, entity: Any, arguments: Mapping[str, Any]) -> Any:
    if isinstance(value, Param):
        return arguments[value.name]
    return field_value(value, entity) if isinstance(value, FieldRef) else value


def field_value(field: FieldRef, entity: Any) -> Any:
    """Return the value of a field, or of a path inside it such as ``address.city``.

    Returns None if the object has no such value.
    """
    found = getattr(entity, field.name, None)
    for step in field.path[1:]:
        by_index: Any = found
        try:
            is_indexed = isinstance(found, (dict, list, tuple))
            found = by_index[step] if is_indexed else getattr(found, str(step))
        except (KeyError, IndexError, AttributeError, TypeError):
            return None
    return found


def _compare(operator: str, value: Any, others: list[Any]) -> bool:
    value, others = plain(value), [plain(each) for each in others]
    if operator == "exists":
        return value is not None
    if operator == "not_exists" or (operator == "=" and others == [None]):
        return value is None
    if operator == "<>":
        return bool(value != others[0])
    if value is None:
        return False
    match operator:
        case "=":
            return bool(value == others[0])
        case "in":
            return value in others
        case "in_list":
            return value in [plain(each) for each in others[0]]
        case "<":
            return bool(value < others[0])
        case "<=":
            return bool(value <= others[0])
        case ">":
            return bool(value > others[0])
        case ">=":
            return bool(value >= others[0])
        case "between":
            return bool(others[0] <= value <= others[1])
        case "begins_with":
            return bool(value.startswith(others[0]))
        case "contains":
            return others[0] in value
    raise AssertionError(operator)
