"""A clock that starts at a stored moment and runs as fast as real time.

Leases, retries and retention then depend on the moment a fixture was made, never on today's date.
Threads may sleep on it without moving it, which a ``VirtualClock`` does not allow.
"""

from __future__ import annotations

import time

from stator.clock import SystemClock


class StoredClock(SystemClock):
    def __init__(self, start: float) -> None:
        self._offset = start - time.monotonic()

    def now(self) -> float:
        return time.monotonic() + self._offset

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def advance(self, seconds: float) -> None:
        self._offset += seconds
