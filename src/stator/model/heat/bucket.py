"""Token buckets and per-second meters, which limit the rate of tables, indexes and partitions."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

# Levels are sums of many floats. A level this close to zero counts as empty.
_NOTHING = 1e-6


@dataclass(slots=True, init=False)
class TokenBucket:
    """A token bucket. A request passes while the level is above zero, and is charged in full.

    A large request can therefore leave a debt, which the bucket pays off as it refills.
    """

    rate: float
    size: float
    level: float
    at: float

    def __init__(self, rate: float, size: float, level: float, at: float) -> None:
        self.rate = rate
        self.size = size
        self.level = level
        self.at = at

    def level_at(self, now: float) -> float:
        """Fill the bucket for the time that has passed. Return the level, which may be a debt."""
        if now > self.at:
            level = self.level + (now - self.at) * self.rate
            self.level = min(level, self.size)
            self.at = now
        return self.level

    def room(self, now: float) -> float:
        """Return the units that are left now, or 0.0 if the bucket is empty or in debt."""
        level = self.level_at(now)
        return level if level > _NOTHING else 0.0

    def take(self, units: float, now: float) -> None:
        self.level_at(now)
        self.level -= units

    def resize(self, rate: float, size: float, now: float) -> None:
        """Change the rate and size. The level stays, unless the new size is smaller."""
        self.level_at(now)
        self.rate = rate
        self.size = size
        self.level = min(self.level, size)


@dataclass(slots=True, init=False)
class SecondMeter:
    """Counts the units of the current second against a limit. Excess counts in the next second.

    It has no burst: an idle second leaves nothing behind.
    """

    limit: float
    used: float
    second: float

    def __init__(self, limit: float, used: float = 0.0, second: float = 0.0) -> None:
        self.limit = limit
        self.used = used
        self.second = second

    def room(self, now: float) -> float:
        """Return the units that are left in this second, or 0.0 if there are none."""
        if now >= self.second + 1.0:
            second = float(floor(now))
            used = self.used - self.limit * (second - self.second)
            self.used = max(0.0, used)
            self.second = second
        room = self.limit - self.used
        return room if room > _NOTHING else 0.0

    def take(self, units: float, now: float) -> None:
        self.room(now)
        self.used += units
