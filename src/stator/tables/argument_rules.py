"""Checks the arguments of public methods by their annotations.

A method says in its annotations what it takes: ``once: bool``, ``limit: int | None``, ``returns:
Literal["old"] | None``. Without a check, ``once="no"`` counts as true, and ``limit="5"`` fails deep
inside with an error of Python's. ``checked_method`` refuses such a call before anything is planned.

Only annotations whose meaning is plain are checked: numbers, text, flags, literals, times,
functions, and classes. What belongs to a design (entities, queries, conditions, identities) is
checked where its meaning is known. Annotations are read at the first call, not at import.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Literal, ParamSpec, TypeVar

from stator.design.patterns.query import Question
from stator.errors import ConfigurationError, RequestRefused, StatorError

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=type)

_WORDS: dict[Any, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    Decimal: "a number",
    str: "text",
    bytes: "bytes",
    Callable: "a function",
    Mapping: "a dict",
    Sequence: "a list",
    tuple: "a tuple",
    type: "an entity class",
    Question: 'a pattern that is called with its arguments: orders_of_user("u1")',
}
_GENERIC: tuple[Any, ...] = (Callable, Mapping, Sequence, tuple, type)
"""The generic types that are checked, without what is inside them."""


@dataclass(frozen=True, slots=True)
class ArgumentRule:
    """What one argument may be: any of some types, literals, or None."""

    kinds: tuple[Any, ...]
    literals: tuple[Any, ...]
    is_optional: bool
    arity: int | None = None
    """The number of arguments that a function must take, if its annotation says so."""

    def allows(self, value: Any) -> bool:
        if self.arity is not None and callable(value) and not _takes(value, self.arity):
            return False
        if type(value) in self.kinds:  # nearly every call; the rest of this takes a microsecond
            return True
        if value is None:
            return self.is_optional
        if any(value is each or (type(value) is type(each) and value == each)
               for each in self.literals):  # fmt: skip
            return True
        return any(_is(value, kind) for kind in self.kinds)

    def __str__(self) -> str:
        words = [repr(each) for each in self.literals]
        kinds = [kind for kind in self.kinds if kind is not int or float not in self.kinds]
        words += dict.fromkeys(
            _function_word(self.arity) if kind is Callable and self.arity is not None
            else _word(kind) for kind in kinds
        )  # fmt: skip
        return " or ".join([*words, "None"] if self.is_optional else words)


def _is(value: Any, kind: Any) -> bool:
    if isinstance(value, bool):
        return kind is bool
    if kind is int:
        return isinstance(value, Integral)
    if kind in (float, Decimal):
        return isinstance(value, (Real, Decimal))
    if kind is Callable:
        return callable(value)
    if kind is Sequence and isinstance(value, (str, bytes)):  # one value, not several
        return False
    return isinstance(value, kind)


def _takes(function: Callable[..., Any], arity: int) -> bool:
    """Whether a function can be called with ``arity`` arguments, as far as Python can tell."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # built in, or of another language
        return True
    try:
        signature.bind(*[None] * arity)
    except TypeError:
        return False
    return True


def _function_word(arity: int) -> str:
    arguments = "argument" if arity == 1 else "arguments"
    return f"a function that takes {arity or 'no'} {arguments}"


def _word(kind: Any) -> str:
    return _WORDS.get(kind) or named(kind)


def named(kind: type) -> str:
    """Return the name of a class with its article: "an int"."""
    return f"{'an' if kind.__name__[0] in 'AEIOUaeiou' else 'a'} {kind.__name__}"


# --- from annotations to rules --------------------------------------------------------------------


def rules_of(function: Callable[..., Any]) -> dict[str, ArgumentRule]:
    """Return a rule for each parameter of a function that has a plain annotation."""
    found: dict[str, ArgumentRule] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        has_value = parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        # Seconds have an error of their own, which knows their range.
        if has_value and parameter.annotation is not parameter.empty and "_seconds" not in name:
            rule = _rule(_evaluated(parameter.annotation, function))
            if rule is not None:
                found[name] = rule
    return found


