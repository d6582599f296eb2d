"""Percentiles from counts, within a relative error of the truth.

Values are counted in buckets whose bounds grow by a constant factor, after DDSketch (Masson, Rim,
Lee, VLDB 2019). With accuracy a and g = (1 + a) / (1 - a), bucket i holds the values in (g^(i-1),
g^i] and stands for 2 g^i / (g + 1). For each of these values, the relative error is at most a.
Counts of buckets can be added and subtracted, so a value can be removed from a sketch again, and
sketches are merged by adding them.

Buckets are named ``p81`` for a positive value, ``n81`` for a negative value by its distance from
zero, and ``z`` for zero. Every number that DynamoDB can hold, from 1e-130 to 9.99e125 (AWS,
"Supported data types"), has a bucket of its own magnitude.

Earlier versions counted values closer to zero than 1e-9 in ``z``, and partials that they wrote
still exist. When such a value is removed now, the count of its own bucket becomes negative. A
bucket can only be negative for that reason, so ``repaired`` subtracts its count from ``z``, where
the value was added.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import accumulate
from numbers import Rational
from typing import Any, Final

from stator.errors import RequestRefused

_ZERO: Final = "z"


def bucket_of(value: float, accuracy: float) -> str:
    size = abs(value)
    if not size:
        return _ZERO
    index = math.ceil(math.log(size) / _log_growth(accuracy))
    return f"{'p' if value > 0 else 'n'}{index}"


def repaired(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts with every negative count moved to the bucket of zero.

    A count is negative if an earlier version of Stator counted a value close to zero in the bucket
    of zero. This version then removed the value from the bucket of its magnitude.
    """
    found = {bucket: count for bucket, count in counts.items() if count > 0}
    missing = sum(count for count in counts.values() if count < 0)
    if missing:
        found[_ZERO] = found.get(_ZERO, 0) + missing
    return {bucket: count for bucket, count in found.items() if count}


@cache
def _log_growth(accuracy: float) -> float:
    return math.log1p(accuracy) - math.log1p(-accuracy)


def _middle(bucket: str, accuracy: float) -> float:
    """Return the value that stands for all values counted in a bucket."""
    if bucket == _ZERO:
        return 0.0
    log_growth = _log_growth(accuracy)
    value = 2 * math.exp(int(bucket[1:]) * log_growth) / (math.exp(log_growth) + 1)
    return value if bucket[0] == "p" else -value


@dataclass(frozen=True, slots=True)
class Percentiles:
    """The percentiles of a field.

    ``percentiles[50]`` and ``at(0.5)`` are the median, or None without values. A percentile is the
    value of the nearest rank: of n sorted values, ``at(q)`` is number ``ceil(q * n)``. It is the
    smallest value such that at least the share ``q`` of all values are at or below it.
    ``percentiles[0]`` is the smallest value.

    ``lowest`` and ``highest`` are the exact extremes, if they are known. No percentile lies beyond
    them.
    """

    counts: Mapping[str, int]
    accuracy: float
    lowest: float | None = None
    highest: float | None = None

    @property
    def count(self) -> int:
        return sum(self.counts.values())

    def __getitem__(self, percent: Any) -> float | None:
        """Return a percentile: ``percentiles[95]`` is the 95th, or None if there are no values.

        Raises RequestRefused unless ``percent`` is from 0 to 100.
        """
        return self._ranked(_exact(percent, 100, "percentiles[{}]", "percentiles[99]") / 100)

    def at(self, share: Any) -> float | None:
        """Return the smallest value such that at least ``share`` of all values are at or below it.

        Returns None if there are no values. Raises RequestRefused unless ``share`` is from 0 to 1.
        """
        return self._ranked(_exact(share, 1, "percentiles.at({})", "percentiles.at(0.99)"))

    def _ranked(self, share: Fraction) -> float | None:
        total = self.count
        if total <= 0:
            return None
        rank = max(1, math.ceil(share * total))
        if rank == 1 and self.lowest is not None:
            return self.lowest
        if rank == total and self.highest is not None:
            return self.highest
        middles = sorted(
            (_middle(bucket, self.accuracy), count) for bucket, count in self.counts.items()
        )
        seen = accumulate(count for _, count in middles)
        found = next(
            value for (value, _), so_far in zip(middles, seen, strict=True) if so_far >= rank
        )
        if self.lowest is not None:
            found = max(found, self.lowest)
        return found if self.highest is None else min(found, self.highest)

    def __repr__(self) -> str:
        shown = (
            ", ".join(f"p{percent}={self[percent]:.4g}" for percent in (50, 90, 99))
            if self.count > 0
            else "empty"
        )
        return f"<Percentiles of {self.count}: {shown}>"


def _exact(given: Any, most: int, asked: str, example: str) -> Fraction:
    """Return a number from 0 to ``most`` as a fraction with exactly the digits that it prints.

    So 0.07 * 100 is 7, not 7.000000000000001. If ``given`` is no such number, raises RequestRefused
    with a message made from ``asked`` and ``example``.
    """
    is_number = isinstance(given, (int, float, Decimal, Rational)) and not isinstance(given, bool)
    number: Any = given
    if not is_number or not 0 <= number <= most:  # NaN is not within
        raise RequestRefused(
            f"{asked.format(repr(given))} is not a number from 0 to {most}",
            hint=f"for example {example}",
        )
    return Fraction(float.__repr__(given)) if isinstance(given, float) else Fraction(given)
