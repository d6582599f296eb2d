"""Two paths of one update or projection must not touch the same place."""

from __future__ import annotations

from collections.abc import Sequence

from stator.expr.lexer import ExpressionError
from stator.expr.tree import Path


def check(paths: Sequence[Path]) -> None:
    """Refuse a path that is, or is inside, another (overlap), or reads a map as a list (conflict)."""

