"""Scheduled actions of Application Auto Scaling: new bounds at a time, in a time zone.

    ScheduledAction("cron(50 17 ? * MON-FRI *)", least=160, timezone="Europe/Zurich")

An action changes the bounds of a scalable target. If the units lie outside the new bounds, they are
pulled inside at once (``target_tracking.pull_inside``); otherwise only later decisions notice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from stator.errors import ConfigurationError
from stator.model.scaling.cron import CronExpression, parse_cron
from stator.model.scaling.target_tracking import CapacityBounds

_UNIT_SECONDS: Final = {"minute": 60.0, "hour": 3600.0, "day": 86_400.0}
_HINT: Final = "write at(2026-12-01T08:00:00), rate(12 hours) or cron(50 17 ? * MON-FRI *)"


@dataclass(frozen=True, slots=True)
class ScheduledAction:
    """Sets the least or most units, or both, at the times of an expression.

    ``schedule`` is ``at(...)``, ``rate(...)`` or ``cron(...)``. Times of ``at`` and ``cron`` are
    in ``timezone``. ``start`` and ``end`` are seconds since the epoch and bound the times of
    ``rate`` and ``cron``; ``rate`` counts from ``start``.
    """

    schedule: str
    least: int | None = None
    most: int | None = None
    timezone: str = "UTC"
    start: float | None = None
    end: float | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if self.least is None and self.most is None:
            raise ConfigurationError(
                f"the scheduled action {self.schedule} sets no bound",
                hint="give the least units, the most units, or both",
            )
        zone(self.timezone)
        _times(self)

    def times(self, since: float, until: float) -> Iterator[float]:
        """Yield when the action runs, after ``since`` and up to ``until``, in order."""
        since = since if self.start is None else max(since, self.start - 1e-6)
        until = until if self.end is None else min(until, self.end)
        parsed = _times(self)
        if isinstance(parsed, datetime):
            moment = parsed.timestamp()
            if since < moment <= until:
                yield moment
        elif isinstance(parsed, (int, float)):
            yield from _rate_times(parsed, self.start or 0.0, since, until)
        else:
            yield from _cron_times(parsed, zone(self.timezone), since, until)

    def bounds_after(self, bounds: CapacityBounds) -> CapacityBounds:
        """Return the bounds once the action has run. A bound that it does not set stays.

        If it raises the least units above the most, or the reverse, the other bound follows.
        """
        least = bounds.least if self.least is None else self.least
        most = bounds.most if self.most is None else self.most
        if least > most:
            least, most = (least, least) if self.most is None else (most, most)
        return CapacityBounds(least, most)


def due_actions(
    actions: Sequence[ScheduledAction], since: float, until: float
) -> list[tuple[float, ScheduledAction]]:
    """Return the runs after ``since`` and up to ``until``, as pairs of a time and an action."""
    found = [(at, action) for action in actions for at in action.times(since, until)]
    return sorted(found, key=lambda each: each[0])


def zone(name: str) -> ZoneInfo:
    """Return a time zone of the IANA database. Raises ConfigurationError if there is none."""
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):  # not found, a folder, not a name
        raise ConfigurationError(
            f"{name!r} is not a time zone", hint="write UTC, Europe/Zurich or America/New_York"
        ) from None


def _times(action: ScheduledAction) -> datetime | float | CronExpression:
    text = action.schedule.strip()
    found = re.fullmatch(r"(at|rate|cron)\((.*)\)", text)
    if found is None:
        raise ConfigurationError(f"{text!r} is not a schedule", hint=_HINT)
    if found[1] == "cron":
        return parse_cron(found[2])
    if found[1] == "at":
        try:
            moment = datetime.fromisoformat(found[2])
        except ValueError:
            raise ConfigurationError(f"{text!r} is not a time", hint=_HINT) from None
        return moment.replace(tzinfo=zone(action.timezone))
    rate = re.fullmatch(r"(\d+) (minute|hour|day)s?", found[2].strip())
    if rate is None or int(rate[1]) < 1:
        raise ConfigurationError(f"{text!r} is not a rate", hint=_HINT)
    return int(rate[1]) * _UNIT_SECONDS[rate[2]]


def _rate_times(seconds: float, start: float, since: float, until: float) -> Iterator[float]:
    count = max(0, int((since - start) // seconds) + 1)
    while (at := start + count * seconds) <= until:
        if at > since:
            yield at
        count += 1


def _cron_times(
    expression: CronExpression, where: ZoneInfo, since: float, until: float
) -> Iterator[float]:
    """Yield the times of a cron expression.

    A time that a change to summer time skips runs as if the clock had not changed; a time that a
    change back repeats runs once, the first time.
    """
    day = datetime.fromtimestamp(since, where).date()
    last = datetime.fromtimestamp(until, where).date()
    while day <= last:
        if expression.falls_on(day):
            yield from (at for at in _day_times(expression, day, where) if since < at <= until)
        day += timedelta(days=1)


def _day_times(expression: CronExpression, day: date, where: ZoneInfo) -> Iterator[float]:
    for hour in expression.hours:
        for minute in expression.minutes:
            local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=where)
            yield local.astimezone(UTC).timestamp()
