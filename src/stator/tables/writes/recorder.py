"""The recording proxy: changes made to it in ``with db.update(...) as order`` become one update.

    order.status = Status.SHIPPED              SET
    order.stock -= 2                           SET stock = stock - 2; the default stands in for a
                                               missing stock
    order.note = None, or del order.note       REMOVE
    order.lines.append(line)                   list_append
    order.tags.add("late")                     ADD; order.tags.discard("late") is DELETE
    order.address.city = "Bern"                SET of a nested path
    order.seen = if_not_exists(order.seen, t)  SET seen = if_not_exists(seen, t); + and - may follow

Nothing is read: a recorded field has no value, and reading one is an error. Values are checked
against the field's type at once, so that the traceback shows the line with the mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal, NoReturn, TypeVar

from stator.design.entities.conditions import FieldRef
from stator.design.entities.shapes import ListOf, MapOf, Maybe, Nested, SetOf, Shape, TypedMap
from stator.design.entities.symbols import Symbol, Use
from stator.design.entities.wire import WrongValue, encode_anything, encoder, omits
from stator.design.patterns.filter_writer import shape_at
from stator.errors import ItemMismatch, RequestRefused
from stator.model.values import Value
from stator.tables.schema.entity_map import EntityMap
from stator.tables.writes.expressions import Expressions

_NULL = {"NULL": True}
T = TypeVar("T")
Path = tuple[str | int, ...]


# --- what is recorded -----------------------------------------------------------------------------


def _unread(shown: str, use: Use) -> NoReturn:
    raise RequestRefused(
        f"{shown} has no value here: an update records changes and does not read the item",
        hint=_HINTS.get(use, _READ),
    )


_READ = "read the item first with get, or state what must hold with when="
_HINTS: dict[Use, str] = {
    "text": "DynamoDB cannot build text: read the item with get, build the text, and assign it; "
    "state with when= that the item has not changed",
    "arithmetic": "an update computes only + and - of a number, + of a list, and | and - of a set; "
    "for anything else, read the item with get and assign the result",
    "call": "methods of values cannot be called: read the item with get, and assign the result; "
    "lists have append, extend and insert(0, ...), sets have add, update and discard",
}


class Computed(Symbol):
    """A value that DynamoDB will compute. An update can assign the value, but cannot read it."""

    __slots__ = ()
    path: Path

    def _refuse(self, use: Use) -> NoReturn:
        shown = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        _unread(f"the value to be computed from {shown.lstrip('.')}", use)


@dataclass(frozen=True, slots=True, eq=False)
class Sum(Computed):
    """``path + value`` or ``path - value``. ``start`` is used if the path has no number yet."""

    path: Path
    sign: Literal["+", "-"]
    value: Value
    start: Value | None


@dataclass(frozen=True, slots=True, eq=False)
class Joined(Computed):
    """Elements appended or prepended to a list."""

    path: Path
    value: Value
    in_front: bool


@dataclass(frozen=True, slots=True, eq=False)
class Members(Computed):
    """Members added to a set, or removed from it."""

    path: Path
    value: Value
    out: bool


@dataclass(frozen=True, slots=True, eq=False)
class IfAbsent(Computed):
    path: Path
    given: Any

    def __add__(self, amount: Any) -> Started:
        return Started(self.path, "+", amount, self.given)

    def __sub__(self, amount: Any) -> Started:
        return Started(self.path, "-", amount, self.given)


@dataclass(frozen=True, slots=True, eq=False)
class Started(Computed):
    """``if_not_exists(p.counts["x"], 0) + 1``: a sum with a start value from the user."""

    path: Path
    sign: Literal["+", "-"]
    amount: Any
    given: Any


@dataclass(frozen=True, slots=True)
class RecordedAction:
    """One action on a path.

    ``value`` is DynamoDB JSON, a computed value such as ``Sum`` or ``Joined``, or None for a
    removal. ``plain`` is the value as the user set it, if the whole value is known.
    """

    path: Path
    value: Any
    plain: Any = None

    def __repr__(self) -> str:
        """Return the action as text.

        The form of this text must never change, because transaction tokens store a checksum of it
        (``transaction_tokens``).
        """
        return f"Action(path={self.path!r}, value={self.value!r}, plain={self.plain!r})"


class Recording:
    """The actions of one update, at most one for each path.

    A later assignment to a path replaces an earlier action. Additions to the same path are
    combined.
    """

    def __init__(self, of: EntityMap) -> None:
        self.of = of
        self.actions: dict[Path, RecordedAction] = {}
        self.is_over = False
        """Whether the block of the update has ended, so that a change would be lost."""

    def check_open(self, what: str) -> None:
        """Raise RequestRefused if the block of the update has ended."""
        if self.is_over:
            raise RequestRefused(
                f"the update of {self.of.name} has ended: {what}",
                hint="make all changes inside one `with` block, or start another update",
            )

    @property
    def fields(self) -> set[str]:
        return {str(path[0]) for path in self.actions}

    @property
    def relative(self) -> bool:
        """Whether applying the update twice differs from applying it once."""
        return any(
            isinstance(action.value, (Sum, Joined)) or any(isinstance(step, int) for step in path)
            for path, action in self.actions.items()
        )

    def known(self) -> dict[str, Any]:
        """Return the fields whose value after the update is known, with that value."""
        return {
            str(path[0]): action.plain
            for path, action in self.actions.items()
            if len(path) == 1 and _is_known(action)
        }

    def set(self, path: Path, given: Any) -> None:
        self.check_open(f"a change of {self.shown(path)} would be lost")
        self._check_names(path)
        if isinstance(given, RecordedField):
            raise RequestRefused(
                f"{given!r} has no value here: an update records changes and does not read "
                "the item",
                hint="assign a value, or change the field itself, for example "
                "`p.stock = p.stock - 2`",
            )
        if isinstance(given, Started):
            field = RecordedField(self, given.path)
            given = replace(
                field._sum(given.sign, given.amount), start=self.encoded(given.path, given.given)
            )
        if isinstance(given, (Sum, Joined, Members)):
            if given.path != path:
                raise RequestRefused(
                    f"{self.shown(path)} can only be computed from its own value",
                    hint="read the item, and write it back with put",
                )
            self._keep(RecordedAction(path, given))
        elif isinstance(given, IfAbsent):
            self._keep(RecordedAction(path, IfAbsent(given.path, self.encoded(path, given.given))))
        elif self._is_omitted(path, given):
            self._keep(RecordedAction(path, None))
        else:
            self._keep(RecordedAction(path, self.encoded(path, given), given))

    def remove(self, path: Path) -> None:
        self.check_open(f"a removal of {self.shown(path)} would be lost")
        self._check_names(path)
        if (
            len(path) == 1
            and not isinstance(self.shape(path), Maybe)
            and self.default(str(path[0])) is None
        ):
            raise RequestRefused(
                f"{self.shown(path)} cannot be removed: every {self.of.name} has one",
                hint="declare a default for it, or make it optional",
            )
        default = self.default(str(path[0])) if len(path) == 1 else None
        value = None if default is None else default()
        if value is None:
            self._keep(RecordedAction(path, None))
        else:
            self.set(path, value)  # as a missing attribute would be read; index keys need the value

    def _check_names(self, path: Path) -> None:
        """Refuse a nested name that the class of the value does not have."""
        for at in range(1, len(path)):
            shape = self.shape(path[:at])
            shape = shape.inner if isinstance(shape, Maybe) else shape
            if not isinstance(shape, (Nested, TypedMap)):
                continue
            known = [name for name, _, _ in shape.fields]
            if path[at] not in known:
                raise RequestRefused(
                    f"{self.shown(path[:at])} is a {shape.cls.__name__}, which has no field "
                    f"{path[at]!r:.60}",
                    hint=f"its fields are {', '.join(known)}",
                )

    def _is_omitted(self, path: Path, given: Any) -> bool:
        """Whether a value is stored by removing the path: None, or an empty set."""
        shape = self.shape(path)
        return shape is not None and omits(shape)(given)

    def _keep(self, action: RecordedAction) -> None:
        for known in list(self.actions):
            if known == action.path:
                continue
            shorter = min(len(known), len(action.path))
            if known[:shorter] == action.path[:shorter]:
                raise RequestRefused(
                    f"{self.shown(known)} and {self.shown(action.path)} are both changed, "
                    "and one is inside the other",
                    hint="change the whole or the part",
                )
        earlier = self.actions.get(action.path)
        if earlier is not None and isinstance(action.value, (Sum, Joined, Members, IfAbsent)):
            action = _combined(earlier, action, self.shown(action.path))
        self.actions[action.path] = action

    def shape(self, path: Path) -> Shape | None:
        return shape_at(self.of.info, FieldRef(self.of.cls, path))

    def shown(self, path: Path) -> str:
        short = (f"{step:.60}" if isinstance(step, str) else step for step in path)
        return repr(FieldRef(self.of.cls, tuple(short)))

    def encoded(self, path: Path, given: Any, shape: Shape | None = None) -> Value:
        shape = shape if shape is not None else self.shape(path)
        try:
            return encode_anything(given) if shape is None else encoder(shape)(given)
        except WrongValue as error:
            raise ItemMismatch(
                self.of.name, self.shown(path).partition(".")[2], error.wanted, error.value
            ) from None

    def start(self, path: Path) -> Value | None:
        """Return the start value for a sum on a missing number: the field's default, or None."""
        if len(path) != 1:
            return None
        default = self.default(str(path[0]))
        value = None if default is None else default()
        return None if value is None else self.encoded(path, value)

    def default(self, field: str) -> Callable[[], Any] | None:
        """Return the function that creates a field's default value.

        Returns None if the field is required.
        """
        return self.of.info.default_maker(field)

    def inner_paths(self) -> list[Path]:
        """Return the nested paths of the update. The parent of each path must already exist."""
        return [path for path in self.actions if len(path) > 1]

    def added_to(self) -> list[Path]:
        """Return the paths of numbers that must exist, because sums on them have no start value."""
        return [
            path
            for path, action in self.actions.items()
            if isinstance(action.value, Sum) and action.value.start is None
        ]

    # -- as an expression

    def expression(self, written: Expressions, more: Mapping[str, list[str]]) -> str:
        """Return the UpdateExpression. ``more`` maps clauses such as SET to further actions."""
        clauses: dict[str, list[str]] = {
            word: list(more.get(word, ())) for word in ("SET", "REMOVE", "ADD", "DELETE")
        }
        for action in self.actions.values():
            path = written.path(action.path)
            match action.value:
                case None:
                    clauses["REMOVE"].append(path)
                case Members(value=value, out=out):
                    clauses["DELETE" if out else "ADD"].append(f"{path} {written.value(value)}")
                case value:
                    clauses["SET"].append(f"{path} = {_operand(value, written)}")
        return " ".join(f"{word} {', '.join(parts)}" for word, parts in clauses.items() if parts)


