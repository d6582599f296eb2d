"""Sample values of derived parts, such as months, and field values with a given derived part.

All sample years, months, days and hours lie before the times that ``sample_values`` makes. So an
item is in the month that a call asks for only if it was generated for that month.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from stator.design.entities.derived_parts import DerivedPart
from stator.design.entities.shapes import Scalar, Shape

_FIRST_YEAR: Final = 2000
_MOST_YEARS: Final = 26
_FIRST: Final = datetime(_FIRST_YEAR, 1, 1, tzinfo=UTC)
_MOST_HOURS: Final = _MOST_YEARS * 365 * 24
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_SAME_MONTH: Final = timedelta(days=28)
_PERIODS: Final = {
    "year": timedelta(days=365), "month": _SAME_MONTH, "day": timedelta(days=1),
    "hour": timedelta(hours=1),
}  # fmt: skip


def part_text(part: DerivedPart, number: int) -> str:
    """Return sample text number ``number`` of a derived part: ``2000-01`` for month 0."""
    match part.part:
        case "year":
            return f"{_FIRST_YEAR + number % _MOST_YEARS}"
        case "month":
            years, months = divmod(number % (_MOST_YEARS * 12), 12)
            return f"{_FIRST_YEAR + years}-{months + 1:02d}"
        case "day":
            return (_FIRST + timedelta(days=number % (_MOST_HOURS // 24))).isoformat()[:10]
        case "hour":
            return (_FIRST + timedelta(hours=number % _MOST_HOURS)).isoformat()[:13]
    return _number_text(number).rjust(part.length, "0")[-part.length :]


def _number_text(number: int) -> str:
    text = ""
    while number:
        number, digit = divmod(number, len(_DIGITS))
        text = _DIGITS[digit] + text
    return text


def with_part(part: DerivedPart, text: str, value: Any, number: int, count: int) -> Any:
    """Return a field value whose derived part has the given ``text``.

    For a prefix, this is ``text`` followed by ``value``. For a period such as a month, it is a time
    within the period, and ``number`` of ``count`` says how far into the period. The result is a
    datetime if ``value`` is one, and otherwise a date.
    """
    if not part.is_time:
        return text + str(value)
    start = datetime.fromisoformat(text + "0001-01-01T00:00:00"[len(text) :]).replace(tzinfo=UTC)
    moment = start + _PERIODS[part.part] * (number / count)
    return moment if isinstance(value, datetime) else moment.date()


def sample_with_part(part: DerivedPart, text: str, shape: Shape) -> Any:
    """Return a value for a field of this shape whose derived part has the given ``text``."""
    value: Any = ""
    if part.is_time:
        value = date.min if shape == Scalar(date) else _FIRST
    return with_part(part, text, value, 0, 1)
