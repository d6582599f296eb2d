"""GetMetricStatistics: statistics of one metric by period, at most 1,440 points a call."""

from __future__ import annotations

from math import ceil
from typing import Any, Final

from stator.engine.companions.cloudwatch.metric_fields import (
    INVALID_COMBINATION,
    INVALID_VALUE,
    MISSING,
    check_period,
    check_range,
    read_metric,
    rounded_start,
)
from stator.engine.companions.cloudwatch.statistics import SIMPLE, parse_statistic
from stator.engine.companions.companion import CompanionCall
from stator.engine.companions.metrics.distribution import Distribution
from stator.engine.companions.metrics.metric_store import MetricStore
from stator.errors import CompanionRefused

_MOST_POINTS: Final = 1_440


def get_metric_statistics(
    store: MetricStore, call: CompanionCall, request: dict[str, Any]
) -> dict[str, Any]:
    names, extended = request.get("Statistics", []), request.get("ExtendedStatistics", [])
    if names and extended:
        raise CompanionRefused(
            INVALID_COMBINATION,
            "The parameters Statistics and ExtendedStatistics are mutually exclusive and you have "
            "specified both.",
        )
    if not names and not extended:
        raise CompanionRefused(
            MISSING, "The parameter Statistics or ExtendedStatistics is required."
        )
    for name in extended:
        if name in SIMPLE or parse_statistic(name) is None:
            raise CompanionRefused(
                INVALID_VALUE,
                f"The value {name} for parameter ExtendedStatistics is not supported.",
            )
    metric = read_metric(call.scope, request)
    period = request["Period"]
    check_period(period)
    check_range(request["StartTime"], request["EndTime"])
    start = rounded_start(request["StartTime"], period, call.now)
    end = ceil(request["EndTime"])
    points = -(-(end - start) // period)
    if points > _MOST_POINTS:
        raise CompanionRefused(
            INVALID_COMBINATION,
            f"You have requested up to {points:,} datapoints, which exceeds the limit of "
            f"{_MOST_POINTS:,}. You may reduce the datapoints requested by increasing Period, or "
            "decreasing the time range.",
        )
    answer: list[dict[str, Any]] = []
    for series in store.series_of(metric):
        if request.get("Unit", series.unit) == series.unit:
            found = store.aggregate([series], start, end, period, call.now)
            answer += [
                point
                for at, samples in found.items()
                if (point := _point(at, samples, series.unit, names, extended)) is not None
            ]
    return {"Label": metric.name, "Datapoints": answer}


def _point(
    at: int, samples: Distribution, unit: str, names: list[str], extended: list[str]
) -> dict[str, Any] | None:
    """Return a data point, or None if none of the extended statistics is known."""
    point: dict[str, Any] = {"Timestamp": float(at), "Unit": unit}
    for name in names:
        point[name] = SIMPLE[name](samples)
    found: dict[str, float] = {}
    for name in extended:
        statistic = parse_statistic(name)
        value = None if statistic is None else statistic(samples)
        if value is not None:
            found[name] = value
    if extended:
        if not found:
            return None
        point["ExtendedStatistics"] = found
    return point
