"""Settings act on partitions, their state survives a restart, and stream shards follow them."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import ConfigurationError, Throttled, ThroughputExceeded
from stator.model.scope import DEFAULT_ACCOUNT, DEFAULT_REGION, Scope
from stator.testing import heat, open_shards, split_partition, split_shard, throttle

from .test_enforced import create, drain, item, put

T0 = 1_790_000_000.0


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(T0)


def warm(engine: Engine) -> tuple[int, int]:
    shown = engine.call("DescribeTable", {"TableName": "tab"})["Table"]["WarmThroughput"]
    return shown["ReadUnitsPerSecond"], shown["WriteUnitsPerSecond"]


def test_warm_throughput_rises_with_the_partitions(clock: VirtualClock) -> None:
    with Engine.open(clock=clock, throughput="enforced") as engine:
        create(engine)
        assert warm(engine) == (12_000, 4_000)
        request: dict[str, Any] = {
            "TableName": "tab",
            "WarmThroughput": {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 8_000},
        }
        engine.call("UpdateTable", request)
        engine.call("DescribeTable", {"TableName": "tab"})
        assert len(heat(engine, "tab").partitions) == 8
        assert warm(engine) == (24_000, 8_000)


def test_provisioned_units_show_the_most_there_were(clock: VirtualClock) -> None:
    with Engine.open(clock=clock, throughput="enforced") as engine:
        create(engine, (5, 2500))
        assert len(heat(engine, "tab").partitions) == 3
        engine.call(
            "UpdateTable",
            {
                "TableName": "tab",
                "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
            },
        )
        put(engine, "a")
        assert len(heat(engine, "tab").partitions) == 3, "partitions are never merged"
        assert warm(engine) == (5, 2500)
        engine.call("UpdateTable", {"TableName": "tab", "BillingMode": "PAY_PER_REQUEST"})
        put(engine, "a")
        assert len(heat(engine, "tab").partitions) == 4


def test_old_units_apply_while_the_table_is_updating(clock: VirtualClock) -> None:
    with Engine.open(clock=clock, throughput="enforced", status_delay_seconds=60.0) as engine:
        create(engine, (5, 5))
        clock.advance(60.0)
        drained = drain(engine)
        engine.call(
            "UpdateTable",
            {
                "TableName": "tab",
                "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 50},
            },
        )
        clock.advance(10.0)
        assert drained == 305
        assert drain(engine) == 50, "ten seconds of five units"
        clock.advance(50.0)
        assert drain(engine) == 250, "what the old units left, then the new ones begin"
        clock.advance(1.0)
        assert drain(engine) == 50


def test_partitions_and_debts_survive_a_restart(tmp_path: Path, clock: VirtualClock) -> None:
    folder = tmp_path / "data"
    with Engine.open(folder, clock=clock, throughput="enforced") as engine:
        create(engine, (5, 5))
        split_partition(engine, "tab", item("m"))
        put(engine, "a", t="x" * 102_300)
        before = heat(engine, "tab")
    with Engine.open(folder, clock=clock, throughput="enforced") as engine:
        again = heat(engine, "tab")
        assert [each.start for each in again.partitions] == [
            each.start for each in before.partitions
        ]
        assert again.events == before.events
        with pytest.raises(ThroughputExceeded):
            put(engine, "b")
        clock.advance(21.0)
        put(engine, "b")


def read_evenly(engine: Engine, clock: VirtualClock, partitions: list[str], seconds: int) -> None:
    """Read 36 items of 100 units a second, from eight items of each partition key."""
    places = [(p, str(sort)) for sort in (0, 5, 2, 7, 4, 1, 6, 3) for p in partitions]
    for number in range(seconds * 36):
        request = {"TableName": "tab", "Key": item(*places[number % len(places)])}
        with suppress(Throttled):
            engine.call("GetItem", request | {"ConsistentRead": True})
        if number % 36 == 35:
            clock.advance(1.0)


def fill(engine: Engine, clock: VirtualClock, partitions: list[str]) -> None:
    """Write the items that ``read_evenly`` reads."""
    for sort in range(8):
        for p in partitions:
            put(engine, p, str(sort), t="x" * 409_000)
        clock.advance(1.0)


@pytest.mark.parametrize("closes", [True, False], ids=["closed", "killed"])
def test_a_split_in_progress_survives_a_restart(
    tmp_path: Path, clock: VirtualClock, closes: bool
) -> None:
    """Two hot minutes decide the split, a restart is at 150 s, and the split is due at 300 s."""
    folder = tmp_path / "data"
    with Engine.open(folder, clock=clock, throughput="enforced") as engine:
        create(engine)
        fill(engine, clock, ["hot"])
        clock.advance(120.0)
        started = clock.now()
        read_evenly(engine, clock, ["hot"], 150)
        assert len(heat(engine, "tab").partitions) == 4
        if not closes:
            shutil.copytree(folder, tmp_path / "copy")
            folder = tmp_path / "copy"
    with Engine.open(folder, clock=clock, throughput="enforced") as again:
        clock.advance(149.0)
        assert len(heat(again, "tab").partitions) == 4
        clock.advance(1.0)
        assert len(heat(again, "tab").partitions) == 5
        [split] = heat(again, "tab").events
        assert (split.why, split.at) == ("heat", started + 300)


@pytest.mark.parametrize("closes", [True, False], ids=["closed", "killed"])
def test_growth_in_progress_survives_a_restart(
    tmp_path: Path, clock: VirtualClock, closes: bool
) -> None:
    """A peak of 7,200 read units a second: twice of that needs five partitions, not four."""
    folder = tmp_path / "data"
    with Engine.open(folder, clock=clock, throughput="observed") as engine:
        create(engine)
        keys = list("abcdefgh")
        fill(engine, clock, keys)
        clock.advance(120.0)
        for _ in range(61):
            for _ in range(2):
                read_evenly(engine, VirtualClock(), keys, 1)
            clock.advance(1.0)
        assert len(heat(engine, "tab").partitions) == 4
        if not closes:
            shutil.copytree(folder, tmp_path / "copy")
            folder = tmp_path / "copy"
    with Engine.open(folder, clock=clock, throughput="observed") as again:
        clock.advance(1_798.0)
        assert len(heat(again, "tab").partitions) == 4
        clock.advance(2.0)
        assert len(heat(again, "tab").partitions) == 5


@pytest.mark.parametrize("closes", [True, False], ids=["closed", "killed"])
def test_the_most_units_ever_provisioned_survive_a_restart(
    tmp_path: Path, clock: VirtualClock, closes: bool
) -> None:
    folder = tmp_path / "data"
    with Engine.open(folder, clock=clock, throughput="enforced") as engine:
        create(engine, (5, 2500))
        lowered = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
        engine.call("UpdateTable", {"TableName": "tab", "ProvisionedThroughput": lowered})
        put(engine, "a")
        assert warm(engine) == (5, 2500)
        if not closes:
            shutil.copytree(folder, tmp_path / "copy")
            folder = tmp_path / "copy"
    with Engine.open(folder, clock=clock, throughput="enforced") as again:
        assert warm(again) == (5, 2500)


def test_a_deleted_table_leaves_no_state(clock: VirtualClock) -> None:
    with Engine.open(clock=clock, throughput="enforced") as engine:
        create(engine, (5, 5), (5, 5))
        split_partition(engine, "tab", item("m"))
        put(engine, "a", g="x")
        engine.call("DeleteTable", {"TableName": "tab"})
        engine.call("ListTables", {})
        assert not list(engine.storage.scan(b"h", b"i"))


def test_the_shards_of_a_stream_are_the_partitions(clock: VirtualClock) -> None:
    for mode in ("off", "observed", "enforced"):
        with Engine.open(clock=clock, throughput=mode) as engine:
            create(
                engine,
                StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
            )
            assert len(open_shards(engine, "tab")) == len(heat(engine, "tab").partitions) == 4
            put(engine, "m", "1")
            split_partition(engine, "tab", item("m", "5"))
            assert len(open_shards(engine, "tab")) == 5
            for number in range(10):
                put(engine, "m", str(number))
            split_shard(engine, "tab", open_shards(engine, "tab")[0])
            assert len(open_shards(engine, "tab")) == len(heat(engine, "tab").partitions) == 6


def test_shards_follow_partitions_that_were_split_before_a_restart(
    tmp_path: Path, clock: VirtualClock
) -> None:
    folder = tmp_path / "data"
    with Engine.open(folder, clock=clock, throughput="observed") as engine:
        create(engine, StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
        split_partition(engine, "tab", item("m"))
    with Engine.open(folder, clock=clock) as engine:
        put(engine, "a")
        assert len(open_shards(engine, "tab")) == 5


def test_unknown_indexes_and_modes_are_named(clock: VirtualClock) -> None:
    with Engine.open(clock=clock) as engine:
        create(engine)
        with pytest.raises(ConfigurationError, match="no global index 'nope'"):
            heat(engine, "tab", index="nope")
    with pytest.raises(ConfigurationError, match="throughput is 'on'"):
        Engine.open(throughput="on")  # type: ignore[arg-type]


def test_a_table_that_outgrows_its_partitions_keeps_the_new_ones(
    tmp_path: Path, clock: VirtualClock
) -> None:
    folder = tmp_path / "data"
    with Engine.open(folder, clock=clock, throughput="enforced") as engine:
        create(engine, (5, 5))
        put(engine, "a")
        table = engine.database.catalog.get(Scope(DEFAULT_ACCOUNT, DEFAULT_REGION), "tab")
        table.counts.size_bytes = 25 * 1024**3
        engine.sweep()
        stored = list(engine.storage.scan(b"h", b"i"))
        assert len(orjson.loads(stored[0][1])["lows"]) == 3


def test_an_engine_starts_with_as_much_burst_as_it_is_told(clock: VirtualClock) -> None:
    for seconds, most in ((0.0, 0), (10.0, 50)):
        with Engine.open(
            clock=clock, throughput="enforced", initial_burst_seconds=seconds
        ) as engine:
            create(engine, (5, 5))
            assert drain(engine) == most


def test_a_deleted_table_takes_its_forced_refusals_along(clock: VirtualClock) -> None:
    with Engine.open(clock=clock) as engine:
        create(engine)
        throttle(engine, "tab", requests=5)
        engine.call("DeleteTable", {"TableName": "tab"})
        engine.call("ListTables", {})
        create(engine, (1, 1))
        assert drain(engine) == 400
        assert not engine.database.meter.is_needed


# -- a change of units takes time


def change(engine: Engine, write: int, *, index: bool = False) -> None:
    throughput = {"ReadCapacityUnits": 5, "WriteCapacityUnits": write}
    request: dict[str, Any] = {"TableName": "tab", "ProvisionedThroughput": throughput}
    if index:
        update = {"IndexName": "by-g", "ProvisionedThroughput": throughput}
        request = {"TableName": "tab", "GlobalSecondaryIndexUpdates": [{"Update": update}]}
    engine.call("UpdateTable", request)


@pytest.mark.parametrize("is_touched", [True, False])
def test_former_units_apply_until_a_change_is_complete(
    clock: VirtualClock, is_touched: bool
) -> None:
    with Engine.open(clock=clock, throughput="enforced") as engine:
        create(engine, (5, 2))
        engine.lifecycle.delay_seconds = 60.0
        if is_touched:
            put(engine, "a")
        change(engine, 100)
        clock.advance(59.0)
        assert drain(engine) <= 120
        clock.advance(1.0)
        assert drain(engine) <= 3
        clock.advance(1.0)
        assert drain(engine) in (100, 101)


def test_a_table_at_rest_saves_up_from_the_moment_its_change_is_complete(
    clock: VirtualClock,
) -> None:
    with Engine.open(clock=clock, throughput="enforced") as engine:
        create(engine, (5, 2))
        engine.lifecycle.delay_seconds = 60.0
        drain(engine)
        change(engine, 100)
        clock.advance(60.0 + 5.0)
        assert drain(engine, 800) in range(600, 625)


def test_a_second_change_does_not_hide_the_first(clock: VirtualClock) -> None:
    with Engine.open(clock=clock, throughput="enforced") as engine:
        create(engine, (5, 2))
        engine.lifecycle.delay_seconds = 60.0
        put(engine, "a")
        change(engine, 100)
        clock.advance(60.0)
        change(engine, 200)
        drain(engine)
        clock.advance(1.0)
        assert drain(engine) in (100, 101)


def test_an_index_keeps_its_former_units_until_its_change_is_complete(
    clock: VirtualClock,
) -> None:
    def drain_index() -> int:
        for number in range(400):
            try:
                put(engine, f"drain{number}", g=f"{clock.now()}-{number}")
            except ThroughputExceeded:
                return number
        return 400

    with Engine.open(clock=clock, throughput="enforced") as engine:
        create(engine, (5, 1000), (5, 2))
        engine.lifecycle.delay_seconds = 60.0
        drain_index()
        change(engine, 100, index=True)
        clock.advance(59.0)
        drain_index()
        clock.advance(1.0)
        # An item's new value of the key replaces an entry: two units, or one if it is new.
        assert drain_index() <= 3
        clock.advance(1.0)
        assert drain_index() >= 50
