"""The queries of GetMetricData and of alarms: statistics of metrics, and expressions over them.

``read_queries`` checks a request's list of queries. ``MetricQueries.lines`` returns the lines of
one of them in a time range; queries that it refers to are computed once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

from stator.engine.companions.cloudwatch.expressions.anomaly_band import (
    AROUND_SECONDS,
    TRAINING_DAYS,
)
from stator.engine.companions.cloudwatch.expressions.evaluation import Surroundings, evaluate
from stator.engine.companions.cloudwatch.expressions.functions import QueryWindow
from stator.engine.companions.cloudwatch.expressions.lines import Line, Value
from stator.engine.companions.cloudwatch.expressions.parser import parse_expression
from stator.engine.companions.cloudwatch.expressions.search import parse_search
from stator.engine.companions.cloudwatch.expressions.syntax import (
    MathError,
    Node,
    names_in,
)
from stator.engine.companions.cloudwatch.metric_fields import (
    VALIDATION,
    check_period,
    read_metric,
    rounded_start,
)
from stator.engine.companions.cloudwatch.statistics import parse_statistic
from stator.engine.companions.metrics.metric_store import MetricStore
from stator.engine.companions.metrics.series import Metric
from stator.errors import CompanionRefused
from stator.model.scope import Scope

_ID: Final = re.compile(r"[a-z][a-zA-Z0-9_]*")
_WORDS: Final = frozenset("REPEAT LINEAR AVG MAX MIN SUM ASC DESC".split())
_DEFAULT_PERIOD: Final = 300
_MOST_SEARCHED: Final = 500
_DAY: Final = 86_400


@dataclass(frozen=True, slots=True)
class MetricStat:
    """A statistic of a metric by period."""

    metric: Metric
    statistic: str
    period: int
    unit: str | None


@dataclass(frozen=True, slots=True)
class MetricDataQuery:
    """One query: either a statistic of a metric, or an expression."""

    id: str
    source: MetricStat | Node
    label: str | None
    is_returned: bool
    # Of an expression: the period of lines that no metric gives one.
    period: int


def read_queries(scope: Scope, entries: list[dict[str, Any]], where: str) -> list[MetricDataQuery]:
    """Return the queries of a request. Raises CompanionRefused if one of them is wrong."""
    queries: list[MetricDataQuery] = []
    for at, entry in enumerate(entries, 1):
        place = f"{where}.member.{at}"
        if entry.get("AccountId", scope.account) != scope.account:
            raise _invalid(f"{place}.AccountId must be {scope.account}, the caller's account.")
        if _ID.fullmatch(entry["Id"]) is None:
            raise _invalid(
                f"The value '{entry['Id']}' for {place}.Id must start with a lower-case letter and "
                "have only letters, digits and underscores."
            )
        queries.append(_read_query(scope, entry, place))
    known = {query.id for query in queries}
    if len(known) < len(queries):
        raise _invalid(f"The Ids of {where} must be unique.")
    for query in queries:
        _check_names(query, known)
    return queries


def _read_query(scope: Scope, entry: dict[str, Any], place: str) -> MetricDataQuery:
    if ("MetricStat" in entry) == ("Expression" in entry):
        raise _invalid(f"{place} must have either a MetricStat or an Expression.")
    period = entry.get("Period", 0)
    source: MetricStat | Node
    if "MetricStat" in entry:
        if period:
            raise _invalid(f"{place}.Period is only for expressions; a MetricStat has its own.")
        source = _read_stat(scope, entry["MetricStat"], f"{place}.MetricStat")
    else:
        if period:
            check_period(period, f"{place}.Period", VALIDATION)
        try:
            source = parse_expression(entry["Expression"])
        except MathError as error:
            raise _wrong(entry["Id"], error) from None
    returned = entry.get("ReturnData", True)
    return MetricDataQuery(entry["Id"], source, entry.get("Label"), returned, period)


def _read_stat(scope: Scope, entry: dict[str, Any], place: str) -> MetricStat:
    check_period(entry["Period"], f"{place}.Period", VALIDATION)
    if parse_statistic(entry["Stat"]) is None:
        raise _invalid(f"The value {entry['Stat']} for {place}.Stat is not supported.")
    metric = read_metric(scope, entry["Metric"])
    return MetricStat(metric, entry["Stat"], entry["Period"], entry.get("Unit"))


def _check_names(query: MetricDataQuery, known: set[str]) -> None:
    if isinstance(query.source, MetricStat):
        return
    for name in sorted(names_in(query.source) - known):
        if name.upper() not in _WORDS:
            raise _wrong(query.id, MathError(f"there is no query with the id {name!r}"))


class MetricQueries:
    """Computes queries in one time range."""

    def __init__(
        self,
        store: MetricStore,
        scope: Scope,
        queries: list[MetricDataQuery],
        start: float,
        end: float,
        now: float,
    ) -> None:
        self._store = store
        self._scope = scope
        self._queries = {query.id: query for query in queries}
        self._start = start
        self._end = ceil(end)
        self._now = now
        self._values: dict[str, Value] = {}
        self._running: list[str] = []

    def lines(self, query: MetricDataQuery) -> list[Line]:
        """Return the lines of a query. Raises CompanionRefused if it has none."""
        try:
            value = self._value(query.id)
        except MathError as error:
            raise _wrong(query.id, error) from None
        if isinstance(value, (int, float)):
            raise _wrong(
                query.id,
                MathError("it is a number; TIME_SERIES() makes a time series of it"),
            )
        return value if isinstance(value, list) else [value]

    def _value(self, name: str) -> Value:
        if name in self._values:
            return self._values[name]
        query = self._queries.get(name)
        if query is None:
            raise MathError(f"there is no query with the id {name!r}")
        if name in self._running:
            circle = " -> ".join([*self._running, name])
            raise MathError(f"the queries refer to each other in a circle: {circle}")
        self._running.append(name)
        try:
            value = self._compute(query)
        finally:
            self._running.pop()
        self._values[name] = value
        return value

    def _compute(self, query: MetricDataQuery) -> Value:
        source = query.source
        if isinstance(source, MetricStat):
            return self._line(source, query.label or source.metric.name)
        period = query.period or self._common_period()
        window = QueryWindow(rounded_start(self._start, period, self._now), self._end, period)
        around = Surroundings(window, self._value, self._metrics, self._search, self._history)
        value = evaluate(source, around)
        if isinstance(value, Line):
            return Line(query.label or query.id, value.period, value.points)
        return value

    def _common_period(self) -> int:
        """Return the longest period of the request's metrics."""
        stats = [query.source for query in self._queries.values()]
        periods = [each.period for each in stats if isinstance(each, MetricStat)]
        return max(periods, default=_DEFAULT_PERIOD)

    def _metrics(self) -> dict[str, Line]:
        return {
            name: self._line(query.source, query.label or query.source.metric.name)
            for name, query in self._queries.items()
            if isinstance(query.source, MetricStat)
        }

    def _history(self, name: str) -> Line:
        """Return what a band is made of: the same time of the day, on each of the days before."""
        query = self._queries.get(name)
        if query is None or not isinstance(query.source, MetricStat):
            raise MathError(f"ANOMALY_DETECTION_BAND() needs a metric, and {name!r} is none")
        points: dict[int, float] = {}
        for day in range(TRAINING_DAYS, 0, -1):
            earlier = day * _DAY
            points |= self._points(
                query.source,
                self._start - earlier - AROUND_SECONDS,
                self._end - earlier + AROUND_SECONDS,
            )
        return Line(query.label or query.source.metric.name, query.source.period, points)

    def _search(self, text: str, statistic: str, period: int) -> list[Line]:
        if parse_statistic(statistic) is None:
            raise MathError(f"the statistic {statistic!r} of SEARCH() is not supported")
        test = parse_search(text)
        found = sorted(
            (each for each in self._store.metrics() if each.scope == self._scope and test(each)),
            key=lambda each: (each.name, each.dimensions),
        )
        lines: list[Line] = []
        for metric in found[:_MOST_SEARCHED]:
            label = " ".join([*(value for _, value in metric.dimensions), metric.name])
            line = self._line(MetricStat(metric, statistic, period, None), label)
            if line.points:
                lines.append(line)
        return lines

    def _line(self, stat: MetricStat, label: str) -> Line:
        return Line(label, stat.period, self._points(stat, self._start, self._end))

    def _points(self, stat: MetricStat, start: float, end: float) -> dict[int, float]:
        """Return the points of a metric. Units that a query does not name are merged."""
        series = [
            each
            for each in self._store.series_of(stat.metric)
            if stat.unit is None or each.unit == stat.unit
        ]
        statistic = parse_statistic(stat.statistic)
        assert statistic is not None
        first = rounded_start(start, stat.period, self._now)
        found = self._store.aggregate(series, first, ceil(end), stat.period, self._now)
        points: dict[int, float] = {}
        for at, samples in found.items():
            value = statistic(samples)
            if value is not None:
                points[at] = value
        return points


def _invalid(message: str) -> CompanionRefused:
    return CompanionRefused(VALIDATION, message)


def _wrong(name: str, error: MathError) -> CompanionRefused:
    return CompanionRefused(VALIDATION, f"Error in expression '{name}': {error}.")
