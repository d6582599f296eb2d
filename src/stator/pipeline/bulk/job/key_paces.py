"""Paces of hot keys: rows of a partition key that DynamoDB refuses have a rate of their own.

A partition takes 1,000 units a second, however fast the table is. If a tenth of a load's rows have
one partition key, the table refuses them while it takes all others. Slowing down the whole load
would not help, so the window hands out the rows of a refused key only as fast as the key's pace
allows, and the rows of other keys fill the requests.

A pace starts at nine tenths of a partition's limit. It falls with each refusal, at most once a
second, because other programs may write to the same partition; after a second without refusals it
grows again, past the limit too, because DynamoDB may split the partition between two sort keys. A
key without refusals for a minute is forgotten. Many keys at once are no hot keys: a
new table refuses any key until its partitions have split. The first refusal of a key therefore
slows the whole load as well (``governor``), and later ones do not.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from stator.clock import Clock
from stator.model.heat.limits import PARTITION_UNITS, WRITE

_MOST_KEYS: Final = 500
_START_SHARE: Final = 0.9
_FALL: Final = 0.85
_FALL_SECONDS: Final = 1.0
_GROWTH_PER_SECOND: Final = 1.03
_LEAST_RATE: Final = 1.0
_BUCKET_SECONDS: Final = 0.1
_FORGET_SECONDS: Final = 60.0
_SHORTEST_SECONDS: Final = 0.001


class KeyPaces:
    """The paces of the partition keys that were refused lately.

    Not thread-safe: the window calls it under its lock.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._paces: dict[Hashable, _KeyPace] = {}

    def __len__(self) -> int:
        return len(self._paces)

    def __contains__(self, partition: Hashable) -> bool:
        return partition in self._paces

    def refused(self, partition: Hashable) -> bool:
        """Slow down a partition key that DynamoDB refused.

        Returns True if the key already had a pace. Returns False if the pace is new, or if there
        are too many paces to add one; the whole load must then slow down as well.
        """
        now = self._clock.now()
        pace = self._paces.get(partition)
        if pace is not None:
            pace.fall(now)
            return True
        if len(self._paces) >= _MOST_KEYS:
            self._forget(now)
        if len(self._paces) < _MOST_KEYS:
            self._paces[partition] = _KeyPace(now)
        return False

    def wait_seconds(self, partition: Hashable) -> float:
        """Return how long the next row of a partition key has to wait; 0.0 if it may be written."""
        pace = self._paces.get(partition)
        return 0.0 if pace is None else pace.wait_seconds(self._clock.now())

    def take(self, partition: Hashable, units: float) -> None:
        """Take the units of a row that is about to be written from the pace of its key, if any."""
        pace = self._paces.get(partition)
        if pace is not None:
            pace.tokens -= units

    def _forget(self, now: float) -> None:
        oldest = now - _FORGET_SECONDS
        paces = self._paces.items()
        self._paces = {key: pace for key, pace in paces if pace.refused_at > oldest}


class _KeyPace:
    """The rate of one partition key, in write units a second, as a token bucket."""

    __slots__ = ("_fell_at", "_filled_at", "_rate", "refused_at", "tokens")

    def __init__(self, now: float) -> None:
        self._rate = PARTITION_UNITS[WRITE] * _START_SHARE
        self._filled_at = self._fell_at = self.refused_at = now
        self.tokens = 0.0
        self._drain()

    def fall(self, now: float) -> None:
        self.refused_at = now
        if now - self._fell_at >= _FALL_SECONDS:
            self._rate = max(_LEAST_RATE, self._rate * _FALL)
            self._fell_at = now
            self._drain()

    def wait_seconds(self, now: float) -> float:
        passed = max(0.0, now - self._filled_at)
        self._filled_at = max(self._filled_at, now)
        if now - self.refused_at > _FALL_SECONDS:
            self._rate *= _GROWTH_PER_SECOND**passed
        room = max(1.0, self._rate * _BUCKET_SECONDS)
        self.tokens = min(room, self.tokens + self._rate * passed)
        return 0.0 if self.tokens > 0 else -self.tokens / self._rate + _SHORTEST_SECONDS

    def _drain(self) -> None:
        """Put the bucket in debt: the key waits for half a second after a refusal."""
        self.tokens = min(self.tokens, -0.5 * self._rate)


def partition_of(key: Any) -> Hashable:
    """Return the partition key's value in a ``PendingRow.key``."""
    found: Hashable = key[0] if isinstance(key, tuple) else key
    return found
