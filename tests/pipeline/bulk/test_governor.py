"""The rate adapts to the table, falls by the reason of a throttling, and respects its limit."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from stator.clock import VirtualClock
from stator.pipeline.bulk.job.governor import Governor


def spend(governor: Governor, clock: VirtualClock, seconds: float, units: float = 25.0) -> float:
    """As much as is allowed for so long; units a second."""
    start, spent = clock.now(), 0.0
    while clock.now() - start < seconds:
        governor.acquire(units)
        governor.consumed(units, units)
        clock.advance(0.0001)
        spent += units
    return spent / (clock.now() - start)


def test_it_grows_until_it_is_refused() -> None:
    clock = VirtualClock()
    governor = Governor(clock)
    spend(governor, clock, 2.0)
    grown = governor.pace.allowed
    assert grown > 20_000
    governor.throttled("table")
    assert governor.pace.allowed < grown * 0.75


def test_a_hot_partition_slows_the_whole_less_than_a_full_table() -> None:
    clock = VirtualClock()
    hot, full = Governor(clock, start_units=1000), Governor(clock, start_units=1000)
    hot.throttled("key range")
    full.throttled("table")
    assert full.pace.allowed < hot.pace.allowed < 1000


def test_refusals_that_come_together_count_once() -> None:
    clock = VirtualClock()
    governor = Governor(clock, start_units=1000)
    for _ in range(50):
        governor.throttled("table")
    assert governor.pace.allowed == pytest.approx(700)
    assert governor.pace.throttled == 50


def test_it_comes_back_slowly_and_stays_below_the_limit() -> None:
    clock = VirtualClock()
    governor = Governor(clock, 500)
    governor.throttled("table")
    lowered = governor.pace.allowed
    clock.advance(1)
    assert spend(governor, clock, 3.0) <= 500 * 1.2
    assert lowered < governor.pace.allowed <= 500


@pytest.mark.parametrize("limit", [1.0, 10.0, 1000.0])
def test_a_limit_is_kept_whatever_the_estimates_were(limit: float) -> None:
    clock = VirtualClock()
    governor = Governor(clock, limit)
    start, spent = clock.now(), 0.0
    for _ in range(200):
        governor.acquire(1)
        governor.consumed(1, 3)  # an estimate that is far too low
        spent += 3
    assert spent / (clock.now() - start) <= limit * 1.1


def test_a_refused_key_with_a_pace_of_its_own_does_not_slow_the_others() -> None:
    governor = Governor(VirtualClock(), start_units=1000)
    for _ in range(50):
        governor.throttled("key range", is_paced=True)
    assert governor.pace.allowed == 1000
    assert governor.pace.throttled == 50


def served(
    governor: Governor, clock: VirtualClock, seconds: float, accepts: Callable[[float], bool]
) -> float:
    """Send requests of 25 units for so long, and return the units a second that got through."""
    start, got = clock.now(), 0.0
    while clock.now() - start < seconds:
        governor.acquire(25)
        clock.advance(0.0005)  # a request takes time, whatever is allowed
        if accepts(25):
            governor.consumed(25, 25)
            got += 25
        else:
            governor.returned(25)
            governor.throttled("table")
    return got / (clock.now() - start)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_throttling_that_does_not_depend_on_the_rate_does_not_stop_a_job(share: float) -> None:
    clock, chance = VirtualClock(), random.Random(5)
    governor = Governor(clock)
    served(governor, clock, 30, lambda units: chance.random() >= share)
    assert served(governor, clock, 30, lambda units: chance.random() >= share) > 2_000


@pytest.mark.parametrize("capacity", [500.0, 1_000.0, 9_000.0])
def test_a_job_uses_most_of_what_a_table_accepts_and_wastes_little(capacity: float) -> None:
    clock = VirtualClock()
    governor = Governor(clock)
    tokens, filled_at, refused = capacity, clock.now(), 0

    def accepts(units: float) -> bool:
        nonlocal tokens, filled_at, refused
        tokens = min(capacity, tokens + (clock.now() - filled_at) * capacity)
        filled_at = clock.now()
        if tokens < units:
            refused += 1
            return False
        tokens -= units
        return True

    served(governor, clock, 20, accepts)
    refused = 0
    assert served(governor, clock, 120, accepts) > capacity * 0.6
    assert refused < 0.35 * 120 * capacity / 25
