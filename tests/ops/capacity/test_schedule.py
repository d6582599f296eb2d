"""Schedules that are found in the use of past weeks."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from stator.model.scaling.scheduled_action import ScheduledAction
from stator.ops.capacity.schedule import (
    DAY_SLOTS,
    WEEK_SLOTS,
    WeekSchedule,
    choose_levels,
    week_needs,
    week_schedule,
)

from .histories import WRITES, history


def cost(levels: tuple[int, ...] | list[int], change_cost: float) -> float:
    changes = sum(level != levels[at - 1] for at, level in enumerate(levels))
    return sum(levels) + change_cost * changes


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 12), st.integers(1, 3))
def test_the_levels_are_the_cheapest_of_all(
    needs: list[int], change_cost: int, most_levels: int
) -> None:
    every = (
        levels
        for levels in product(sorted(set(needs)), repeat=len(needs))
        if len(set(levels)) <= most_levels and all(map(int.__ge__, levels, needs))
    )
    best = min(cost(levels, change_cost) for levels in every)
    found = choose_levels(needs, change_cost, most_levels)
    assert all(map(int.__ge__, found, needs)) and len(set(found)) <= most_levels
    assert cost(found, change_cost) == best


@settings(max_examples=10)
@given(st.lists(st.integers(1, 200), min_size=WEEK_SLOTS, max_size=WEEK_SLOTS))
def test_a_schedule_covers_every_half_hour_with_few_levels(needs: list[int]) -> None:
    found = week_schedule(needs, "UTC")
    assert all(map(int.__ge__, found.levels, needs))
    assert len(set(found.levels)) <= 4


def evenings(days: range) -> list[int]:
    week = [10] * WEEK_SLOTS
    for day in days:
        for slot in range(36, 45):  # 18:00 to 22:30
            week[day * DAY_SLOTS + slot] = 160
    return week


def test_weekday_evenings_become_two_actions_and_the_rise_comes_ten_minutes_early() -> None:
    found = week_schedule(evenings(range(5)), "Europe/Zurich")
    assert found.actions() == (
        ScheduledAction(
            "cron(50 17 ? * MON-FRI *)", 160, timezone="Europe/Zurich", name="weekdays-1750"
        ),
        ScheduledAction(
            "cron(30 22 ? * MON-FRI *)", 10, timezone="Europe/Zurich", name="weekdays-2230"
        ),
    )
    assert list(found.windows()) == ["weekdays 17:50-22:30 min 160"]
    assert (found.base, found.is_flat) == (10, False)


def test_a_rise_at_midnight_on_monday_is_scheduled_on_sunday() -> None:
    levels = [50] * 4 + [5] * (WEEK_SLOTS - 4)
    rise, fall = WeekSchedule(tuple(levels), "UTC").actions()
    assert (fall.schedule, rise.schedule) == ("cron(50 23 ? * SUN *)", "cron(0 2 ? * MON *)") or (
        rise.schedule,
        fall.schedule,
    ) == ("cron(50 23 ? * SUN *)", "cron(0 2 ? * MON *)")


def test_a_week_without_shape_has_no_actions() -> None:
    found = week_schedule([7] * WEEK_SLOTS, "UTC")
    assert found.is_flat and found.actions() == () and list(found.windows()) == []


def test_needs_are_those_of_the_half_hour_in_the_zone() -> None:
    series = [0.0] * 1440 * 7
    for minute in range(60, 90):  # Monday 01:00 UTC is 02:00 in Zurich
        series[minute] = 70 * 60.0
    needs = week_needs(history(series), WRITES, 70, "Europe/Zurich")
    assert [slot for slot, need in enumerate(needs) if need > 1] == [4]
    assert needs[4] == 100


def test_one_odd_minute_of_many_weeks_does_not_set_the_need() -> None:
    series = [60.0] * 1440 * 14
    series[100] = 60_000.0
    assert set(week_needs(history(series), WRITES, 70, "UTC")) == {2}
