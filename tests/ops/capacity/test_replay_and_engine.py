"""The replay against the embedded engine: the same series, second by second, unit for unit."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import SlowDown
from stator.model.scaling.decrease_budget import DecreaseRecord
from stator.model.scaling.target_tracking import (
    CapacityBounds,
    ScalingDecision,
    ScalingState,
    TargetTracking,
    decide,
)
from stator.ops.capacity.policies import FixedPolicy, OnDemandPolicy, ScaledPolicy, Scenario
from stator.ops.capacity.replay import replay
from stator.ops.capacity.use_series import TableHistory

from .histories import MONDAY, READS, WRITES, history

MINUTE = 60


class Table:
    """A table of the embedded engine that is written one unit at a time."""

    def __init__(self, units: int | None, index: int | None = None) -> None:
        self.clock = VirtualClock(float(MONDAY))
        self.engine = Engine.open(clock=self.clock, throughput="enforced")
        self.has_index = index is not None
        self.written = 0
        request: dict[str, Any] = {
            "TableName": "orders",
            "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST" if units is None else "PROVISIONED",
        }
        if units is not None:
            request["ProvisionedThroughput"] = self._units(units)
        if index is not None:
            request["AttributeDefinitions"].append({"AttributeName": "g", "AttributeType": "S"})
            request["GlobalSecondaryIndexes"] = [
                {
                    "IndexName": "by-g",
                    "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                    "ProvisionedThroughput": self._units(index),
                }
            ]
        self.engine.call("CreateTable", request)

    @staticmethod
    def _units(write: int) -> dict[str, int]:
        return {"ReadCapacityUnits": 1, "WriteCapacityUnits": write}

    def set_units(self, units: int) -> None:
        self.engine.call(
            "UpdateTable", {"TableName": "orders", "ProvisionedThroughput": self._units(units)}
        )

    def minute(self, units: int, seconds: int = MINUTE) -> int:
        """Write so many units in the first seconds of a minute. Return how many were admitted."""
        each, rest = divmod(units, seconds)
        admitted = 0
        for second in range(MINUTE):
            asked = each + (second < rest) if second < seconds else 0
            admitted += sum(self._write() for _ in range(asked))
            self.clock.advance(1.0)
        return admitted

    def _write(self) -> bool:
        self.written += 1
        item = {"p": {"S": f"{self.written}"}}
        if self.has_index:
            item["g"] = {"S": f"{self.written}"}
        try:
            self.engine.call("PutItem", {"TableName": "orders", "Item": item})
        except SlowDown:
            return False
        return True


def admitted(series: Sequence[int], table: Table, seconds: int = MINUTE) -> list[int]:
    return [table.minute(units, seconds) for units in series]


def served(series: Sequence[float], throttled: Sequence[float]) -> list[int]:
    return [round(units - refused) for units, refused in zip(series, throttled)]


def spiky(seed: int, minutes: int, most: int) -> list[int]:
    """Quiet minutes, bursts and long loads, none of them a whole number a second."""
    chance = random.Random(seed)
    levels = (0, most // 20, most // 3, most, most)
    return [chance.randint(0, max(1, chance.choice(levels))) for _ in range(minutes)]


@pytest.mark.parametrize("seed", range(4))
def test_fixed_units_admit_what_the_engine_admits(seed: int) -> None:
    series = spiky(seed, 30, 1500)
    found = replay(history(series), {READS: FixedPolicy(1), WRITES: FixedPolicy(5)})
    assert found.throttled_units > 0
    assert served(series, found.of(WRITES).throttled) == admitted(series, Table(5))


def test_a_peak_within_the_minute_is_served_from_the_burst_as_in_the_engine() -> None:
    series = spiky(7, 30, 1300)
    policies = {READS: FixedPolicy(1), WRITES: FixedPolicy(4)}
    found = replay(history(series), policies, Scenario(peak_factor=3))
    assert served(series, found.of(WRITES).throttled) == admitted(series, Table(4), 20)


@pytest.mark.parametrize("seed", range(3))
def test_an_index_without_units_refuses_the_tables_writes_as_in_the_engine(seed: int) -> None:
    series = spiky(seed, 25, 1100)
    policies = {
        READS: FixedPolicy(1),
        WRITES: FixedPolicy(6),
    } | {each.dimension: FixedPolicy(2) for each in _indexed(series).series[2:]}
    found = replay(_indexed(series), policies)
    assert found.of(WRITES).throttled_units > 0
    assert served(series, found.of(WRITES).throttled) == admitted(series, Table(6, index=2))


def _indexed(series: list[int]) -> TableHistory:
    return history(series, indexes={"by-g": ((), series)})


def test_units_that_scale_admit_what_the_engine_admits_with_the_same_units() -> None:
    series = [60] * 20 + [600] * 25 + [30] * 30
    policy = ScaledPolicy(TargetTracking(70), CapacityBounds(2, 40))
    found = replay(history(series), {READS: FixedPolicy(1), WRITES: policy}).of(WRITES)
    assert len(set(found.capacity)) > 2
    table, units, real = Table(2), 2, []
    for asked, wanted in zip(series, found.capacity):
        if wanted != units:
            table.set_units(wanted)
            units = wanted
        real.append(table.minute(asked))
    assert served(series, found.throttled) == real


def test_on_demand_serves_what_the_engine_serves() -> None:
    series = [0, 3_000, 600, 0]
    found = replay(history(series), {READS: OnDemandPolicy(), WRITES: OnDemandPolicy()})
    assert served(series, found.of(WRITES).throttled) == admitted(series, Table(None)) == series


class Scaler:
    """Auto scaling of the engine's table: the same decisions, carried out by UpdateTable."""

    def __init__(self, table: Table, tracking: TargetTracking, bounds: CapacityBounds) -> None:
        self.table, self.tracking, self.bounds = table, tracking, bounds
        self.state = ScalingState(bounds.least)
        self.decreases = DecreaseRecord()
        self.used: list[float] = []
        self.pending: tuple[int, ScalingDecision] | None = None

    def steer(self, minute: int, scenario: Scenario) -> None:
        now = self.table.clock.now()
        if self.pending is not None and self.pending[0] <= minute:
            decision = self.pending[1]
            self.table.set_units(decision.units)
            self.state = self.state.after(decision, now)
            self.pending = None
        if self.pending is not None:
            return
        known = self.used[: max(0, minute - scenario.alarm_minutes)]
        found = decide(self.tracking, self.bounds, self.state, known, now, self.decreases)
        if found is None or found.not_before > now:
            return
        if found.direction == "in":
            self.decreases = self.decreases.after(now)
        self.pending = (minute + scenario.update_minutes, found)


def test_a_sawtooth_scales_the_engine_as_it_scales_the_replay() -> None:
    """Eight falls: four at once, the others an hour apart. The engine counts them, too."""
    series = ([360] * 6 + [0] * 34) * 8
    tracking, bounds = TargetTracking(70), CapacityBounds(1, 40)
    scenario = Scenario(1, 2, 2, 1)
    policy = ScaledPolicy(tracking, bounds)
    found = replay(history(series), {READS: FixedPolicy(1), WRITES: policy}, scenario).of(WRITES)
    table = Table(1)
    scaler = Scaler(table, tracking, bounds)
    capacity, real = [], []
    for minute, units in enumerate(series):
        scaler.steer(minute, scenario)
        capacity.append(scaler.state.units)
        real.append(table.minute(units))
        scaler.used.append(real[-1])
    assert list(found.capacity) == capacity and len(set(capacity)) > 3
    assert served(series, found.throttled) == real
    described = table.engine.call("DescribeTable", {"TableName": "orders"})["Table"]
    assert (
        described["ProvisionedThroughput"]["NumberOfDecreasesToday"] == scaler.decreases.count > 4
    )
