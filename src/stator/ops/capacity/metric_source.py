"""The seam to metrics: where the minutes of a history come from.

``MetricSource`` has one method. ``CloudWatchMetrics`` (``cloudwatch``) asks any endpoint that
answers like CloudWatch; ``MemoryMetrics`` is its twin for tests and programs with numbers of their
own. Metrics and dimensions are those of the namespace ``AWS/DynamoDB``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Statistic = Literal["Sum", "Maximum", "Average", "SampleCount"]


@dataclass(frozen=True, slots=True)
class MetricQuery:
    """One metric of a table, or of one of its indexes, in periods of so many seconds."""

    metric: str
    table: str
    index: str | None = None
    statistic: Statistic = "Sum"
    period_seconds: int = 60


class MetricSource(Protocol):
    """Reads the values of metrics over a time."""

    def read(self, queries: Sequence[MetricQuery], start: int, end: int) -> list[dict[int, float]]:
        """Return the values of each query: from the start of a period, in seconds, to its value.

        Periods without a value are left out. ``start`` is included, ``end`` is not.
        """
        ...


class MemoryMetrics:
    """Metrics in memory: what was put in comes out, summed up by period."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str, str | None], list[tuple[int, float]]] = defaultdict(list)

    def put(self, metric: str, table: str, index: str | None, at: int, value: float) -> None:
        """Add one measured value of a metric at a time, in seconds since the epoch."""
        self._values[metric, table, index].append((at, value))

    def read(self, queries: Sequence[MetricQuery], start: int, end: int) -> list[dict[int, float]]:
        """Return the values of each query by period, see ``MetricSource``."""
        return [self._read(query, start, end) for query in queries]

    def _read(self, query: MetricQuery, start: int, end: int) -> dict[int, float]:
        periods: dict[int, list[float]] = defaultdict(list)
        for at, value in self._values[query.metric, query.table, query.index]:
            if start <= at < end:
                periods[at // query.period_seconds * query.period_seconds].append(value)
        return {at: _statistic(query.statistic, values) for at, values in periods.items()}


def _statistic(name: Statistic, values: list[float]) -> float:
    if name == "Maximum":
        return max(values)
    if name == "SampleCount":
        return float(len(values))
    return sum(values) if name == "Sum" else sum(values) / len(values)
