"""Statistics: what CloudWatch computes from the samples of a period.

Besides the five simple ones there are percentiles (p99.9), and statistics over a range of the
samples: trimmed mean (tm), winsorized mean (wm), trimmed count (tc), trimmed sum (ts), percentile
rank (pr) and the interquartile mean (IQM). A range is in percent, TM(10%:90%), or in values,
TC(0.5:10), and either side may be missing; tm90 is short for TM(:90%). All of them but the
percentile rank take the samples of a bucket to lie in its middle.

Source: CloudWatch User Guide, "CloudWatch statistics definitions".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final, Protocol

from stator.engine.companions.metrics.distribution import Distribution, value_of

# Gets the samples of a period; None if the statistic cannot be computed from them.
Statistic = Callable[[Distribution], "float | None"]

SIMPLE: Final[dict[str, Statistic]] = {
    "SampleCount": lambda samples: samples.count,
    "Sum": lambda samples: samples.total,
    "Average": lambda samples: samples.average,
    "Minimum": lambda samples: samples.minimum,
    "Maximum": lambda samples: samples.maximum,
}


class RangedStatistic(Protocol):
    """A statistic of the samples in a range.

    The range is in shares of the samples, or in values.
    """

    def __call__(self, samples: Distribution, low: float, high: float) -> float | None: ...


_SHORT: Final = re.compile(r"(p|tm|wm|tc|ts)(\d{1,2}(?:\.\d{1,10})?|100)")
_LONG: Final = re.compile(
    r"(TM|WM|TC|TS|PR)\((-?\d+(?:\.\d+)?%?)?:(-?\d+(?:\.\d+)?%?)?\)", re.IGNORECASE
)


@lru_cache(maxsize=512)
def parse_statistic(text: str) -> Statistic | None:
    """Return a statistic by its name, or None if there is no such statistic."""
    simple = SIMPLE.get(text)
    if simple is not None:
        return simple
    if text.upper() == "IQM":
        return partial(_trimmed_mean, low=0.25, high=0.75)
    short = _SHORT.fullmatch(text)
    if short is not None:
        share = float(short[2]) / 100.0
        if short[1] == "p":
            return lambda samples: samples.percentile(share)
        return partial(_BY_SHARE[short[1]], low=0.0, high=share)
    long = _LONG.fullmatch(text)
    return None if long is None else _ranged(long[1].lower(), long[2], long[3])


def percentile_of(text: str) -> float | None:
    """Return the share of a percentile such as p99 (0.99), or None for another statistic."""
    short = _SHORT.fullmatch(text)
    return float(short[2]) / 100.0 if short is not None and short[1] == "p" else None


def _ranged(name: str, low: str | None, high: str | None) -> Statistic | None:
    sides = [side for side in (low, high) if side is not None]
    in_percent = {side.endswith("%") for side in sides}
    if len(in_percent) != 1:  # no side at all, or one in percent and one in values
        return None
    if in_percent == {True}:
        first = 0.0 if low is None else float(low[:-1]) / 100.0
        last = 1.0 if high is None else float(high[:-1]) / 100.0
        if name == "pr" or not 0.0 <= first < last <= 1.0:
            return None
        return partial(_BY_SHARE[name], low=first, high=last)
    return partial(
        _BY_VALUE[name],
        low=-float("inf") if low is None else float(low),
        high=float("inf") if high is None else float(high),
    )


# -- ranges in percent of the samples


def _shares(samples: Distribution, low: float, high: float) -> list[tuple[float, float]] | None:
    """Return the values between two shares of the samples, each with its number of samples."""
    if samples.buckets is None:
        return None
    found: list[tuple[float, float]] = []
    first, last, at = low * samples.count, high * samples.count, 0.0
    for bucket in sorted(samples.buckets):
        times = samples.buckets[bucket]
        inside = min(at + times, last) - max(at, first)
        if inside > 0.0:
            found.append((samples.within(value_of(bucket)), inside))
        at += times
    return found


def _trimmed_count(samples: Distribution, low: float, high: float) -> float | None:
    found = _shares(samples, low, high)
    return None if found is None else sum(times for _, times in found)


def _trimmed_sum(samples: Distribution, low: float, high: float) -> float | None:
    found = _shares(samples, low, high)
    return None if found is None else sum(value * times for value, times in found)


def _trimmed_mean(samples: Distribution, low: float, high: float) -> float | None:
    found = _shares(samples, low, high)
    return None if found is None else _mean(found)


def _winsorized_mean(samples: Distribution, low: float, high: float) -> float | None:
    """Return the mean after samples outside of the range are moved to its ends."""
    found = _shares(samples, low, high)
    if not found:
        return None if found is None else 0.0
    below, above = low * samples.count, (1.0 - high) * samples.count
    return _mean([(found[0][0], below), *found, (found[-1][0], above)])


# -- ranges of values


def _between(samples: Distribution, low: float, high: float) -> list[tuple[float, float]] | None:
    if samples.buckets is None:
        return None
    values = [(samples.within(value_of(each)), times) for each, times in samples.buckets.items()]
    return [(value, times) for value, times in values if low < value <= high]


def _count_between(samples: Distribution, low: float, high: float) -> float | None:
    found = _between(samples, low, high)
    return None if found is None else sum(times for _, times in found)


def _sum_between(samples: Distribution, low: float, high: float) -> float | None:
    found = _between(samples, low, high)
    return None if found is None else sum(value * times for value, times in found)


def _mean_between(samples: Distribution, low: float, high: float) -> float | None:
    found = _between(samples, low, high)
    return None if found is None else _mean(found)


def _mean_moved(samples: Distribution, low: float, high: float) -> float | None:
    found = _between(samples, -float("inf"), float("inf"))
    moved = [(min(max(value, low), high), times) for value, times in found or ()]
    return None if found is None else _mean(moved)


def _rank_between(samples: Distribution, low: float, high: float) -> float | None:
    found = _count_between(samples, low, high)
    if found is None:
        return None
    return 100.0 * found / samples.count if samples.count else 0.0


def _mean(found: list[tuple[float, float]]) -> float:
    count = sum(times for _, times in found)
    return sum(value * times for value, times in found) / count if count else 0.0


_BY_SHARE: Final[dict[str, RangedStatistic]] = {
    "tm": _trimmed_mean,
    "wm": _winsorized_mean,
    "tc": _trimmed_count,
    "ts": _trimmed_sum,
}
_BY_VALUE: Final[dict[str, RangedStatistic]] = {
    "tm": _mean_between,
    "wm": _mean_moved,
    "tc": _count_between,
    "ts": _sum_between,
    "pr": _rank_between,
}
