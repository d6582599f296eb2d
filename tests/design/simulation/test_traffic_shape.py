"""Shapes of traffic: what they refuse, and how rates vary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from stator.design.simulation import (
    BatchWindow,
    HotKey,
    Launch,
    SimulatedLoad,
    Spike,
    TrafficShape,
    ZipfKeys,
)
from stator.errors import ConfigurationError

HOUR = 3600


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TrafficShape(minutes=0), "minutes=0"),
        (lambda: TrafficShape(minutes=99_999), "minutes=99999"),
        (lambda: TrafficShape(minutes=float("nan")), "minutes=nan"),
        (lambda: TrafficShape(start=-1), "start=-1"),
        (lambda: TrafficShape(profile=cast("Any", "night")), "'night' is not a profile"),
        (lambda: TrafficShape(spikes=(Spike("a", -1, 0, 9),)), "factor of the spike of a is -1"),
        (lambda: TrafficShape(spikes=(Spike("a", 2, 0, 0),)), "length of the spike of a is 0"),
        (lambda: TrafficShape(launch=Launch(0, 9)), "factor of the launch is 0"),
        (lambda: TrafficShape(loads=(SimulatedLoad("A", 0, 1),)), "items of the load of A is 0"),
        (lambda: TrafficShape(loads=(SimulatedLoad("A", 1, float("inf")),)), "rate of the load"),
        (lambda: TrafficShape(hot=(HotKey("a", 1.5),)), "hot key of a is 1.5"),
        (lambda: TrafficShape(zipf=(ZipfKeys("a", 0),)), "exponent of a is 0"),
        (lambda: TrafficShape(shards={"A": 0}), "shards of A: 0"),
        (lambda: TrafficShape(maximum=(0, 10)), "maximum"),
        (lambda: TrafficShape(warm=(-1, 10)), "warm"),
    ],
)
def test_impossible_values_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert message in caught.value.message
    assert caught.value.hint


def test_a_spike_multiplies_one_pattern_for_its_time() -> None:
    shape = TrafficShape(start=9 * HOUR, spikes=(Spike("a", 3, 9 * HOUR + 60, 30),))
    assert [shape.factor("a", second) for second in (59, 60, 89, 90)] == [1, 3, 3, 1]
    assert shape.factor("b", 60) == 1
    assert {0, 60, 90} <= shape.change_times()


def test_a_window_may_pass_midnight() -> None:
    shape = TrafficShape(windows=(BatchWindow("a", 23 * HOUR, HOUR),), minutes=24 * 60)
    assert [shape.factor("a", hour * HOUR) for hour in (0, 1, 12, 22, 23)] == [1, 0, 0, 0, 1]


def test_a_launch_rises_to_its_factor_and_stays_there() -> None:
    shape = TrafficShape(launch=Launch(4, 100))
    assert shape.factor("a", 0) == pytest.approx(0.04)
    assert shape.factor("a", 49) == pytest.approx(2)
    assert shape.factor("a", 99) == shape.factor("a", 3000) == 4


def test_every_change_of_a_factor_is_announced() -> None:
    shape = TrafficShape(
        minutes=90,
        start=22.75 * HOUR,
        profile="office",
        launch=Launch(2, 600),
        spikes=(Spike("a", 5, 23.9 * HOUR, 900),),
        windows=(BatchWindow("a", 23 * HOUR, 0.1 * HOUR),),
    )
    changes = shape.change_times()
    before = shape.factor("a", 0)
    for second in range(600, shape.seconds):  # a launch rises in steps of some seconds
        now = shape.factor("a", second)
        assert now == before or second in changes or second == 600
        before = now
