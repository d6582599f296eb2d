"""Lines: time series as metric math computes with them, and arithmetic on them.

An operation on two lines has a point where both have one. On a line and a number it keeps the
line's times, and on an array it works line by line.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Union

from stator.engine.companions.cloudwatch.expressions.syntax import MathError


@dataclass(frozen=True, slots=True)
class Line:
    """A time series: values by their time, in order, and the seconds between two of them."""

    label: str
    period: int
    points: dict[int, float]

    def mapped(self, function: Callable[[float], float]) -> Line:
        """Return the line with a function applied to each value."""
        return self.with_points({at: function(value) for at, value in self.points.items()})

    def with_points(self, points: dict[int, float]) -> Line:
        finite = {at: value for at, value in points.items() if math.isfinite(value)}
        return Line(self.label, self.period, finite)


Value = Union[float, Line, list[Line]]


def _divide(left: float, right: float) -> float:
    return left / right if right else math.nan  # a division by zero has no data point


def _power(left: float, right: float) -> float:
    try:
        return math.pow(left, right)
    except (ValueError, OverflowError):
        return math.nan


OPERATORS: Final[dict[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "^": _power,
    "==": lambda left, right: float(left == right),
    "!=": lambda left, right: float(left != right),
    "<": lambda left, right: float(left < right),
    ">": lambda left, right: float(left > right),
    "<=": lambda left, right: float(left <= right),
    ">=": lambda left, right: float(left >= right),
    "AND": lambda left, right: float(left > 0 and right > 0),
    "OR": lambda left, right: float(left > 0 or right > 0),
}


def combine(sign: str, left: Value, right: Value) -> Value:
    """Apply an operator. Raises MathError for two arrays."""
    apply = OPERATORS[sign]
    if isinstance(left, list):
        if isinstance(right, list):
            raise MathError(f"the operator {sign} cannot combine two arrays")
        return [_combined(apply, each, right) for each in left]
    if isinstance(right, list):
        return [_combined(lambda a, b: apply(b, a), each, left) for each in right]
    if isinstance(left, Line):
        return _combined(apply, left, right)
    if isinstance(right, Line):
        return _combined(lambda a, b: apply(b, a), right, left)
    value = apply(left, right)
    if math.isnan(value):
        raise MathError(f"{left:g} {sign} {right:g} is not a number")
    return value


def _combined(apply: Callable[[float, float], float], line: Line, other: Line | float) -> Line:
    if isinstance(other, (int, float)):
        return line.mapped(lambda value: apply(value, other))
    points = {
        at: apply(value, other.points[at])
        for at, value in line.points.items()
        if at in other.points
    }
    return Line(line.label, max(line.period, other.period), {}).with_points(points)
