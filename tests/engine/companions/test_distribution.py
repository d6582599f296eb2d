"""Distributions: they equal a list of their samples, merge, and survive storage."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.engine.companions.cloudwatch.statistics import parse_statistic
from stator.engine.companions.metrics.distribution import Distribution, bucket_of, value_of
from stator.errors import StorageCorrupt

VALUES = st.floats(-1e12, 1e12).filter(lambda value: value == 0 or abs(value) > 1e-9)
SAMPLES = st.lists(VALUES, min_size=1, max_size=50)


@given(SAMPLES, SAMPLES)
def test_a_distribution_equals_the_list_of_its_samples(
    left: list[float], right: list[float]
) -> None:
    found = Distribution.of(left)
    found.merge(Distribution.unpack(Distribution.of(right).pack()))
    both = left + right
    assert found.count == len(both)
    assert math.isclose(found.total, math.fsum(both), rel_tol=1e-9, abs_tol=1e-3)
    assert (found.minimum, found.maximum) == (min(both), max(both))


@given(SAMPLES, st.sampled_from([0.1, 0.5, 0.9, 0.99, 1.0]))
def test_a_percentile_is_wrong_by_two_percent_at_most(samples: list[float], share: float) -> None:
    exact = sorted(samples)[max(0, math.ceil(round(share * len(samples), 9)) - 1)]
    found = Distribution.of(samples).percentile(share)
    assert found == pytest.approx(exact, rel=0.0201)


@given(VALUES)
def test_a_value_lies_in_its_bucket(value: float) -> None:
    assert value_of(bucket_of(value)) == pytest.approx(value, rel=0.02)


def test_a_statistic_set_has_no_percentiles_unless_its_values_are_one() -> None:
    spread = Distribution.of_set(10, 50, 1, 9)
    assert spread.percentile(0.5) is None
    assert Distribution.unpack(spread.pack()).percentile(0.5) is None
    assert Distribution.of_set(3, 15, 5, 5).percentile(0.5) == 5
    mixed = Distribution.of([1.0])
    mixed.merge(spread)
    assert (mixed.percentile(0.5), mixed.count, mixed.average) == (None, 11, 51 / 11)


@pytest.mark.parametrize(
    "record", [b"", b"\x01", Distribution.of([1]).pack()[:-1], b"\x09" + bytes(32)]
)
def test_a_damaged_record_is_refused(record: bytes) -> None:
    with pytest.raises(StorageCorrupt):
        Distribution.unpack(record)


HUNDRED = Distribution.of([float(value) for value in range(1, 101)])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("p50", 50),
        ("p99.9", 100),
        ("tm90", 45.5),
        ("TM(10%:90%)", 50.5),
        ("TM(:50%)", 25.5),
        ("IQM", 50.5),
        ("wm90", (sum(range(1, 91)) + 10 * 90) / 100),
        ("tc90", 90),
        ("TC(20:40)", 20),
        ("ts50", 1275),
        ("TS(90:)", sum(range(91, 101))),
        ("PR(:25)", 25),
        ("WM(0:10)", (sum(range(1, 11)) + 90 * 10) / 100),
    ],
)
def test_extended_statistics_of_one_to_a_hundred(name: str, expected: float) -> None:
    statistic = parse_statistic(name)
    assert statistic is not None
    assert statistic(HUNDRED) == pytest.approx(expected, rel=0.06)
    spread = statistic(Distribution.of_set(10, 50, 1, 9))
    assert spread is None


@pytest.mark.parametrize(
    "name", ["", "P50", "p", "p101", "mean", "TM(:)", "TM(10:90%)", "TM(9%:1%)"]
)
def test_other_names_are_no_statistics(name: str) -> None:
    assert parse_statistic(name) is None
