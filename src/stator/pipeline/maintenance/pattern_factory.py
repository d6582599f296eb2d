"""Patterns for workers. An app is declared before it is known which database it will work on, so it is given what makes the pattern: ``def readings(db): return Series(db, ...)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from stator.errors import ConfigurationError
from stator.tables.context import Context
from stator.tables.operation import OnDb

P = TypeVar("P", bound=OnDb[Any])
_KEPT = 8


class PatternDb:
    """What a pattern is made on in a worker: all that it needs of a Db to plan its work, which the worker carries out."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def __getattr__(self, name: str) -> Any:
        raise ConfigurationError(
            f"db.{name} is not there while a worker makes its patterns",
            hint="only make the pattern, as in: return Series(db, Reading, ...)",
        )


class PatternFactory(Generic[P]):
    """A pattern for each database, of a function from a Db, or one that is there already."""

    def __init__(self, given: P | Callable[[Any], P], kind: type[P], what: str) -> None:
        self._given = given
        self._kind = kind
        self._what = what
        self._made: list[tuple[Context, P]] = []
        if not isinstance(given, kind) and not callable(given):
            raise ConfigurationError(f"{given!r} is no {what}", hint=self._hint)

    @property
    def _hint(self) -> str:
        return f"give a {self._what}, or a function that makes one: lambda db: {self._kind.__name__}(db, ...)"

    def name(self, given: str | None) -> str:
        """What the subscriber is called, the same from run to run."""
        if given is not None:
            return given
        own = getattr(self._given, "__name__", None) or getattr(self._given, "name", "")
        if not own or not own.isprintable() or own == "<lambda>":
            raise ConfigurationError(
                f"this {self._what} needs a name", hint="its progress is kept by it: give name=..."
            )
        return f"{self._what} {own}"

    def of(self, context: Context) -> P:
        for known, made in self._made:
            if known is context:
                return made
        found = self._given if isinstance(self._given, self._kind) else self._make(context)
        self._made = [*self._made[1 - _KEPT :], (context, found)]
        return found

    def _make(self, context: Context) -> P:
        assert callable(self._given)
        made = self._given(PatternDb(context))
        if not isinstance(made, self._kind):
            raise ConfigurationError(f"{made!r} is no {self._what}", hint=self._hint)
        return made
