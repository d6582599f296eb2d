"""The samples of one metric in one minute: their number, sum, extremes and a histogram.

The histogram has a bucket for each power of 1.04, so a percentile is wrong by at most two percent.
A statistic set with several different values says nothing about how they are spread. A distribution
that contains one has no histogram, and no percentiles. CloudWatch has the same rule.

At rest a distribution is a version byte (1), four doubles, and a bucket and a count for each bucket
that is not empty. Version 2 is the same without buckets, for distributions without a histogram.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from struct import Struct
from typing import Final

from stator.errors import StorageCorrupt

_LOG_RATIO: Final = math.log(1.04)
# Added to the number of a bucket, so that it is positive even for tiny values. Bucket 0 holds
# zeros, and the buckets of negative values have negative numbers.
_OFFSET: Final = 10_000
_HEAD: Final = Struct(">Bdddd")
_BUCKET: Final = Struct(">hd")
_WITH_BUCKETS: Final = 1
_WITHOUT_BUCKETS: Final = 2


class Distribution:
    """Counts samples. ``buckets`` is None if their spread is unknown."""

    __slots__ = ("buckets", "count", "maximum", "minimum", "total")

    def __init__(self) -> None:
        self.count = 0.0
        self.total = 0.0
        self.minimum = math.inf
        self.maximum = -math.inf
        self.buckets: dict[int, float] | None = {}

    def add(self, value: float, times: float = 1.0) -> None:
        """Add a sample, ``times`` times."""
        self.count += times
        self.total += value * times
        self.minimum = min(self.minimum, value)
        self.maximum = max(self.maximum, value)
        if self.buckets is not None:
            bucket = bucket_of(value)
            self.buckets[bucket] = self.buckets.get(bucket, 0.0) + times

    def merge(self, other: Distribution) -> None:
        """Add the samples of another distribution."""
        self.count += other.count
        self.total += other.total
        self.minimum = min(self.minimum, other.minimum)
        self.maximum = max(self.maximum, other.maximum)
        if other.buckets is None or self.buckets is None:
            self.buckets = None
        else:
            for bucket, times in other.buckets.items():
                self.buckets[bucket] = self.buckets.get(bucket, 0.0) + times

    @property
    def average(self) -> float:
        return self.total / self.count if self.count else 0.0

    def percentile(self, share: float) -> float | None:
        """Return the value below which ``share`` (0 to 1) of the samples lie, if it is known."""
        if self.buckets is None:
            return None
        if not self.buckets:
            return 0.0
        left = share * self.count
        for bucket in sorted(self.buckets):
            left -= self.buckets[bucket]
            if left <= 1e-9:
                return self.within(value_of(bucket))
        return self.maximum

    def within(self, value: float) -> float:
        """Return the value, or the extreme that it lies beyond."""
        return min(max(value, self.minimum), self.maximum)

    def pack(self) -> bytes:
        kind = _WITHOUT_BUCKETS if self.buckets is None else _WITH_BUCKETS
        head = _HEAD.pack(kind, self.count, self.total, self.minimum, self.maximum)
        return head + b"".join(
            _BUCKET.pack(*entry) for entry in sorted((self.buckets or {}).items())
        )

    @classmethod
    def unpack(cls, record: bytes) -> Distribution:
        """Return a stored distribution. Raises StorageCorrupt if it cannot be read."""
        size = len(record) - _HEAD.size
        if size < 0 or size % _BUCKET.size or record[0] not in (_WITH_BUCKETS, _WITHOUT_BUCKETS):
            raise StorageCorrupt("", "a stored metric is damaged, or a newer Stator wrote it")
        found = cls()
        kind, found.count, found.total, found.minimum, found.maximum = _HEAD.unpack_from(record)
        found.buckets = (
            dict(_BUCKET.iter_unpack(record[_HEAD.size :])) if kind == _WITH_BUCKETS else None
        )
        return found

    @classmethod
    def of(cls, values: Iterable[float]) -> Distribution:
        """Return the distribution of these samples."""
        found = cls()
        for value in values:
            found.add(value)
        return found

    @classmethod
    def of_set(cls, count: float, total: float, minimum: float, maximum: float) -> Distribution:
        """Return the distribution that a statistic set describes."""
        found = cls()
        if minimum == maximum:
            found.add(minimum, count)
        else:
            found.buckets = None
            found.count, found.minimum, found.maximum = count, minimum, maximum
        found.total = total
        return found

    @classmethod
    def idle(cls) -> Distribution:
        """Return the distribution of a minute in which nothing was consumed.

        DynamoDB reports zero for such a minute, with a SampleCount of zero.
        """
        found = cls()
        found.minimum = found.maximum = 0.0
        return found


def bucket_of(value: float) -> int:
    if value == 0.0:
        return 0
    bucket = math.ceil(math.log(abs(value)) / _LOG_RATIO) + _OFFSET
    return bucket if value > 0.0 else -bucket


def value_of(bucket: int) -> float:
    """Return the middle of a bucket."""
    if bucket == 0:
        return 0.0
    value = math.exp((abs(bucket) - _OFFSET - 0.5) * _LOG_RATIO)
    return value if bucket > 0 else -value
