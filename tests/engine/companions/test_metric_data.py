"""GetMetricData: several metrics and expressions, pages, order and labels."""

from __future__ import annotations

from typing import Any

import pytest

from .bench import START, Bench, refused


def stat(
    name: str = "Load", statistic: str = "Sum", period: int = 60, **more: Any
) -> dict[str, Any]:
    metric = {"Namespace": "Shop", "MetricName": name}
    return {"MetricStat": {"Metric": metric, "Period": period, "Stat": statistic}, **more}


def ask(bench: Bench, queries: dict[str, dict[str, Any]], **options: Any) -> dict[str, Any]:
    answer: dict[str, Any] = bench.cloudwatch.get_metric_data(
        **{
            "MetricDataQueries": [{"Id": name, **query} for name, query in queries.items()],
            "StartTime": bench.moment(0),
            "EndTime": bench.moment(600),
            "ScanBy": "TimestampAscending",
            **options,
        }
    )
    return answer


def lines(answer: dict[str, Any]) -> dict[str, dict[int, float]]:
    return {
        result["Id"]: {
            round(moment.timestamp() - START): value
            for moment, value in zip(result["Timestamps"], result["Values"])
        }
        for result in answer["MetricDataResults"]
    }


@pytest.fixture
def loaded(bench: Bench) -> Bench:
    for value in (1, 2, 3, 4):
        bench.put(value)
        bench.put(10 * value, "Calls")
        bench.clock.advance(60)
    return bench


def test_metrics_and_expressions_are_answered_together(loaded: Bench) -> None:
    queries = {
        "load": stat(),
        "calls": stat("Calls", ReturnData=False),
        "share": {"Expression": "100 * load / calls"},
        "doubled": {"Expression": "share * 2"},
        "peak": stat(statistic="p90", period=300),
    }
    found = lines(ask(loaded, queries))
    assert list(found) == ["load", "share", "doubled", "peak"]
    assert found["load"] == {0: 1, 60: 2, 120: 3, 180: 4}
    assert found["share"] == dict.fromkeys((0, 60, 120, 180), 10)
    assert found["doubled"] == dict.fromkeys((0, 60, 120, 180), 20)
    assert found["peak"] == {0: pytest.approx(4, rel=0.02)}


def test_points_come_newest_first_unless_asked(loaded: Bench) -> None:
    [result] = ask(loaded, {"load": stat()}, ScanBy="TimestampDescending")["MetricDataResults"]
    assert result["Values"] == [4, 3, 2, 1]
    assert result["StatusCode"] == "Complete"


def test_a_search_answers_a_line_for_each_metric(loaded: Bench) -> None:
    query = {"Expression": "SEARCH('Namespace=Shop', 'Sum', 300)"}
    results = ask(loaded, {"found": query})["MetricDataResults"]
    assert [(each["Id"], each["Label"], each["Values"]) for each in results] == [
        ("found", "Calls", [100]),
        ("found", "Load", [10]),
    ]


def test_a_page_has_at_most_max_datapoints_and_leads_to_the_next(loaded: Bench) -> None:
    queries = {"load": stat(), "calls": stat("Calls")}
    request = {
        "MetricDataQueries": [{"Id": name, **query} for name, query in queries.items()],
        "StartTime": loaded.moment(0),
        "EndTime": loaded.moment(600),
        "MaxDatapoints": 3,
    }
    first = loaded.cloudwatch.get_metric_data(**request)
    assert [each["Values"] for each in first["MetricDataResults"]] == [[4, 3, 2], []]
    assert [each["StatusCode"] for each in first["MetricDataResults"]] == ["PartialData"] * 2
    second = loaded.cloudwatch.get_metric_data(**request, NextToken=first["NextToken"])
    assert [each["Values"] for each in second["MetricDataResults"]] == [[1], [40, 30]]
    third = loaded.cloudwatch.get_metric_data(**request, NextToken=second["NextToken"])
    assert [each["Values"] for each in third["MetricDataResults"]] == [[], [20, 10]]
    assert "NextToken" not in third
    with refused("InvalidNextToken"):
        loaded.cloudwatch.get_metric_data(**request, NextToken="nonsense")


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("plain", "plain"),
        ("${LABEL} ${PROP('Stat')}/${PROP('Period')}", "Load Sum/60"),
        ("${MIN} ${MAX} ${AVG} ${SUM} ${FIRST} ${LAST}", "1 4 2.5 10 1 4"),
        ("${MAX_TIME}", "2023-11-14T23:48:00+01:30"),
        ("${OTHER}", "${OTHER}"),
    ],
)
def test_labels(loaded: Bench, label: str, shown: str) -> None:
    answer = ask(loaded, {"load": stat(Label=label)}, LabelOptions={"Timezone": "+0130"})
    assert answer["MetricDataResults"][0]["Label"] == shown


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ({}, "size of 1 to 500"),
        ({"Load": stat()}, "lower-case letter"),
        ({"a": {}}, "either a MetricStat or an Expression"),
        ({"a": {**stat(), "Expression": "1"}}, "either a MetricStat or an Expression"),
        ({"a": stat(Period=60)}, "only for expressions"),
        ({"a": stat(period=61)}, "multiple of 60"),
        ({"a": stat(statistic="Mean")}, "Mean"),
        ({"a": stat(AccountId="111122223333")}, "AccountId"),
        ({"a": {"Expression": "b + 1"}}, "Error in expression 'a': there is no query with the id"),
        ({"a": {"Expression": "1 +"}}, "Error in expression 'a': expected a value"),
        ({"a": {"Expression": "1"}}, "Error in expression 'a': it is a number"),
        ({"a": {"Expression": "b"}, "b": {"Expression": "a"}}, "in a circle: a -> b -> a"),
    ],
)
def test_a_wrong_query_is_refused(bench: Bench, queries: dict[str, Any], message: str) -> None:
    with refused("ValidationError", message):
        ask(bench, queries)


def test_ids_must_be_unique_and_the_range_not_empty(bench: Bench) -> None:
    with refused("ValidationError", "unique"):
        bench.cloudwatch.get_metric_data(
            MetricDataQueries=[{"Id": "a", **stat()}] * 2,
            StartTime=bench.moment(0),
            EndTime=bench.moment(60),
        )
    with refused("ValidationError", "StartTime"):
        ask(bench, {"a": stat()}, EndTime=bench.moment(0))
    with refused("ValidationError", "MaxDatapoints"):
        ask(bench, {"a": stat()}, MaxDatapoints=100_801)
    with refused("ValidationError", "Timezone"):
        ask(bench, {"a": stat()}, LabelOptions={"Timezone": "UTC"})
