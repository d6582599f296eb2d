"""Trees with their ``#names`` filled in, cached by text and names.

Programs send the same expressions with the same names again and again, and only the values differ.
Names are therefore resolved once per text; values are bound per request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from stator.expr.parser import Parsed
from stator.expr.tree import (
    And,
    Arithmetic,
    Between,
    Compare,
    Function,
    In,
    Not,
    Or,
    Path,
    ProjectionExpression,
    RemoveAction,
    SetAction,
    UpdateExpression,
)


@lru_cache(maxsize=4096)
def parse_with_names(
    parse: Callable[[str], Parsed], text: str, names: tuple[tuple[str, str], ...]
) -> Parsed:
    """Return the tree of ``text`` with each ``#name`` replaced. ``names`` must define them all."""
    parsed = parse(text)
    return replace(parsed, tree=_named(parsed.tree, dict(names)))


def _named(node: Any, names: dict[str, str]) -> Any:
    def each(nodes: Any) -> tuple[Any, ...]:
        return tuple(_named(inner, names) for inner in nodes)

    match node:
        case Path(parts):
            return Path(
                tuple(names.get(part, part) if isinstance(part, str) else part for part in parts)
            )
        case Function(name, arguments):
            return Function(name, each(arguments))
        case Arithmetic(operator, left, right) | Compare(operator, left, right):
            return type(node)(operator, *each((left, right)))
        case Between(operand, low, high):
            return Between(*each((operand, low, high)))
        case In(operand, options):
            return In(_named(operand, names), each(options))
        case Not(operand):
            return Not(_named(operand, names))
        case And(operands) | Or(operands):
            return type(node)(each(operands))
        case RemoveAction(path):
            return RemoveAction(_named(path, names))
        case SetAction():
            return SetAction(_named(node.path, names), _named(node.value, names))
        case UpdateExpression(actions):
            return UpdateExpression(each(actions))
        case ProjectionExpression(paths):
            return ProjectionExpression(each(paths))
    return type(node)(_named(node.path, names), node.value) if hasattr(node, "path") else node
