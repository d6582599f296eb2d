"""The rate at which this process writes to one key: units in a sliding window of a second."""

from __future__ import annotations

from typing import Final

_SLOT_SECONDS: Final = 0.25
_SLOTS: Final = 4


class WriteRate:
    """Measures how fast this process writes to one key, in write units per second.

    Processes find their common rate by adding what each has written to a stored counter.
    ``total`` holds the units since this process last did so (``reported``), and ``peak`` the
    highest rate since then. Threads that add at the same time may lose a count, which hardly
    changes the rate.
    """

    __slots__ = ("_slot", "_slots", "peak", "total")

    def __init__(self) -> None:
        self._slots = [0.0] * _SLOTS
        self._slot = 0
        self.total = 0.0
        self.peak = 0.0

    def add(self, units: float, now: float) -> float:
        """Count units that are written now, and return the rate in units per second."""
        rate = self.per_second(now) + units / (_SLOT_SECONDS * _SLOTS)
        self._slots[self._slot % _SLOTS] += units
        self.total += units
        self.peak = max(self.peak, rate)
        return rate

    def per_second(self, now: float) -> float:
        slot = int(now / _SLOT_SECONDS)
        passed = slot - self._slot
        if passed > 0:
            for each in range(1, min(passed, _SLOTS) + 1):
                self._slots[(self._slot + each) % _SLOTS] = 0.0
            self._slot = slot
        return sum(self._slots) / (_SLOT_SECONDS * _SLOTS)

    def reported(self, units: float) -> None:
        """Subtract units that were added to the stored counter from ``total``. Reset the peak."""
        self.total -= units
        self.peak = 0.0
