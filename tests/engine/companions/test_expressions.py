"""Metric math: the parser, arithmetic and functions, and what is wrong with wrong expressions."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.engine.companions.cloudwatch.expressions.evaluation import Surroundings, evaluate
from stator.engine.companions.cloudwatch.expressions.functions import QueryWindow
from stator.engine.companions.cloudwatch.expressions.lines import Line, Value
from stator.engine.companions.cloudwatch.expressions.parser import parse_expression
from stator.engine.companions.cloudwatch.expressions.search import parse_search
from stator.engine.companions.cloudwatch.expressions.syntax import MathError
from stator.engine.companions.metrics.series import Metric
from stator.model.scope import Scope

M1 = Line("m1", 60, {0: 1.0, 60: 4.0, 180: 9.0})
M2 = Line("m2", 60, {0: 10.0, 120: 20.0, 180: 30.0})
LINES: Mapping[str, Line] = {"m1": M1, "m2": M2}


def value_of(name: str) -> Value:
    if name == "empty":
        return []
    return LINES[name]


def compute(text: str) -> Value:
    window = QueryWindow(0, 240, 60)
    around = Surroundings(
        window, value_of, lambda: LINES, lambda text, stat, period: [M1], LINES.__getitem__
    )
    return evaluate(parse_expression(text), around)


def points(text: str) -> dict[int, float]:
    value = compute(text)
    assert isinstance(value, Line), value
    return value.points


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("2 ^ 3 ^ 2", 512),
        ("-2 ^ 2", -4),
        ("10 - 4 - 3", 3),
        ("8 / 4 / 2", 1),
        ("1.5e2", 150),
        ("1 < 2", 1),
        ("1 >= 2 || 3 == 3", 1),
        ("1 AND 0 OR 1", 1),
        ("1 != 1", 0),
        ("ABS(-3)", 3),
        ("CEIL(1.2) + FLOOR(1.8)", 3),
        ("LOG10(1000)", 3),
        ("AVG(m2)", 20),
        ("SUM(m1)", 14),
        ("MAX(m1) - MIN(m1)", 8),
        ("DATAPOINT_COUNT(m1)", 3),
        ("METRIC_COUNT(METRICS())", 2),
        ("PERIOD(m1)", 60),
        ("STDDEV(m1 * 0 + 5)", 0),
        ("IF(1, 2, 3)", 2),
    ],
)
def test_numbers(text: str, expected: float) -> None:
    assert compute(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m1 * 2", {0: 2, 60: 8, 180: 18}),
        ("100 / m2", {0: 10, 120: 5, 180: 100 / 30}),
        ("m1 + m2", {0: 11, 180: 39}),
        ("m1 / (m1 - 1)", {60: 4 / 3, 180: 9 / 8}),  # no point where the divisor is 0
        ("m1 > 3", {0: 0, 60: 1, 180: 1}),
        ("-m1", {0: -1, 60: -4, 180: -9}),
        ("FILL(m1, 0)", {0: 1, 60: 4, 120: 0, 180: 9}),
        ("FILL(m1, REPEAT)", {0: 1, 60: 4, 120: 4, 180: 9}),
        ("FILL(m1, LINEAR)", {0: 1, 60: 4, 120: 6.5, 180: 9}),
        ("FILL(m2, m1)", {0: 10, 60: 4, 120: 20, 180: 30}),
        ("FILL(m1, AVG(m2))", {0: 1, 60: 4, 120: 20, 180: 9}),
        ("RATE(m1)", {60: 3 / 60, 180: 5 / 120}),
        ("DIFF(m1)", {60: 3, 180: 5}),
        ("DIFF_TIME(m1)", {60: 60, 180: 120}),
        ("RUNNING_SUM(m1)", {0: 1, 60: 5, 180: 14}),
        ("SUM(METRICS())", {0: 11, 60: 4, 120: 20, 180: 39}),
        ("SUM([m1, m2])", {0: 11, 60: 4, 120: 20, 180: 39}),
        ("MAX([m1, m2, m1 * 100])", {0: 100, 60: 400, 120: 20, 180: 900}),
        ("AVG(METRICS('m2'))", {0: 10, 120: 20, 180: 30}),
        ("IF(m1 > 3, m1, 0)", {0: 0, 60: 4, 180: 9}),
        ("IF(m1 > 3, m2)", {180: 30}),
        ("IF(m1, 7, m2)", {0: 7, 60: 7, 180: 7}),
        ("TIME_SERIES(5)", {0: 5, 60: 5, 120: 5, 180: 5}),
        ("LOG(m1 - 1)", {60: pytest.approx(1.0986, abs=1e-3), 180: pytest.approx(2.079, abs=1e-3)}),
        ("FIRST(METRICS())", M1.points),
        ("LAST(METRICS())", M2.points),
        ("SLICE(METRICS(), 1)", M2.points),
        ("FIRST(SORT(METRICS(), MAX, DESC))", M2.points),
        ("FIRST(SORT(METRICS(), SUM, ASC, 1))", M1.points),
        ("FIRST(SEARCH('x', 'Sum', 60)) + 1", {0: 2, 60: 5, 180: 10}),
        ("MINUTE(m1)", {0: 0, 60: 1, 180: 3}),
        ("DAY(m1)", {0: 4, 60: 4, 180: 4}),  # 1 January 1970 was a Thursday
        ("EPOCH(m1)", {0: 0, 60: 60, 180: 180}),
    ],
)
def test_lines(text: str, expected: dict[int, float]) -> None:
    assert points(text) == expected


def test_an_array_is_computed_line_by_line() -> None:
    value = compute("METRICS() / 2")
    assert isinstance(value, list)
    assert [line.points[0] for line in value] == [0.5, 5]
    assert compute("REMOVE_EMPTY(METRICS() / 0)") == []
    assert len(compute("SLICE(METRICS(), 0, 1)")) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a value, found end of the expression"),
        ("m1 +", "expected a value, found end of the expression"),
        ("(m1", "expected ')', found end of the expression"),
        ("m1 m2", "unexpected 'm2' after a complete expression"),
        ("m1 ; m2", "unexpected ';' at character 4"),
        ("MEDIAN(m1)", "there is no function MEDIAN()"),
        ("LAMBDA(m1)", "Stator does not support the function"),
        ("ANOMALY_DETECTION_BAND(5)", "takes the id of a metric"),
        ("ANOMALY_DETECTION_BAND(m1, 0)", "must be a number above 0"),
        ("RATE(m1, m2)", "RATE() takes 1 argument, not 2"),
        ("SORT(METRICS(), MAX)", "SORT() takes 3 to 4 arguments, not 2"),
        ("SORT(METRICS(), MEDIAN, ASC)", "SORT() sorts by"),
        ("RATE(5)", "RATE() takes a time series, not a number"),
        ("TIME_SERIES(m1)", "TIME_SERIES() takes a number here"),
        ("METRICS() + METRICS()", "cannot combine two arrays"),
        ("1 / 0", "1 / 0 is not a number"),
        ("LOG(-1)", "LOG(-1) is not a number"),
        ("METRICS(m1)", "METRICS() takes a text"),
        ("'x' + 1", "the text 'x' is not a value"),
        ("FIRST(empty)", "FIRST() got no time series"),
        ("SLICE(METRICS(), 7)", "SLICE() asks for line 7 of 2"),
        ("SEARCH(m1, 'Sum')", "SEARCH() takes a text"),
        ("(" * 60 + "1" + ")" * 60, "more than 50 levels"),
    ],
)
def test_a_wrong_expression_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(MathError) as caught:
        compute(text)
    assert message in str(caught.value)


@given(st.text(alphabet="m12+-*/^()[],'AVGIF <>=&|.e", max_size=30))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with suppress(MathError):  # anything else is a defect
        parse_expression(text)


def metric(name: str, namespace: str = "AWS/DynamoDB", **dimensions: str) -> Metric:
    return Metric(Scope(), namespace, name, tuple(sorted(dimensions.items())))


KNOWN = [
    metric("ConsumedReadCapacityUnits", TableName="orders"),
    metric("ConsumedReadCapacityUnits", TableName="orders", GlobalSecondaryIndexName="by-city"),
    metric("ConsumedWriteCapacityUnits", TableName="users"),
    metric("Load", "Shop", host="a"),
]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{AWS/DynamoDB,TableName}", [0, 2]),
        ("{AWS/DynamoDB,TableName} orders", [0]),
        (
            "{AWS/DynamoDB,GlobalSecondaryIndexName,TableName} Consumed",
            [1],
        ),
        ("MetricName=Consumed", [0, 1, 2]),
        ('MetricName="Consumed"', []),
        ("Namespace=Shop OR users", [2, 3]),
        ("Consumed NOT orders", [2]),
        ("(orders OR users) AND read", [0, 1]),
        ('TableName="users"', [2]),
    ],
)
def test_a_search_finds_metrics(text: str, found: list[int]) -> None:
    test = parse_search(text)
    assert [at for at, each in enumerate(KNOWN) if test(each)] == found


@pytest.mark.parametrize("text", ["", "(a", "a )", "a OR", "NOT", "= a"])
def test_a_wrong_search_is_refused(text: str) -> None:
    with pytest.raises(MathError):
        parse_search(text)