def _is_known(action: RecordedAction) -> bool:
    value = action.value
    return value is None or (type(value) is dict and value == _NULL) or action.plain is not None


def _combined(earlier: RecordedAction, later: RecordedAction, shown: str) -> RecordedAction:
    """Return one action for two changes to the same path, ``shown``, in one update.

    Two sums are added up. Two additions to a set are joined, and so are two removals from a set,
    and two additions at the same end of a list. Anything else raises RequestRefused.
    """
    before, after = earlier.value, later.value
    if isinstance(before, Sum) and isinstance(after, Sum):
        total = _signed(before) + _signed(after)
        return RecordedAction(later.path, Sum(after.path, "+", {"N": str(total)}, after.start))
    if isinstance(before, Members) and isinstance(after, Members) and before.out == after.out:
        [(kind, members)] = after.value.items()
        if kind in before.value:
            return RecordedAction(
                later.path,
                Members(after.path, {kind: sorted({*before.value[kind], *members})}, after.out),
            )
    if (
        isinstance(before, Joined)
        and isinstance(after, Joined)
        and before.in_front == after.in_front
    ):
        both = (
            after.value["L"] + before.value["L"]
            if after.in_front
            else before.value["L"] + after.value["L"]
        )
        return RecordedAction(later.path, Joined(after.path, {"L": both}, after.in_front))
    raise RequestRefused(
        f"{shown} is changed twice in one update", hint="combine the changes into one"
    )


