"""Adaptive series find hot keys, spread them, and lose nothing while they do."""

from __future__ import annotations

import logging
import os
import random
from datetime import timedelta
from typing import Any

import pytest

from stator import connect
from stator.addresses import EngineTransport
from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import ConfigurationError, ThroughputExceeded
from stator.tables.db import Db
from stator.tables.shards.adaptive_shards import AdaptiveShards
from stator.tables.shards.shard_change import ShardChange
from stator.testing import (
    Fault,
    FaultyTransport,
    InterceptedCall,
    heat,
    kill_points,
    run_schedules,
    set_quota,
)
from tests.patterns.meters import T0, Reading, reading
from tests.patterns.series_world import KEY_RANGE, SeriesWorld, series
from tests.tables.shop import shop

SEEDS = int(os.environ.get("STATOR_SCHEDULES", "10"))


def enforced(**options: Any) -> tuple[VirtualClock, Engine, Db]:
    """A shop whose table starts with 40 partitions, each of which takes 1,000 units a second."""
    clock = VirtualClock(T0.timestamp())
    engine = Engine.open(clock=clock, throughput="enforced")
    db = connect(shop(), engine, clock=clock, random=random.Random(1), **options)
    warm = {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 40_000}
    for table in engine.call("ListTables", {})["TableNames"]:
        engine.call("UpdateTable", {"TableName": table, "WarmThroughput": warm})
    return clock, engine, db


def wide(seconds: float, sensor: str = "s1") -> Reading:
    """A reading of some 25 write units, so that few of them make a partition hot."""
    return reading(seconds / 60, sensor=sensor, note="x" * 25_000)


# --- hot keys --------------------------------------------------------------------------------


def test_the_rate_of_this_process_spreads_a_key_before_it_is_throttled() -> None:
    clock, engine, db = enforced()
    changes: list[ShardChange] = []
    readings = series(db, shards=AdaptiveShards(on_change=changes.append))
    for number in range(400):
        readings.add(wide(number / 40))
        clock.advance(1 / 80)  # 2,000 units a second
    assert readings.shards("s1")[0].shards == 4
    assert [(each.before, each.after, each.cause) for each in changes] == [
        (1, 2, "rate"),
        (2, 4, "rate"),
    ]
    # Chance may put more than half of a moment's readings into one of two shards.
    assert sum(heat(engine, readings.context.schema.place.table).refused.values()) < 20
    assert readings.count("s1") == 400


def test_a_change_names_the_key_as_it_was_given() -> None:
    clock, _, db = enforced()
    changes: list[ShardChange] = []
    readings = series(db, shards=AdaptiveShards(on_change=changes.append))
    for number in range(60):
        readings.add(wide(number / 40, sensor="a b#c"))
        clock.advance(1 / 80)
    assert changes[0].key == "a b#c"


def test_only_the_hot_key_is_spread() -> None:
    clock, _, db = enforced()
    readings = series(db)
    for number in range(200):
        readings.add(wide(number / 40))
        if number % 20 == 0:
            readings.add(reading(number / 60, sensor="cold"))
        clock.advance(1 / 80)
    assert readings.shards("s1")[0].shards >= 4
    assert readings.shards("cold")[0].shards == 1


def test_a_throttled_key_is_spread_by_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    """Four processes that write 600 units a second each: none of them is near the limit."""
    caplog.set_level(logging.INFO, "stator.shards")
    clock, engine, db = enforced()
    changes: list[ShardChange] = []
    writers = [series(db, shards=AdaptiveShards(on_change=changes.append)) for _ in range(4)]
    for number in range(960):
        writers[number % 4].add(wide(number / 100))
        clock.advance(1 / 96)
    throttled = [each for each in changes if each.cause == "throttled"]
    assert throttled[0].reason == "TableWriteKeyRangeThroughputExceeded"
    assert (throttled[0].before, throttled[0].after) == (1, 2)
    assert 4 <= writers[0].shards("s1")[0].shards <= 16
    assert "key s1 in 2096-11-14T12 spread over 2 shards" in caplog.text
    assert sum(heat(engine, writers[0].context.schema.place.table).refused.values()) < 60
    assert writers[0].count("s1") == 960


