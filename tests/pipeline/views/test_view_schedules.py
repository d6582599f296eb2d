"""Whatever happens to workers, shards and the network: a view tells what the table does."""

from __future__ import annotations

from typing import Any

import pytest

from stator.errors import StatorError
from stator.pipeline.views.rebuild.rebuild import RebuildReport

from .simulated import finish, run_schedule

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize("seed", range(60))
def test_a_view_is_what_its_table_says(seed: int) -> None:
    world = run_schedule(seed)
    finish(world)
    world.close()


@pytest.mark.parametrize("seed", range(5000, 5025))
def test_a_view_that_is_built_anew_meanwhile_is_what_its_table_says(seed: int) -> None:
    build_in_a_schedule(seed)


def build_in_a_schedule(seed: int) -> list[Any]:
    """Builders come and go among everything else, and one is at work when the faults end."""
    world = run_schedule(seed, builds=0.02)
    world.rebuild()
    for _ in range(world.chance.randrange(0, 200)):
        world.step()
        world.happen()
    finish(world)
    world.clock.advance(200.0)
    world.rebuild()
    finish(world)
    assert isinstance(world.rebuilt[-1], RebuildReport)
    world.close()
    return world.rebuilt


def test_builders_do_end_among_faults() -> None:
    results = [each for seed in range(6000, 6004) for each in build_in_a_schedule(seed)[:-1]]
    assert any(isinstance(each, RebuildReport) for each in results)
    assert any(isinstance(each, StatorError) for each in results)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_views_are_built_anew_in_thousands_of_schedules(block: int) -> None:
    for seed in range(10_000 + block * 100, 10_100 + block * 100):
        build_in_a_schedule(seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(30))
def test_a_view_is_what_its_table_says_in_thousands_of_schedules(block: int) -> None:
    for seed in range(1000 + block * 100, 1100 + block * 100):
        world = run_schedule(seed)
        finish(world)
        world.close()
