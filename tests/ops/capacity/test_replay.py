"""The replay on series worked out by hand, and what holds for every series."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.design.cost.prices import prices
from stator.model.scaling.scheduled_action import ScheduledAction
from stator.model.scaling.target_tracking import CapacityBounds, TargetTracking
from stator.ops.capacity.bill import monthly_bill
from stator.ops.capacity.policies import (
    SCENARIOS,
    FixedPolicy,
    OnDemandPolicy,
    ScaledPolicy,
    Scenario,
)
from stator.ops.capacity.replay import DimensionReplay, replay

from .histories import MONDAY, READS, WRITES, history

US = prices("us-east-1")


def writes_under(
    policy: FixedPolicy | OnDemandPolicy | ScaledPolicy,
    series: list[float],
    scenario: Scenario | None = None,
) -> DimensionReplay:
    return replay(history(series), {READS: FixedPolicy(1), WRITES: policy}, scenario).of(WRITES)


def scaled(
    least: int, most: int, *actions: ScheduledAction, start: int | None = None
) -> ScaledPolicy:
    return ScaledPolicy(TargetTracking(70), CapacityBounds(least, most), actions, start)


def changes(capacity: Sequence[int]) -> list[tuple[int, int]]:
    """The minutes in which the units change, and the new units."""
    found: list[tuple[int, int]] = []
    for minute, units in enumerate(capacity):
        if not found or found[-1][1] != units:
            found.append((minute, units))
    return found


# --- by hand --------------------------------------------------------------------------------------


def test_steady_traffic_below_the_units_is_served() -> None:
    found = writes_under(FixedPolicy(10), [600.0] * 60)
    assert (found.served_units, found.throttled_units) == (36_000, 0)
    assert found.hours == [(10, 1.0)]


def test_steady_traffic_above_the_units_is_cut_to_them_once_the_burst_is_spent() -> None:
    found = writes_under(FixedPolicy(5), [600.0] * 10)
    assert list(found.throttled) == [300.0] * 10  # a new table has no burst


def test_five_idle_minutes_save_300_seconds() -> None:
    found = writes_under(FixedPolicy(5), [0.0] * 5 + [900.0] * 6)
    # 1,500 units were saved, and each second adds 5 for the next: 1,500 + 179 x 5 in 3 minutes.
    assert [900 - units for units in found.throttled[5:]] == [900, 900, 595, 300, 300, 300]


def test_a_step_raises_units_two_minutes_later_and_the_delays_after() -> None:
    series = [240.0] * 20 + [900.0] * 40
    policy = scaled(8, 100)
    found = replay(history(series), {READS: FixedPolicy(1), WRITES: policy}, Scenario(1, 1, 5))
    # Minutes 20 and 21 are high. The second is known a minute after its end, at 23. The table never
    # had so many units, so the change takes five minutes.
    first = changes(found.of(WRITES).capacity)[1]
    assert first == (28, 22)  # 15 a second were served from the burst: ceil(15 / 0.7)
    warm = replay(
        history(series), {READS: FixedPolicy(1), WRITES: policy}, Scenario(1, 1, 5), warm=(0, 100)
    )
    assert changes(warm.of(WRITES).capacity)[1] == (24, 22)
    slow = replay(
        history(series), {READS: FixedPolicy(1), WRITES: policy}, Scenario(3, 3, 15), warm=(0, 100)
    )
    assert changes(slow.of(WRITES).capacity)[1] == (28, 22)


def test_scaling_sees_only_what_was_served() -> None:
    # 50 a second are asked for, and 10 are served: one change raises to 10 / 0.7 and no more.
    series = [3000.0] * 12
    found = replay(
        history(series), {READS: FixedPolicy(1), WRITES: scaled(10, 1000)}, warm=(0, 1000)
    ).of(WRITES)
    assert [units for _, units in changes(found.capacity)][:3] == [10, 15, 22]


def test_spikes_more_than_a_minute_apart_are_never_seen() -> None:
    found = writes_under(scaled(5, 100), [1500.0, 0.0, 0.0] * 40)
    assert set(found.capacity) == {5}


def test_units_fall_after_fifteen_quiet_minutes() -> None:
    series = [600.0] * 5 + [60.0] * 30
    policy = scaled(1, 100, start=20)
    found = replay(
        history(series), {READS: FixedPolicy(1), WRITES: policy},
        Scenario(1, 1), warm=(0, 100),
    ).of(WRITES)  # fmt: skip
    # Minutes 5 to 19 are low; the last is known at 21, and the change is in force at 22.
    assert changes(found.capacity) == [(0, 20), (22, 2)]


def test_a_sawtooth_uses_up_the_decreases_of_the_day() -> None:
    tooth = [1200.0] * 10 + [0.0] * 30
    found = replay(
        history(tooth * 36), {READS: FixedPolicy(1), WRITES: scaled(1, 100)}, warm=(0, 100)
    ).of(WRITES)
    falls = [
        minute for minute in range(1, 1440) if found.capacity[minute] < found.capacity[minute - 1]
    ]
    assert len(falls) <= 27
    for earlier, later in pairwise(falls[3:]):
        assert later - earlier >= 60


def test_reads_and_writes_of_a_table_share_the_decreases() -> None:
    tooth = [1200.0] * 10 + [0.0] * 30
    policy = scaled(1, 100)
    found = replay(
        history(tooth * 36, tooth * 36), {READS: policy, WRITES: policy}, warm=(100, 100)
    )
    falls = sum(
        later < earlier for each in found.dimensions for earlier, later in pairwise(each.capacity)
    )
    assert 10 < falls <= 27


def test_a_night_without_traffic_costs_the_least_units() -> None:
    series = [0.0] * 600
    found = replay(
        history(series), {READS: FixedPolicy(1), WRITES: scaled(3, 100, start=80)}, warm=(0, 100)
    ).of(WRITES)
    assert changes(found.capacity)[-1][1] == 3
    assert found.hours[-1] == (3, 1.0)


def test_a_schedule_is_there_before_the_rise() -> None:
    rise = ScheduledAction("cron(50 0 * * ? *)", least=50)
    fall = ScheduledAction("cron(0 2 * * ? *)", least=5)
    series = [60.0] * 60 + [1800.0] * 60 + [60.0] * 60
    late = writes_under(scaled(5, 100), series, Scenario(3, 3, 15, 3))
    timely = writes_under(scaled(5, 100, rise, fall), series, Scenario(3, 3, 3, 3))
    assert late.throttled_units > 0 == timely.throttled_units
    assert timely.capacity[:70].count(50) >= 10
    assert timely.capacity[-1] < 50


def test_a_schedule_of_yesterday_holds_at_the_start() -> None:
    action = ScheduledAction("cron(0 20 * * ? *)", least=33)
    assert set(writes_under(scaled(5, 100, action), [0.0] * 30).capacity) == {33}


def test_an_index_with_too_few_units_refuses_the_tables_writes() -> None:
    found_history = history([600.0] * 5, indexes={"GSI1": ((), [600.0] * 5)})
    policies = {each.dimension: FixedPolicy(20) for each in found_history.series}
    index_writes = found_history.series[3].dimension
    policies[index_writes] = FixedPolicy(1)
    found = replay(found_history, policies)
    assert list(found.of(WRITES).throttled) == [540.0] * 5
    assert list(found.of(index_writes).throttled) == [540.0] * 5
    assert found.throttled_units == 2700.0  # counted once: programs see the table's refusals
    assert (found.throttled_minutes(), found.longest_run) == ([0, 1, 2, 3, 4], 5)


def test_hidden_demand_is_added_to_what_was_consumed() -> None:
    found = replay(
        history([60.0] * 3, throttles=[0.0, 30.0, 0.0]),
        {READS: FixedPolicy(1), WRITES: FixedPolicy(1)},
    )
    assert found.of(WRITES).demanded_units == 210
    assert list(found.of(WRITES).throttled) == [0.0, 30.0, 0.0]


def test_on_demand_grows_to_twice_its_peak_half_an_hour_later() -> None:
    series = [4000 * 60.0] * 2 + [7000 * 60.0] * 60
    found = writes_under(OnDemandPolicy(), series)
    assert [units / 60 for units in found.throttled[2:4]] == [3000.0, 3000.0]
    assert found.throttled[40] == 0


def test_a_maximum_cuts_on_demand() -> None:
    found = writes_under(OnDemandPolicy(maximum=10), [900.0] * 10)
    assert list(found.throttled[2:]) == [300.0] * 8


def test_capacity_is_billed_by_the_hour_at_its_highest() -> None:
    series = [60.0] * 90 + [2400.0] * 10 + [60.0] * 80
    found = replay(
        history(series), {READS: FixedPolicy(1), WRITES: scaled(5, 100)}, warm=(0, 100)
    ).of(WRITES)
    highest = [max(found.capacity[at : at + 60]) for at in range(0, 180, 60)]
    assert [units for units, _ in found.hours] == highest
    assert highest[1] > 5


def test_hours_are_those_of_the_clock() -> None:
    found = replay(
        history([60.0] * 90, start=MONDAY + 45 * 60),
        {READS: FixedPolicy(1), WRITES: FixedPolicy(2)},
    )
    assert found.of(WRITES).hours == [(2, 0.25), (2, 1.0), (2, 0.25)]


# --- in dollars -----------------------------------------------------------------------------------


def test_on_demand_costs_the_sum_of_its_units() -> None:
    series = [137.0, 0.0, 911.0, 60.0] * 360
    found_history = history(series, [2 * units for units in series], size_bytes=2 * 1024**3)
    found = replay(found_history, {READS: OnDemandPolicy(), WRITES: OnDemandPolicy()})
    bill = monthly_bill(found_history, found, US)
    month = 730 / 24
    wanted = sum(series) * month * (0.625e-6 + 2 * 0.125e-6)
    assert sum(bill.throughput.values()) == pytest.approx(wanted)
    assert bill.storage == pytest.approx(0.50)


def test_a_month_of_one_unit_costs_730_hours() -> None:
    found_history = history([0.0] * 1440)
    found = replay(found_history, {READS: FixedPolicy(1), WRITES: FixedPolicy(10)})
    bill = monthly_bill(found_history, found, US)
    assert bill.throughput["writes"] == pytest.approx(float(US["write_capacity_hour"]) * 7300)


# --- for every series -----------------------------------------------------------------------------

SERIES = st.lists(st.integers(0, 4000).map(float), min_size=20, max_size=90)


@given(SERIES, st.integers(1, 60), st.integers(0, 60), st.sampled_from(SCENARIOS))
def test_more_units_never_refuse_more(
    series: list[float], units: int, more: int, scenario: Scenario
) -> None:
    few = writes_under(FixedPolicy(units), series, scenario)
    many = writes_under(FixedPolicy(units + more), series, scenario)
    assert many.throttled_units <= few.throttled_units + 1e-6


@given(SERIES, st.integers(1, 40), st.integers(0, 40), st.integers(1, 40), st.integers(0, 40))
def test_more_units_of_a_table_and_its_index_never_refuse_more(
    series: list[float], table: int, more: int, index: int, more_index: int
) -> None:
    found_history = history(series, indexes={"GSI1": ((), series)})
    dimensions = [each.dimension for each in found_history.series]

    def refused(own: int, of_index: int) -> float:
        units = (1, own, 1, of_index)
        policies = {each: FixedPolicy(value) for each, value in zip(dimensions, units)}
        return replay(found_history, policies).throttled_units

    assert refused(table + more, index + more_index) <= refused(table, index) + 1e-6


@given(SERIES, st.integers(1, 30), st.integers(0, 300), st.sampled_from(SCENARIOS))
def test_what_is_asked_for_is_served_or_refused(
    series: list[float], least: int, room: int, scenario: Scenario
) -> None:
    found_history = history(series)
    policy = scaled(least, least + room)
    found = replay(found_history, {READS: FixedPolicy(1), WRITES: policy}, scenario)
    writes = found.of(WRITES)
    assert writes.served_units + writes.throttled_units == pytest.approx(sum(series))
    assert all(least <= units <= least + room for units in writes.capacity)
    assert monthly_bill(found_history, found, US).total >= 0
    assert 0 <= found.throttled_share <= 1


@given(SERIES)
def test_on_demand_below_its_limits_serves_the_sum(series: list[float]) -> None:
    found = writes_under(OnDemandPolicy(), series)
    assert found.served_units == pytest.approx(sum(series)) and found.throttled_units == 0
