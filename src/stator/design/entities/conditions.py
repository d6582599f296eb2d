"""Conditions built from class-level field references: ``(Order.total > 10) & Order.paid.exists()``.

Comparing a reference builds a ``Comparison``; conditions combine with ``&``, ``|`` and ``~``.
Python's ``and``, ``or`` and ``not`` cannot be overloaded. If a condition is used as a truth value,
it raises an error that says what to write instead.

Type checkers see a class-level reference as the field's own type, which makes ``Order.total > "x"``
an error. They do not see methods that only a reference has. For these, write ``attr``, as in
``attr(Order.name).begins_with("A")``. Type checkers also accept ``attr(Order.shipped_at) > moment``
for a field that may be None.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, Protocol, TypeVar, cast

from stator.design.entities.symbols import SHOWN_USES, Symbol, Use
from stator.errors import DesignError

T = TypeVar("T")
V = TypeVar("V", contravariant=True)
Operator = Literal[
    "=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "between",
    "in",
    "in_list",
    "begins_with",
    "contains",
    "exists",
    "not_exists",
    "part",
]
Step = str | int


class Condition:
    """A test of an item's fields, such as ``Order.total > 10``. Each kind has a subclass."""

    __slots__ = ()

    def __and__(self, other: Conditional) -> Condition:
        return All((*_parts(self, All), *_parts(as_condition(other), All)))

    def __or__(self, other: Conditional) -> Condition:
        return Any_((*_parts(self, Any_), *_parts(as_condition(other), Any_)))

    def __rand__(self, other: Conditional) -> Condition:
        return as_condition(other) & self

    def __ror__(self, other: Conditional) -> Condition:
        return as_condition(other) | self

    def __invert__(self) -> Condition:
        return self.operand if isinstance(self, Inverse) else Inverse(self)

    def __bool__(self) -> bool:
        raise DesignError(
            "a condition has no truth value",
            hint="join conditions with & and |, negate with ~, and put each comparison into "
            "parentheses",
        )


