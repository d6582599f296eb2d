"""Evaluates a metric math expression over the lines of a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from stator.engine.companions.cloudwatch.expressions.anomaly_band import (
    DEFAULT_WIDTH,
    anomaly_band,
)
from stator.engine.companions.cloudwatch.expressions.functions import (
    FUNCTIONS,
    QueryWindow,
    fill,
    lines_of,
)
from stator.engine.companions.cloudwatch.expressions.lines import Line, Value, combine
from stator.engine.companions.cloudwatch.expressions.syntax import (
    Array,
    Binary,
    MathCall,
    MathError,
    Name,
    Negation,
    Node,
    Number,
    Text,
)

_FILLERS: Final = ("REPEAT", "LINEAR")
_SORTS: Final = ("AVG", "MAX", "MIN", "SUM")
_UNSUPPORTED: Final = ("DB_PERF_INSIGHTS INSIGHT_RULE_METRIC LAMBDA SERVICE_QUOTA").split()

# Gets the search text, the statistic and the period, and returns the lines that it finds.
Search = Callable[[str, str, int], list[Line]]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The names that an expression can refer to.

    ``value_of`` returns the value of another query of the request by its id, and ``metrics`` has
    the lines of its metrics.
    """

    window: QueryWindow
    value_of: Callable[[str], Value]
    metrics: Callable[[], Mapping[str, Line]]
    search: Search
    # Gets the id of a metric of the request, and returns its line with two more weeks before it.
    history_of: Callable[[str], Line]


def evaluate(node: Node, around: Surroundings) -> Value:
    """Return the value of a tree. Raises MathError if it has none."""
    match node:
        case Number(value):
            return value
        case Name(name):
            return around.value_of(name)
        case Negation(operand):
            return combine("*", evaluate(operand, around), -1.0)
        case Binary(sign, left, right):
            return combine(sign, evaluate(left, around), evaluate(right, around))
        case Array(members):
            lines: list[Line] = []
            for member in members:
                lines += lines_of("[]", evaluate(member, around))
            return lines
        case Text():
            raise MathError(f"the text {node.value!r} is not a value")
        case MathCall(name, arguments):
            return _call(name, arguments, around)


def _call(name: str, arguments: tuple[Node, ...], around: Surroundings) -> Value:
    special = _SPECIAL.get(name)
    if special is not None:
        least, most, run = special
        _check_count(name, len(arguments), least, most)
        return run(arguments, around)
    known = FUNCTIONS.get(name)
    if known is None:
        if name in _UNSUPPORTED:
            raise MathError(f"Stator does not support the function {name}()")
        raise MathError(f"there is no function {name}()")
    least, most, function = known
    _check_count(name, len(arguments), least, most)
    return function(around.window, [evaluate(each, around) for each in arguments])


def _check_count(name: str, given: int, least: int, most: int) -> None:
    if not least <= given <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        plural = "" if wanted == "1" else "s"
        raise MathError(f"{name}() takes {wanted} argument{plural}, not {given}")


def _if(arguments: tuple[Node, ...], around: Surroundings) -> Value:
    """IF(condition, then) or IF(condition, then, otherwise), point by point."""
    condition = evaluate(arguments[0], around)
    then = evaluate(arguments[1], around)
    otherwise = evaluate(arguments[2], around) if len(arguments) == 3 else None
    if isinstance(condition, (int, float)):
        if otherwise is None:
            return then if condition else Line("IF", around.window.period, {})
        return then if condition else otherwise
    if isinstance(condition, list) or isinstance(then, list) or isinstance(otherwise, list):
        raise MathError("IF() takes a number or one time series, not an array")
    points: dict[int, float] = {}
    for at, value in condition.points.items():
        chosen = then if value else otherwise
        picked = chosen.points.get(at) if isinstance(chosen, Line) else chosen
        if picked is not None:
            points[at] = picked
    return condition.with_points(points)


def _fill(arguments: tuple[Node, ...], around: Surroundings) -> Value:
    given = evaluate(arguments[0], around)
    word = arguments[1]
    filler: float | Line | str
    if isinstance(word, Name) and word.value.upper() in _FILLERS:
        filler = word.value.upper()
    else:
        value = evaluate(word, around)
        if isinstance(value, list):
            raise MathError("FILL() fills with a number, a time series, REPEAT or LINEAR")
        filler = value
    filled = [fill(around.window, line, filler) for line in lines_of("FILL", given)]
    return filled if isinstance(given, list) else filled[0]


def _metrics(arguments: tuple[Node, ...], around: Surroundings) -> Value:
    lines = around.metrics()
    if not arguments:
        return list(lines.values())
    part = arguments[0]
    if not isinstance(part, Text):
        raise MathError("METRICS() takes a text in quotation marks, which ids must contain")
    return [line for name, line in lines.items() if part.value in name]


def _sort(arguments: tuple[Node, ...], around: Surroundings) -> Value:
    lines = lines_of("SORT", evaluate(arguments[0], around))
    by, order = (each.value.upper() if isinstance(each, Name) else "" for each in arguments[1:3])
    if by not in _SORTS or order not in ("ASC", "DESC"):
        raise MathError("SORT() sorts by AVG, MAX, MIN or SUM, and ASC or DESC")
    function = FUNCTIONS[by][2]

    def rank(line: Line) -> float:
        value = function(around.window, [line])
        return value if isinstance(value, (int, float)) else 0.0

    ordered = sorted(lines, key=rank, reverse=order == "DESC")
    if len(arguments) < 4:
        return ordered
    limit = evaluate(arguments[3], around)
    if not isinstance(limit, (int, float)):
        raise MathError("the limit of SORT() must be a number")
    return ordered[: int(limit)]


def _search(arguments: tuple[Node, ...], around: Surroundings) -> Value:
    query, statistic, *rest = arguments
    if not isinstance(query, Text) or not isinstance(statistic, Text):
        raise MathError("SEARCH() takes a text to search for, and a statistic, in quotes")
    period = around.window.period
    if rest:
        given = evaluate(rest[0], around)
        if not isinstance(given, (int, float)) or given % 60 or given <= 0:
            raise MathError("the period of SEARCH() must be a multiple of 60")
        period = int(given)
    return around.search(query.value, statistic.value, period)


def _band(arguments: tuple[Node, ...], around: Surroundings) -> Value:
    """ANOMALY_DETECTION_BAND(metric) or ANOMALY_DETECTION_BAND(metric, width): lower, upper."""
    metric = arguments[0]
    if not isinstance(metric, Name):
        raise MathError("ANOMALY_DETECTION_BAND() takes the id of a metric")
    width = evaluate(arguments[1], around) if len(arguments) == 2 else DEFAULT_WIDTH
    if not isinstance(width, (int, float)) or width <= 0:
        raise MathError("the width of ANOMALY_DETECTION_BAND() must be a number above 0")
    history = around.history_of(metric.value)
    start = around.window.start // history.period * history.period
    return list(anomaly_band(history, range(start, around.window.end, history.period), width))


_Special = Callable[[tuple[Node, ...], Surroundings], Value]
_SPECIAL: Final[dict[str, tuple[int, int, _Special]]] = {
    "IF": (2, 3, _if),
    "FILL": (2, 2, _fill),
    "METRICS": (0, 1, _metrics),
    "SORT": (3, 4, _sort),
    "SEARCH": (2, 3, _search),
    "ANOMALY_DETECTION_BAND": (1, 2, _band),
}