def test_batches_find_out_why_items_are_left_unprocessed() -> None:
    clock, _, db = enforced()
    changes: list[ShardChange] = []
    options = AdaptiveShards(target=1.0, on_change=changes.append)
    writers = [series(db, shards=options) for _ in range(3)]
    at = 0
    for _ in range(30):
        for writer in writers:
            writer.add_many([wide((at + each) / 100) for each in range(20)])
            at += 20
        clock.advance(0.5)
    assert "throttled" in {each.cause for each in changes}
    assert writers[0].shards("s1")[0].shards >= 4
    assert writers[0].count("s1") == at


def test_a_limit_of_the_table_does_not_spread_keys() -> None:
    clock, engine, db = enforced()
    set_quota(engine, write_units=500)
    readings = [series(db, name="r") for _ in range(2)]
    began = clock.now()
    for number in range(200):
        readings[number % 2].add(wide(number))
    assert clock.now() - began > 8
    assert readings[0].shards("s1")[0].shards == 1
    # One after the other, 5,000 units in ten seconds.
    assert readings[0].count("s1") == 200


def test_several_processes_share_their_rates() -> None:
    """Each of eight processes writes 250 units a second, and the engine refuses nothing."""
    clock = VirtualClock(T0.timestamp())
    db = connect(shop(), Engine.open(clock=clock), clock=clock)
    writers = [series(db) for _ in range(8)]
    for number in range(2_400):
        writers[number % 8].add(wide(number / 100))
        clock.advance(1 / 80)
    assert writers[0].shards("s1")[0].shards == 4
    assert writers[0].count("s1") == 2_400


def test_roll_ups_follow_the_shards_and_stay_exact() -> None:
    from stator.patterns.rollups.rollup import Rollup

    clock, _, db = enforced()
    rollups = [Rollup("hour", of=Reading.value)]
    writers = [series(db, rollups=rollups) for _ in range(2)]
    for number in range(120):
        writers[number % 2].add(wide(number / 20))
        clock.advance(1 / 50)
    assert writers[0].shards("s1")[0].shards >= 2
    hours = writers[0].rollup("hour", of=Reading.value)
    [summary] = hours.range("s1", T0, T0 + timedelta(hours=1))
    assert summary.count == 120
    assert hours.rebuild("s1", T0, T0 + timedelta(hours=1)) == 0


# --- cool keys -------------------------------------------------------------------------------


def test_later_buckets_start_with_fewer_shards_when_the_key_is_cool() -> None:
    clock, _, db = enforced()
    changes: list[ShardChange] = []
    readings = series(db, shards=AdaptiveShards(on_change=changes.append))
    for number in range(500):
        readings.add(wide(number / 40))
        clock.advance(1 / 200)  # 5,000 units a second
    [bucket] = readings.shards("s1")
    assert bucket.shards >= 8
    hours = bucket.shards.bit_length()
    for hour in range(1, hours + 1):
        clock.advance(3600)
        readings.add(reading(60 * hour))
        clock.advance(120)
        readings.add(reading(60 * hour + 2))
    # The first one keeps what the hot bucket needed; each of the others has half of the one before.
    expected = [bucket.shards, *(bucket.shards >> each for each in range(hours))]
    assert [each.shards for each in readings.shards("s1", limit=20)] == expected[::-1]
    assert [each.after for each in changes if each.cause == "cool"] == expected[2:]
    assert readings.count("s1") == 500 + 2 * hours


def test_a_bucket_keeps_what_it_needed_for_the_next_one() -> None:
    clock, _, db = enforced()
    readings = series(db)
    for hour in range(2):
        for number in range(500):
            readings.add(wide(3600 * hour + number / 40))
            clock.advance(1 / 200)
        clock.advance(3600)
    after, before = readings.shards("s1")
    assert before.shards >= 8 and len(before.history) >= 4
    assert after.history[0][0] == before.needed == before.shards