def _signed(change: Sum) -> Decimal:
    number = Decimal(change.value["N"])
    return number if change.sign == "+" else -number


def _operand(value: Any, written: Expressions) -> str:
    match value:
        case Sum(path, sign, amount, start):
            here = written.path(path)
            first = here if start is None else f"if_not_exists({here}, {written.value(start)})"
            return f"{first} {sign} {written.value(amount)}"
        case Joined(path, elements, in_front):
            here = f"if_not_exists({written.path(path)}, {written.value({'L': []})})"
            ends = (written.value(elements), here) if in_front else (here, written.value(elements))
            return f"list_append({ends[0]}, {ends[1]})"
        case IfAbsent(path, given):
            return f"if_not_exists({written.path(path)}, {written.value(given)})"
    return written.value(value)


# --- what the user holds --------------------------------------------------------------------------


class Recorder(Symbol):
    """Represents the item inside an update, and records changes to it."""

    __slots__ = ("_recording",)
    _recording: Recording

    def __init__(self, recording: Recording) -> None:
        object.__setattr__(self, "_recording", recording)

    def __getattr__(self, name: str) -> RecordedField:
        return RecordedField(self._recording, (_field(self._recording, name),))

    def __setattr__(self, name: str, value: Any) -> None:
        self._recording.set((_field(self._recording, name),), value)

    def __delattr__(self, name: str) -> None:
        self._recording.remove((_field(self._recording, name),))

    def __repr__(self) -> str:
        changed = ", ".join(map(self._recording.shown, self._recording.actions)) or "nothing yet"
        return f"<update of {self._recording.of.name}: {changed}>"

    def _refuse(self, use: Use) -> NoReturn:
        _unread(self._recording.of.name, use)


