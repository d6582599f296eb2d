"""The store: adding up, flushing, rolling up as CloudWatch does, and surviving a restart."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stator.engine.companions.metrics.distribution import Distribution
from stator.engine.companions.metrics.metric_store import DAY, MetricStore
from stator.engine.companions.metrics.series import Metric, MetricSeries
from stator.model.scope import Scope
from stator.storage import MemoryStorage

METRIC = Metric(Scope(), "Shop", "Load", (("host", "a"),))
LOAD = MetricSeries(METRIC, "Count")
NOW = 1_700_000_000 // 3600 * 3600


def sums(
    store: MetricStore, low: int, high: int, period: int, now: float = NOW
) -> dict[int, float]:
    found = store.aggregate(store.series_of(METRIC), low, high, period, now)
    return {at: samples.total for at, samples in found.items()}


@given(
    st.lists(
        st.one_of(
            st.tuples(st.integers(0, 40), st.integers(-50, 50)),
            st.sampled_from(["flush", "reopen"]),
        ),
        max_size=40,
    ),
    st.sampled_from([60, 120, 300]),
)
@settings(deadline=None)
def test_the_store_equals_a_list_of_samples(steps: list[Any], period: int) -> None:
    storage = MemoryStorage()
    store = MetricStore(storage)
    expected: defaultdict[int, list[float]] = defaultdict(list)
    for step in steps:
        if step == "flush":
            store.flush()
        elif step == "reopen":
            store.flush()
            store = MetricStore(storage)
        else:
            minute, value = step
            store.add(LOAD, NOW + 60 * minute, Distribution.of([float(value)]))
            expected[NOW + 60 * minute // period * period].append(float(value))
    found = store.aggregate(store.series_of(METRIC), NOW, NOW + 3000, period, NOW + 3000)
    assert {at: (each.total, each.count, each.minimum) for at, each in found.items()} == {
        at: (sum(values), len(values), min(values)) for at, values in sorted(expected.items())
    }


def test_minutes_roll_up_to_five_after_15_days_and_to_hours_after_63() -> None:
    store = MetricStore(MemoryStorage())
    for minute in range(120):
        store.add(LOAD, NOW + 60 * minute, Distribution.of([1.0]))
    end = NOW + 7200
    at = NOW + 14 * DAY
    store.expire(at)
    assert len(sums(store, NOW, end, 60, at)) == 120
    at = NOW + 16 * DAY
    store.expire(at)
    assert sums(store, NOW, end, 60, at) == {}
    assert sums(store, NOW, end, 300, at) == {NOW + 300 * five: 5.0 for five in range(24)}
    at = NOW + 70 * DAY
    store.expire(at)
    assert sums(store, NOW, end, 300, at) == {}
    assert sums(store, NOW, end, 3600, at) == {NOW: 60.0, NOW + 3600: 60.0}
    store.expire(NOW + 456 * DAY)
    assert store.metrics() == []


def test_what_is_due_to_roll_up_is_read_only_for_the_longer_periods() -> None:
    store = MetricStore(MemoryStorage())
    store.add(LOAD, NOW, Distribution.of([1.0]))
    store.flush()
    later = NOW + 16 * DAY
    assert sums(store, NOW, NOW + 300, 60, later) == {}
    assert sums(store, NOW, NOW + 300, 300, later) == {NOW: 1.0}
    assert sums(store, NOW, NOW + 300, 300, NOW + 64 * DAY) == {}


def test_seconds_are_kept_for_three_hours_and_minutes_go_on() -> None:
    store = MetricStore(MemoryStorage())
    store.add(LOAD, NOW + 7, Distribution.of([1.0]), 1)
    store.add(LOAD, NOW, Distribution.of([1.0]))
    assert sums(store, NOW, NOW + 60, 1) == {NOW + 7: 1.0}
    later = NOW + 5 * 3600
    store.expire(later)
    assert sums(store, NOW, NOW + 60, 1, later) == {}
    assert sums(store, NOW, NOW + 60, 60, later) == {NOW: 1.0}


def test_units_are_series_of_their_own() -> None:
    store = MetricStore(MemoryStorage())
    store.add(LOAD, NOW, Distribution.of([1.0]))
    store.add(MetricSeries(METRIC, "Bytes"), NOW, Distribution.of([2.0]))
    assert [series.unit for series in store.series_of(METRIC)] == ["Count", "Bytes"]
    assert sums(store, NOW, NOW + 60, 60) == {NOW: 3.0}
