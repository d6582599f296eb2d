"""Windows: other bounds in a part of the week, as users write them.

    weekdays 17:50-22:30 min=160

A window becomes two scheduled actions, one that sets its bounds and one that sets the old ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from stator.errors import ConfigurationError
from stator.model.scaling.scheduled_action import ScheduledAction
from stator.model.scaling.target_tracking import CapacityBounds

LEAD_MINUTES: Final = 10
"""How long before a rise its action runs: UpdateTable takes minutes."""
WINDOW_EXAMPLE: Final = "weekdays 17:50-22:30 min=160"

_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FULL_DAYS: Final = (
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
)  # fmt: skip
_GROUPS: Final = {
    "daily": (0, 1, 2, 3, 4, 5, 6),
    "weekdays": (0, 1, 2, 3, 4),
    "weekends": (5, 6),
    "load": (0, 1, 2, 3, 4, 5, 6),
}
_WINDOW: Final = re.compile(
    r"(?P<days>[a-z,-]+) +(?P<start>\d\d:\d\d)-(?P<end>\d\d:\d\d)"
    r"(?: +min=(?P<least>\d+))?(?: +max=(?P<most>\d+))?"
)


@dataclass(frozen=True, slots=True)
class CapacityWindow:
    """A part of some days in which other bounds apply: ``weekdays 17:50-22:30 min=160``.

    ``days`` are numbers from Monday, 0. ``start`` and ``end`` are minutes of the day; a window
    whose end is not after its start ends the day after.
    """

    days: tuple[int, ...]
    start: int
    end: int
    least: int | None = None
    most: int | None = None

    @classmethod
    def parse(cls, text: str) -> CapacityWindow:
        """Read a window. Days are daily, weekdays, weekends, or such as mon,wed, fri-sun, sunday.

        ``load 22:00-23:00 min=500`` is a daily window that opens ten minutes early, for a bulk
        load that runs in these hours (``stator load --between 22:00-23:00``).
        """
        found = _WINDOW.fullmatch(" ".join(text.lower().split()))
        if found is None or not (found["least"] or found["most"]):
            raise ConfigurationError(
                f"{text!r} is not a schedule", hint=f"for example {WINDOW_EXAMPLE!r}"
            )
        start = _minute_of(found["start"], text)
        if found["days"] == "load":
            start = (start - LEAD_MINUTES) % (24 * 60)
        least, most = found["least"], found["most"]
        return cls(
            _days_of(found["days"], text),
            start,
            _minute_of(found["end"], text),
            None if least is None else int(least),
            None if most is None else int(most),
        )

    def actions(self, base: tuple[int, int], timezone: str) -> tuple[ScheduledAction, ...]:
        """Return the two actions of the window: its bounds at its start, ``base`` at its end.

        ``base`` has the least and the most units outside the window.
        """
        closing = self.days
        if self.end <= self.start:
            closing = tuple(sorted((day + 1) % 7 for day in self.days))
        ends = (
            base[0] if self.least is not None else None,
            base[1] if self.most is not None else None,
        )
        return (
            days_action(self.days, self.start, self.least, self.most, timezone),
            days_action(closing, self.end, *ends, timezone),
        )

    def __str__(self) -> str:
        bounds = [("min", self.least), ("max", self.most)]
        said = " ".join(f"{name}={value}" for name, value in bounds if value is not None)
        return f"{day_names(self.days)} {clock(self.start)}-{clock(self.end)} {said}"


def _minute_of(text: str, whole: str) -> int:
    hours, minutes = map(int, text.split(":"))
    if hours > 23 or minutes > 59:
        raise ConfigurationError(
            f"{whole!r}: {text} is not a time of day", hint="times are 00:00 to 23:59"
        )
    return hours * 60 + minutes


def _days_of(text: str, whole: str) -> tuple[int, ...]:
    if text in _GROUPS:
        return _GROUPS[text]
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = (
            _DAYS[_FULL_DAYS.index(name)] if name in _FULL_DAYS else name
            for name in part.partition("-")
        )
        if first not in _DAYS or (dash and last not in _DAYS):
            raise ConfigurationError(
                f"{whole!r}: {part} is not a day",
                hint=f"write daily, weekdays, weekends, or days such as {', '.join(_DAYS)}",
            )
        low, high = _DAYS.index(first), _DAYS.index(last if dash else first)
        found |= {day % 7 for day in range(low, high + 1 if high >= low else high + 8)}
    return tuple(sorted(found))


def clock(minute: int) -> str:
    """Return a minute of the day as 17:50."""
    return f"{minute // 60:02d}:{minute % 60:02d}"


def day_names(days: Sequence[int]) -> str:
    """Return days as they are written in a window: ``weekdays``, ``mon,wed``."""
    for name, group in _GROUPS.items():
        if tuple(days) == group:
            return name
    return ",".join(_DAYS[day] for day in days)


def full_day_names(days: Sequence[int]) -> str:
    """Return days as a window writes them, but a single day by its whole name: ``sunday``."""
    return _FULL_DAYS[days[0]] if len(days) == 1 else day_names(days)


def days_action(
    days: Sequence[int], minute: int, least: int | None, most: int | None, timezone: str
) -> ScheduledAction:
    """Return an action that sets bounds at a minute of the day, on some days of the week."""
    if len(days) == 7:
        week = "? * *"
    elif tuple(days) == _GROUPS["weekdays"]:
        week = "? * MON-FRI"
    else:
        week = f"? * {','.join(_DAYS[day].upper() for day in days)}"
    expression = f"cron({minute % 60} {minute // 60} {week} *)"
    if len(days) == 7:
        expression = f"cron({minute % 60} {minute // 60} * * ? *)"
    name = f"{day_names(days).replace(',', '-')}-{clock(minute).replace(':', '')}"
    return ScheduledAction(expression, least, most, timezone, name=name)


def window_actions(
    windows: Iterable[CapacityWindow], bounds: CapacityBounds, timezone: str
) -> tuple[ScheduledAction, ...]:
    """Return the actions of several windows. Outside of them, ``bounds`` apply.

    Where one window ends as another begins, the one that begins counts. Raises ConfigurationError
    if a window's least units are above the most.
    """
    openings: dict[str, ScheduledAction] = {}
    closings: list[ScheduledAction] = []
    for window in windows:
        if window.least is not None and window.least > (window.most or bounds.most):
            raise ConfigurationError(
                f"{window}: its min is above the max of {window.most or bounds.most:,}",
                hint="raise the most units, or give the window a max= of its own",
            )
        opening, closing = window.actions((bounds.least, bounds.most), timezone)
        openings[opening.name] = opening
        closings.append(closing)
    return (*openings.values(), *(each for each in closings if each.name not in openings))
