"""A second, slow reading of the limits: every level follows from the history, in exact fractions.

The model keeps a level and fills it as time passes. The oracle keeps nothing but the list of
admitted requests, and computes a level from it whenever it is asked:

- A bucket of the size S that refills at the rate r holds the smallest of S + r * (t - u) minus the
  units taken since u, over every earlier moment u, and the same of the level that it began with.
- A partition owes, in second k, the largest of the units since second j minus its limit for each
  second after j, over every j up to k.

Where partitions begin is not the oracle's business: it follows the splits of the model, and each
part inherits the history of the whole.
"""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from math import floor

from stator.model.heat.limits import READ, WRITE
from stator.model.heat.resource import ThroughputSettings

PARTITION = {READ: 3000, WRITE: 1000}
Taken = list[tuple[Fraction, Fraction]]


class HeatOracle:
    """Says whether a request passes, from the history of all requests before it."""

    def __init__(self, settings: ThroughputSettings, start: float, lows: list[bytes]) -> None:
        self.settings = settings
        self.start = Fraction(start)
        self.taken: dict[int, Taken] = {READ: [], WRITE: []}
        self.by_partition: dict[bytes, dict[int, Taken]] = {
            low: {READ: [], WRITE: []} for low in lows
        }

    def follow(self, lows: list[bytes]) -> None:
        """Split the partitions where the model has split them."""
        before = sorted(self.by_partition)
        self.by_partition = {
            low: {
                kind: list(taken)
                for kind, taken in self.by_partition[before[bisect_right(before, low) - 1]].items()
            }
            for low in lows
        }

    def partition_of(self, key: bytes) -> bytes:
        lows = sorted(self.by_partition)
        return lows[bisect_right(lows, key) - 1]

    def limits(self, kind: int, key: bytes, now: float) -> list[str]:
        """Return the names of the limits that refuse a request for this key now."""
        at, settings = Fraction(now), self.settings
        found = []
        if settings.units is None:
            quota = Fraction(settings.quota[kind])
            if self._bucket(kind, quota, quota, quota, at) <= 0:
                found.append("AccountLimitExceeded")
            maximum = settings.maxima[kind]
            if maximum is not None:
                rate = Fraction(maximum)
                if self._bucket(kind, rate, rate * 300, rate, at) <= 0:
                    found.append("MaxOnDemandThroughputExceeded")
        else:
            rate = Fraction(settings.units[kind])
            first = rate * Fraction(settings.initial_burst_seconds)
            if self._bucket(kind, rate, rate * 300, first, at) <= 0:
                found.append("ProvisionedThroughputExceeded")
        taken = self.by_partition[self.partition_of(key)][kind]
        if PARTITION[kind] - _owed(taken, PARTITION[kind], at) <= 0:
            found.append("KeyRangeThroughputExceeded")
        return found

    def take(self, kind: int, key: bytes, units: float, now: float) -> None:
        for taken in (self.taken[kind], self.by_partition[self.partition_of(key)][kind]):
            taken.append((Fraction(now), Fraction(units)))

    def _bucket(
        self, kind: int, rate: Fraction, size: Fraction, first: Fraction, at: Fraction
    ) -> Fraction:
        """Return the level of a bucket that began with ``first`` units, just before ``at``."""
        least = size
        since = Fraction(0)
        for when, units in reversed(self.taken[kind]):
            # A request cannot be taken from units that came after it: the bucket was full at most.
            since += units
            least = min(least, size + rate * (at - when) - since)
        return min(least, first + rate * (at - self.start) - since)


def _owed(taken: Taken, limit: int, at: Fraction) -> Fraction:
    """Return the units that a partition has used of its second at ``at``, with earlier excess."""
    second = floor(at)
    owed = since = Fraction(0)
    for when, units in reversed(taken):
        since += units
        owed = max(owed, since - limit * (second - floor(when)))
    return owed
