"""PutMetricData: samples that users record.

Limits: 1,000 metrics and 1 MB a request, 150 values a metric, and times from two weeks ago to two
hours ahead. A value is at most 2**360. A StorageResolution of 1 also keeps the second.
"""

from __future__ import annotations

import math
from typing import Any, Final

import orjson

from stator.engine.companions.cloudwatch.metric_fields import (
    INVALID_COMBINATION,
    INVALID_VALUE,
    MISSING,
    read_dimensions,
)
from stator.engine.companions.companion import CompanionCall
from stator.engine.companions.metrics.distribution import Distribution
from stator.engine.companions.metrics.metric_store import MINUTE, SECOND, MetricStore
from stator.engine.companions.metrics.series import Metric, MetricSeries
from stator.errors import CompanionRefused

_MOST_METRICS: Final = 1_000
_MOST_VALUES: Final = 150
_MOST_BYTES: Final = 1024 * 1024
_LARGEST: Final = 2.0**360
_PAST_SECONDS: Final = 14 * 86_400
_FUTURE_SECONDS: Final = 2 * 3600


def put_metric_data(
    store: MetricStore, call: CompanionCall, request: dict[str, Any]
) -> dict[str, Any]:
    namespace = request["Namespace"]
    if namespace.startswith("AWS/"):
        raise _invalid(f"The value {namespace} for parameter Namespace is invalid.")
    if "EntityMetricData" in request:
        raise CompanionRefused(
            INVALID_VALUE, "Stator does not support the parameter EntityMetricData."
        )
    if "MetricData" not in request:
        raise CompanionRefused(MISSING, "The parameter MetricData is required.")
    data = request["MetricData"]
    if len(data) > _MOST_METRICS:
        raise _invalid(
            f"The collection MetricData must not have a size greater than {_MOST_METRICS}."
        )
    if len(orjson.dumps(request)) > _MOST_BYTES:
        raise CompanionRefused(
            "RequestEntityTooLarge", "The request is larger than 1 MB.", status=413
        )
    # Everything is checked before anything is stored.
    read = [_datum(call, namespace, datum, at) for at, datum in enumerate(data, 1)]
    for series, moment, samples, resolution in read:
        store.add(series, int(moment) // MINUTE * MINUTE, samples)
        if resolution == SECOND:
            store.add(series, int(moment), samples, SECOND)
    return {}


def _datum(
    call: CompanionCall, namespace: str, datum: dict[str, Any], at: int
) -> tuple[MetricSeries, float, Distribution, int]:
    where = f"MetricData.member.{at}"
    moment = datum.get("Timestamp", call.now)
    if moment < call.now - _PAST_SECONDS:
        raise _invalid(
            f"The parameter {where}.Timestamp must specify a time within the past two weeks."
        )
    if moment > call.now + _FUTURE_SECONDS:
        raise _invalid(
            f"The parameter {where}.Timestamp must specify a time no more than two hours in the "
            "future."
        )
    resolution = datum.get("StorageResolution", MINUTE)
    if resolution not in (SECOND, MINUTE):
        raise _invalid(f"The parameter {where}.StorageResolution must be 1 or 60.")
    dimensions = read_dimensions(datum.get("Dimensions", []), f"{where}.Dimensions")
    metric = Metric(call.scope, namespace, datum["MetricName"], dimensions)
    return (
        MetricSeries(metric, datum.get("Unit", "None")),
        moment,
        _samples(datum, where),
        resolution,
    )


def _samples(datum: dict[str, Any], where: str) -> Distribution:
    given = [name for name in ("Value", "StatisticValues", "Values") if name in datum]
    if not given:
        raise CompanionRefused(
            MISSING, f"The parameter {where} needs a Value, StatisticValues or Values."
        )
    if len(given) > 1:
        raise CompanionRefused(
            INVALID_COMBINATION,
            f"The parameters {where}.{given[0]} and {where}.{given[1]} are mutually exclusive and "
            "you have specified both.",
        )
    if given[0] == "Value":
        return Distribution.of([_number(datum["Value"], f"{where}.Value")])
    if given[0] == "Values":
        return _of_values(datum, where)
    return _of_set(datum["StatisticValues"], f"{where}.StatisticValues")


def _of_values(datum: dict[str, Any], where: str) -> Distribution:
    values = datum["Values"]
    counts = datum.get("Counts", [1.0] * len(values))
    if len(counts) != len(values):
        raise CompanionRefused(
            INVALID_COMBINATION,
            f"The parameters {where}.Values and {where}.Counts must be of the same size.",
        )
    if not 0 < len(values) <= _MOST_VALUES:
        raise _invalid(f"The collection {where}.Values must have a size of 1 to {_MOST_VALUES}.")
    found = Distribution()
    for value, count in zip(values, counts):
        times = _number(count, f"{where}.Counts")
        if times <= 0.0:
            raise _invalid(f"The value {count} for parameter {where}.Counts is invalid.")
        found.add(_number(value, f"{where}.Values"), times)
    return found


def _of_set(values: dict[str, Any], where: str) -> Distribution:
    count, total, minimum, maximum = (
        _number(values[member], f"{where}.{member}")
        for member in ("SampleCount", "Sum", "Minimum", "Maximum")
    )
    if count <= 0.0:
        raise _invalid(f"The parameter {where}.SampleCount must be greater than 0.")
    if minimum > maximum:
        raise _invalid(
            f"The parameter {where}.Minimum must be less than or equal to {where}.Maximum."
        )
    return Distribution.of_set(count, total, minimum, maximum)


def _number(value: float, where: str) -> float:
    if not math.isfinite(value) or abs(value) > _LARGEST:
        raise _invalid(f"The value {value} for parameter {where} is invalid.")
    return float(value)


def _invalid(message: str) -> CompanionRefused:
    return CompanionRefused(INVALID_VALUE, message)
