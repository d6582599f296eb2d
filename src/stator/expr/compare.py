"""Compares two attribute values. Both are normalised, so Python's ``==`` decides equality."""

from __future__ import annotations

from base64 import b64decode
from decimal import Decimal
from typing import Any

from stator.model.values import Value


def sort_value(value: Value) -> Any:
    """Return a Python value that sorts as DynamoDB sorts S, N or B values of one type.

    Python compares strings by code point, which is also the order of their UTF-8 bytes.
    """
    [(kind, content)] = value.items()
    if kind == "N":
        return Decimal(content)
    if kind == "B":
        return b64decode(content)
    return content


def compare(operator: str, left: Value | None, right: Value | None) -> bool:
    """Whether ``left operator right`` holds.

    If a value is missing, or the types differ, only ``<>`` holds.
    """
    if operator == "=":
        return left is not None and left == right
    if operator == "<>":
        return left is None or left != right
    if left is None or right is None:
        return False
    [(kind, _)] = left.items()
    if kind not in right or kind not in ("S", "N", "B"):
        return False
    first, second = sort_value(left), sort_value(right)
    if operator == "<":
        return bool(first < second)
    if operator == "<=":
        return bool(first <= second)
    if operator == ">":
        return bool(first > second)
    return bool(first >= second)


def begins_with(value: Value | None, prefix: Value | None) -> bool:
    if value is None or prefix is None:
        return False
    if "S" in value and "S" in prefix:
        return bool(value["S"].startswith(prefix["S"]))
    if "B" in value and "B" in prefix:
        return b64decode(value["B"]).startswith(b64decode(prefix["B"]))
    return False


def contains(value: Value | None, part: Value | None) -> bool:
    """Whether ``value`` contains ``part``, as ``contains(path, operand)`` defines it.

    ``part`` is a substring of a string or binary, a member of a set, or an element of a list. A
    missing value contains nothing.
    """
    if value is None or part is None:
        return False
    [(kind, content)] = value.items()
    [(part_kind, part_content)] = part.items()
    if kind == "S":
        return part_kind == "S" and part_content in content
    if kind == "B":
        return part_kind == "B" and b64decode(part_content) in b64decode(content)
    if kind in ("SS", "NS", "BS"):
        return part_kind == kind[0] and part_content in content
    return kind == "L" and part in content
