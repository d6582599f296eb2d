"""Evaluates bound conditions on an item."""

from __future__ import annotations

from base64 import b64decode

from stator.expr.compare import begins_with, compare, contains
from stator.expr.paths import lookup
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
from stator.model.values import Item, Value, content_of, kind_of


def evaluate(node: Condition, item: Item) -> bool:
    """Whether the condition holds. A missing item is treated as an item without attributes."""
    kind = type(node)
    if kind is Compare:
        left, right = _value(node.left, item), _value(node.right, item)  # type: ignore[union-attr]
        return compare(node.operator, left, right)  # type: ignore[union-attr]
    if kind is And:
        return all(evaluate(operand, item) for operand in node.operands)  # type: ignore[union-attr]
    if kind is Or:
        return any(evaluate(operand, item) for operand in node.operands)  # type: ignore[union-attr]
    if kind is Not:
        return not evaluate(node.operand, item)  # type: ignore[union-attr, arg-type]
    if isinstance(node, Function):
        return _function(node, item)
    if isinstance(node, Between):
        value = _value(node.operand, item)
        return compare(">=", value, _value(node.low, item)) and compare(
            "<=", value, _value(node.high, item)
        )
    assert isinstance(node, In)
    value = _value(node.operand, item)
    return any(compare("=", value, _value(option, item)) for option in node.options)


def _function(node: Function, item: Item) -> bool:
    arguments = node.arguments
    first = _value(arguments[0], item)
    match node.name:
        case "attribute_exists":
            return first is not None
        case "attribute_not_exists":
            return first is None
        case "attribute_type":
            wanted = _value(arguments[1], item)
            return first is not None and wanted is not None and kind_of(first) == content_of(wanted)
        case "begins_with":
            return begins_with(first, _value(arguments[1], item))
        case "contains":
            return contains(first, _value(arguments[1], item))
    raise AssertionError(node.name)


def _value(operand: Operand, item: Item) -> Value | None:
    kind = type(operand)
    if kind is Literal:
        return operand.value  # type: ignore[union-attr]
    if kind is Path:
        return lookup(item, operand)  # type: ignore[arg-type]
    assert isinstance(operand, Function) and operand.name == "size"
    measured = _value(operand.arguments[0], item)
    size = None if measured is None else size_of(measured)
    return None if size is None else {"N": str(size)}


def size_of(value: Value) -> int | None:
    """Return ``size(path)`` of a value, or None if values of its type have no size.

    The size of a string is its number of UTF-16 code units, as captured from AWS: "é" counts 1, a
    character past U+FFFF counts 2.
    """
    [(kind, content)] = value.items()
    if kind in ("N", "BOOL", "NULL"):
        return None
    if kind == "S":
        return len(content) if content.isascii() else len(content.encode("utf-16-le")) // 2
    if kind == "B":
        return len(b64decode(content))
    return len(content)
