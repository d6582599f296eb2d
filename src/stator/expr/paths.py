"""Document paths on an item: look up and project."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stator.expr.lexer import ExpressionError
from stator.expr.tree import Path, PathPart
from stator.model.values import Item, Value

INVALID_PATH = "The document path provided in the update expression is invalid for update"


def lookup(item: Item, path: Path) -> Value | None:
    parts = path.parts
    value: Value | None = item.get(parts[0])  # type: ignore[arg-type]
    for part in parts[1:]:
        if value is None:
            return None
        value = _child(value, part)
    return value


def _child(value: Value, part: PathPart) -> Value | None:
    if isinstance(part, str):
        children = value.get("M")
        return None if children is None else children.get(part)
    elements = value.get("L")
    return elements[part] if elements is not None and part < len(elements) else None


def parent(item: Item, path: Path) -> dict[Any, Any] | list[Any]:
    """Return the content of the map or list that holds the value at a path.

    The value itself may be missing. For a path of one name, the item is returned. Raises
    ExpressionError if the item has no such map or list.
    """
    parts = path.parts
    if len(parts) == 1:
        return item
    around = lookup(item, Path(parts[:-1]))
    if around is not None:
        if isinstance(parts[-1], int):
            if "L" in around:
                return around["L"]  # type: ignore[no-any-return]
        elif "M" in around:
            return around["M"]  # type: ignore[no-any-return]
    raise ExpressionError(INVALID_PATH)


def project(item: Item, paths: Iterable[Path]) -> Item:
    """Return a new item with only the given paths. Selected list elements keep their order."""
    wanted: dict[PathPart, Any] = {}
    for path in paths:
        branch = wanted
        for part in path.parts[:-1]:
            branch = branch.setdefault(part, {})
        branch[path.parts[-1]] = None
    return _pick_map(item, wanted)


def _pick_map(values: dict[Any, Any], wanted: dict[PathPart, Any]) -> dict[Any, Any]:
    picked = {}
    for name, branch in wanted.items():
        if name in values:
            value = _pick(values[name], branch)
            if value is not None:
                picked[name] = value
    return picked


def _pick(value: Value, branch: dict[PathPart, Any] | None) -> Value | None:
    if branch is None:
        return value
    if "M" in value:
        children = _pick_map(value["M"], branch)
        return {"M": children} if children else None
    if "L" in value:
        elements = [
            picked
            for index in sorted(part for part in branch if isinstance(part, int))
            if index < len(value["L"])
            and (picked := _pick(value["L"][index], branch[index])) is not None
        ]
        return {"L": elements} if elements else None
    return None
