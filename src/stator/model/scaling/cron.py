"""Cron expressions of AWS: ``minutes hours day-of-month month day-of-week year``.

    cron(50 17 ? * MON-FRI *)      at 17:50 on weekdays

``*``, ``,``, ``-`` and ``/`` mean what they mean in any cron. One of the two day fields must be
``?``. ``L`` is the last day of the month, or in ``6L`` the last Friday; ``15W`` is the weekday
nearest to the 15th; ``6#3`` is the third Friday. Sunday is day 1 of the week.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from stator.errors import ConfigurationError

_DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MONTHS: Final = tuple("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split())
_RANGES: Final = {
    "minutes": (0, 59),
    "hours": (0, 23),
    "day of month": (1, 31),
    "month": (1, 12),
    "day of week": (1, 7),
    "year": (1970, 2199),
}
_HINT: Final = "for example cron(50 17 ? * MON-FRI *): minutes hours day month weekday year"


@dataclass(frozen=True, slots=True)
class CronExpression:
    """A parsed expression. The day fields keep their texts, because some depend on the month."""

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    months: frozenset[int]
    years: frozenset[int]
    month_day: str
    week_day: str

    def falls_on(self, day: date) -> bool:
        """Whether the expression has any time on this day."""
        if day.year not in self.years or day.month not in self.months:
            return False
        if self.week_day == "?":
            return _is_month_day(self.month_day, day)
        return _is_week_day(self.week_day, day)


def parse_cron(text: str) -> CronExpression:
    """Parse the six fields of a cron expression, with or without ``cron(...)`` around them."""
    found = re.fullmatch(r"(?:cron\()?([^()]*)\)?", text.strip())
    fields = [] if found is None else found[1].upper().split()
    if len(fields) != len(_RANGES):
        raise _wrong(text, f"it has {len(fields)} fields, not 6")
    minutes, hours, month_day, month, week_day, year = fields
    if (month_day == "?") == (week_day == "?"):
        raise _wrong(text, "exactly one of the two day fields must be ?")
    try:
        _check_days(month_day, week_day)
        return CronExpression(
            text,
            tuple(sorted(_numbers(minutes, "minutes"))),
            tuple(sorted(_numbers(hours, "hours"))),
            frozenset(_numbers(month, "month")),
            frozenset(_numbers(year, "year")),
            month_day,
            week_day,
        )
    except ValueError as error:
        raise _wrong(text, str(error)) from None


def _wrong(text: str, why: str) -> ConfigurationError:
    return ConfigurationError(f"{text!r} is not a cron expression: {why}", hint=_HINT)


def _check_days(month_day: str, week_day: str) -> None:
    sample = date(2026, 1, 1)
    if month_day != "?":
        _is_month_day(month_day, sample)
    else:
        _is_week_day(week_day, sample)


def _is_month_day(text: str, day: date) -> bool:
    last = monthrange(day.year, day.month)[1]
    if text == "L":
        return day.day == last
    nearest = re.fullmatch(r"(\d+|L)W", text)
    if nearest is None:
        return day.day in _numbers(text, "day of month")
    wanted = last if nearest[1] == "L" else min(int(nearest[1]), last)
    return day.day == _nearest_weekday(date(day.year, day.month, max(1, wanted)), last)


def _nearest_weekday(day: date, last: int) -> int:
    """Return the weekday of the same month nearest to a day."""
    if day.weekday() == 5:
        return day.day - 1 if day.day > 1 else day.day + 2
    if day.weekday() == 6:
        return day.day + 1 if day.day < last else day.day - 2
    return day.day


def _is_week_day(text: str, day: date) -> bool:
    number = day.isoweekday() % 7 + 1
    special = re.fullmatch(r"(\w+?)(?:(L)|#([1-5]))", text)
    if special is None or text in _DAYS:
        return number in _numbers("7" if text == "L" else text, "day of week")
    if number not in _numbers(special[1], "day of week"):
        return False
    if special[2]:
        return (day + timedelta(days=7)).month != day.month
    return (day.day - 1) // 7 + 1 == int(special[3])


def _numbers(text: str, field: str) -> set[int]:
    """Return the numbers of a field. Raises ValueError with the reason if it is malformed."""
    least, most = _RANGES[field]
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step = part.partition("/")
        low, dash, high = span.partition("-")
        if span in ("*", "?"):
            first, last = least, most
        else:
            first = _number(low, field)
            last = _number(high, field) if dash else (most if slash else first)
        every = int(step) if step.isdigit() and int(step) > 0 else 0 if slash else 1
        if not every or not least <= first <= most or not least <= last <= most:
            raise ValueError(f"{part} is not a value of the {field}, {least} to {most}")
        if last >= first:
            found |= set(range(first, last + 1, every))
        else:  # such as FRI-MON
            around = [*range(first, most + 1), *range(least, last + 1)]
            found |= set(around[::every])
    return found


def _number(text: str, field: str) -> int:
    if field == "day of week" and text in _DAYS:
        return _DAYS.index(text) + 1
    if field == "month" and text in _MONTHS:
        return _MONTHS.index(text) + 1
    if not text.isdigit():
        raise ValueError(f"{text or 'an empty text'} is not a value of the {field}")
    return int(text)
