"""The fields, comparisons and values in a condition."""

from __future__ import annotations

from typing import Any

from stator.design.entities.conditions import Comparison, FieldRef
from stator.design.entities.derived_parts import PartComparison


def references(condition: Any) -> list[FieldRef]:
    """Return every field that a condition reads."""
    if isinstance(condition, Comparison):
        return [
            condition.field,
            *(value for value in condition.values if isinstance(value, FieldRef)),
        ]
    operands = getattr(condition, "operands", None) or (condition.operand,)
    return [reference for operand in operands for reference in references(operand)]


def parts_in(condition: Any) -> list[PartComparison]:
    """Return every comparison of a derived part in a condition."""
    if isinstance(condition, Comparison):
        return [condition] if isinstance(condition, PartComparison) else []
    operands = getattr(condition, "operands", None) or (condition.operand,)
    return [test for operand in operands for test in parts_in(operand)]


def comparisons_in(condition: Any) -> list[Comparison]:
    """Return every comparison in a condition."""
    if isinstance(condition, Comparison):
        return [condition]
    operands = getattr(condition, "operands", None) or (condition.operand,)
    return [test for operand in operands for test in comparisons_in(operand)]


def compared_values(condition: Any) -> list[Any]:
    """Return every value that a condition compares a field with."""
    if isinstance(condition, Comparison):
        return list(condition.values)
    operands = getattr(condition, "operands", None) or (condition.operand,)
    return [value for operand in operands for value in compared_values(operand)]
