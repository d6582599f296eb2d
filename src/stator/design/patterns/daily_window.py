"""The part of the day in which a pattern is called: ``between=("02:00", "03:00")``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from stator.errors import DesignError

DAY_SECONDS: Final = 86_400
_CLOCK: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?")


@dataclass(frozen=True, slots=True)
class DailyWindow:
    """A part of each day, from ``start`` to ``end`` in seconds after midnight.

    It may extend past midnight. Which zone the times are in, does not matter to a plan; all windows
    of a design must use the same one.
    """

    start: int
    end: int

    @property
    def share(self) -> float:
        """The share of the day in the window."""
        return ((self.end - self.start) % DAY_SECONDS) / DAY_SECONDS

    def contains(self, clock: float) -> bool:
        """Whether a time of day is in the window."""
        return (clock - self.start) % DAY_SECONDS < (self.end - self.start) % DAY_SECONDS

    def __str__(self) -> str:
        return f"{clock_text(self.start)} to {clock_text(self.end)}"


def daily_window(between: Any) -> DailyWindow | None:
    """Return the window that a ``between`` argument stands for, or None for the whole day.

    Raises DesignError unless it is a pair of different times such as "02:00" or "23:59:30".
    """
    if between is None:
        return None
    hint = 'write two times of day: between=("02:00", "03:00"); it may extend past midnight'
    if not isinstance(between, (tuple, list)) or len(between) != 2:
        raise DesignError(f"between={between!r} is not a pair of times", hint=hint)
    start, end = (_seconds(each, hint) for each in between)
    if start == end:
        raise DesignError(
            f"between={between!r} begins and ends at the same time",
            hint="leave it out if the pattern is called all day",
        )
    return DailyWindow(start, end)


def _seconds(given: Any, hint: str) -> int:
    found = _CLOCK.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        raise DesignError(f"between: {given!r} is not a time of day", hint=hint)
    hours, minutes, seconds = (int(each or 0) for each in found.groups())
    return hours * 3600 + minutes * 60 + seconds


def clock_text(seconds: int) -> str:
    """Return seconds after midnight as 02:00, or 02:00:30."""
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    return f"{hours:02d}:{minutes:02d}" + (f":{rest:02d}" if rest else "")
