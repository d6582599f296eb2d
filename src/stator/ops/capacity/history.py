"""Histories of live tables, from a source of metrics, and kept in a file.

CloudWatch keeps minutes for 15 days, five minutes for 63. So a history of up to 15 days has a
point for each minute; a longer one has one for every five, and hides short peaks.

``kept_history`` asks only for what a file does not have yet, and adds it. A file can so grow
longer than CloudWatch remembers. If the table is younger than the file's last minute or nearly so,
such as a copy of a production table, the file's history is taken as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Final

from stator.errors import ConfigurationError
from stator.ops.capacity.history_file import read_history, write_history
from stator.ops.capacity.live_table import LiveTable
from stator.ops.capacity.metric_source import MetricQuery, MetricSource
from stator.ops.capacity.use_series import MINUTE, Dimension, TableHistory, UseSeries

MINUTE_DAYS: Final = 15
COARSE_SECONDS: Final = 300
MOST_DAYS: Final = 63
_DAY_SECONDS: Final = 86_400
_LATE_SECONDS: Final = 180
"""Metrics of the last minutes may still change."""
_NAMES: Final = {"read": "Read", "write": "Write"}


def period_of(days: float) -> int:
    """Return the seconds between the points of a history of so many days."""
    if not 0 < days <= MOST_DAYS or not isfinite(days):
        raise ConfigurationError(
            f"{days:g} days is not a length of history",
            hint=f"CloudWatch keeps up to {MOST_DAYS} days at a useful resolution",
        )
    return MINUTE if days <= MINUTE_DAYS else COARSE_SECONDS


def fetch_history(
    source: MetricSource, table: LiveTable, start: int, end: int, period: int = MINUTE
) -> TableHistory:
    """Fetch a table's history. ``start`` and ``end`` are whole periods, in seconds."""
    queries, minutes = _queries(table, period), (end - start) // MINUTE
    values = dict(zip(queries, source.read(list(queries), start, end)))
    series = tuple(
        _series(table, each, values, start, minutes, period) for each in table.dimensions
    )
    return TableHistory(table.name, start, series, period, dict(table.sizes))


def _queries(table: LiveTable, period: int) -> tuple[MetricQuery, ...]:
    return tuple(
        query for each in table.dimensions for query in _own_queries(table.name, each, period)
    )


def _own_queries(table: str, dimension: Dimension, period: int) -> tuple[MetricQuery, ...]:
    """Return the queries of one dimension: units, events, units in force; units and requests."""
    name, index = _NAMES[dimension.kind], dimension.index
    consumed = f"Consumed{name}CapacityUnits"
    return (
        MetricQuery(consumed, table, index, "Sum", period),
        MetricQuery(f"{name}ThrottleEvents", table, index, "Sum", period),
        # DynamoDB emits it every five minutes.
        MetricQuery(f"Provisioned{name}CapacityUnits", table, index, "Maximum", COARSE_SECONDS),
        MetricQuery(consumed, table, index, "Sum", _DAY_SECONDS),
        MetricQuery(consumed, table, index, "SampleCount", _DAY_SECONDS),
    )


def _series(
    table: LiveTable,
    dimension: Dimension,
    values: Mapping[MetricQuery, Mapping[int, float]],
    start: int,
    minutes: int,
    period: int,
) -> UseSeries:
    units, events, capacity, used, requests = (
        values[query] for query in _own_queries(table.name, dimension, period)
    )
    count = sum(requests.values())
    return UseSeries(
        dimension,
        _spread(units, start, minutes, period),
        _spread(events, start, minutes, period),
        _held(capacity, start, minutes)
        if capacity
        else [float(table.units.get(dimension, 0))] * minutes,
        sum(used.values()) / count if count and any(used.values()) else 1.0,
    )


def _spread(values: Mapping[int, float], start: int, minutes: int, period: int) -> list[float]:
    """Return a value for each minute: a period's sum is spread over its minutes."""
    found, of_each = [0.0] * minutes, period // MINUTE
    for at, value in values.items():
        first = (at - start) // MINUTE
        for minute in range(max(0, first), min(minutes, first + of_each)):
            found[minute] = value / of_each
    return found


def _held(values: Mapping[int, float], start: int, minutes: int) -> list[float]:
    """Return the units in force in each minute: a value holds until the next one."""
    ordered = sorted(values.items())
    found, held, at = [], ordered[0][1], 0
    # A gap of two periods means that the table was on-demand, which has no such metric.
    last_known = ordered[0][0]
    for minute in range(minutes):
        now = start + minute * MINUTE
        while at < len(ordered) and ordered[at][0] <= now:
            last_known, held = ordered[at]
            at += 1
        found.append(held if now - last_known < 3 * COARSE_SECONDS else 0.0)
    return found


# --- kept in a file -------------------------------------------------------------------------------


def live_history(
    source: MetricSource, table: LiveTable, now: float, days: float = 14.0
) -> TableHistory:
    """Fetch the last days of a table's history, or its whole history if the table is younger."""
    start, end, period = _window(table, now, days)
    _check_any(table, start, end)
    return fetch_history(source, table, start, end, period)


