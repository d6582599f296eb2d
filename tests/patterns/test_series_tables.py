"""Series over several tables: one cursor, where the limit of one table is not enough."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from stator import connect
from stator.addresses import EngineTransport
from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import ConfigurationError, ThroughputExceeded
from stator.patterns.counter import Counter
from stator.patterns.rollups.rollup import Rollup
from stator.patterns.series.layout import SeriesLayout
from stator.patterns.series.series import Series
from stator.patterns.series.spread import ShardLocation, Spread, locations
from stator.tables.db import Db
from stator.tables.runner import Runner
from stator.tables.shards.adaptive_shards import AdaptiveShards
from stator.tables.shards.shard_change import ShardChange
from stator.testing import (
    Fault,
    FaultyTransport,
    InterceptedCall,
    kill_points,
    run_schedules,
    set_quota,
)
from tests.patterns.meters import T0, Reading, reading
from tests.patterns.series_world import TABLE_UNITS, SeriesWorld, series
from tests.patterns.test_adaptive_series import enforced, wide
from tests.tables.shop import shop

SEEDS = int(os.environ.get("STATOR_SCHEDULES", "10"))


def in_tables(
    db: Db, tables: int = 4, changes: list[ShardChange] | None = None, **options: Any
) -> Series[Db, Reading]:
    on_change = None if changes is None else changes.append
    return series(db, shards=AdaptiveShards(tables=tables, on_change=on_change), **options)


def stored_in(db: Db, engine: Engine, readings: Series[Db, Reading]) -> dict[str, int]:
    """Return how many readings each table holds."""
    names = [db.context.schema.place.table, *readings.tables()]
    counts = {}
    for name in names:
        request: dict[str, Any] = {"TableName": name, "Select": "COUNT"}
        if name == names[0]:
            request |= {
                "FilterExpression": "contains(#p, :b)",
                "ExpressionAttributeNames": {"#p": "SK"},
                "ExpressionAttributeValues": {":b": {"S": "Z"}},
            }
        counts[name] = sum(page["Count"] for page in pages(engine, request))
    return counts


def pages(engine: Engine, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    while True:
        page = engine.call("Scan", request)
        yield page
        if "LastEvaluatedKey" not in page:
            return
        request = request | {"ExclusiveStartKey": page["LastEvaluatedKey"]}


# --- the limit of a table ---------------------------------------------------------------------


def test_a_limit_of_the_table_spreads_a_key_over_several_tables() -> None:
    """500 units a second in one table; each further table has 500 of its own."""
    clock, engine, db = enforced()
    set_quota(engine, write_units=500)
    changes: list[ShardChange] = []
    readings = in_tables(db, 4, changes)
    readings.add_many([wide(number) for number in range(40)])
    first = readings.page("s1", limit=15)
    began = clock.now()
    for number in range(40, 840):
        readings.add(wide(number))
        clock.advance(1 / 80)  # 2,000 units a second
    assert clock.now() - began < 20, "20,000 units are 40 s of 500, in one table"
    assert readings.shards("s1")[0].tables == 4
    throttled = [each for each in changes if each.cause == "table throttled"]
    assert [(each.tables_before, each.tables_after) for each in throttled] == [(1, 2), (2, 4)]
    assert throttled[0].reason == "TableWriteAccountLimitExceeded"
    assert "in 2 tables" in str(throttled[0])
    assert readings.tables() == [f"shop-stator-reading-{number}" for number in (2, 3, 4)]
    held = stored_in(db, engine, readings)
    assert all(count > 30 for count in held.values()), held
    found = list(readings.range("s1", newest_first=False))
    assert [each.at for each in found] == [wide(number).at for number in range(840)]
    # A cursor that was made when all was in one table goes on over all tables.
    rest = readings.page("s1", limit=100, cursor=first.cursor)
    assert [each.at for each in rest.items] == [wide(number).at for number in range(24, -1, -1)]


def test_batches_spread_over_tables_as_well() -> None:
    clock, engine, db = enforced()
    set_quota(engine, write_units=500)
    changes: list[ShardChange] = []
    readings = in_tables(db, 2, changes)
    for start in range(0, 300, 50):
        readings.add_many([wide(number) for number in range(start, start + 50)])
        clock.advance(0.1)
    assert "table throttled" in {each.cause for each in changes}
    assert readings.shards("s1")[0].tables == 2
    assert readings.count("s1") == 300
    assert min(stored_in(db, engine, readings).values()) > 80


def test_transactions_with_roll_ups_spread_over_tables_and_stay_exact() -> None:
    clock, engine, db = enforced()
    set_quota(engine, write_units=500)
    rollups = [Rollup("hour", of=Reading.value, table="sums")]
    readings = in_tables(db, 2, rollups=rollups)
    for number in range(120):
        readings.add(wide(number))
        clock.advance(1 / 40)
    assert readings.shards("s1")[0].tables == 2
    hours = readings.rollup("hour", of=Reading.value)
    [summary] = hours.range("s1", T0, T0 + timedelta(hours=1))
    assert summary.count == 120
    assert hours.rebuild("s1", T0, T0 + timedelta(hours=1)) == 0
    # A reading that moved to another table is found where it was.
    readings.add_many([wide(number) for number in range(120)])
    assert readings.count("s1") == 120
    for number in range(120):
        readings.remove(wide(number))
    assert readings.count("s1") == 0


def test_later_buckets_need_fewer_tables_when_the_limit_is_gone() -> None:
    clock, engine, db = enforced()
    set_quota(engine, write_units=500)
    changes: list[ShardChange] = []
    readings = in_tables(db, 4, changes)
    for number in range(200):
        readings.add(wide(number / 40))
        clock.advance(1 / 80)
    set_quota(engine)
    assert readings.shards("s1")[0].tables == 4
    for hour in range(1, 6):
        clock.advance(3600)
        readings.add(reading(60 * hour))
    # The first keeps what the hot bucket needed; each later one has half of the one before.
    tables = [each.tables for each in readings.shards("s1", limit=20)]
    assert tables == [1, 1, 1, 2, 4, 4]
    cool = [each for each in changes if each.cause == "cool"]
    assert [(each.tables_before, each.tables_after) for each in cool][:2] == [(4, 2), (2, 1)]
    assert readings.count("s1") == 205


def test_a_series_deployed_again_with_fewer_tables_still_finds_everything() -> None:
    clock, engine, db = enforced()
    set_quota(engine, write_units=500)
    wider = in_tables(db, 2)
    for number in range(100):
        wider.add(wide(number / 40))
        clock.advance(1 / 80)
    assert wider.shards("s1")[0].tables == 2
    set_quota(engine)
    narrow = series(db)
    assert narrow.count("s1") == 100
    for number in range(100, 200):
        narrow.add(wide(number / 40))
        clock.advance(1 / 200)
    assert narrow.shards("s1")[0].tables == 2, "the bucket keeps its tables"
    clock.advance(3600)
    narrow.add(reading(70))
    assert narrow.shards("s1")[0].tables == 1
    assert narrow.count("s1") == 201


# --- tables -----------------------------------------------------------------------------------


def test_tables_are_created_ahead_and_expire_items() -> None:
    clock, engine, db = enforced()
    readings = in_tables(db, 3, keep=timedelta(hours=2))
    done = readings.ensure_tables()
    assert done == ["shop-stator-reading-2 is ready", "shop-stator-reading-3 is ready"]
    assert readings.ensure_tables() == []
    assert readings.tables() == ["shop-stator-reading-2", "shop-stator-reading-3"]
    for table in readings.tables():
        ttl = engine.call("DescribeTimeToLive", {"TableName": table})["TimeToLiveDescription"]
        assert ttl["TimeToLiveStatus"] == "ENABLED"
    set_quota(engine, write_units=300)
    for number in range(100):
        readings.add(wide(number / 40))
        clock.advance(1 / 40)
    assert readings.shards("s1")[0].tables == 3
    assert readings.count("s1") == 100
    clock.advance(3 * 3600)
    engine.sweep()
    assert readings.count("s1") == 0
    for table in readings.tables():
        assert engine.call("Scan", {"TableName": table, "Select": "COUNT"})["Count"] == 0


def test_tables_of_a_period_are_dropped_together() -> None:
    clock, engine, db = enforced()
    set_quota(engine, write_units=500)
    readings = in_tables(db, 2, table_per="day")
    for day in range(2):
        for number in range(60):
            readings.add(wide(day * 86_400 + number / 40))
            clock.advance(1 / 80)
    assert readings.tables() == [
        "shop-stator-reading-2096-11-14",
        "shop-stator-reading-2096-11-14-2",
        "shop-stator-reading-2096-11-15",
        "shop-stator-reading-2096-11-15-2",
    ]
    assert readings.count("s1") == 120
    dropped = readings.drop_before(T0.date() + timedelta(days=1), confirm=True)
    assert dropped == readings_of_first_day(readings.layout)
    assert set(engine.call("ListTables", {})["TableNames"]).isdisjoint(dropped)
    assert readings.count("s1") == 60
    # A late reading of the dropped day creates what it needs.
    set_quota(engine)
    for number in range(40):
        readings.add(wide(number))
    assert readings.count("s1") == 100


def readings_of_first_day(layout: SeriesLayout) -> list[str]:
    return [layout.period_table("2096-11-14", number) for number in range(2)]


def test_what_cannot_be_in_several_tables_is_refused() -> None:
    db = connect(shop())
    with pytest.raises(ConfigurationError, match="tables=17 is out of range"):
        in_tables(db, 17)
    with pytest.raises(ConfigurationError, match="tables=0 is out of range"):
        in_tables(db, 0)
    with pytest.raises(ConfigurationError, match="cannot be part of a table name"):
        in_tables(db, 2, name="my readings")
    with pytest.raises(ConfigurationError, match="tables=2 is out of range") as caught:
        Counter(db, "views", shards=AdaptiveShards(tables=2))
    assert "only a Series" in str(caught.value.hint)


def test_explain_names_the_tables() -> None:
    text = str(in_tables(connect(shop()), 4).explain())
    assert "in up to 4 tables where one table is the limit" in text


def test_a_spread_names_each_location_once() -> None:
    spreads = (Spread(2), Spread(4), Spread(4, 2))
    assert locations(spreads) == [
        ShardLocation(0, 0),
        ShardLocation(1, 0),
        ShardLocation(1, 1),
        ShardLocation(2, 0),
        ShardLocation(3, 0),
        ShardLocation(3, 1),
    ]
    assert locations([Spread(3)]) == [ShardLocation(0), ShardLocation(1), ShardLocation(2)]


# --- in any order -----------------------------------------------------------------------------


@pytest.mark.parametrize("rollups", [False, True], ids=["plain", "roll-ups"])
@pytest.mark.parametrize("hours", [False, True], ids=["one hour", "hours"])
def test_no_order_of_writers_readers_and_kills_loses_a_reading(rollups: bool, hours: bool) -> None:
    widened, narrowed, seen = [], [], []

    def schedule(seed: int) -> None:
        world = SeriesWorld(seed, tables=3, rollups=rollups, hours=hours)
        world.run(700)
        widened.append(world.widened)
        narrowed.append(world.narrowed)
        seen.append(world.seen)

    ran = run_schedules(schedule, SEEDS)
    assert sum(widened) > ran / 4 and sum(seen) > 2 * ran
    assert not hours or sum(narrowed) > ran / 4


def test_a_process_that_dies_at_any_call_of_a_widening_loses_nothing() -> None:
    """The first table refuses writes for its units; the process dies around any of its calls."""
    clock = VirtualClock(T0.timestamp())
    engine = Engine.open(clock=clock)
    db = connect(shop(), engine, clock=clock)
    number = 0
    main = db.context.schema.place.table

    def refuse(call: InterceptedCall) -> Fault | None:
        is_reading = call.operation == "PutItem" and "value" in call.request["Item"]
        if is_reading and call.request["TableName"] == main:
            return Fault("throttled", error=ThroughputExceeded(throttling_reasons=TABLE_UNITS))
        return None

    inner = FaultyTransport(EngineTransport(engine, owned=False), refuse)

    def on(transport: Any) -> Db:
        return Db(db.context, Runner(transport, clock, threads=1))

    def kept() -> Reading:
        """A reading that moves to the second table when the bucket is widened."""
        layout = in_tables(db, 2, name=f"n{number}").layout
        spread = Spread(2, 2)
        return next(
            each for each in map(reading, range(100)) if layout.location(each, spread).table
        )

    def widen(dying: Any) -> None:
        in_tables(dying, 2, name=f"n{number}").add(kept())

    points = 0
    for _ in kill_points(on(inner), widen):
        in_tables(on(inner), 2, name=f"n{number}").add(kept())
        mine = in_tables(db, 2, name=f"n{number}")
        assert mine.latest("s1", 9) == [kept()]
        assert [each.tables for each in mine.shards("s1")] == [2]
        assert mine.tables() == [f"{main}-n{number}-2"]
        number += 1
        points += 1
    assert points >= 12
