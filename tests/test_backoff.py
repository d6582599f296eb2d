from __future__ import annotations

import random

import pytest

from stator.backoff import Backoff, BackoffTimer
from stator.clock import VirtualClock


def test_ceilings_double_up_to_the_cap() -> None:
    backoff = Backoff(base_seconds=0.05, cap_seconds=1.0)
    assert [backoff.ceiling(attempt) for attempt in range(6)] == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0]


def test_the_ten_thousandth_attempt_waits_for_the_cap() -> None:
    assert Backoff(0.025, 2.0).ceiling(10_000) == 2.0


@pytest.mark.parametrize(
    ("jitter", "least", "most"), [(1.0, 0.0, 0.4), (0.5, 0.2, 0.4), (0.0, 0.4, 0.4)]
)
def test_jitter_is_the_random_share(jitter: float, least: float, most: float) -> None:
    backoff = Backoff(base_seconds=0.1, cap_seconds=10.0, jitter=jitter)
    assert backoff.delay(2, 0.0) == pytest.approx(least)
    assert backoff.delay(2, 1.0) == pytest.approx(most)


def test_the_floor_is_added_to_every_wait() -> None:
    assert Backoff(0.1, 1.0, floor_seconds=0.01).delay(0, 0.0) == 0.01


def test_a_timer_counts_attempts_and_starts_over_after_a_reset() -> None:
    timer = BackoffTimer(Backoff(0.1, 1.0, jitter=0.0), VirtualClock(), random.Random(1))
    assert [timer.next_delay(), timer.next_delay()] == [0.1, 0.2]
    timer.reset()
    assert timer.next_delay() == 0.1
    assert not timer.is_over


def test_the_last_wait_ends_at_the_deadline() -> None:
    clock = VirtualClock()
    timer = BackoffTimer(Backoff(1.0, 8.0, jitter=0.0), clock, random.Random(1), wait_seconds=2.5)
    waited = []
    while not timer.is_over:
        waited.append(timer.next_delay())
        clock.advance(waited[-1])
    assert waited == [1.0, pytest.approx(1.5)]
