"""The root of the error tree: a message, a hint, and the note that shows the hint in tracebacks."""

from __future__ import annotations

from typing import Any


class StatorError(Exception):
    """The base class of every error that Stator raises.

    ``message`` says what is wrong. ``hint``, where there is one, says what to do next. A subclass
    may set ``hint`` for all its instances. The hint is also a note (PEP 678), so an uncaught error
    prints it below its message; ``str(error)`` is the message alone.
    """

    hint: str | None = None

    def __init__(self, message: str = "", *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if hint is not None:
            self.hint = hint
        if self.hint is not None:
            self.add_note(f"hint: {self.hint}")

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the attributes, without calling ``__init__`` again.

        The ``__init__`` of a subclass takes facts, not a message, so it could not be called with
        ``args``.
        """
        return _restore, (type(self), self.args, self.__dict__)


def _restore(cls: type[StatorError], args: tuple[Any, ...], state: dict[str, Any]) -> StatorError:
    error = cls.__new__(cls, *args)
    error.__dict__.update(state)
    if "__notes__" in state:
        error.__notes__ = list(state["__notes__"])
    return error
