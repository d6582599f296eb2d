"""Calendar periods in UTC (minute, hour, day, month, year) and their texts.

    period_text("hour", 2026-11-16 10:05)    2026-11-16T10

The texts of all hours sort by time, and so do those of every other period. A text begins with the
texts of the longer periods that contain it: this hour lies in the day ``2026-11-16``.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, get_args

from stator.errors import ConfigurationError

Period = Literal["minute", "hour", "day", "month", "year"]
PERIODS: Final[tuple[Period, ...]] = get_args(Period)

_WIDTHS: Final[dict[Period, int]] = {"minute": 16, "hour": 13, "day": 10, "month": 7, "year": 4}
_REST: Final = "0001-01-01T00:00"
_LAST: Final = datetime.max.replace(tzinfo=UTC)


def check_period(period: str, what: str) -> None:
    if period not in PERIODS:
        raise ConfigurationError(
            f"{what}={period!r} is not supported", hint=f"use one of {', '.join(PERIODS)}"
        )


def check_moment(moment: datetime, what: str) -> None:
    """Raise ConfigurationError for a time without a time zone, which can mean several moments.

    ``what`` is the name of the argument, for the error message.
    """
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise ConfigurationError(
            f"{what} is {moment!r}, not a datetime with a time zone",
            hint="write datetime(..., tzinfo=UTC)",
        )


def is_within(shorter: Period, longer: Period) -> bool:
    """Whether every ``shorter`` period lies inside a single ``longer`` one."""
    return PERIODS.index(shorter) <= PERIODS.index(longer)


def period_text(period: Period, moment: datetime) -> str:
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    # %Y does not pad the years before 1000 on every platform; isoformat does.
    return moment.isoformat()[: _WIDTHS[period]]


def period_start(text: str) -> datetime:
    """Return the first moment of the period with this text."""
    return datetime.fromisoformat(text + _REST[len(text) :]).replace(tzinfo=UTC)


def floor(period: Period, moment: datetime) -> datetime:
    return period_start(period_text(period, moment))


def following(period: Period, start: datetime) -> datetime:
    """Return the start of the next period. ``start`` is the start of the present one.

    Returns the last moment that Python knows if the next period would begin after it.
    """
    try:
        return _following(period, start)
    except (OverflowError, ValueError):
        return _LAST


def _following(period: Period, start: datetime) -> datetime:
    match period:
        case "minute":
            return start + timedelta(minutes=1)
        case "hour":
            return start + timedelta(hours=1)
        case "day":
            return start + timedelta(days=1)
        case "month":
            return start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)
        case "year":
            return start.replace(year=start.year + 1)


def periods_between(period: Period, start: datetime, end: datetime) -> Iterator[str]:
    """Yield the texts of the periods from ``start`` up to, but not including, ``end``."""
    at = floor(period, start)
    while at < end:
        yield period_text(period, at)
        at = following(period, at)
