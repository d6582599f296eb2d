"""The busiest keys of a stream of calls, in bounded memory.

The idea is Space-Saving (Metwally, Agrawal and El Abbadi, 2005): a fixed number of keys is counted.
A key that is not among them takes the place, and the count, of the least busy one. So a key's count
may be too high, by at most the count of that place, and no busy key is missing.

Counts decay: a unit weighs half as much after ``half_life_seconds``. A key that was busy yesterday
therefore leaves the list, and a count divided by the weight of one steady unit a second is a rate.
Weights grow with time instead of counts shrinking, so that adding touches only one key.
"""

from __future__ import annotations

import hashlib
import math
import threading
from typing import Final

from stator.clock import Clock, SystemClock

_PLACES: Final = 512
_MOST_DOUBLINGS: Final = 64


def hashed_key(text: str) -> str:
    """Return the hash shown in place of a key, because keys often identify people."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class BusyKeys:
    """Estimates the units a second of the busiest keys. Threads may share it."""

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        places: int = _PLACES,
        half_life_seconds: float = 60.0,
    ) -> None:
        self._clock = clock or SystemClock()
        self._places = places
        self._half_life = half_life_seconds
        self._start = self._clock.now()
        self._weights: dict[tuple[str, str], float] = {}
        self._lock = threading.Lock()

    def add(self, table: str, key: str, units: float) -> None:
        if units <= 0:
            return
        with self._lock:
            weight = units * self._growth()
            name = (table, key)
            if name in self._weights:
                self._weights[name] += weight
            elif len(self._weights) < self._places:
                self._weights[name] = weight
            else:
                least = min(self._weights, key=self._weights.__getitem__)
                self._weights[name] = self._weights.pop(least) + weight

    def busiest(self, count: int) -> list[tuple[str, str, float]]:
        """Return the ``count`` busiest keys as table, key and units a second, busiest first."""
        with self._lock:
            # A unit a second for ever weighs half_life / ln 2 together.
            steady = self._growth() * self._half_life / math.log(2)
            found = sorted(self._weights.items(), key=lambda each: (-each[1], each[0]))[:count]
        return [(table, key, weight / steady) for (table, key), weight in found]

    def _growth(self) -> float:
        """Return the weight of a unit that is added now, and keep it within a float's range."""
        doublings = (self._clock.now() - self._start) / self._half_life
        if doublings > _MOST_DOUBLINGS:
            shrink = math.exp2(-doublings)
            self._weights = {name: weight * shrink for name, weight in self._weights.items()}
            self._start = self._clock.now()
            return 1.0
        return math.exp2(doublings)
