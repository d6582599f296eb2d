"""Percentiles are the values of nearest ranks, within the accuracy, at every magnitude."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stator import Db, Design, Engine, Entity, TableSettings, connect, ident
from stator.errors import RequestRefused
from stator.pipeline import StreamApp, View, maximum, minimum, percentiles
from stator.pipeline.views.sketch import Percentiles, bucket_of, repaired
from stator.pipeline.workers.options import WorkerOptions

ACCURACIES = (0.001, 0.02, 0.5)
PERCENTS = (0, 0.1, 1, 7, 10, 25, 28, 29, 50, 55, 56, 57, 58, 75, 90, 95, 99, 99.9, 100)

# Every magnitude that a DynamoDB number can have.
sizes = st.builds(
    lambda digits, exponent: Decimal(digits).scaleb(exponent - 3),
    st.integers(1000, 9999),
    st.integers(-130, 125),
)
values = st.one_of(
    st.just(Decimal(0)), sizes, sizes.map(lambda size: -size), st.integers(-50, 50).map(Decimal)
)


def sketch(values: Iterable[Any], accuracy: float = 0.02) -> Percentiles:
    return Percentiles(Counter(bucket_of(float(each), accuracy) for each in values), accuracy)


def nearest_rank(values: Iterable[Any], percent: float) -> float:
    ordered = sorted(values)
    rank = math.ceil(Fraction(str(percent)) / 100 * len(ordered))
    return float(ordered[max(rank, 1) - 1])


def is_near(found: float | None, true: float, accuracy: float) -> bool:
    return found is not None and abs(found - true) <= accuracy * abs(true) * (1 + 1e-9)


@given(st.lists(values, min_size=1, max_size=60), st.data(), st.sampled_from(ACCURACIES))
@example([Decimal(1), Decimal(100)], None, 0.02)
@example([Decimal(1), Decimal(10), Decimal(100)], None, 0.02)
@example([Decimal(each) for each in range(1, 11)], None, 0.02)
@example([Decimal("1e30"), Decimal("1e-30"), Decimal(1)], None, 0.02)
@example([Decimal("1e120"), Decimal("-1e120"), Decimal("1e-120")], None, 0.02)
@example([Decimal("9.99e125"), Decimal("-9.99e125"), Decimal("1e-130")], None, 0.02)
def test_every_percentile_is_near_the_value_of_its_rank(
    given: list[Decimal], data: Any, accuracy: float
) -> None:
    counts = Counter(bucket_of(float(each), accuracy) for each in given)
    removed = [] if data is None else data.draw(st.lists(st.sampled_from(given), unique=True))
    for each in removed:
        given.remove(each)
        counts[bucket_of(float(each), accuracy)] -= 1
    found = Percentiles(repaired(counts), accuracy)
    assert found.count == len(given)
    for percent in PERCENTS:
        if not given:
            assert found[percent] is None
            continue
        assert is_near(found[percent], nearest_rank(given, percent), accuracy), percent


def test_ranks_are_counted_without_rounding_errors() -> None:
    assert is_near(sketch(range(1, 101))[7], 7, 0.02)  # 0.07 * 100 is above 7 in floats
    assert is_near(sketch(range(1, 101)).at(0.07), 7, 0.02)
    assert is_near(sketch(range(1, 1001))[Decimal("99.9")], 999, 0.02)
    assert is_near(sketch(range(1, 4)).at(Fraction(1, 3)), 1, 0.02)


@pytest.mark.parametrize(
    "percent", [-1, -0.001, 100.001, 101, math.nan, math.inf, "50", None, True]
)
def test_other_percents_are_refused(percent: Any) -> None:
    for found in (sketch([1, 2, 3]), sketch([])):
        with pytest.raises(RequestRefused, match="0 to 100"):
            found[percent]
        with pytest.raises(RequestRefused, match="0 to 1"):
            found.at(percent if not isinstance(percent, float) else percent / 100)


@given(st.lists(values, max_size=20), st.lists(values, max_size=20), st.data())
def test_counts_of_an_earlier_version_stay_right(
    before: list[Decimal], after: list[Decimal], data: Any
) -> None:
    """An earlier version counted values below 1e-9 as zero."""

    def former(value: Decimal) -> str:
        return "z" if abs(value) < Decimal("1e-9") else bucket_of(float(value), 0.02)

    counts = Counter(former(each) for each in before)
    counts.update(bucket_of(float(each), 0.02) for each in after)
    left = before + after
    removed = data.draw(st.lists(st.sampled_from(left), max_size=20)) if left else []
    for each in removed:
        if each in left:
            left.remove(each)
            counts[bucket_of(float(each), 0.02)] -= 1
    found = Percentiles(repaired(counts), 0.02)
    assert found.count == len(left) and all(count > 0 for count in found.counts.values())
    for percent in PERCENTS if left else ():
        near, true = found[percent], nearest_rank(left, percent)
        assert near is not None
        assert is_near(near, true, 0.02) or abs(near - true) <= 1e-9


class Sample(Entity):
    sample_id: str = ident()
    value: float
    other: float = 0.0


samples = Design("samples", [Sample], [])


def row_of(db: Db, view: View) -> Any:
    app = StreamApp(samples, "summaries")
    app.add(view)
    with app.start(db, WorkerOptions(start="oldest", idle_seconds=0.02)) as running:
        running.catch_up(20)
    return view.on(db).get()


def test_the_ends_are_exact_if_the_view_knows_them() -> None:
    view = View(
        "spread",
        of=Sample,
        spread=percentiles(Sample.value),
        least=minimum(Sample.value),
        most=maximum(Sample.value),
        farthest=maximum(Sample.other),
    )
    with Engine.open() as engine, connect(samples, engine) as db:
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        for number, value in enumerate([7.3, 1e-30, 123.4, 7.3]):
            db.put(Sample(sample_id=f"s{number}", value=value, other=1.0))
        row = row_of(db, view)
    assert (row.spread[0], row.spread[100], row.spread[25]) == (1e-30, 123.4, 1e-30)
    assert is_near(row.spread[50], 7.3, 0.02)
    assert all(row.least <= row.spread[percent] <= row.most for percent in PERCENTS)
