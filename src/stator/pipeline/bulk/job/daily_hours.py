"""Daily hours: the time of day in which a job may work, for jobs that should run at night.

    01:00-05:00     from one until five, every day
    22:00-04:00     past midnight

The hours are local time. Outside of them a job starts no request: requests in flight finish, the
journal stays, and the job continues when the hours begin again.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Final

from stator.clock import Clock
from stator.errors import ConfigurationError

# A job that waits for the night must still notice within a moment that it is to stop.
_SLICE_SECONDS: Final = 0.5
_HOURS = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})")


@dataclass(frozen=True, slots=True)
class DailyHours:
    """The hours of a day from ``start`` until ``end``, past midnight if ``end`` is earlier."""

    start: time
    end: time

    @classmethod
    def parse(cls, text: str) -> DailyHours:
        """Parse text such as ``01:00-05:00``. Raises ConfigurationError if it has another form."""
        found = _HOURS.fullmatch(text.strip())
        if found is None:
            raise _refused(text, "is not a range of times")
        start_hour, start_minute, end_hour, end_minute = map(int, found.groups())
        if (end_hour, end_minute) == (24, 0):
            end_hour = 0
        try:
            made = cls(time(start_hour, start_minute), time(end_hour, end_minute))
        except ValueError:
            raise _refused(text, "has a time that does not exist") from None
        if made.start == made.end:
            raise _refused(text, "begins and ends at the same time")
        return made

    def opens_at(self, now: float) -> float | None:
        """Return when the hours begin next, or None if ``now`` is within the hours.

        ``now`` and the result are in seconds since the epoch.
        """
        local = datetime.fromtimestamp(now)  # the hours are local time
        clock_time = local.time()
        if self.start < self.end:
            is_open = self.start <= clock_time < self.end
        else:
            is_open = clock_time >= self.start or clock_time < self.end
        if is_open:
            return None
        begins = datetime.combine(local.date(), self.start)
        if begins <= local:
            begins += timedelta(days=1)
        return max(begins.timestamp(), now)


def _refused(text: str, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"--between {text} {reason}",
        hint="write it as --between 01:00-05:00, or --between 22:00-04:00 past midnight",
    )


class Gate:
    """Makes the threads of a job wait outside of its daily hours. Without hours they never wait."""

    def __init__(self, clock: Clock, hours: DailyHours | None = None) -> None:
        self._clock = clock
        self._hours = hours
        self._stopped = threading.Event()
        self.closed_until: float | None = None
        """The moment at which the gate opens, while it is closed; for progress displays."""
        self.opened_at = float("-inf")

    @classmethod
    def between(cls, clock: Clock, text: str | None) -> Gate:
        """Return a gate for the hours in ``text``, such as 01:00-05:00; None means always open.

        Raises ConfigurationError if the text cannot be parsed.
        """
        return cls(clock, None if text is None else DailyHours.parse(text))

    def wait(self, watch: Callable[[], None] | None = None) -> None:
        """Wait until the current time is within the hours, or until the job is to stop.

        ``watch`` is called from time to time meanwhile, for example to show the progress.
        """
        if self._hours is None:
            return
        while not self._stopped.is_set():
            now = self._clock.now()
            opens_at = self._hours.opens_at(now)
            if opens_at is None:
                if self.closed_until is not None:
                    self.opened_at, self.closed_until = now, None
                return
            self.closed_until = opens_at
            if watch is not None:
                watch()
            self._clock.sleep(max(0.001, min(opens_at - now, _SLICE_SECONDS)))

    def pause(self, seconds: float) -> None:
        """Wait for ``seconds``, but return early if the job is to stop."""
        left = seconds
        while left > 0 and not self._stopped.is_set():
            wait = min(left, _SLICE_SECONDS)
            self._clock.sleep(wait)
            left -= wait

    @property
    def is_stopped(self) -> bool:
        """Whether the job is to stop.

        A thread that has waited must check this before it sends a request.
        """
        return self._stopped.is_set()

    def stop(self) -> None:
        """Release every waiting thread, because the job is to stop."""
        self._stopped.set()
