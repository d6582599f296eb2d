"""Bands of the usual, and alarms that compare with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.engine.companions.cloudwatch.expressions.anomaly_band import anomaly_band
from stator.engine.companions.cloudwatch.expressions.lines import Line

from .bench import Bench, refused

DAY = 86_400
NOW = 1_790_000_100 // DAY * DAY
PERIOD = 300


def band(points: dict[int, float], width: float = 2.0) -> tuple[float, float] | None:
    lower, upper = anomaly_band(Line("m", PERIOD, points), range(NOW, NOW + 1), width)
    return (lower.points[NOW], upper.points[NOW]) if NOW in lower.points else None


def test_the_band_is_the_mean_of_the_days_before_and_so_many_deviations() -> None:
    values = {NOW - day * DAY: float(value) for day, value in ((1, 8), (2, 10), (3, 12))}
    lower, upper = band(values) or (0.0, 0.0)
    spread = (8 / 3) ** 0.5
    assert (lower, upper) == pytest.approx((10 - 2 * spread, 10 + 2 * spread))


def test_a_constant_metric_has_a_band_of_a_twentieth() -> None:
    values = {NOW - day * DAY: 100.0 for day in (1, 2, 3)}
    assert band(values, 1.0) == (95.0, 105.0)


def test_the_same_weekday_of_both_weeks_counts_alone() -> None:
    values = {NOW - day * DAY: (500.0 if day in (7, 14) else 1.0) for day in range(1, 15)}
    assert band(values, 1.0) == (475.0, 525.0)


def test_two_days_are_too_few_and_today_is_not_usual() -> None:
    assert band({NOW - day * DAY: 5.0 for day in (1, 2)}) is None
    assert band({NOW - day * DAY: 5.0 for day in (1, 2)} | {NOW - 600: 5.0}) is None


def test_half_an_hour_around_the_time_counts_and_no_more() -> None:
    values = {NOW - day * DAY + 1800: 5.0 for day in (1, 2, 3)}
    assert band(values) is not None
    assert band({at + PERIOD: value for at, value in values.items()}) is None


@given(st.lists(st.floats(0, 1e6), min_size=3, max_size=14), st.floats(0.1, 10))
def test_a_wider_band_holds_a_narrower_one(values: list[float], width: float) -> None:
    points = {NOW - (day + 1) * DAY: value for day, value in enumerate(values)}
    narrow, wide = band(points, width), band(points, 2 * width)
    assert narrow is not None and wide is not None
    assert wide[0] <= narrow[0] <= narrow[1] <= wide[1]


# --- alarms ---------------------------------------------------------------------------------------


ALARM: dict[str, Any] = {
    "AlarmName": "unusual",
    "EvaluationPeriods": 1,
    "ComparisonOperator": "GreaterThanUpperThreshold",
    "ThresholdMetricId": "usual",
    "Metrics": [
        {
            "Id": "m1",
            "MetricStat": {
                "Metric": {"Namespace": "Shop", "MetricName": "Load"},
                "Period": 300,
                "Stat": "Sum",
            },
        },
        {"Id": "usual", "Expression": "ANOMALY_DETECTION_BAND(m1, 3)"},
    ],
}


@pytest.fixture
def bench() -> Iterator[Bench]:
    found = Bench()
    for _ in range(4):
        found.put(100)
        found.clock.advance(DAY)
        found.engine.sweep()
    yield found
    found.engine.close()


def state(bench: Bench) -> tuple[str, str]:
    (alarm,) = bench.cloudwatch.describe_alarms()["MetricAlarms"]
    return alarm["StateValue"], alarm["StateReason"]


def step(bench: Bench, value: float) -> None:
    bench.put(value)
    bench.clock.advance(300)
    bench.engine.sweep()


@pytest.mark.parametrize(
    ("comparison", "value", "expected", "words"),
    [
        ("GreaterThanUpperThreshold", 116.0, "ALARM", "was greater than the upper thresholds [115"),
        ("GreaterThanUpperThreshold", 114.0, "OK", "was not greater than the upper thresholds"),
        ("GreaterThanUpperThreshold", 1.0, "OK", "was not greater than"),
        ("LessThanLowerThreshold", 84.0, "ALARM", "was less than the lower thresholds [85"),
        ("LessThanLowerThreshold", 116.0, "OK", "was not less than the lower thresholds"),
        ("LessThanLowerOrGreaterThanUpperThreshold", 116.0, "ALARM", "was outside the lower"),
        ("LessThanLowerOrGreaterThanUpperThreshold", 84.0, "ALARM", "was outside the lower"),
        ("LessThanLowerOrGreaterThanUpperThreshold", 100.0, "OK", "was not outside the lower"),
    ],
)
def test_each_comparison_with_the_band(
    bench: Bench, comparison: str, value: float, expected: str, words: str
) -> None:
    bench.cloudwatch.put_metric_alarm(**{**ALARM, "ComparisonOperator": comparison})
    step(bench, value)
    found, reason = state(bench)
    assert found == expected
    assert reason.startswith("Thresholds Crossed: 1 datapoint") and words in reason


def test_an_alarm_shows_its_limits(bench: Bench) -> None:
    bench.cloudwatch.put_metric_alarm(**ALARM)
    step(bench, 500.0)
    (alarm,) = bench.cloudwatch.describe_alarms()["MetricAlarms"]
    assert alarm["ThresholdMetricId"] == "usual" and "Threshold" not in alarm
    assert '"recentUpperThresholds":[115.0]' in alarm["StateReasonData"]
    assert '"threshold"' not in alarm["StateReasonData"]


def test_without_enough_history_there_is_no_verdict() -> None:
    bench = Bench()
    bench.cloudwatch.put_metric_alarm(**ALARM)
    step(bench, 500.0)
    assert state(bench)[0] == "INSUFFICIENT_DATA"
    bench.cloudwatch.put_metric_alarm(**ALARM, TreatMissingData="notBreaching")
    step(bench, 500.0)
    assert state(bench)[0] == "OK"
    bench.engine.close()


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"Threshold": 5.0}, "InvalidParameterCombination", "mutually exclusive"),
        ({"ComparisonOperator": "GreaterThanThreshold"}, "ValidationError", "GreaterThanThreshold"),
        ({"ThresholdMetricId": "m1"}, "ValidationError", "ANOMALY_DETECTION_BAND"),
        ({"ThresholdMetricId": "none"}, "ValidationError", "ANOMALY_DETECTION_BAND"),
        ({"Metrics": ALARM["Metrics"][1:]}, "ValidationError", "no query with the id"),
    ],
)
def test_a_wrong_alarm_is_refused(
    bench: Bench, change: dict[str, Any], code: str, message: str
) -> None:
    with refused(code, message):
        bench.cloudwatch.put_metric_alarm(**{**ALARM, **change})


def test_get_metric_data_returns_both_lines(bench: Bench) -> None:
    step(bench, 100.0)
    answer = bench.cloudwatch.get_metric_data(
        MetricDataQueries=ALARM["Metrics"],
        StartTime=bench.moment(4 * DAY),
        EndTime=bench.moment(4 * DAY + 300),
    )
    found = {each["Label"]: each["Values"] for each in answer["MetricDataResults"]}
    assert found == {"Load": [100.0], "Load lower": [85.0], "Load upper": [115.0]}
