"""Updates of an item, planned before anything is changed.

Every path and every right-hand side refers to the item before the update. So the size of the
finished item is known before anything is copied, and a short expression that asks for gigabytes is
refused at once: ``PlannedUpdate.growth`` is exact.

SET, ADD and DELETE are carried out first, REMOVE last. List elements are removed from the highest
index down and appended in the order of their indexes. The finished item shares every unchanged
value with the item before the update. Values that are set are used without a copy. A map or list
around a changed value is copied once, however many values in it change. So no code may change the
values of an item in place.
"""

from __future__ import annotations

from typing import Any, Union

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
from stator.model.values import (
    Item,
    Value,
    content_of,
    depth_of,
    kind_of,
    shared_size_bytes,
    sort_set,
)

MISSING = "The provided expression refers to an attribute that does not exist in the item"
WRONG_TYPE = "An operand in the update expression has an incorrect data type"
_LIST_BYTES = 3
_ELEMENT_BYTES = 1
"""The bytes of a list or map besides its entries, and of each entry besides name and value."""


class _JoinedList:
    """The result of ``list_append``: its parts, which are joined once their size is known."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[Value]) -> None:
        self.parts = parts

    def size_bytes(self, known: dict[int, int]) -> int:
        return _LIST_BYTES + sum(
            [shared_size_bytes(part, known) - _LIST_BYTES for part in self.parts]
        )

    def depth(self) -> int:
        return max(map(depth_of, self.parts))

    def join(self) -> Value:
        return {"L": [element for part in self.parts for element in part["L"]]}


_Result = Union[Value, _JoinedList]


class PlannedUpdate:
    """What an update will do to an item. ``growth`` is how many bytes larger the item becomes."""

    __slots__ = ("_is_nested", "_removals", "_sets", "growth")

    def __init__(self, update: UpdateExpression, item: Item) -> None:
        self.growth = 0
        self._is_nested = False
        self._sets: list[tuple[Path, _Result]] = []
        self._removals: list[Path] = []
        removals: list[Path] = []
        known_sets: dict[int, frozenset[str]] = {}
        for action in update.actions:
            if isinstance(action, SetAction):
                self._sets.append((action.path, _operand(action.value, item)))
            elif isinstance(action, RemoveAction):
                removals.append(action.path)
            elif isinstance(action, AddAction):
                self._sets.append((action.path, _sum(action, item)))
            else:
                left = _members_left(action, item, known_sets)
                if left is None:
                    removals.append(action.path)
                else:
                    self._sets.append((action.path, left))
        self._measure(item, removals)

    def _measure(self, item: Item, removals: list[Path]) -> None:
        """Compute the growth, and leave out removals of values that the item does not have."""
        known: dict[int, int] = {}
        for path, result in self._sets:
            old = self._present(item, path)
            if isinstance(result, _JoinedList):
                self.growth += result.size_bytes(known)
            else:
                self.growth += shared_size_bytes(result, known)
            self.growth += _entry_bytes(path) if old is None else -shared_size_bytes(old, known)
        for path in removals:
            old = self._present(item, path)
            if old is not None:
                self._removals.append(path)
                self.growth -= _entry_bytes(path) + shared_size_bytes(old, known)

    def _present(self, item: Item, path: Path) -> Value | None:
        """Return the value at a path, or None if the item has none.

        Raises ExpressionError if the map or list that would hold the value does not exist.
        """
        if len(path.parts) == 1:
            return item.get(path.parts[0])  # type: ignore[arg-type]
        self._is_nested = True
        paths.parent(item, path)
        return paths.lookup(item, path)

    def depth(self) -> int:
        """Return the deepest level of nesting that the update writes to."""
        deepest = 0
        for path, result in self._sets:
            depth = result.depth() if isinstance(result, _JoinedList) else depth_of(result)
            deepest = max(deepest, len(path.parts) - 1 + depth)
        return deepest

    def carry_out(self, item: Item) -> None:
        """Apply the update to ``item``, from which it was planned.

        Attributes are replaced. Maps and lists are copied before they change, so the values that
        the item had before are never modified.
        """
        if self._is_nested:
            self._carry_out_nested(item)
            return
        for path, result in self._sets:
            item[path.parts[0]] = _value(result)  # type: ignore[index]
        for path in self._removals:
            del item[path.parts[0]]  # type: ignore[arg-type]

    def _carry_out_nested(self, item: Item) -> None:
        copies: dict[int, Value] = {}
        for path, result in sorted(self._sets, key=_index_order):
            container, last = _own_parent(item, path, copies), path.parts[-1]
            if isinstance(last, int) and last >= len(container):
                container.append(_value(result))
            else:
                container[last] = _value(result)
        # Every path leads to its place before the first removal, because removals move elements.
        places = [(_own_parent(item, path, copies), path.parts[-1]) for path in self._removals]
        for container, last in sorted(places, key=_removal_order, reverse=True):
            del container[last]


def _own_parent(item: Item, path: Path, copies: dict[int, Value]) -> Any:
    """Return the map or list that holds the value at a path, ready to be changed.

    It is a copy, and so is every map or list around it, up to ``item``. ``copies`` holds the copies
    that this update has made, by ``id()``, so that none is copied again.
    """
    container: Any = item
    for part in path.parts[:-1]:
        value: Value = container[part]
        if id(value) not in copies:
            [(kind, content)] = value.items()
            value = container[part] = {kind: content.copy()}
            copies[id(value)] = value
        container = content_of(value)
    return container


def _index_order(entry: tuple[Path, _Result]) -> int:
    last = entry[0].parts[-1]
    return last if isinstance(last, int) else -1


def _removal_order(place: tuple[Any, Any]) -> int:
    last = place[1]
    return last if isinstance(last, int) else -1


def _entry_bytes(path: Path) -> int:
    """Return the bytes that the entry at a path takes in addition to its value.

    An entry is an attribute of an item, a member of a map, or an element of a list.
    """
    last = path.parts[-1]
    if isinstance(last, int):
        return _ELEMENT_BYTES
    name_bytes = len(last.encode())
    return name_bytes if len(path.parts) == 1 else _ELEMENT_BYTES + name_bytes


def _value(result: _Result) -> Value:
    return result.join() if isinstance(result, _JoinedList) else result


def _operand(node: Operand, item: Item) -> _Result:
    match node:
        case Literal(value):
            return value
        case Path():
            found = paths.lookup(item, node)
            if found is None:
                raise ExpressionError(MISSING)
            return found
        case Arithmetic(operator, left, right):
            first, second = _operand(left, item), _operand(right, item)
            if isinstance(first, _JoinedList) or isinstance(second, _JoinedList):
                raise ExpressionError(WRONG_TYPE)
            if "N" not in first or "N" not in second:
                raise ExpressionError(WRONG_TYPE)
            compute = numbers.add if operator == "+" else numbers.subtract
            return {"N": compute(first["N"], second["N"])}
        case Function("if_not_exists", (Path() as path, default)):
            found = paths.lookup(item, path)
            return _operand(default, item) if found is None else found
        case Function("list_append", (first_list, second_list)):
            head, tail = _operand(first_list, item), _operand(second_list, item)
            return _JoinedList(_parts(head) + _parts(tail))
    raise AssertionError(node)


def _parts(result: _Result) -> list[Value]:
    if isinstance(result, _JoinedList):
        return result.parts
    if "L" not in result:
        raise ExpressionError(WRONG_TYPE)
    return [result]


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


def _members_left(
    action: DeleteAction, item: Item, known_sets: dict[int, frozenset[str]]
) -> Value | None:
    """Return a set after DELETE, or None if no member is left.

    ``known_sets`` caches the members to delete, by the ``id()`` of their list, because an
    expression can delete one large set from many attributes.
    """
    assert isinstance(action.value, Literal)
    present = paths.lookup(item, action.path)
    if present is None:
        return None
    [(kind, members)] = action.value.value.items()
    if kind not in present:
        raise ExpressionError(WRONG_TYPE)
    deleted = known_sets.get(id(members))
    if deleted is None:
        deleted = known_sets[id(members)] = frozenset(members)
    left = [member for member in present[kind] if member not in deleted]
    return {kind: left} if left else None
