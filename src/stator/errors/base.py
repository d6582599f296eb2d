"""What all errors have in common."""

from __future__ import annotations


class StatorError(Exception):
    """The root of the tree. ``hint`` says what to do next, when there is something to do."""

    hint: str | None = None

    def __init__(self, message: str = "", *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if hint is not None:
            self.hint = hint

    def __str__(self) -> str:
        return self.message
