"""What stator scale asks for: bounds, targets and schedules of chosen dimensions."""

from __future__ import annotations

import pytest

from stator.errors import ConfigurationError
from stator.model.scaling.capacity_window import CapacityWindow
from stator.model.scaling.target_tracking import CapacityBounds, TargetTracking
from stator.ops.capacity.capacity_state import CapacityState, ScaledDimension
from stator.ops.capacity.scaling_request import (
    ScalingRequest,
    scaled_state,
    unscaled_state,
)
from stator.ops.capacity.use_series import Dimension

from .histories import READS, WRITES, history
from .test_options import rate

PLAIN = CapacityState("orders", {READS: 10, WRITES: 20})
THERE = CapacityState(
    "orders",
    {READS: 10, WRITES: 20},
    scaling={WRITES: ScaledDimension(CapacityBounds(5, 50), TargetTracking(60), (), "mine")},
)


def windows(*texts: str) -> tuple[CapacityWindow, ...]:
    return tuple(map(CapacityWindow.parse, texts))


def test_a_new_dimension_needs_bounds_and_gets_70_percent() -> None:
    found = scaled_state(PLAIN, (READS, WRITES), ScalingRequest(least=5, most=90))
    assert found.scaling == dict.fromkeys(
        (READS, WRITES), ScaledDimension(CapacityBounds(5, 90), TargetTracking(70))
    )
    with pytest.raises(ConfigurationError, match="the writes of orders do not scale yet"):
        scaled_state(PLAIN, (WRITES,), ScalingRequest(target=70))


def test_what_is_not_asked_for_stays() -> None:
    (found,) = scaled_state(THERE, (WRITES,), ScalingRequest(most=80)).scaling.values()
    assert found == ScaledDimension(CapacityBounds(5, 80), TargetTracking(60), (), "mine")


def test_windows_replace_the_schedule_and_where_they_meet_the_next_one_counts() -> None:
    asked = ScalingRequest(windows=windows("daily 08:00-12:00 min=20", "daily 12:00-14:00 min=30"))
    (found,) = scaled_state(THERE, (WRITES,), asked).scaling.values()
    assert [(each.name, each.least) for each in found.actions] == [
        ("daily-0800", 20), ("daily-1200", 30), ("daily-1400", 5)
    ]  # fmt: skip
    none = scaled_state(
        CapacityState("orders", THERE.units, scaling={WRITES: found}), (WRITES,),
        ScalingRequest(windows=()),
    )  # fmt: skip
    assert none.scaling[WRITES].actions == ()


def test_a_window_above_the_most_units_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="its min is above the max of 50"):
        scaled_state(THERE, (WRITES,), ScalingRequest(windows=windows("daily 08:00-12:00 min=60")))


def test_the_week_gives_bounds_and_a_schedule() -> None:
    week = history([60 * rate(minute) for minute in range(8 * 1440)])
    (found,) = scaled_state(PLAIN, (WRITES,), ScalingRequest(from_week=True), week).scaling.values()
    assert found.bounds.least < 60 < found.bounds.most
    assert any(each.schedule == "cron(50 17 ? * MON-FRI *)" for each in found.actions)
    with pytest.raises(ConfigurationError, match="orders has 1"):
        scaled_state(PLAIN, (WRITES,), ScalingRequest(from_week=True), history([1.0] * 1440))


@pytest.mark.parametrize("most", [20, 60])
def test_no_scheduled_minimum_is_above_the_max_wherever_the_schedule_comes_from(most: int) -> None:
    week = history([60 * rate(minute) for minute in range(8 * 1440)])
    with pytest.raises(ConfigurationError, match=f"above the max of {most}"):
        scaled_state(PLAIN, (WRITES,), ScalingRequest(most=most, from_week=True), week)
    asked = ScalingRequest(least=5, most=200, windows=windows("daily 08:00-12:00 min=100"))
    there = scaled_state(PLAIN, (WRITES,), asked)
    with pytest.raises(ConfigurationError, match=f"at least 100 units, .* above the max of {most}"):
        scaled_state(there, (WRITES,), ScalingRequest(most=most))


def test_on_demand_tables_and_unknown_indexes_do_not_scale() -> None:
    with pytest.raises(ConfigurationError, match="orders is on-demand"):
        scaled_state(CapacityState("orders", {}), (WRITES,), ScalingRequest(least=1, most=2))
    with pytest.raises(ConfigurationError, match="orders has no index GSI7") as raised:
        scaled_state(PLAIN, (Dimension("GSI7", "read"),), ScalingRequest(least=1, most=2))
    assert raised.value.hint == "it has no global index"


def test_scaling_ends_for_what_is_named() -> None:
    assert unscaled_state(THERE, (READS,)) == THERE
    assert unscaled_state(THERE, (WRITES,)).scaling == {}
