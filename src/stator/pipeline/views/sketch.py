"""Percentiles from counts, within a relative error of the truth.

Values are counted in buckets whose bounds grow by a constant factor, after DDSketch (Masson, Rim,
Lee, VLDB 2019). With accuracy a and g = (1 + a) / (1 - a), bucket i holds the values in (g^(i-1),
g^i] and stands for 2 g^i / (g + 1), whose relative error is at most a for each of them. Counts of
buckets can be added and subtracted, so a value can be removed from a sketch again, and sketches are
merged by adding them.

Buckets are named ``p81`` for a positive value, ``n81`` for a negative value by its distance from
zero, and ``z`` for values closer to zero than 1e-9.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Final

_SMALLEST: Final = 1e-9


def bucket_of(value: float, accuracy: float) -> str:
    size = abs(value)
    if size < _SMALLEST:
        return "z"
    index = math.ceil(math.log(size) / _log_growth(accuracy))
    return f"{'p' if value > 0 else 'n'}{index}"


@cache
def _log_growth(accuracy: float) -> float:
    return math.log1p(accuracy) - math.log1p(-accuracy)


def _middle(bucket: str, accuracy: float) -> float:
    """Return the value that a bucket stands for."""
    if bucket == "z":
        return 0.0
    log_growth = _log_growth(accuracy)
    value = 2 * math.exp(int(bucket[1:]) * log_growth) / (math.exp(log_growth) + 1)
    return value if bucket[0] == "p" else -value


@dataclass(frozen=True, slots=True)
class Percentiles:
    """The percentiles of a field.

    ``percentiles[50]`` and ``at(0.5)`` are the median, or None without values.
    """

    counts: Mapping[str, int]
    accuracy: float

    @property
    def count(self) -> int:
        return sum(self.counts.values())

    def __getitem__(self, percent: float) -> float | None:
        return self.at(percent / 100)

    def at(self, share: float) -> float | None:
        """Return the value at or below which this share of all values lies.

        Returns None if there are no values.
        """
        total = self.count
        if total <= 0:
            return None
        rank = min(max(share, 0.0), 1.0) * (total - 1)
        middles = sorted(
            (_middle(bucket, self.accuracy), count) for bucket, count in self.counts.items()
        )
        seen = accumulate(count for _, count in middles)
        return next(
            value for (value, _), so_far in zip(middles, seen, strict=True) if so_far > rank
        )

    def __repr__(self) -> str:
        shown = (
            ", ".join(f"p{percent}={self[percent]:.4g}" for percent in (50, 90, 99))
            if self.count > 0
            else "empty"
        )
        return f"<Percentiles of {self.count}: {shown}>"
