"""Views and roll-ups on AWS Lambda: whatever comes again, each change counts once."""

from __future__ import annotations

import pytest

from .maintenance.simulated_rollups import RollupSimulation
from .simulated_lambda import OnLambda
from .views.simulated import ViewSimulation

pytestmark = pytest.mark.usefixtures("quiet")


class ViewsOnLambda(OnLambda, ViewSimulation):
    def compare(self) -> None:
        ViewSimulation.compare(self)


class RollupsOnLambda(OnLambda, RollupSimulation):
    def compare(self) -> None:
        RollupSimulation.compare(self)


def run(kind: type[OnLambda], seed: int) -> None:
    world = kind(seed)
    world.start_worker()
    for _ in range(world.chance.randrange(100, 400)):
        world.step()
        world.happen()
    world.finish_on_lambda()
    world.close()


@pytest.mark.parametrize("seed", range(8))
def test_a_view_on_lambda_is_what_its_table_says(seed: int) -> None:
    run(ViewsOnLambda, seed)


@pytest.mark.parametrize("seed", range(6))
def test_rollups_on_lambda_are_what_their_readings_say(seed: int) -> None:
    run(RollupsOnLambda, seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_views_and_rollups_on_lambda_in_thousands_of_schedules(block: int) -> None:
    for seed in range(20_000 + block * 100, 20_100 + block * 100):
        run(ViewsOnLambda, seed)
        run(RollupsOnLambda, seed)
