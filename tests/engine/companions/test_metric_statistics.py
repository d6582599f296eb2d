"""GetMetricStatistics and ListMetrics."""

from __future__ import annotations

from typing import Any

import pytest

from .bench import Bench, refused

HOST = [{"Name": "host", "Value": "a"}]


def ask(bench: Bench, **options: Any) -> dict[str, Any]:
    request = {
        "Namespace": "Shop",
        "MetricName": "Load",
        "StartTime": bench.moment(0),
        "EndTime": bench.moment(3600),
        "Period": 60,
        "Statistics": ["Sum"],
        **options,
    }
    answer: dict[str, Any] = bench.cloudwatch.get_metric_statistics(
        **{name: value for name, value in request.items() if value is not None}
    )
    return answer


def test_the_start_is_rounded_down_and_the_end_is_left_out(bench: Bench) -> None:
    for _ in range(4):
        bench.put(1)
        bench.clock.advance(60)
    assert bench.points("Load", start=70, end=179) == {60: 1.0, 120: 1.0}
    assert bench.points("Load", start=70, end=239, period=120) == {60: 2.0, 180: 1.0}
    assert bench.points("Load", end=59.5) == {0: 1.0, 60: 1.0}


def test_dimensions_select_one_metric_exactly(bench: Bench) -> None:
    bench.put(1)
    bench.put(2, Dimensions=HOST)
    assert bench.points("Load") == {0: 1.0}
    assert bench.points("Load", host="a") == {0: 2.0}
    assert bench.points("Load", host="b") == {}


def test_a_unit_selects_and_without_one_each_unit_has_its_points(bench: Bench) -> None:
    bench.put(1, Unit="Bytes")
    bench.put(2, Unit="Count")
    answer = ask(bench)
    assert answer["Label"] == "Load"
    assert {(each["Unit"], each["Sum"]) for each in answer["Datapoints"]} == {
        ("Bytes", 1.0),
        ("Count", 2.0),
    }
    [point] = ask(bench, Unit="Bytes")["Datapoints"]
    assert (point["Sum"], point["Unit"]) == (1.0, "Bytes")


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ({"Period": 61}, "InvalidParameterValue", "Period"),
        ({"Statistics": None}, "MissingParameter", "Statistics"),
        ({"ExtendedStatistics": ["p9"]}, "InvalidParameterCombination", "mutually exclusive"),
        (
            {"Statistics": None, "ExtendedStatistics": ["median"]},
            "InvalidParameterValue",
            "median",
        ),
        ({"Statistics": ["Mean"]}, "ValidationError", "enum value set: [SampleCount"),
        ({"Period": 1}, "InvalidParameterCombination", "up to 3,600 datapoints"),
    ],
)
def test_a_wrong_request_is_refused(
    bench: Bench, options: dict[str, Any], code: str, message: str
) -> None:
    with refused(code, message):
        ask(bench, **options)


def test_the_range_must_not_be_empty_and_holds_1440_points(bench: Bench) -> None:
    with refused("InvalidParameterValue", "StartTime"):
        ask(bench, EndTime=bench.moment(0))
    ask(bench, EndTime=bench.moment(1440 * 60))
    with refused("InvalidParameterCombination", "1,441 datapoints"):
        ask(bench, EndTime=bench.moment(1440 * 60 + 1))


def test_metrics_are_listed_by_name_dimensions_and_age(bench: Bench) -> None:
    def names(**options: Any) -> list[str]:
        answer = bench.cloudwatch.list_metrics(Namespace="Shop", **options)
        return [metric["MetricName"] for metric in answer["Metrics"]]

    bench.put(1, "Old")
    bench.clock.advance(4 * 3600)
    bench.put(1, "New", Dimensions=HOST)
    assert names() == ["New", "Old"]
    assert names(MetricName="Old") == ["Old"]
    assert names(Dimensions=[{"Name": "host"}]) == ["New"]
    assert names(Dimensions=[{"Name": "host", "Value": "b"}]) == []
    assert names(RecentlyActive="PT3H") == ["New"]
    assert names(OwningAccount="111122223333") == []
    bench.clock.advance(14 * 86_400 + 60)
    assert names() == []


def test_a_listing_has_pages_of_five_hundred(bench: Bench) -> None:
    for start in (0, 600):
        bench.put_all([{"MetricName": f"m{start + at:04}", "Value": 1.0} for at in range(600)])
    pages = list(bench.cloudwatch.get_paginator("list_metrics").paginate(Namespace="Shop"))
    assert [len(page["Metrics"]) for page in pages] == [500, 500, 200]
    with refused("InvalidParameterValue", "another request"):
        bench.cloudwatch.list_metrics(Namespace="Else", NextToken=pages[0]["NextToken"])
