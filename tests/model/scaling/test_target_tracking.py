"""Target tracking: when an alarm rings, which units it asks for, and what delays a change."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.errors import ConfigurationError
from stator.model.scaling.decrease_budget import DecreaseRecord
from stator.model.scaling.target_tracking import (
    CapacityBounds,
    ScalingDecision,
    ScalingState,
    TargetTracking,
    decide,
    is_high,
    is_low,
    pull_inside,
    target_warning,
)

NOW = 1_790_000_000.0
WIDE = CapacityBounds(1, 10_000)


def decision(
    used_per_second: Sequence[float],
    units: int = 100,
    policy: TargetTracking | None = None,
    bounds: CapacityBounds = WIDE,
    decreases: DecreaseRecord | None = None,
    **state: float,
) -> ScalingDecision | None:
    used = [units * 60.0 for units in used_per_second]
    return decide(
        policy or TargetTracking(70),
        bounds,
        ScalingState(units, **state),
        used,
        NOW,
        decreases or DecreaseRecord(),
    )


def test_the_developer_guide_s_example_150_units_used_at_70_percent_are_215() -> None:
    assert TargetTracking(70).wanted_units([150 * 60.0] * 2) == 215


def test_the_recorded_alarm_has_the_threshold_target_times_units_times_60() -> None:
    assert TargetTracking(70).high_threshold(1) == pytest.approx(42.0)


def test_two_minutes_above_the_target_raise_the_units() -> None:
    assert decision([50, 80, 90]) == ScalingDecision(122, "out", "high", NOW)


def test_spikes_more_than_a_minute_apart_never_raise_them() -> None:
    assert decision([10, 400, 10, 400]) is None
    assert decision([400, 400, 10]) is None


def test_exactly_at_the_target_is_not_above_it() -> None:
    assert not is_high(TargetTracking(70), 100, [70 * 60.0] * 2)
    assert is_high(TargetTracking(70), 100, [70.1 * 60.0] * 2)


def test_fifteen_quiet_minutes_lower_the_units_and_fourteen_do_not() -> None:
    assert decision([49] * 14) is None
    assert decision([35] * 15) == ScalingDecision(50, "in", "low", NOW)
    assert decision([35] * 14 + [51]) is None


@pytest.mark.parametrize(("target", "below"), [(90, 70), (70, 50), (50, 30)])
def test_the_low_alarm_is_twenty_points_below_the_target(target: float, below: float) -> None:
    assert not is_low(TargetTracking(target), 100, [below * 60.0] * 15)
    assert is_low(TargetTracking(target), 100, [(below - 0.1) * 60.0] * 15)


def test_the_low_alarm_is_that_of_the_public_captures() -> None:
    assert TargetTracking(70).low_threshold(5) == pytest.approx(150.0)


@pytest.mark.parametrize(
    ("target", "warning"),
    [(60, "40 % of the units unused"), (70, ""), (80, ""), (90, "little room for the minutes")],
)
def test_an_unusual_target_is_warned_about(target: float, warning: str) -> None:
    assert warning in target_warning(target) and bool(warning) == bool(target_warning(target))


def test_bounds_hold() -> None:
    assert decision([90, 90], bounds=CapacityBounds(1, 110)) == ScalingDecision(
        110, "out", "high", NOW
    )
    assert decision([90, 90], bounds=CapacityBounds(1, 100)) is None
    assert decision([0] * 15, bounds=CapacityBounds(40, 200)) == ScalingDecision(
        40, "in", "low", NOW
    )


def test_an_idle_table_keeps_one_unit() -> None:
    found = decision([0] * 15)
    assert found is not None and found.units == 1


def test_a_decrease_waits_for_its_budget() -> None:
    used_up = DecreaseRecord(4, NOW - 600)
    found = decision([10] * 15, decreases=used_up)
    assert found == ScalingDecision(15, "in", "low", NOW + 3000)
    assert decision([90, 90], decreases=used_up) == ScalingDecision(129, "out", "high", NOW)


def test_without_scale_in_units_never_fall() -> None:
    assert decision([0] * 15, policy=TargetTracking(70, can_scale_in=False)) is None


def test_cooldowns_delay_a_second_change() -> None:
    policy = TargetTracking(70, scale_out_cooldown_seconds=120, scale_in_cooldown_seconds=600)
    assert decision([90, 90], policy=policy, last_out=NOW - 60) is None
    assert decision([90, 90], policy=policy, last_out=NOW - 120) is not None
    assert decision([90, 90], policy=policy, last_in=NOW - 1) is not None
    assert decision([10] * 15, policy=policy, last_in=NOW - 599) is None
    assert decision([10] * 15, policy=policy, last_in=NOW - 600) is not None


def test_the_state_after_a_decision_remembers_when() -> None:
    found = decision([90, 90])
    assert found is not None
    assert ScalingState(100).after(found, NOW) == ScalingState(129, last_out=NOW)


def test_new_bounds_pull_units_inside() -> None:
    none = DecreaseRecord()
    assert pull_inside(CapacityBounds(160, 400), 40, NOW, none) == ScalingDecision(
        160, "out", "bounds", NOW
    )
    assert pull_inside(CapacityBounds(1, 20), 40, NOW, DecreaseRecord(4, NOW)) == ScalingDecision(
        20, "in", "bounds", NOW + 3600
    )
    assert pull_inside(CapacityBounds(1, 40), 40, NOW, none) is None


@pytest.mark.parametrize("target", [19.9, 90.1, float("nan")])
def test_a_target_that_aws_refuses_is_refused(target: float) -> None:
    with pytest.raises(ConfigurationError, match="not between 20 and 90"):
        TargetTracking(target)


def test_bounds_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="the most units, 3, are below the least, 4"):
        CapacityBounds(4, 3)
    with pytest.raises(ConfigurationError, match="the least units are 0"):
        CapacityBounds(0, 3)


@given(
    st.lists(st.integers(0, 60_000), min_size=1, max_size=20),
    st.integers(1, 500),
    st.sampled_from([50, 70, 90]),
)
def test_wanted_units_are_the_least_that_keep_the_mean_at_the_target(
    used: list[int], units: int, target: int
) -> None:
    wanted = TargetTracking(target).wanted_units(used)
    mean = sum(used) / len(used) / 60
    assert mean <= wanted * target / 100 + 1e-6
    assert wanted == 1 or mean > (wanted - 1) * target / 100 - 1e-6
    found = decide(
        TargetTracking(target), CapacityBounds(5, 300), ScalingState(units), used, NOW,
        DecreaseRecord(),
    )  # fmt: skip
    assert found is None or (5 <= found.units <= 300 and found.units != units)
