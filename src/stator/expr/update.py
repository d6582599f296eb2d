"""Applies bound updates to an item.

Every right-hand side is computed from the item before the update. SET, ADD and DELETE are applied
first, REMOVE last. List elements are removed from the highest index down and appended in the order
of their indexes.
"""

from __future__ import annotations

from copy import deepcopy

from stator.expr import paths
from stator.expr.lexer import ExpressionError
from stator.expr.tree import (
    AddAction,
    Arithmetic,
    DeleteAction,
    Function,
    Literal,
    Operand,
    Path,
    RemoveAction,
    SetAction,
    UpdateExpression,
)
from stator.model import numbers
from stator.model.values import Item, Value, kind_of, sort_set

MISSING = "The provided expression refers to an attribute that does not exist in the item"
WRONG_TYPE = "An operand in the update expression has an incorrect data type"


def apply(update: UpdateExpression, item: Item) -> None:
    """Change ``item`` in place.

    Nested values are copied first, because other items may share them.
    """
    sets: list[tuple[Path, Value]] = []
    removals: list[Path] = []
    for action in update.actions:
        if isinstance(action, SetAction):
            sets.append((action.path, _operand(action.value, item)))
        elif isinstance(action, RemoveAction):
            removals.append(action.path)
        elif isinstance(action, AddAction):
            sets.append((action.path, _sum(action, item)))
        else:
            _delete_members(action, item, sets, removals)
    changed = [path for path, _ in sets] + removals
    if any(len(path.parts) > 1 for path in changed):
        _apply_nested(changed, sets, removals, item)
        return
    for path, value in sets:
        item[path.parts[0]] = value  # type: ignore[index]
    for path in removals:
        item.pop(path.parts[0], None)  # type: ignore[arg-type]


def _apply_nested(
    changed: list[Path], sets: list[tuple[Path, Value]], removals: list[Path], item: Item
) -> None:
    for name in {str(path.parts[0]) for path in changed if len(path.parts) > 1}:
        if name in item:
            item[name] = deepcopy(item[name])
    for path, value in sorted(sets, key=_index_order):
        paths.assign(item, path, value)
    for path in sorted(removals, key=_index_order, reverse=True):
        paths.remove(item, path)


def _index_order(entry: Path | tuple[Path, Value]) -> int:
    path = entry if isinstance(entry, Path) else entry[0]
    last = path.parts[-1]
    return last if isinstance(last, int) else -1


def _operand(node: Operand, item: Item) -> Value:
    match node:
        case Literal(value):
            return _copied(value)
        case Path():
            found = paths.lookup(item, node)
            if found is None:
                raise ExpressionError(MISSING)
            return _copied(found)
        case Arithmetic(operator, left, right):
            first, second = _operand(left, item), _operand(right, item)
            if "N" not in first or "N" not in second:
                raise ExpressionError(WRONG_TYPE)
            compute = numbers.add if operator == "+" else numbers.subtract
            return {"N": compute(first["N"], second["N"])}
        case Function("if_not_exists", (Path() as path, default)):
            found = paths.lookup(item, path)
            return _operand(default, item) if found is None else _copied(found)
        case Function("list_append", (first_list, second_list)):
            head, tail = _operand(first_list, item), _operand(second_list, item)
            if "L" not in head or "L" not in tail:
                raise ExpressionError(WRONG_TYPE)
            return {"L": head["L"] + tail["L"]}
    raise AssertionError(node)


def _copied(value: Value) -> Value:
    """Return a copy of a map or list.

    Scalars and sets are returned as they are: nothing edits them.
    """
    return deepcopy(value) if "M" in value or "L" in value else value


def _sum(action: AddAction, item: Item) -> Value:
    """Return an attribute's value after ADD: a number plus a number, or a set plus members.

    A missing attribute counts as 0 or as an empty set.
    """
    assert isinstance(action.value, Literal)
    added = action.value.value
    present = paths.lookup(item, action.path)
    if present is None:
        return dict(added)
    kind = kind_of(added)
    if kind not in present:
        raise ExpressionError(WRONG_TYPE)
    if kind == "N":
        return {"N": numbers.add(present["N"], added["N"])}
    return {kind: sort_set(kind, list({*present[kind], *added[kind]}))}


def _delete_members(
    action: DeleteAction, item: Item, sets: list[tuple[Path, Value]], removals: list[Path]
) -> None:
    """Plan the deletion of members from a set; the item itself is not changed yet.

    The remaining set is added to ``sets``. If no member remains, the path is added to ``removals``.
    """
    assert isinstance(action.value, Literal)
    present = paths.lookup(item, action.path)
    if present is None:
        removals.append(action.path)
        return
    [(kind, members)] = action.value.value.items()
    if kind not in present:
        raise ExpressionError(WRONG_TYPE)
    deleted = frozenset(members)
    left = [member for member in present[kind] if member not in deleted]
    if left:
        sets.append((action.path, {kind: left}))
    else:
        removals.append(action.path)
