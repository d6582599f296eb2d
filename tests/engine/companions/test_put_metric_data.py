"""PutMetricData: what may be put, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from .bench import Bench, refused


def test_values_statistic_sets_and_value_lists_add_up(bench: Bench) -> None:
    bench.put(4)
    bench.put_all(
        [
            {"MetricName": "Load", "Values": [1.0, 2.0], "Counts": [3.0, 1.0]},
            {
                "MetricName": "Load",
                "StatisticValues": {"SampleCount": 2, "Sum": 10, "Minimum": 4, "Maximum": 6},
            },
        ]
    )
    assert bench.points("Load") == {0: 19.0}
    assert bench.points("Load", "SampleCount") == {0: 7.0}
    assert bench.points("Load", "Minimum") == {0: 1.0}
    assert bench.points("Load", "p50") == {}


def test_late_samples_are_added_to_their_minute_after_it_was_stored(bench: Bench) -> None:
    bench.put(1)
    bench.clock.advance(300)
    bench.put(2, Timestamp=bench.moment(10))
    assert bench.points("Load") == {0: 3.0}


def test_high_resolution_samples_keep_their_second(bench: Bench) -> None:
    bench.put(1, StorageResolution=1)
    bench.clock.advance(10)
    bench.put(2, StorageResolution=1)
    assert bench.points("Load", period=10) == {0: 1.0, 10: 2.0}
    assert bench.points("Load") == {0: 3.0}


VALUE = "InvalidParameterValue"


@pytest.mark.parametrize(
    ("datum", "code", "message"),
    [
        ({}, "MissingParameter", "needs a Value"),
        ({"Value": 1.0, "Values": [1.0]}, "InvalidParameterCombination", "mutually exclusive"),
        ({"Values": [1.0], "Counts": [1.0, 2.0]}, "InvalidParameterCombination", "same size"),
        ({"Values": [1.0], "Counts": [0.0]}, VALUE, "Counts is invalid"),
        ({"Values": [1.0] * 151}, VALUE, "150"),
        ({"Value": 2.0**361}, VALUE, "is invalid"),
        ({"Value": 1.0, "StorageResolution": 5}, VALUE, "must be 1 or 60"),
        ({"Value": 1.0, "Unit": "Parsecs"}, "ValidationError", "enum value set"),
        ({"Value": 1.0, "Dimensions": [{"Name": "a", "Value": "b"}] * 2}, VALUE, "twice"),
        (
            {"Value": 1.0, "Dimensions": [{"Name": str(at), "Value": "b"} for at in range(31)]},
            "ValidationError",
            "less than or equal to 30",
        ),
        (
            {"StatisticValues": {"SampleCount": 1, "Sum": 1, "Minimum": 2, "Maximum": 1}},
            VALUE,
            "Minimum",
        ),
    ],
)
def test_a_bad_sample_is_refused_with_its_place(
    bench: Bench, datum: dict[str, Any], code: str, message: str
) -> None:
    with refused(code, message):
        bench.put_all([{"MetricName": "Good", "Value": 1.0}, {"MetricName": "Load", **datum}])
    assert bench.points("Good") == {}  # a request is stored as a whole, or not at all


def test_times_are_limited_to_two_weeks_ago_and_two_hours_ahead(bench: Bench) -> None:
    bench.put(1, Timestamp=bench.moment(-14 * 86_400))
    bench.put(1, Timestamp=bench.moment(7200))
    with refused(VALUE, "past two weeks"):
        bench.put(1, Timestamp=bench.moment(-14 * 86_400 - 1))
    with refused(VALUE, "two hours"):
        bench.put(1, Timestamp=bench.moment(7201))


def test_requests_are_limited_to_a_thousand_metrics_of_user_namespaces(bench: Bench) -> None:
    with refused(VALUE, "1000"):
        bench.put_all([{"MetricName": "Load", "Value": 1.0}] * 1001)
    with refused(VALUE, "Namespace"):
        bench.cloudwatch.put_metric_data(
            Namespace="AWS/DynamoDB", MetricData=[{"MetricName": "Load", "Value": 1.0}]
        )
    with refused(VALUE, "EntityMetricData"):
        bench.cloudwatch.put_metric_data(Namespace="Shop", EntityMetricData=[])
