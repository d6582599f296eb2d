"""In every schedule of workers, shards and faults, roll-ups are what the readings add up to."""

from __future__ import annotations

import pytest

from .simulated_rollups import finish, run_schedule

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize("seed", range(40))
def test_roll_ups_are_what_the_readings_add_up_to(seed: int) -> None:
    world = run_schedule(seed)
    finish(world)
    world.close()


@pytest.mark.parametrize("seed", range(3000, 3020))
def test_roll_ups_stay_right_when_rebuilt_in_between(seed: int) -> None:
    world = run_schedule(seed, rebuilds=0.02)
    finish(world)
    world.close()


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_roll_ups_are_what_the_readings_add_up_to_in_thousands_of_schedules(block: int) -> None:
    for seed in range(10_000 + block * 100, 10_100 + block * 100):
        world = run_schedule(seed, rebuilds=0.01 * (seed % 3))
        finish(world)
        world.close()
