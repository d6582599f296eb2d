"""Whatever happens to workers, shards and the network: a view tells what the table does."""

from __future__ import annotations

import logging

import pytest

from .simulated import finish, run_schedule

logging.getLogger("stator.workers").setLevel(logging.CRITICAL)


@pytest.mark.parametrize("seed", range(100))
def test_a_view_is_what_its_table_says(seed: int) -> None:
    world = run_schedule(seed)
    finish(world)
    world.close()


@pytest.mark.slow
@pytest.mark.parametrize("block", range(30))
def test_a_view_is_what_its_table_says_in_thousands_of_schedules(block: int) -> None:
    for seed in range(1000 + block * 100, 1100 + block * 100):
        world = run_schedule(seed)
        finish(world)
        world.close()
