"""One program on provisioned, on-demand and capped tables: other waits, the same items."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import SlowDown, TransactionCanceled
from stator.testing import heat

from .test_enforced import create, item

TABLES: dict[str, dict[str, Any]] = {
    "provisioned": {"units": (20, 10)},
    "on demand": {},
    "capped": {"OnDemandThroughput": {"MaxWriteRequestUnits": 15}},
}


def program(engine: Engine, clock: VirtualClock, seed: int) -> int:
    """Write items in every way, and repeat what is refused a second later. Return the refusals."""
    chance = random.Random(seed)
    refusals = 0
    for number in range(40):
        names = [f"k{chance.randrange(12)}" for _ in range(chance.randrange(1, 5))]
        puts = [item(name, v=str(number), t="x" * chance.randrange(3000)) for name in set(names)]
        kind = chance.randrange(3)
        left = puts
        while left:
            try:
                left = _write(engine, kind, left)
            except (SlowDown, TransactionCanceled):
                refusals += 1
                clock.advance(1.0)
            else:
                if left and kind == 1:
                    refusals += 1
                    clock.advance(1.0)
    return refusals


def _write(engine: Engine, kind: int, puts: list[Any]) -> list[Any]:
    """Write some or all of the items, and return those that are left."""
    if kind == 0:
        engine.call("PutItem", {"TableName": "tab", "Item": puts[0]})
        return puts[1:]
    if kind == 1:
        requests = [{"PutRequest": {"Item": each}} for each in puts]
        answer = engine.call("BatchWriteItem", {"RequestItems": {"tab": requests}})
        return [each["PutRequest"]["Item"] for each in answer["UnprocessedItems"].get("tab", ())]
    actions = [{"Put": {"TableName": "tab", "Item": each}} for each in puts]
    engine.call("TransactWriteItems", {"TransactItems": actions})
    return []


@given(st.integers(0, 2**32))
@settings(max_examples=25)
def test_the_items_are_the_same_and_the_waits_follow_the_limits(seed: int) -> None:
    stored = {}
    for name, options in TABLES.items():
        clock = VirtualClock(1_790_000_000.0)
        with Engine.open(clock=clock, throughput="enforced") as engine:
            create(engine, **options)
            began = clock.now()
            refusals = program(engine, clock, seed)
            found = engine.call("Scan", {"TableName": "tab"})["Items"]
            stored[name] = sorted(str(each) for each in found)
            written = sum(each.write_units for each in heat(engine, "tab").partitions)
            rate = {"provisioned": 10, "capped": 15}.get(name)
            if rate is None:
                assert refusals == 0
            else:
                largest = 4 * 3 * 2
                assert written <= rate * (clock.now() - began + 1) + largest
    assert stored["provisioned"] == stored["on demand"] == stored["capped"]


@pytest.mark.parametrize("mode", ["off", "observed"])
def test_nothing_is_refused_unless_limits_are_enforced(mode: Any) -> None:
    clock = VirtualClock(1_790_000_000.0)
    with Engine.open(clock=clock, throughput=mode) as engine:
        create(engine, (1, 1))
        assert program(engine, clock, 1) == 0
