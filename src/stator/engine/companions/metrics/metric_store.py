"""The store of metrics: minute aggregates, kept with the data as long as CloudWatch keeps them.

    c m s <series>                     a series as JSON: scope, namespace, name, dimensions, unit
    c m p <series> <period> <start>    the aggregate of a period (see distribution.py)

``series`` is a number of four bytes, ``period`` a length in seconds of two, and ``start`` seconds
since the epoch of eight. Aggregates of one second are kept for three hours (only for metrics with a
StorageResolution of 1), of a minute for 15 days, of five minutes for 63 and of an hour for 455.
``expire`` rolls what is too old for its period up into the next one, in one batch for each series.

New samples wait in memory until ``flush``, which the engine calls at the end of each minute and
when it closes. Reads see both. After a kill the samples of the current minutes are lost.

The caller holds the engine's lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

import orjson

from stator.engine import keyspace
from stator.engine.companions.metrics.distribution import Distribution
from stator.engine.companions.metrics.series import Metric, MetricSeries
from stator.storage import Changes, Storage
from stator.storage.protocol import after_prefix

DAY: Final = 86_400
SECOND: Final = 1
MINUTE: Final = 60
# Each period with its retention, and the period that it is rolled up into.
RETENTION: Final = (
    (SECOND, 3 * 3600, None),
    (MINUTE, 15 * DAY, 300),
    (300, 63 * DAY, 3600),
    (3600, 455 * DAY, None),
)
_SERIES: Final = keyspace.COMPANIONS + b"ms"
_POINTS: Final = keyspace.COMPANIONS + b"mp"
_LISTED_SECONDS: Final = 14 * DAY


class IdleMinutes(Protocol):
    """Knows the minutes in which a metric was zero, although nothing was recorded."""

    def idle_spans(self, metric: Metric, low: int, high: int) -> list[range]: ...


class MetricStore:
    """Adds samples, and returns their aggregates; see the module's header."""

    def __init__(self, storage: Storage, idle: IdleMinutes | None = None) -> None:
        self._storage = storage
        self.idle = idle
        self._numbers: dict[MetricSeries, int] = {}
        self._of_metric: dict[Metric, list[MetricSeries]] = {}
        # What waits for the next flush: by series, then by period and start.
        self._pending: dict[int, dict[tuple[int, int], Distribution]] = {}
        self._unwritten: list[MetricSeries] = []
        self._next = 1
        for key, record in storage.scan(_SERIES, after_prefix(_SERIES)):
            number = int.from_bytes(key[len(_SERIES) :], "big")
            self._enter(MetricSeries.from_json(orjson.loads(record)), number)

    def _enter(self, series: MetricSeries, number: int) -> None:
        self._numbers[series] = number
        self._of_metric.setdefault(series.metric, []).append(series)
        self._next = max(self._next, number + 1)

    # -- writing

    def add(
        self, series: MetricSeries, start: int, samples: Distribution, period: int = MINUTE
    ) -> None:
        """Add samples to the period that starts at ``start``."""
        waiting = self._pending.setdefault(self.register(series), {})
        known = waiting.get((period, start))
        if known is None:
            known = waiting[period, start] = Distribution()
        known.merge(samples)

    def register(self, series: MetricSeries) -> int:
        """Return the number of a series, after adding it if it is new."""
        number = self._numbers.get(series)
        if number is None:
            number = self._next
            self._enter(series, number)
            self._unwritten.append(series)
        return number

    def flush(self) -> None:
        """Store the samples that are only in memory, as one batch."""
        changes: Changes = {}
        for series in self._unwritten:
            changes[_series_key(self._numbers[series])] = orjson.dumps(series.to_json())
        for number, waiting in self._pending.items():
            for (period, start), samples in waiting.items():
                key = _point_key(number, period, start)
                stored = self._storage.get(key)
                whole = Distribution() if stored is None else Distribution.unpack(stored)
                whole.merge(samples)  # not the other way round: a failed write is repeated
                changes[key] = whole.pack()
        if changes:
            self._storage.write(changes, undoable=True)
        self._unwritten.clear()
        self._pending.clear()

    def expire(self, now: float) -> None:
        """Roll up aggregates older than their retention, and remove series without data."""
        self.flush()
        for series in list(self._numbers):
            number = self._numbers[series]
            for period, seconds, coarser in RETENTION:
                # Whole hours, so that no period of the next length is rolled up in two pieces.
                horizon = int(now - seconds) // 3600 * 3600
                self._expire_points(number, period, horizon, coarser)
            if not self._has_data(number) and not self._is_idle(series.metric, now):
                self._remove(series)

    def _expire_points(self, number: int, period: int, horizon: int, coarser: int | None) -> None:
        low, high = _point_key(number, period, 0), _point_key(number, period, max(horizon, 0))
        rolled: dict[bytes, Distribution] = {}
        changes: Changes = {}
        for key, record in self._storage.scan(low, high):
            changes[key] = None
            if coarser is not None:
                start = int.from_bytes(key[-8:], "big") // coarser * coarser
                into = _point_key(number, coarser, start)
                if into not in rolled:
                    known = self._storage.get(into)
                    rolled[into] = Distribution() if known is None else Distribution.unpack(known)
                rolled[into].merge(Distribution.unpack(record))
        changes.update((key, samples.pack()) for key, samples in rolled.items())
        if changes:
            self._storage.write(changes, undoable=True)

    def _has_data(self, number: int) -> bool:
        prefix = _POINTS + number.to_bytes(4, "big")
        return next(iter(self._storage.scan(prefix, after_prefix(prefix))), None) is not None

    def _is_idle(self, metric: Metric, now: float) -> bool:
        low = int(now) - _LISTED_SECONDS
        return self.idle is not None and bool(self.idle.idle_spans(metric, low, int(now)))

    def _remove(self, series: MetricSeries) -> None:
        self._storage.write({_series_key(self._numbers.pop(series)): None}, undoable=True)
        known = self._of_metric[series.metric]
        known.remove(series)
        if not known:
            del self._of_metric[series.metric]

    # -- reading

    def metrics(self) -> list[Metric]:
        """Return every metric that the store has."""
        return list(self._of_metric)

    def series_of(self, metric: Metric) -> list[MetricSeries]:
        """Return the series of a metric, one for each unit."""
        return self._of_metric.get(metric, [])

    def aggregate(
        self, series: list[MetricSeries], low: int, high: int, period: int, now: float
    ) -> dict[int, Distribution]:
        """Return the samples of these series from ``low`` to before ``high``, by period.

        The result has an entry, under its start, for each period with data, in order of time.
        Samples that are kept only for longer periods than this one are left out, as in CloudWatch.
        """
        found: dict[int, Distribution] = {}
        covered: list[tuple[int, int]] = []
        for each in series:
            for length, start, samples in self._points(self._numbers[each], low, high, period, now):
                covered.append((start, length))
                _merge_into(found, (start - low) // period * period + low, samples)
        if self.idle is not None and series and period >= MINUTE:
            busy = _covered_minutes(covered)
            idle = Distribution.idle()
            kept = int(now) - RETENTION[1][1]
            for span in self.idle.idle_spans(series[0].metric, max(low, kept), high):
                for minute in span:
                    if minute not in busy:
                        _merge_into(found, (minute - low) // period * period + low, idle)
        return dict(sorted(found.items()))

    def _points(
        self, number: int, low: int, high: int, period: int, now: float
    ) -> Iterator[tuple[int, int, Distribution]]:
        """Yield length, start and samples of each stored or waiting point in a range."""
        lengths = [
            (length, seconds)
            for length, seconds, _ in RETENTION
            if period % length == 0 and (length >= MINUTE) == (period >= MINUTE)
        ]
        # Points that are due to be rolled up are still read for the longer periods.
        oldest = int(now) - max(seconds for _, seconds in lengths)
        for length, _ in lengths:
            first = _point_key(number, length, max(low, oldest, 0))
            end = _point_key(number, length, max(high, 0))
            for key, record in self._storage.scan(first, end):
                yield length, int.from_bytes(key[-8:], "big"), Distribution.unpack(record)
        for (length, start), samples in self._pending.get(number, {}).items():
            if (length >= MINUTE) == (period >= MINUTE) and low <= start < high:
                yield length, start, samples

    def last_data(self, metric: Metric, now: float) -> float | None:
        """Return the start of the newest point of a metric in the last two weeks, or None."""
        newest: list[int] = []
        low = max(int(now) - _LISTED_SECONDS, 0)
        for series in self.series_of(metric):
            number = self._numbers[series]
            newest += [at for _, at in self._pending.get(number, ()) if at >= low]
            first, end = _point_key(number, MINUTE, low), _point_key(number, MINUTE, 2**62)
            for key, _ in self._storage.scan(first, end, reverse=True):
                newest.append(int.from_bytes(key[-8:], "big"))
                break
        if self.idle is not None:
            newest += [span[-1] for span in self.idle.idle_spans(metric, low, int(now))]
        return max(newest, default=None)


def _merge_into(found: dict[int, Distribution], slot: int, samples: Distribution) -> None:
    known = found.get(slot)
    if known is None:
        known = found[slot] = Distribution()
    known.merge(samples)


def _covered_minutes(points: list[tuple[int, int]]) -> set[int]:
    return {minute for start, length in points for minute in range(start, start + length, MINUTE)}


def _series_key(number: int) -> bytes:
    return _SERIES + number.to_bytes(4, "big")


def _point_key(number: int, period: int, start: int) -> bytes:
    return (
        _POINTS + number.to_bytes(4, "big") + period.to_bytes(2, "big") + start.to_bytes(8, "big")
    )
