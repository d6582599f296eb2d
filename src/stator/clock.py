"""Clocks: the system's clock, and a virtual clock that tests move.

Code that needs the time takes a clock as an argument.
"""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time and waits: the system's clock, or a virtual one in tests."""

    def now(self) -> float:
        """Return the seconds since the epoch."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return once ``seconds`` have passed on this clock."""
        ...


class SystemClock:
    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def sleep_until_set(clock: Clock, seconds: float, event: threading.Event) -> None:
    """Sleep on a clock until ``seconds`` have passed or ``event`` is set.

    ``event`` ends only a sleep of the system's clock; the sleep of a virtual clock returns at once.
    """
    if isinstance(clock, SystemClock):
        event.wait(seconds)
    else:
        clock.sleep(seconds)


async def pause(clock: Clock, seconds: float) -> None:
    """Sleep on a clock inside a coroutine.

    With the system's clock, the event loop runs other tasks meanwhile. Any other clock's ``sleep``
    is called directly; a virtual clock returns at once.
    """
    import asyncio  # heavy, and every caller that awaits this has imported it already

    if not isinstance(clock, SystemClock):
        clock.sleep(seconds)
        seconds = 0.0
    await asyncio.sleep(seconds)


class VirtualClock:
    """A clock for tests and simulations. Only ``advance`` and ``sleep`` move it."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._now = start
        self._lock = threading.Lock()

    def now(self) -> float:
        """Return the virtual time, in seconds since the epoch."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Move the clock forward and return at once."""
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Move the clock forward. Raises ValueError for a negative number."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back by {-seconds} seconds")
        with self._lock:
            self._now += seconds
