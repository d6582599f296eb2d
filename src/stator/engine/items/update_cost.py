"""How much of the 400 KB an UpdateItem's own clauses take.

AWS limits not only the finished item but also the bytes of the request's clauses, counted in a way of its own, before
it evaluates the condition. The figures are those captured from AWS (eu-west-2, October 2026) by the public
paritysuite conformance suite.
"""

from __future__ import annotations

from stator.expr.tree import (
    AddAction,
    Arithmetic,
    Function,
    Literal,
    Operand,
    Path,
    SetAction,
    Update,
)
from stator.model.values import size_bytes

_OPERATOR_COST = {"+": 34, "-": 37, "if_not_exists": 39, "list_append": 37}


def update_cost(update: Update) -> int:
    return 3 + sum(_action_cost(action) for action in update.actions)


def _action_cost(action: object) -> int:
    if isinstance(action, (SetAction, AddAction)):
        return 19 + _target(action.path) + _operand(action.value)
    return 1 + _target(action.path)  # type: ignore[attr-defined]


def _target(path: Path) -> int:
    first, *rest = path.parts
    return len(str(first).encode()) + sum(4 + len(str(part).encode()) for part in rest)


def _operand(node: Operand) -> int:
    match node:
        case Literal(value):
            return size_bytes(value)
        case Path(parts):
            return 1 + sum(14 + len(str(part).encode()) for part in parts)
        case Arithmetic(operator, left, right):
            return _OPERATOR_COST[operator] + _operand(left) + _operand(right)
        case Function(name, arguments):
            return _OPERATOR_COST[name] + sum(map(_operand, arguments))
    return 0
