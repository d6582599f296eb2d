"""The rule that no two paths of an update or projection overlap or conflict."""

from __future__ import annotations

from collections.abc import Sequence

from stator.expr.lexer import ExpressionError
from stator.expr.tree import Path


def check(paths: Sequence[Path]) -> None:
    """Refuse two paths that overlap or conflict.

    Two paths overlap if one equals or contains the other, such as ``a`` and ``a.b``. They conflict
    if, at the same place, one expects a map and the other a list, such as ``a.b`` and ``a[0]``.
    """

    for index, second in enumerate(paths):
        for first in paths[:index]:
            if first.parts[0] == second.parts[0]:
                _check_pair(first, second)


def _check_pair(first: Path, second: Path) -> None:
    for left, right in zip(first.parts, second.parts):
        if left != right:
            if isinstance(left, int) != isinstance(right, int):
                raise _error("conflict", first, second)
            return
    raise _error("overlap", first, second)


def _error(word: str, first: Path, second: Path) -> ExpressionError:
    return ExpressionError(
        f"Two document paths {word} with each other; must remove or rewrite one of these paths; "
        f"path one: {first.shown()}, path two: {second.shown()}"
    )
