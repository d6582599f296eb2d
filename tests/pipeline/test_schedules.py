"""Whatever happens to workers, shards and the network, no change is lost or out of order."""

from __future__ import annotations

from typing import Any

import pytest

from stator.errors import Throttled
from stator.tables.work import Call

from .simulation import Faults, Simulation, check_fences, check_order, is_complete

pytestmark = pytest.mark.usefixtures("quiet")


def run_schedule(seed: int, faults: Faults | None = None) -> Simulation:
    world = Simulation(seed, faults)
    chance = world.chance
    for _ in range(chance.randrange(1, 4)):
        world.start_worker()
    for _ in range(chance.randrange(100, 500)):
        world.step()
        world.happen()
    return world


def finish(world: Simulation) -> None:
    world.start_worker()
    written = world.written()
    world.settle(lambda: is_complete(world.applied.by_key, written))
    check_order(world.applied.by_key, written)
    check_fences(world.applied.by_shard)


@pytest.mark.parametrize("seed", range(70))
def test_no_change_is_lost_or_out_of_order(seed: int) -> None:
    world = run_schedule(seed)
    finish(world)
    world.close()


@pytest.mark.slow
@pytest.mark.parametrize("block", range(50))
def test_no_change_is_lost_or_out_of_order_in_thousands_of_schedules(block: int) -> None:
    for seed in range(1000 + block * 100, 1100 + block * 100):
        world = run_schedule(seed)
        finish(world)
        world.close()


@pytest.mark.parametrize("seed", range(200, 225))
def test_a_poisoned_key_holds_up_no_other_and_comes_back_in_order(seed: int) -> None:
    world = run_schedule(seed, Faults(crash_in_handler=0.0))
    world.poison = {"SENSOR#k1"}
    world.write(40)
    for _ in range(400):
        world.step()
    world.write(20)
    written = world.written()
    others = {key: sequences for key, sequences in written.items() if key != "SENSOR#k1"}
    world.start_worker()
    world.settle(lambda: is_complete(world.applied.by_key, others))
    check_order(world.applied.by_key, written)
    check_fences(world.applied.by_shard)
    world.close()


def test_a_shard_that_cannot_be_asked_is_not_caught_up() -> None:
    """A throttled worker does not know its lag, and must not report that it has none."""

    class Throttling(Simulation):
        def _call(self, call: Call) -> dict[str, Any]:
            if call.operation == "GetRecords":
                raise Throttled("Rate exceeded")
            return super()._call(call)

    world = Throttling(1)
    world.calm = True
    world.write(10)
    name = world.start_worker()
    for _ in range(400):
        world.step()
    worker = world.workers[name]
    assert len(worker.consumers) == 4
    assert not worker.has_caught_up(1.0)
    assert all(consumer.caught_up_at == 0.0 for consumer in worker.consumers.values())
    world.close()
