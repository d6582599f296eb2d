"""The busiest keys are found in bounded memory, as rates."""

from __future__ import annotations

import random

import pytest

from stator.clock import VirtualClock
from stator.metrics.busy_keys import BusyKeys


def test_a_steady_key_is_shown_with_its_rate() -> None:
    clock = VirtualClock()
    sample = BusyKeys(clock)
    for _ in range(1200):
        sample.add("shop", "lamp", 5)
        clock.advance(1)
    [(table, key, rate)] = sample.busiest(10)
    assert (table, key) == ("shop", "lamp") and rate == pytest.approx(5, rel=0.02)


def test_a_key_that_is_quiet_leaves_the_top() -> None:
    clock = VirtualClock()
    sample = BusyKeys(clock)
    sample.add("shop", "old", 10_000)
    clock.advance(3600 * 24)
    sample.add("shop", "new", 1)
    assert [key for _, key, _ in sample.busiest(1)] == ["new"]
    assert sample.busiest(2)[1][2] < 1e-9


def test_busy_keys_are_found_among_many_with_few_places() -> None:
    clock = VirtualClock()
    sample = BusyKeys(clock, places=50)
    chance = random.Random(7)
    for _ in range(20_000):
        busy = chance.random() < 0.3
        key = f"busy{chance.randrange(3)}" if busy else f"key{chance.randrange(5000)}"
        sample.add("shop", key, 1)
    assert {key for _, key, _ in sample.busiest(3)} == {"busy0", "busy1", "busy2"}


def test_a_call_without_units_takes_no_place() -> None:
    sample = BusyKeys(VirtualClock())
    sample.add("shop", "lamp", 0)
    assert sample.busiest(5) == []
