"""Checks of durations that a caller gives in seconds.

NaN passes every comparison that asks whether a value is too small, and an endless wait overflows in
the operating system. Every option in seconds is therefore checked here.
"""

from __future__ import annotations

from typing import Any, Final

from stator.errors import ConfigurationError

LONGEST_SECONDS: Final = 100 * 366 * 86_400.0
"""A hundred years. Python waits for at most 292 years (``threading.TIMEOUT_MAX``)."""


def is_seconds(value: Any, *, or_zero: bool = False) -> bool:
    """Whether a value is a number of seconds above 0 and up to a hundred years.

    With ``or_zero``, 0 is a number of seconds, too.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return (value >= 0 if or_zero else value > 0) and value <= LONGEST_SECONDS


def check_seconds(of: str, *, or_zero: bool = False, **options: Any) -> None:
    """Raise ConfigurationError unless every option is a number of seconds (``is_seconds``).

    ``of`` names the object or function that has the options, for the error.
    """
    for name, value in options.items():
        if not is_seconds(value, or_zero=or_zero):
            least = "0 or more" if or_zero else "above 0"
            raise ConfigurationError(
                f"{of}: {name}={_shown(value)} is not a number of seconds",
                hint=f"use a number {least}, and up to {LONGEST_SECONDS:,.0f} (a hundred years)",
            )


def _shown(value: Any) -> str:
    """Return a wrong value as text, if it is short and says something."""
    return f"{value!r:.40}" if isinstance(value, (str, int, float)) else f"<{type(value).__name__}>"
