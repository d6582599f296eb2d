"""Scheduled actions: at, rate and cron expressions, in a time zone."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from stator.errors import ConfigurationError
from stator.model.scaling.scheduled_action import ScheduledAction, due_actions
from stator.model.scaling.target_tracking import CapacityBounds

SATURDAYS_AND_SUNDAYS = (
    "Sun 01", "Sat 07", "Sun 08", "Sat 14", "Sun 15", "Sat 21", "Sun 22", "Sat 28", "Sun 29",
)  # fmt: skip
FRIDAYS_AND_SUNDAYS = (
    "Sun 01", "Fri 06", "Sun 08", "Fri 13", "Sun 15", "Fri 20", "Sun 22", "Fri 27", "Sun 29",
)  # fmt: skip


def moment(text: str, timezone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(timezone)).timestamp()


def times(
    schedule: str, since: str, until: str, timezone: str = "UTC", **bounds: float
) -> list[str]:
    action = ScheduledAction(schedule, 1, timezone=timezone, **bounds)  # type: ignore[arg-type]
    found = action.times(moment(since, timezone), moment(until, timezone))
    zone = ZoneInfo(timezone)
    return [datetime.fromtimestamp(at, zone).strftime("%a %d %H:%M") for at in found]


def test_weekdays_at_a_time() -> None:
    found = times("cron(50 17 ? * MON-FRI *)", "2026-11-05", "2026-11-10T17:50")
    assert found == ["Thu 05 17:50", "Fri 06 17:50", "Mon 09 17:50", "Tue 10 17:50"]


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("cron(0/20 9 1 * ? *)", ["Sun 01 09:00", "Sun 01 09:20", "Sun 01 09:40"]),
        ("cron(0 12 L * ? *)", ["Mon 30 12:00"]),
        ("cron(0 12 15W * ? *)", ["Mon 16 12:00"]),  # the 15th is a Sunday
        ("cron(0 12 ? * 6L *)", ["Fri 27 12:00"]),
        ("cron(0 12 ? * 6#3 *)", ["Fri 20 12:00"]),
        ("cron(0 12 ? NOV 1,7 2026/9)", [f"{day} 12:00" for day in SATURDAYS_AND_SUNDAYS]),
        ("cron(0 0,12 24 NOV ? 2026)", ["Tue 24 00:00", "Tue 24 12:00"]),
        ("cron(0 12 ? NOV-JAN FRI-SUN/2 *)", [f"{day} 12:00" for day in FRIDAYS_AND_SUNDAYS]),
        ("cron(0 12 1 1 ? *)", []),
    ],
)  # fmt: skip
def test_cron_expressions_of_november(expression: str, found: list[str]) -> None:
    assert times(expression, "2026-10-31T23:59", "2026-11-30T23:59") == found


def test_a_time_of_day_is_that_of_the_zone_on_both_sides_of_summer_time() -> None:
    action = ScheduledAction("cron(0 8 * * ? *)", 1, timezone="Europe/Zurich")
    since = moment("2026-10-24", "Europe/Zurich")
    hours = [(at - moment("2026-10-24")) / 3600 for at in action.times(since, since + 3 * 86400)]
    assert hours == [6.0, 31.0, 55.0]


def test_a_time_that_summer_time_skips_runs_once_and_so_does_one_that_is_repeated() -> None:
    zone = "Europe/Zurich"
    assert times("cron(30 2 * * ? *)", "2026-03-29", "2026-03-29T23:00", zone) == ["Sun 29 03:30"]
    assert times("cron(30 2 * * ? *)", "2026-10-25", "2026-10-25T23:00", zone) == ["Sun 25 02:30"]


def test_at_runs_once_and_rate_again_and_again() -> None:
    at = "at(2026-12-01T08:00:00)"
    assert times(at, "2026-12-01T07:00", "2026-12-02", "America/New_York") == ["Tue 01 08:00"]
    assert times(at, "2026-12-01T08:00", "2026-12-02", "America/New_York") == []
    start = moment("2026-11-02T00:30")
    found = times("rate(12 hours)", "2026-11-01", "2026-11-03T12:00", start=start)
    assert found == ["Mon 02 00:30", "Mon 02 12:30", "Tue 03 00:30"]


def test_start_and_end_bound_the_times() -> None:
    found = times(
        "cron(0 12 * * ? *)", "2026-11-01", "2026-11-30",
        start=moment("2026-11-03"), end=moment("2026-11-05"),
    )  # fmt: skip
    assert found == ["Tue 03 12:00", "Wed 04 12:00"]


def test_actions_come_in_the_order_of_their_times() -> None:
    rise = ScheduledAction("cron(50 17 * * ? *)", least=160)
    fall = ScheduledAction("cron(30 22 * * ? *)", least=40)
    since = moment("2026-11-02")
    found = [action for _, action in due_actions([fall, rise], since, since + 86_400)]
    assert found == [rise, fall]


def test_an_action_sets_only_its_bounds() -> None:
    bounds = CapacityBounds(40, 400)
    assert ScheduledAction("rate(1 day)", least=160).bounds_after(bounds) == CapacityBounds(
        160, 400
    )
    assert ScheduledAction("rate(1 day)", most=20).bounds_after(bounds) == CapacityBounds(20, 20)
    assert ScheduledAction("rate(1 day)", 500).bounds_after(bounds) == CapacityBounds(500, 500)


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("cron(50 17 * * MON-FRI *)", "exactly one of the two day fields must be ?"),
        ("cron(50 17 ? * MON-FRI)", "it has 5 fields, not 6"),
        ("cron(60 17 ? * MON *)", "60 is not a value of the minutes, 0 to 59"),
        ("cron(0 17 ? * MOO *)", "MOO is not a value of the day of week"),
        ("cron(0/0 17 ? * MON *)", "0/0 is not a value of the minutes"),
        ("cron(0 17 32 * ? *)", "32 is not a value of the day of month"),
        ("at(tomorrow)", "is not a time"),
        ("rate(5 weeks)", "is not a rate"),
        ("rate(0 minutes)", "is not a rate"),
        ("every day", "is not a schedule"),
    ],
)
def test_a_wrong_schedule_says_what_is_wrong(schedule: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem.replace("?", r"\?")) as raised:
        ScheduledAction(schedule, 1)
    assert raised.value.hint


def test_an_action_needs_a_bound_and_a_zone_that_exists() -> None:
    with pytest.raises(ConfigurationError, match="sets no bound"):
        ScheduledAction("rate(1 day)")
    with pytest.raises(ConfigurationError, match="'Mars/Olympus' is not a time zone"):
        ScheduledAction("rate(1 day)", 1, timezone="Mars/Olympus")
