"""Windows: other bounds in a part of the week, and the actions that they become."""

from __future__ import annotations

import pytest

from stator.errors import ConfigurationError
from stator.model.scaling.capacity_window import CapacityWindow
from stator.model.scaling.scheduled_action import ScheduledAction


def test_a_window_sets_its_bounds_and_then_the_old_ones() -> None:
    window = CapacityWindow.parse("weekdays 17:50-22:30 min=160")
    assert window.actions((40, 400), "UTC") == (
        ScheduledAction("cron(50 17 ? * MON-FRI *)", 160, name="weekdays-1750"),
        ScheduledAction("cron(30 22 ? * MON-FRI *)", 40, name="weekdays-2230"),
    )
    assert str(window) == "weekdays 17:50-22:30 min=160"


def test_a_window_past_midnight_ends_the_day_after() -> None:
    opening, closing = CapacityWindow.parse("fri,sat 22:00-02:00 min=5 max=9").actions(
        (1, 8), "UTC"
    )
    assert (opening.schedule, opening.least, opening.most) == ("cron(0 22 ? * FRI,SAT *)", 5, 9)
    assert (closing.schedule, closing.least, closing.most) == ("cron(0 2 ? * SAT,SUN *)", 1, 8)


def test_a_window_for_a_load_opens_ten_minutes_early() -> None:
    opening, closing = CapacityWindow.parse("load 00:05-01:00 min=500").actions((1, 900), "UTC")
    assert (opening.schedule, closing.schedule) == ("cron(55 23 * * ? *)", "cron(0 1 * * ? *)")


@pytest.mark.parametrize(
    ("text", "days"),
    [("mon-wed", (0, 1, 2)), ("sat-mon", (0, 5, 6)), ("daily", tuple(range(7))), ("tue", (1,))],
)
def test_days_have_names(text: str, days: tuple[int, ...]) -> None:
    assert CapacityWindow.parse(f"{text} 01:00-02:00 min=2").days == days


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("weekdays 17:50-22:30", "is not a schedule"),
        ("17:50-22:30 min=160", "is not a schedule"),
        ("weekdays 17:50-24:30 min=160", "24:30 is not a time of day"),
        ("someday 17:50-22:30 min=160", "someday is not a day"),
        ("weekdays 17:50-22:30 min=-1", "is not a schedule"),
    ],
)
def test_a_wrong_window_says_what_is_wrong(text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem) as raised:
        CapacityWindow.parse(text)
    assert raised.value.hint
