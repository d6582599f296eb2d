"""The functions of metric math that take values. IF, METRICS and SEARCH are in ``evaluation``."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from stator.engine.companions.cloudwatch.expressions.lines import Line, Value
from stator.engine.companions.cloudwatch.expressions.syntax import MathError


@dataclass(frozen=True, slots=True)
class QueryWindow:
    """The time range of a query, and the period of lines that do not come from a metric."""

    start: int
    end: int
    period: int

    def times(self, period: int) -> range:
        return range(self.start, self.end, period)


Function = Callable[[QueryWindow, list[Value]], Value]


def lines_of(name: str, value: Value) -> list[Line]:
    """Return the lines of a value. Raises MathError for a number."""
    if isinstance(value, (int, float)):
        raise MathError(f"{name}() takes a time series, not a number")
    return value if isinstance(value, list) else [value]


def number_of(name: str, value: Value) -> float:
    if not isinstance(value, (int, float)):
        raise MathError(f"{name}() takes a number here, not a time series")
    return value


def _each(name: str, change: Callable[[Line], Line]) -> Function:
    """Make a function of metric math from a function that changes one line.

    An array is changed line by line.
    """

    def run(_: QueryWindow, arguments: list[Value]) -> Value:
        changed = [change(line) for line in lines_of(name, arguments[0])]
        return changed if isinstance(arguments[0], list) else changed[0]

    return run


def _math(name: str, function: Callable[[float], float]) -> Function:
    def safe(value: float) -> float:
        try:
            return float(function(value))
        except ValueError:  # the logarithm of a negative number has no data point
            return math.nan

    def run(window: QueryWindow, arguments: list[Value]) -> Value:
        if isinstance(arguments[0], (int, float)):
            value = safe(arguments[0])
            if math.isnan(value):
                raise MathError(f"{name}({arguments[0]:g}) is not a number")
            return value
        return _each(name, lambda line: line.mapped(safe))(window, arguments)

    return run


def _aggregate(name: str, function: Callable[[list[float]], float]) -> Function:
    """Make a function of metric math that turns a line into a number, and an array into a line."""

    def run(window: QueryWindow, arguments: list[Value]) -> Value:
        value = arguments[0]
        if isinstance(value, (int, float)):
            return value
        if isinstance(value, Line):
            return float(function(list(value.points.values()))) if value.points else 0.0
        times = sorted({at for line in value for at in line.points})
        points = {
            at: float(function([line.points[at] for line in value if at in line.points]))
            for at in times
        }
        return Line(name, max((line.period for line in value), default=window.period), points)

    return run


def _pairs(line: Line) -> list[tuple[int, int]]:
    times = list(line.points)
    return list(pairwise(times))


def _difference(line: Line) -> Line:
    points = line.points
    return line.with_points({at: points[at] - points[before] for before, at in _pairs(line)})


def _difference_of_times(line: Line) -> Line:
    return line.with_points({at: float(at - before) for before, at in _pairs(line)})


def _rate(line: Line) -> Line:
    points = line.points
    return line.with_points(
        {at: (points[at] - points[before]) / (at - before) for before, at in _pairs(line)}
    )


def _running_sum(line: Line) -> Line:
    total = 0.0
    points: dict[int, float] = {}
    for at, value in line.points.items():
        total += value
        points[at] = total
    return line.with_points(points)


def _time_part(name: str, part: Callable[[datetime], int]) -> Function:
    def of_time(at: int) -> float:
        return float(part(datetime.fromtimestamp(at, UTC)))

    return _each(name, lambda line: line.with_points({at: of_time(at) for at in line.points}))


def fill(window: QueryWindow, line: Line, filler: float | Line | str) -> Line:
    """Return a line with a value for every period of the window.

    ``filler`` is a number, another line, REPEAT (the last value) or LINEAR (between two values).
    """
    first = next(iter(line.points), None)
    # The periods of a metric begin at the window's start, and those of another line at its own.
    begin = window.start if first is None else window.start + (first - window.start) % line.period
    points: dict[int, float] = {}
    known = list(line.points)
    for at in range(begin, window.end, line.period):
        value = line.points.get(at)
        if value is None:
            value = _filler(line, known, at, filler)
        if value is not None:
            points[at] = value
    return line.with_points(points)


def _filler(line: Line, known: list[int], at: int, filler: float | Line | str) -> float | None:
    if isinstance(filler, (int, float)):
        return filler
    if isinstance(filler, Line):
        return filler.points.get(at)
    before = max((each for each in known if each < at), default=None)
    if filler == "REPEAT":
        return None if before is None else line.points[before]
    after = min((each for each in known if each > at), default=None)
    if before is None or after is None:
        return None
    low, high = line.points[before], line.points[after]
    return low + (high - low) * (at - before) / (after - before)


def _time_series(window: QueryWindow, arguments: list[Value]) -> Value:
    value = number_of("TIME_SERIES", arguments[0])
    return Line("TIME_SERIES", window.period, dict.fromkeys(window.times(window.period), value))


def _slice(_: QueryWindow, arguments: list[Value]) -> Value:
    lines = lines_of("SLICE", arguments[0])
    places = [int(number_of("SLICE", each)) for each in arguments[1:]]
    if len(places) == 1:
        if not 0 <= places[0] < len(lines):
            raise MathError(f"SLICE() asks for line {places[0]} of {len(lines)}")
        return lines[places[0]]
    return lines[places[0] : places[1]]


def _first(_: QueryWindow, arguments: list[Value]) -> Value:
    return _nth("FIRST", arguments[0], 0)


def _last(_: QueryWindow, arguments: list[Value]) -> Value:
    return _nth("LAST", arguments[0], -1)


def _nth(name: str, value: Value, at: int) -> Line:
    lines = lines_of(name, value)
    if not lines:
        raise MathError(f"{name}() got no time series")
    return lines[at]


def _period(_: QueryWindow, arguments: list[Value]) -> Value:
    return float(max((line.period for line in lines_of("PERIOD", arguments[0])), default=0))


# Name: the least and the most arguments, and the function.
FUNCTIONS: Final[dict[str, tuple[int, int, Function]]] = {
    "ABS": (1, 1, _math("ABS", abs)),
    "AVG": (1, 1, _aggregate("AVG", statistics.fmean)),
    "CEIL": (1, 1, _math("CEIL", math.ceil)),
    "DATAPOINT_COUNT": (1, 1, _aggregate("DATAPOINT_COUNT", len)),
    "DATE": (1, 1, _time_part("DATE", lambda moment: moment.day)),
    "DAY": (1, 1, _time_part("DAY", lambda moment: moment.isoweekday())),
    "DIFF": (1, 1, _each("DIFF", _difference)),
    "DIFF_TIME": (1, 1, _each("DIFF_TIME", _difference_of_times)),
    "EPOCH": (1, 1, _time_part("EPOCH", lambda moment: int(moment.timestamp()))),
    "FIRST": (1, 1, _first),
    "FLOOR": (1, 1, _math("FLOOR", math.floor)),
    "HOUR": (1, 1, _time_part("HOUR", lambda moment: moment.hour)),
    "LAST": (1, 1, _last),
    "LOG": (1, 1, _math("LOG", math.log)),
    "LOG10": (1, 1, _math("LOG10", math.log10)),
    "MAX": (1, 1, _aggregate("MAX", max)),
    "METRIC_COUNT": (1, 1, lambda _, given: float(len(lines_of("METRIC_COUNT", given[0])))),
    "MIN": (1, 1, _aggregate("MIN", min)),
    "MINUTE": (1, 1, _time_part("MINUTE", lambda moment: moment.minute)),
    "MONTH": (1, 1, _time_part("MONTH", lambda moment: moment.month)),
    "PERIOD": (1, 1, _period),
    "RATE": (1, 1, _each("RATE", _rate)),
    "REMOVE_EMPTY": (
        1,
        1,
        lambda _, given: [line for line in lines_of("REMOVE_EMPTY", given[0]) if line.points],
    ),
    "RUNNING_SUM": (1, 1, _each("RUNNING_SUM", _running_sum)),
    "SLICE": (2, 3, _slice),
    "STDDEV": (1, 1, _aggregate("STDDEV", statistics.pstdev)),
    "SUM": (1, 1, _aggregate("SUM", math.fsum)),
    "TIME_SERIES": (1, 1, _time_series),
    "YEAR": (1, 1, _time_part("YEAR", lambda moment: moment.year)),
}
