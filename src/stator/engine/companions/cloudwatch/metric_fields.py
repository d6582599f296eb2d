"""The fields that CloudWatch's requests share: a metric, a period, a time range."""

from __future__ import annotations

import re
from typing import Any, Final

from stator.engine.companions.metrics.series import Dimensions, Metric
from stator.errors import CompanionRefused
from stator.model.scope import Scope

INVALID_VALUE: Final = "InvalidParameterValueException"
INVALID_COMBINATION: Final = "InvalidParameterCombinationException"
MISSING: Final = "MissingRequiredParameterException"
VALIDATION: Final = "ValidationError"

_DAY: Final = 86_400
_DIMENSION_TEXT: Final = re.compile(r"[ -~]+")
"""ASCII without control characters."""
_SHORT_PERIODS: Final = (1, 5, 10, 20, 30)


def read_dimensions(entries: list[dict[str, str]], where: str = "Dimensions") -> Dimensions:
    """Return the dimensions of a metric.

    Raises CompanionRefused if a name occurs twice, or if a text is blank or not ASCII.
    """
    for entry in entries:
        for member in ("Name", "Value"):
            text = entry[member]
            is_wrong = _DIMENSION_TEXT.fullmatch(text) is None or not text.strip()
            if is_wrong or (member == "Name" and text[0] == ":"):
                raise CompanionRefused(
                    INVALID_VALUE, f"The value {text} for parameter {where}.{member} is invalid."
                )
    pairs = {entry["Name"]: entry["Value"] for entry in entries}
    if len(pairs) < len(entries):
        raise CompanionRefused(INVALID_VALUE, f"The parameter {where} has a dimension name twice.")
    return tuple(sorted(pairs.items()))


def read_metric(scope: Scope, request: dict[str, Any]) -> Metric:
    """Return the metric that a request names.

    Raises CompanionRefused if its name or namespace is missing.
    """
    for member in ("Namespace", "MetricName"):
        if member not in request:
            raise CompanionRefused(MISSING, f"The parameter {member} is required.")
    dimensions = read_dimensions(request.get("Dimensions", []))
    return Metric(scope, request["Namespace"], request["MetricName"], dimensions)


def write_metric(metric: Metric) -> dict[str, Any]:
    """Return a metric in the form that answers have."""
    return {
        "Namespace": metric.namespace,
        "MetricName": metric.name,
        "Dimensions": [{"Name": name, "Value": value} for name, value in metric.dimensions],
    }


def check_period(period: int, where: str = "Period", code: str = INVALID_VALUE) -> None:
    if period not in _SHORT_PERIODS and (period % 60 or period > 86_400):
        raise CompanionRefused(
            code,
            f"The parameter {where} must be 1, 5, 10, 20, 30 or a multiple of 60, and at most "
            f"86400; it is {period}.",
        )


def check_range(start: float, end: float, code: str = INVALID_VALUE) -> None:
    if start >= end:
        raise CompanionRefused(
            code, "The parameter StartTime must be less than the parameter EndTime."
        )


def rounded_start(start: float, period: int, now: float) -> int:
    """Return the start of a time range, rounded down as CloudWatch does by its age and period."""
    age = now - start
    if period < 60:
        step = period
    elif age < 15 * _DAY:
        step = 60
    else:
        step = 300 if age < 63 * _DAY else 3600
    return int(start) // step * step