def test_limits_of_adaptive_shards_are_kept() -> None:
    clock, _, db = enforced()
    readings = series(db, shards=AdaptiveShards(least=2, most=4))
    for number in range(300):
        readings.add(wide(number / 40))
        clock.advance(1 / 100)
    assert readings.shards("s1")[0].shards == 4
    assert readings.shards("s1")[0].history[0][0] == 2
    for wrong in (
        AdaptiveShards(least=0),
        AdaptiveShards(least=9, most=8),
        AdaptiveShards(1, 1000),
    ):
        with pytest.raises(ConfigurationError):
            series(db, shards=wrong)
    with pytest.raises(ConfigurationError):
        series(db, shards=AdaptiveShards(target=0))


# --- in any order ----------------------------------------------------------------------------


def test_no_order_of_writers_readers_and_kills_loses_a_reading() -> None:
    grown, seen = [], []

    def schedule(seed: int) -> None:
        world = SeriesWorld(seed)
        world.run(400)
        grown.append(world.grown)
        seen.append(world.seen)

    ran = run_schedules(schedule, SEEDS)
    assert sum(grown) > ran and sum(seen) > 3 * ran


@pytest.mark.parametrize("rollups", [False, True], ids=["plain", "roll-ups"])
def test_no_order_loses_a_reading_while_keys_grow_and_narrow_from_hour_to_hour(
    rollups: bool,
) -> None:
    grown, narrowed = [], []

    def schedule(seed: int) -> None:
        world = SeriesWorld(seed, rollups=rollups, hours=True)
        world.run(700)
        grown.append(world.grown)
        narrowed.append(world.narrowed)

    ran = run_schedules(schedule, SEEDS)
    assert sum(grown) > ran / 4 and sum(narrowed) > ran / 4


def test_a_process_that_dies_at_any_call_of_a_growth_loses_nothing() -> None:
    """Throttling makes the bucket grow; the process dies before or after any of its calls."""
    engine = Engine.open()
    db = connect(shop(), engine)
    number = 0

    def refuse(call: InterceptedCall) -> Fault | None:
        if call.operation == "PutItem" and call.request["Item"]["PK"]["S"].endswith("#0"):
            return Fault("throttled", error=ThroughputExceeded(throttling_reasons=KEY_RANGE))
        return None

    def grow(dying: Any) -> None:
        mine = series(dying, name=f"n{number}")
        mine.add(kept())

    def kept() -> Reading:
        """A reading that moves out of shard 0 when the bucket grows."""
        mine = series(db, name=f"n{number}")
        return next(each for each in map(reading, range(100)) if mine.layout.shard(each, 2) == 1)

    inner = FaultyTransport(EngineTransport(engine, owned=False), refuse)
    points = 0
    for _ in kill_points(_on(db, inner), grow):
        series(_on(db, inner), name=f"n{number}").add(kept())
        mine = series(db, name=f"n{number}")
        assert mine.latest("s1", 9) == [kept()]
        [bucket] = mine.shards("s1")
        assert bucket.shards == 2
        number += 1
        points += 1
    assert points >= 6


def _on(db: Db, transport: Any) -> Db:
    from stator.tables.runner import Runner

    return Db(db.context, Runner(transport, db.context.clock, threads=1))


def test_explain_says_what_adaptive_shards_cost() -> None:
    text = str(series(connect(shop()), shards=AdaptiveShards(most=16)).explain())
    assert "over 1 shard, up to 16 where a key is hot" in text
    assert "one more shard for every 700 write units" in text


def test_needed_shards_follow_from_the_rate() -> None:
    shards = AdaptiveShards(least=1, most=64)
    assert [shards.needed(rate) for rate in (0, 700, 701, 2_800, 5_600)] == [1, 1, 2, 4, 8]
    assert shards.needed(10**9) == 64
