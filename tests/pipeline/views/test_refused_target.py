"""A view whose table refuses its writes: the worker slows down, says so, and loses nothing."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from stator.errors import ServiceError, Throttled, ThroughputExceeded
from stator.model.values import Item
from stator.tables.work import Call

from ..simulation import Faults, is_complete
from .simulated import ViewSimulation, finish

CALM = Faults(0.0, 0.0, 0.0, 0.0, 0.0)
REASONS = [
    {
        "reason": "TableWriteKeyRangeThroughputExceeded",
        "resource": "arn:aws:dynamodb:us-east-1:000000000000:table/plant-stator",
    }
]
HOT: ServiceError = ThroughputExceeded(throttling_reasons=REASONS)


class RefusedTarget(ViewSimulation):
    """Refuses the writes of views for a time, a share of them, and counts what it refuses."""

    def __init__(self, seed: int, error: ServiceError, share: float = 1.0) -> None:
        super().__init__(seed, CALM)
        self.error = error
        self.share = share
        self.is_refusing = True
        self.asked: list[float] = []

    def _call(self, call: Call) -> dict[str, Any]:
        if self.is_refusing and _writes_view(call) and self.chance.random() < self.share:
            self.asked.append(self.clock.now())
            raise self.error
        return super()._call(call)

    def run_for(self, seconds: float) -> None:
        end = self.clock.now() + seconds
        while self.clock.now() < end:
            self.step()

    def handled(self) -> bool:
        return is_complete(self.applied.by_key, self.written())

    def parked(self) -> list[Item]:
        place = self.context.schema.place
        items = self.engine.call("Scan", {"TableName": place.table})["Items"]
        return [each for each in items if "PARKED" in each[place.partition]["S"]]


def _writes_view(call: Call) -> bool:
    is_write = call.operation in ("PutItem", "UpdateItem", "TransactWriteItems", "BatchWriteItem")
    return is_write and "VIEW#" in repr(call.request)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (HOT, "TableWriteKeyRangeThroughputExceeded of plant-stator"),
        (Throttled("Rate exceeded"), "Rate exceeded"),
    ],
    ids=["hot key", "no reason"],
)
def test_a_refused_view_slows_its_worker_down_and_then_is_exact(
    error: ServiceError, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "stator.workers")
    world = RefusedTarget(3, error)
    world.write(40)
    name = world.start_worker()
    world.run_for(400.0)
    first = [at for at in world.asked if at < world.asked[0] + 60.0]
    last = [at for at in world.asked if at > world.asked[-1] - 60.0]
    assert world.asked and len(last) < len(first)  # it asks less and less often
    assert len(world.asked) < 400
    assert f"throttled: {said}" in caplog.text and world.workers[name].progress().handled == 0
    world.is_refusing = False
    finish(world)
    assert world.parked() == []


@pytest.mark.parametrize("seed", range(3))
def test_a_view_that_is_refused_now_and_then_loses_and_doubles_nothing(seed: int) -> None:
    world = RefusedTarget(seed, HOT, share=0.3)
    for _ in range(2):
        world.start_worker()
    for _ in range(300):
        world.step()
        world.happen()
    assert world.asked
    world.is_refusing = False
    finish(world)
    assert world.parked() == []