def _evaluated(annotation: Any, function: Callable[..., Any]) -> Any:
    """Return the type that an annotation names, or None if it names one for type checkers only."""
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    try:
        return typing.get_type_hints(holder, globalns=inspect.unwrap(function).__globals__)["it"]
    except (NameError, AttributeError, TypeError):
        return None


def _rule(annotation: Any) -> ArgumentRule | None:
    parts = (
        typing.get_args(annotation)
        if typing.get_origin(annotation) in (typing.Union, types.UnionType)
        else (annotation,)
    )
    kinds: list[Any] = []
    literals: list[Any] = []
    arity: int | None = None
    for part in parts:
        origin = typing.get_origin(part)
        if part is type(None):
            continue
        if origin is Literal:
            literals += typing.get_args(part)
        elif origin in _GENERIC:
            kinds.append(origin)
            taken = typing.get_args(part)[:1] if origin is Callable else ()
            if taken and isinstance(taken[0], list):
                arity = len(taken[0])
        elif origin is None and inspect.isclass(part) and _is_plain(part):
            kinds.append(part)
        else:
            return None
    return ArgumentRule(tuple(kinds), tuple(literals), type(None) in parts, arity)


def _is_plain(kind: type) -> bool:
    """Whether ``isinstance`` answers for this class. A protocol describes methods instead."""
    return kind not in (object, Any) and not getattr(kind, "_is_protocol", False)


# --- the check of a call --------------------------------------------------------------------------


def checked_method(
    function: Callable[P, T], *, shown: str, error: type[StatorError] = RequestRefused
) -> Callable[P, T]:
    """Return a method that refuses arguments of the wrong kind, and then calls ``function``.

    ``shown`` is the method's name in the error, such as "db.put".
    """
    rules: dict[str, ArgumentRule] | None = None
    unnamed: set[str] = set()
    positions: dict[int, str] = {}

    def prepare() -> dict[str, ArgumentRule]:
        nonlocal rules
        found = rules_of(function)
        for at, (name, parameter) in enumerate(inspect.signature(function).parameters.items()):
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.KEYWORD_ONLY):
                break
            if name in found:
                positions[at] = name
            if parameter.kind is parameter.POSITIONAL_ONLY:
                unnamed.add(name)  # a field of an identity may have the same name
        rules = found
        return found

    @functools.wraps(function)
    def method(*args: P.args, **kwargs: P.kwargs) -> T:
        known = prepare() if rules is None else rules
        for name in kwargs:
            if name in known and name not in unnamed and not known[name].allows(kwargs[name]):
                raise _refusal(shown, name, kwargs[name], known[name], error)
        for at, name in positions.items():
            if at < len(args) and not known[name].allows(args[at]):
                raise _refusal(shown, name, args[at], known[name], error)
        return function(*args, **kwargs)

    return method


def _refusal(
    shown: str, name: str, value: Any, rule: ArgumentRule, error: type[StatorError]
) -> StatorError:
    given = repr(value) if _may_be_shown(value, rule) else named(type(value))
    return error(f"{shown}(): {name} is {given}", hint=f"pass {rule}")


def _may_be_shown(value: Any, rule: ArgumentRule) -> bool:
    """Whether an error may quote the value: other texts may be long, or secret."""
    if isinstance(value, str):
        return bool(rule.literals) and len(value) <= 40
    return value is None or isinstance(value, (bool, int, float, Decimal))


def checks_arguments(owner: str) -> Callable[[C], C]:
    """Decorate a class so that its public methods refuse arguments of the wrong kind.

    ``owner`` is the name before the dot in errors. An ``__init__`` raises ConfigurationError, all
    other methods raise RequestRefused.
    """

    def decorate(cls: C) -> C:
        for name, method in list(vars(cls).items()):
            if name == "__init__":
                checked = checked_method(method, shown=owner, error=ConfigurationError)
                setattr(cls, name, checked)
            elif inspect.isfunction(method) and not name.startswith("_"):
                setattr(cls, name, checked_method(method, shown=f"{owner}.{name}"))
        return cls

    return decorate