def _window(table: LiveTable, now: float, days: float) -> tuple[int, int, int]:
    period = period_of(days)
    end = int(now - _LATE_SECONDS) // period * period
    start = max(end - int(days * _DAY_SECONDS), int(table.created_at))
    return -(-start // period) * period, end, period


def _check_any(table: LiveTable, start: int, end: int) -> None:
    if start >= end:
        raise ConfigurationError(
            f"{table.name} was created minutes ago and has no history",
            hint="at least a day of history is needed, and 14 days are better",
        )


def kept_history(
    path: Path, source: MetricSource, tables: Sequence[LiveTable], now: float, days: float = 14.0
) -> tuple[TableHistory, ...]:
    """Return the last days of tables' histories, from a file and from the source of metrics.

    The points that the file lacks are added to it. Each history has the dimensions that its table
    has now. Raises ConfigurationError if the points between the end of the file and the oldest
    point that can still be fetched are lost.
    """
    known = {each.table: each for each in read_history(path)} if path.exists() else {}
    read = dict(known)
    found = []
    for table in tables:
        window, before = _window(table, now, days), known.get(table.name)
        if before is None:
            _check_any(table, *window[:2])
        whole = _completed(source, table, before, window, path)
        known[table.name] = whole
        found.append(of_table(last_days(whole, days), table))
    if known != read:
        write_history(path, known.values())
    return tuple(found)


def _completed(
    source: MetricSource,
    table: LiveTable,
    before: TableHistory | None,
    window: tuple[int, int, int],
    path: Path,
) -> TableHistory:
    """Return the stored history of a table joined with the points fetched now."""
    start, end, period = window
    if before is None:
        return fetch_history(source, table, start, end, period)
    if before.end < start:
        if end - start < _DAY_SECONDS:  # too little for advice of its own
            return before
        raise ConfigurationError(
            f"{path} has {table.name} until {_day_text(before.end)}, and what can be fetched "
            f"begins on {_day_text(start)}: the time between is lost",
            hint="name a new file, or read this one alone, without --at",
        )
    if before.source_seconds != period:
        raise ConfigurationError(
            f"{path} has a point for every {before.source_seconds} seconds of {table.name}, "
            f"not every {period}",
            hint="name another file, or ask for as many days as before",
        )
    parts = [before]
    if start < before.start <= end:
        parts.append(fetch_history(source, table, start, before.start, period))
    if before.end < end:
        parts.append(fetch_history(source, table, before.end, end, period))
    return before if len(parts) == 1 else joined(parts, dict(table.sizes))


def _day_text(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def of_table(history: TableHistory, table: LiveTable) -> TableHistory:
    """Return a history with exactly the dimensions that a table has now.

    A deleted index is left out; an index that the history lacks counts as idle.
    """
    quiet = [0.0] * history.minutes
    there = {each.dimension: each for each in history.series}
    series = tuple(
        there.get(each) or UseSeries(each, quiet, quiet, quiet) for each in table.dimensions
    )
    if series == history.series:
        return history
    sizes = {place: history.sizes.get(place, 0.0) for place in (None, *table.indexes)}
    return replace(history, series=series, sizes=sizes)


def joined(parts: Iterable[TableHistory], sizes: dict[str | None, float]) -> TableHistory:
    """Join histories of one table that follow each other. A new index was idle before."""
    ordered = sorted(parts, key=lambda each: each.start)
    dimensions = sorted(
        {each.dimension for part in ordered for each in part.series},
        key=lambda each: (each.index or "", each.kind),
    )
    series = tuple(_joined_series(ordered, each) for each in dimensions)
    return replace(ordered[0], series=series, sizes=sizes)


def _joined_series(parts: Sequence[TableHistory], dimension: Dimension) -> UseSeries:
    consumed: list[float] = []
    throttles: list[float] = []
    provisioned: list[float] = []
    requests = 0.0
    for part in parts:
        own = next((each for each in part.series if each.dimension == dimension), None)
        quiet = [0.0] * part.minutes
        consumed += quiet if own is None else own.consumed
        throttles += quiet if own is None else own.throttles
        provisioned += quiet if own is None else own.provisioned
        requests += 0.0 if own is None else sum(own.consumed) / own.units_per_request
    each = sum(consumed) / requests if requests else 1.0
    return UseSeries(dimension, consumed, throttles, provisioned, each)


def last_days(history: TableHistory, days: float) -> TableHistory:
    """Return the last days of a history, or all of it if it is shorter."""
    first = max(0, history.minutes - int(days * _DAY_SECONDS) // MINUTE)
    if first == 0:
        return history
    series = tuple(
        replace(
            each,
            consumed=each.consumed[first:],
            throttles=each.throttles[first:],
            provisioned=each.provisioned[first:],
        )
        for each in history.series
    )
    return replace(history, start=history.start + first * MINUTE, series=series)
