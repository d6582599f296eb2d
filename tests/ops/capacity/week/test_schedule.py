"""Schedules that are found in the use of past weeks."""

from __future__ import annotations

from itertools import product
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from stator.model.scaling.capacity_window import CapacityWindow
from stator.model.scaling.scheduled_action import ScheduledAction
from stator.ops.capacity.week.day_groups import alike_weeks
from stator.ops.capacity.week.levels import choose_levels
from stator.ops.capacity.week.schedule import (
    DAY_SLOTS,
    WEEK_SLOTS,
    WeekSchedule,
    week_needs,
    week_schedule,
)

from ..histories import WRITES, history


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


@settings(max_examples=3, deadline=None)
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
    assert list(found.windows()) == ["weekdays 17:50-22:30 min=160"]
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


# --- days that are alike, and what stands out -----------------------------------------------------


def batch(week: list[int], day: int, start: int, end: int, units: int) -> list[int]:
    found = list(week)
    for slot in range(start, end):
        found[day * DAY_SLOTS + slot] = units
    return found


def test_a_weekly_batch_is_its_own_schedule_and_no_other_day_pays_for_it() -> None:
    found = week_schedule(batch(evenings(range(5)), 2, 26, 30, 900), "UTC")
    assert list(found.windows()) == [
        "wednesday 12:50-15:00 min=900", "weekdays 17:50-22:30 min=160"
    ]  # fmt: skip
    assert len(found.actions()) == 4


def test_a_batch_on_sunday_names_sunday() -> None:
    found = week_schedule(batch([10] * WEEK_SLOTS, 6, 4, 8, 500), "UTC")
    assert list(found.windows()) == ["sunday 01:50-04:00 min=500"]


def test_a_batch_within_the_evening_raises_only_its_day() -> None:
    found = week_schedule(batch(evenings(range(5)), 4, 38, 42, 900), "UTC")
    friday = [level for level in found.levels[4 * DAY_SLOTS : 5 * DAY_SLOTS] if level == 900]
    assert len(friday) == 4 and found.levels.count(900) == 4
    assert "friday 18:50-21:00 min=900" in list(found.windows())


@settings(max_examples=3, deadline=None)
@given(
    st.integers(0, 6), st.integers(0, 40), st.integers(2, 6), st.integers(300, 5000),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_wherever_a_batch_lies_other_days_need_what_they_needed(
    day: int, start: int, slots: int, units: int, random: Random
) -> None:
    noise = [need + random.randint(0, need // 10) for need in evenings(range(5))]
    with_batch = batch(noise, day, start, start + slots, units)
    plain, found = week_schedule(noise, "UTC"), week_schedule(with_batch, "UTC")
    others = [
        at for at in range(WEEK_SLOTS) if at // DAY_SLOTS not in (day - 1, day, (day + 1) % 7)
    ]
    extra = sum(found.levels[at] for at in others) - sum(plain.levels[at] for at in others)
    # As much as levels of their own may cost: far less than the batch on a single other day.
    assert extra < units


@settings(max_examples=5, deadline=None)
@given(st.lists(st.integers(1, 200), min_size=WEEK_SLOTS, max_size=WEEK_SLOTS))
def test_every_grouping_of_days_covers_what_they_need(needs: list[int]) -> None:
    for week in alike_weeks(needs):
        assert all(map(int.__ge__, week, needs))


def test_three_days_of_one_kind_and_two_of_another_are_told_apart() -> None:
    odd = [10] * WEEK_SLOTS
    for day in (0, 2, 4):
        odd = batch(odd, day, 18, 34, 300)
    for day in (1, 3):
        odd = batch(odd, day, 10, 30, 200)
    assert sorted(week_schedule(odd, "UTC").windows()) == [
        "mon,wed,fri 08:50-17:00 min=300", "tue,thu 04:50-15:00 min=200"
    ]  # fmt: skip


def test_windows_are_what_scale_takes() -> None:
    found = week_schedule(batch(evenings(range(5)), 6, 4, 8, 500), "UTC")
    for text in found.windows():
        assert str(CapacityWindow.parse(text)).split()[1:] == text.split()[1:]


def test_a_rare_height_has_a_level_of_its_own() -> None:
    # 8 of more than 8 different needs are tried as levels; the rare one does not push others up.
    needs = [10 + at % 30 for at in range(290)] + [300 + at % 3 for at in range(44)] + [5000] * 2
    found = choose_levels(needs, 5.0)
    assert found.count(5000) == 2 and 302 in found