Conditional = Condition | int
"""A condition as type checkers see it.

To them, a comparison of fields such as ``Order.total > 10`` is a bool, and its ``~`` an int.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(Condition):
    """A condition on one field: an operator, and the values that the field is compared with."""

    field: FieldRef
    operator: Operator
    values: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"{self.field!r} {self.operator} {', '.join(map(repr, self.values))}".rstrip()


@dataclass(frozen=True, slots=True, eq=False)
class All(Condition):
    operands: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Any_(Condition):
    operands: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Inverse(Condition):
    operand: Condition


def _parts(condition: Condition, kind: type[All] | type[Any_]) -> tuple[Condition, ...]:
    return condition.operands if isinstance(condition, kind) else (condition,)


def as_condition(value: Any) -> Condition:
    if isinstance(value, Condition):
        return value
    is_short = value is None or isinstance(value, (bool, FieldRef))
    shown = repr(value) if is_short else f"a {type(value).__name__}"
    raise DesignError(
        f"{shown} is not a condition",
        hint="compare a field of the entity, for example Order.total > 10",
    )


class FieldRef(Symbol):
    """A reference to a field of a class, such as ``Order.total``.

    Comparing a reference builds a condition. Operations that need the field's value, such as
    arithmetic, raise an error. On an instance, ``order.total`` is the value: FieldRef is not a data
    descriptor, so the instance attribute takes precedence.
    """

    __slots__ = ("owner", "path")

    def __init__(self, owner: type, path: tuple[Step, ...]) -> None:
        self.owner = owner
        self.path = path

    @property
    def name(self) -> str:
        return str(self.path[0])

    def __get__(self, instance: Any, owner: type | None = None) -> FieldRef:
        if instance is not None:
            raise AttributeError(f"{self!r} has no value: it was never set")
        # A variant's fields belong to the entity that it is a variant of.
        owner = getattr(owner, "__root__", owner)
        return self if owner is None or owner is self.owner else FieldRef(owner, self.path)

    def __repr__(self) -> str:
        first, *inner = self.path
        known: dict[Any, str] = getattr(self.owner, "__python_names__", {})
        steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in inner)
        return f"{self.owner.__name__}.{known.get(first, first)}{steps}"

    def __getattr__(self, name: str) -> FieldRef:
        if name.startswith("__"):
            raise AttributeError(name)
        return FieldRef(self.owner, (*self.path, name))

    def __getitem__(self, step: Step) -> FieldRef:
        return FieldRef(self.owner, (*self.path, step))

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Any:
        return Comparison(self, "=", (other,))

    def __ne__(self, other: object) -> Any:
        return Comparison(self, "<>", (other,))

    def __lt__(self, other: Any) -> Any:
        return Comparison(self, "<", (other,))

    def __le__(self, other: Any) -> Any:
        return Comparison(self, "<=", (other,))

    def __gt__(self, other: Any) -> Any:
        return Comparison(self, ">", (other,))

    def __ge__(self, other: Any) -> Any:
        return Comparison(self, ">=", (other,))

    def between(self, low: Any, high: Any) -> Condition:
        return Comparison(self, "between", (low, high))

    def is_in(self, options: Iterable[Any]) -> Condition:
        """Test for one of several values.

        ``options`` may be a list argument of a pattern, whose values a call passes.
        """
        if isinstance(options, Symbol) and not isinstance(options, FieldRef):
            return Comparison(self, "in_list", (options,))
        if isinstance(options, (str, bytes)) or not isinstance(options, Iterable):
            raise DesignError(
                f"{self!r}.is_in() takes several values, not {type(options).__name__}",
                hint="write is_in([first, second])",
            )
        return Comparison(self, "in", tuple(options))

    def begins_with(self, prefix: Any) -> Condition:
        return Comparison(self, "begins_with", (prefix,))

    def contains(self, part: Any) -> Condition:
        return Comparison(self, "contains", (part,))

    def exists(self) -> Condition:
        return Comparison(self, "exists", ())

    def not_exists(self) -> Condition:
        return Comparison(self, "not_exists", ())

    def _refuse(self, use: Use) -> NoReturn:
        hint = f"write {self!r} == True" if use == "truth" else _HINTS.get(use, _NO_VALUE)
        raise DesignError(f"{self!r} is a field of a class and {SHOWN_USES[use]}", hint=hint)


_NO_VALUE = "a class has no values: read an item first, and use its field"
_HINTS: dict[Use, str] = {
    "members": "test for a member with attr(Order.tags).contains(...), and for one of several "
    "values with attr(Order.status).is_in([...])",
    "arithmetic": "a condition compares a field with a value: compute the value, and leave the "
    "field alone; join conditions with & and |, each in parentheses",
    "text": "repr() shows its name; for its value, read an item first",
}


def same_field(left: FieldRef, right: FieldRef) -> bool:
    """Whether two references name the same field (``==`` builds a condition instead)."""
    return left.owner is right.owner and left.path == right.path


class Attribute(Protocol[V]):
    """The methods of a field reference, as type checkers see them after ``attr``."""

    def __lt__(self, other: V) -> Condition: ...

    def __le__(self, other: V) -> Condition: ...

    def __gt__(self, other: V) -> Condition: ...

    def __ge__(self, other: V) -> Condition: ...

    def between(self, low: V, high: V) -> Condition: ...

    def is_in(self, options: Iterable[V]) -> Condition: ...

    def begins_with(self, prefix: V) -> Condition: ...

    def contains(self, part: Any) -> Condition: ...

    def exists(self) -> Condition: ...

    def not_exists(self) -> Condition: ...


def attr(field: T | None) -> Attribute[T]:
    """Return a field reference, typed so that checkers know its methods.

    Examples: ``attr(Order.status).is_in([Status.OPEN])``, and ``attr(Order.shipped_at) > moment``
    for a field of type ``datetime | None``.
    """
    if not isinstance(field, FieldRef):
        raise DesignError(
            f"{field!r} is not a field", hint="name it on its class, for example attr(Order.status)"
        )
    return cast("Attribute[T]", field)