def _field(recording: Recording, name: str) -> str:
    if name.startswith("__"):
        raise AttributeError(name)
    known = recording.of.info
    name = known.stored_names.get(name, name)
    if name not in recording.of.fields:
        raise RequestRefused(
            f"{recording.of.name} has no field {name!r}",
            hint=f"its fields are {known.listed(recording.of.fields)}",
        )
    return name


class RecordedField(Symbol):
    """A field, or something inside one, of an item that is being updated."""

    __slots__ = ("_path", "_recording")
    _path: Path
    _recording: Recording

    def __init__(self, recording: Recording, path: Path) -> None:
        object.__setattr__(self, "_recording", recording)
        object.__setattr__(self, "_path", path)

    def __repr__(self) -> str:
        return self._recording.shown(self._path)

    # -- inside

    def __getattr__(self, name: str) -> RecordedField:
        if name.startswith("__"):
            raise AttributeError(name)
        return RecordedField(self._recording, (*self._path, name))

    def __setattr__(self, name: str, value: Any) -> None:
        self._recording.set((*self._path, name), value)

    def __delattr__(self, name: str) -> None:
        self._recording.remove((*self._path, name))

    def __getitem__(self, step: str | int) -> RecordedField:
        return RecordedField(self._recording, (*self._path, self._step(step)))

    def __setitem__(self, step: str | int, value: Any) -> None:
        self._recording.set((*self._path, self._step(step)), value)

    def __delitem__(self, step: str | int) -> None:
        self._recording.remove((*self._path, self._step(step)))

    def _step(self, given: Any) -> str | int:
        """Return a key of a dict or an index of a list. Raises RequestRefused for anything else."""
        if isinstance(given, str):
            return str.__str__(given)  # the text of a member of a str Enum is its value
        if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
            return int(given)
        shown = repr(given) if isinstance(given, (int, float)) else f"a {type(given).__name__}"
        raise RequestRefused(
            f"{self!r}[...]: {shown} is neither a key of a dict nor an index of a list",
            hint="use text, or a whole number from 0; DynamoDB does not count from the end and "
            "has no slices: read the item with get, and assign the whole list",
        )

    # -- numbers, lists and sets

    def __add__(self, other: Any) -> Any:
        kind = _kind(self._recording.shape(self._path), other)
        if kind == "list":
            return self._joined(other, in_front=False)
        return self._sum("+", other)

    def __radd__(self, other: Any) -> Any:
        if _kind(self._recording.shape(self._path), other) == "list":
            return self._joined(other, in_front=True)
        return self._sum("+", other)

    def __sub__(self, other: Any) -> Any:
        if _kind(self._recording.shape(self._path), other) == "set":
            return self._members(other, out=True)
        return self._sum("-", other)

    def __or__(self, other: Any) -> Any:
        return self._members(other, out=False)

    def _sum(self, sign: Literal["+", "-"], other: Any) -> Sum:
        if isinstance(other, bool) or not isinstance(other, (int, float, Decimal)):
            raise RequestRefused(
                f"{self!r} {sign} {type(other).__name__}: the right side is not a number",
                hint="+ and - take numbers, + also joins lists, - also removes members of a set; "
                "to replace the field, assign the new value",
            )
        recording = self._recording
        return Sum(
            self._path, sign, recording.encoded(self._path, other), recording.start(self._path)
        )

    def _joined(self, elements: Any, *, in_front: bool) -> Joined:
        shape = _bare(self._recording.shape(self._path))
        container = shape.container if isinstance(shape, ListOf) else list
        given = container(self._several(elements, "list"))
        return Joined(self._path, self._recording.encoded(self._path, given), in_front)

    def _members(self, members: Any, *, out: bool) -> Members:
        shape = _bare(self._recording.shape(self._path))
        if isinstance(shape, (MapOf, Nested, TypedMap)):
            raise RequestRefused(
                f"{self!r} is a dict or an object, and DynamoDB adds only to sets and lists",
                hint='set each key: u.counts["x"] = 1; or assign the whole value',
            )
        container = frozenset if isinstance(shape, SetOf) and shape.frozen else set
        try:
            given = container(self._several(members, "set"))
        except TypeError as error:  # members that cannot be hashed
            raise RequestRefused(
                f"{self!r}: {error}", hint="members of a set are text, numbers, bytes and the like"
            ) from None
        return Members(self._path, self._recording.encoded(self._path, given), out)

    def _several(self, given: Any, kind: str) -> Iterable[Any]:
        """Return elements to add or to remove. Raises RequestRefused if they are one value."""
        if isinstance(given, Iterable) and not isinstance(
            given, (str, bytes, bytearray, Mapping, Symbol)
        ):
            return given
        raise RequestRefused(
            f"{self!r}: a {type(given).__name__} is not a {kind} of values",
            hint=f"pass a {kind}, or use append, add and discard for a single value",
        )

    def append(self, element: Any) -> None:
        self._recording.set(self._path, self._joined([element], in_front=False))

    def extend(self, elements: Iterable[Any]) -> None:
        self._recording.set(self._path, self._joined(elements, in_front=False))

    def insert(self, at: int, element: Any) -> None:
        if type(at) is not int or at != 0:
            shown = at if isinstance(at, int) else "..."
            raise RequestRefused(
                f"{self!r}.insert({shown}, ...): DynamoDB adds elements only at the ends of a list",
                hint="use insert(0, ...) or append(...)",
            )
        self._recording.set(self._path, self._joined([element], in_front=True))

    def add(self, member: Any) -> None:
        self._recording.set(self._path, self._members([member], out=False))

    def update(self, members: Iterable[Any]) -> None:
        self._recording.set(self._path, self._members(members, out=False))

    def discard(self, member: Any) -> None:
        self._recording.set(self._path, self._members([member], out=True))

    remove = discard

    def difference_update(self, members: Iterable[Any]) -> None:
        self._recording.set(self._path, self._members(members, out=True))

    # -- there is nothing to read

    def _refuse(self, use: Use) -> NoReturn:
        _unread(repr(self), use)


def if_not_exists(field: T, value: T) -> T:
    """Return an expression for the stored value of a field or, if there is none, ``value``.

    Only valid inside an update, where DynamoDB evaluates it.
    """
    if not isinstance(field, RecordedField):
        raise RequestRefused(
            "if_not_exists() is for use inside an update",
            hint="for example `u.seen = if_not_exists(u.seen, now)`",
        )
    return IfAbsent(field._path, value)  # type: ignore[return-value]


def _bare(shape: Shape | None) -> Shape | None:
    return shape.inner if isinstance(shape, Maybe) else shape


def _kind(shape: Shape | None, other: Any) -> Literal["list", "set", "number"]:
    shape = _bare(shape)
    if isinstance(shape, ListOf) or (shape is None and isinstance(other, (list, tuple))):
        return "list"
    if isinstance(shape, SetOf) or (shape is None and isinstance(other, (set, frozenset))):
        return "set"
    return "number"
