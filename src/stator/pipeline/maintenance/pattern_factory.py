"""Creates the pattern objects that workers maintain, one for each database.

A user declares an app before its database is known, and therefore gives it a function that creates
the pattern object: ``def readings(db): return Series(db, ...)``. A worker calls the function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from stator.errors import ConfigurationError
from stator.tables.context import Context
from stator.tables.operation import OnDb

P = TypeVar("P", bound=OnDb[Any])
_REMEMBERED = 8


class PatternDb:
    """The stand-in for ``db`` with which a worker creates a pattern object.

    It has only what a pattern needs to plan its work. The worker carries that work out.
    """

    def __init__(self, context: Context) -> None:
        self.context = context

    def __getattr__(self, name: str) -> Any:
        raise ConfigurationError(
            f"db.{name} is not available while a worker creates its patterns",
            hint="only create the pattern in this function: return Series(db, Reading, ...)",
        )


class PatternFactory(Generic[P]):
    """Returns the pattern object for a database.

    ``source`` is what the app was given: a pattern object, which is returned as it is, or a
    function, which is called to create one. The last few results are cached.
    """

    def __init__(self, source: P | Callable[[Any], P], kind: type[P], what: str) -> None:
        self._source = source
        self._kind = kind
        self._what = what
        self._created: list[tuple[Context, P]] = []
        if not isinstance(source, kind) and not callable(source):
            raise ConfigurationError(
                f"{source!r} is neither a {kind.__name__} nor a function", hint=self._hint
            )

    @property
    def _hint(self) -> str:
        name = self._kind.__name__
        return f"pass a {name}, or a function that creates one: lambda db: {name}(db, ...)"

    def name(self, given: str | None) -> str:
        """Return the subscriber's name: ``given``, or one derived from the function or pattern.

        The name is the same from run to run. Raises ConfigurationError if none can be derived.
        """
        if given is not None:
            return given
        own = getattr(self._source, "__name__", None) or getattr(self._source, "name", "")
        if not own or not own.isprintable() or own == "<lambda>":
            raise ConfigurationError(
                f"this {self._what} needs a name",
                hint="pass name=...: its progress is stored under it",
            )
        return f"{self._what} {own}"

    def of(self, context: Context) -> P:
        for known, pattern in self._created:
            if known is context:
                return pattern
        found = self._source if isinstance(self._source, self._kind) else self._make(context)
        self._created = [*self._created[1 - _REMEMBERED :], (context, found)]
        return found

    def _make(self, context: Context) -> P:
        assert callable(self._source)
        pattern = self._source(PatternDb(context))
        if not isinstance(pattern, self._kind):
            raise ConfigurationError(
                f"the function returned {pattern!r}, not a {self._kind.__name__}", hint=self._hint
            )
        return pattern
