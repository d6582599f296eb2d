"""The cases that decide whether the heat model is right, in virtual time."""

from __future__ import annotations

import random

import orjson

from stator.model.heat.limits import READ, WRITE
from stator.model.heat.resource import ThroughputResource, ThroughputSettings
from stator.model.heat.splits import LOCAL_INDEX, ONE_KEY, SEQUENTIAL

from .driving import START, Driver, key


def driver(settings: ThroughputSettings) -> Driver:
    return Driver(ThroughputResource(settings, START))


def test_a_small_table_saves_five_minutes_of_burst() -> None:
    table = driver(ThroughputSettings(units=(3, 3)))
    table.idle(300)
    passed = [table.second(2000, lambda n: key(f"k{n}")) for _ in range(4)]
    assert passed == [903, 3, 3, 3]
    assert table.reasons == {"TableWriteProvisionedThroughputExceeded"}


def test_with_five_units_the_partition_shows_first() -> None:
    table = driver(ThroughputSettings(units=(5, 5)))
    table.idle(300)
    assert table.second(2000, lambda n: key(f"k{n}")) == 1000
    assert table.reasons == {"TableWriteKeyRangeThroughputExceeded"}


def test_one_key_never_takes_more_than_a_partition() -> None:
    table = driver(ThroughputSettings(units=(3, 10_000)))
    for second in range(400):
        assert table.second(1500, lambda n: key("hot")) == 1000, second
    assert table.reasons == {"TableWriteKeyRangeThroughputExceeded"}
    [event] = table.resource.events
    assert (event.why, event.cuts) == (ONE_KEY, ())
    assert event.at == START + 120


def test_one_key_written_over_shards_passes() -> None:
    table = driver(ThroughputSettings(units=(3, 10_000)))
    shards = [key(f"hot#{number}") for number in range(4)]
    for _ in range(3):
        assert table.second(1500, lambda n: shards[n % 4]) == 1500


def test_an_on_demand_table_splits_under_even_load() -> None:
    table = driver(ThroughputSettings())
    starts = (0, 2**62, 2**63, 3 * 2**62)
    evenly = [
        ((start + 2**62 * number // 200).to_bytes(8, "big")) for number in range(200)
        for start in starts
    ]  # fmt: skip
    passed = [table.second(6000, lambda n: evenly[n % 800]) for _ in range(310)]
    assert set(passed[:300]) == {4000}
    assert set(passed[300:]) == {6000}
    assert len(table.resource.partitions) == 8


def scattered(number: int) -> str:
    """Return a sort key; successive numbers divide the range evenly, in no order (golden ratio)."""
    return f"{number * 0.6180339887498949 % 1:.9f}"


def test_a_collection_is_cut_by_its_sort_key() -> None:
    table = driver(ThroughputSettings())
    passed = [table.second(3000, lambda n: key("p", scattered(n))) for _ in range(900)]
    assert set(passed[:300]) == {1000}
    assert set(passed[300:600]) == {2000}
    assert set(passed[600:]) == {3000}
    assert [(event.why, int(event.at - START)) for event in table.resource.events] == [
        ("heat", 300),
        ("heat", 600),
        ("heat", 600),
    ]


def test_a_collection_is_never_cut_on_a_table_with_a_local_index() -> None:
    table = driver(ThroughputSettings(has_local_index=True))
    chance = random.Random(1)
    passed = [table.second(3000, lambda n: key("p", f"{chance.random():.9f}")) for _ in range(400)]
    assert set(passed) == {1000}
    assert [event.why for event in table.resource.events] == [LOCAL_INDEX]


def test_a_rising_sort_key_is_not_split() -> None:
    table = driver(ThroughputSettings())
    passed = [table.second(3000, lambda n: key("p", f"{n:012d}")) for _ in range(400)]
    assert set(passed) == {1000}
    assert [event.why for event in table.resource.events] == [SEQUENTIAL]


def test_rising_keys_of_several_collections_are_parted_between_collections() -> None:
    table = driver(ThroughputSettings())
    names = [name for name in map(str, range(40)) if key(name)[0] < 64][:3]
    for _ in range(700):
        table.second(1800, lambda n: key(names[n % 3], f"{n:012d}"))
    assert {event.why for event in table.resource.events} == {"heat"}
    assert all(len(cut) == 8 or cut[8:] for each in table.resource.events for cut in each.cuts)
    assert table.second(1800, lambda n: key(names[n % 3], f"{n:012d}")) == 1800


def test_a_rising_key_among_others_is_parted_from_them_and_then_stays() -> None:
    table = driver(ThroughputSettings())
    hot, *others = [name for name in map(str, range(400)) if key(name)[0] < 64]
    for _ in range(1300):
        table.second(
            2000,
            lambda n: key(others[n % len(others)]) if n % 4 == 0 else key(hot, f"{n:012d}"),
        )
    events = table.resource.events
    assert events[-1].why == SEQUENTIAL
    assert 1 <= sum(event.is_split for event in events) <= 3


def test_a_maximum_set_by_the_user_refuses_with_its_own_reason() -> None:
    settings = ThroughputSettings(maxima=(None, 100))
    table = driver(settings)
    passed = [table.second(500, lambda n: key(f"k{n}")) for _ in range(3)]
    assert passed == [200, 100, 100]
    assert table.reasons == {"TableWriteMaxOnDemandThroughputExceeded"}
    table.resource.change(ThroughputSettings(), table.now)
    assert table.second(500, lambda n: key(f"k{n}")) == 500


def test_a_large_item_leaves_a_debt_on_a_small_table() -> None:
    table = driver(ThroughputSettings(units=(1, 1)))
    seconds = [second for second in range(900) if table.second(1, lambda n: key("a"), units=400.0)]
    assert seconds == [0, 400, 800]


def test_a_partition_pays_off_what_a_large_request_took_too_much() -> None:
    """1,000 units a second in requests of 400: the third of a second borrows from the next one."""
    table = driver(ThroughputSettings(units=(3, 10_000)))
    passed = [400 * table.second(10, lambda n: key("hot"), units=400.0) for _ in range(6)]
    assert passed == [1200, 800, 1200, 800, 1200, 800]
    assert sum(passed[:2]) == 2_000
    assert sum(passed[:3]) == 3_200
    one = driver(ThroughputSettings(units=(3, 10_000)))
    seconds = [at for at in range(12) if one.second(1, lambda n: key("hot"), units=5_000.0)]
    assert seconds == [0, 5, 10]


def test_the_parts_of_a_split_owe_what_the_whole_had_used() -> None:
    table = ThroughputResource(ThroughputSettings(units=(3, 10_000)), START)
    table.charge(WRITE, key("p", "a"), 2_500.0, START)
    table.charge(READ, key("p", "a"), 3_500.0, START)
    table.split(key("p", "m"), START + 0.5)
    for sort in ("a", "z"):
        seconds = [at for at in range(5) if table.room(WRITE, key("p", sort), START + at) > 0]
        assert seconds == [2, 3, 4]
        assert table.room(WRITE, key("p", sort), START + 2) == 1000.0
    fresh = ThroughputResource(ThroughputSettings(units=(9_000, 3)), START)
    fresh.charge(READ, key("p", "a"), 3_500.0, START)
    fresh.split(key("p", "m"), START + 0.5)
    assert [fresh.room(READ, key("p", sort), START + 0.5) for sort in "az"] == [0.0, 0.0]
    assert [fresh.room(READ, key("p", sort), START + 1) for sort in "az"] == [2500.0, 2500.0]


def test_reads_and_writes_are_limited_apart() -> None:
    table = driver(ThroughputSettings())
    assert table.second(2000, lambda n: key("hot"), kind=WRITE) == 1000
    table.now -= 1.0
    assert table.second(4000, lambda n: key("hot"), kind=READ) == 3000


def test_an_index_names_itself_in_the_reason() -> None:
    index = Driver(ThroughputResource(ThroughputSettings(units=(1, 1)), START, index="by-day"))
    index.second(10, lambda n: key("2026-11-19"))
    assert index.reasons == {"IndexWriteProvisionedThroughputExceeded"}


def test_an_on_demand_table_grows_to_twice_its_peak_within_half_an_hour() -> None:
    table = driver(ThroughputSettings())
    for _ in range(61):
        assert table.second(900, lambda n: key(f"k{n % 5000}")) == 900
    assert len(table.resource.partitions) == 4
    for _ in range(61):
        table.resource.charge(WRITE, key("quiet"), 900.0, table.now)
        for other in range(4):
            table.resource.charge(WRITE, (other * 2**62 + 5).to_bytes(8, "big"), 900.0, table.now)
        table.now += 1.0
    table.resource.settle(table.now + 1700)
    assert len(table.resource.partitions) == 4
    table.resource.settle(table.now + 1800)
    # The second minute has one second of 900 units, and 59 of 4,500: 4,440 on average.
    assert len(table.resource.partitions) == 9


def test_warm_throughput_adds_partitions_at_once() -> None:
    table = ThroughputResource(ThroughputSettings(warm=(12_000, 40_000)), START)
    assert len(table.partitions) == 40
    table.change(ThroughputSettings(units=(1, 1)), START + 5)
    assert len(table.partitions) == 40, "partitions are never merged"


def test_a_hot_item_is_moved_into_a_partition_of_its_own() -> None:
    table = driver(ThroughputSettings())
    hot = key("hot")
    others = [key(f"o{number}") for number in range(4000)]
    near = [each for each in others if each[0] // 64 == hot[0] // 64]
    chance = random.Random(2)
    for _ in range(301):
        table.second(1400, lambda n: hot if chance.random() < 0.7 else chance.choice(near))
    lows = [partition.low for partition in table.resource.partitions]
    assert hot in lows
    assert hot + b"\0" in lows
    assert table.resource.events[0].why == "hot item"
    assert table.resource.events[0].cuts == (hot, hot + b"\0")


def test_what_survives_a_restart() -> None:
    table = driver(ThroughputSettings())
    chance = random.Random(1)
    for _ in range(310):
        table.second(3000, lambda n: key("p", f"{chance.random():.9f}"))
    before = table.resource
    again = ThroughputResource(ThroughputSettings(), table.now)
    again.restore(before.to_json(table.now), table.now)
    assert [each.low for each in again.partitions] == [each.low for each in before.partitions]
    assert again.events == before.events
    assert again.peak == before.peak
    small = driver(ThroughputSettings(units=(1, 1)))
    small.second(1, lambda n: key("a"), units=400.0)
    reopened = ThroughputResource(ThroughputSettings(units=(1, 1)), START + 100)
    reopened.restore(small.resource.to_json(START + 1), START + 100)
    assert reopened.room(WRITE, key("a"), START + 399) == 0
    assert reopened.room(WRITE, key("a"), START + 400) > 0


def reopened(driven: Driver, settings: ThroughputSettings) -> Driver:
    """Return a driver of what a restart makes of the driven resource, at the same time."""
    again = ThroughputResource(settings, driven.now)
    again.restore(orjson.loads(orjson.dumps(driven.resource.to_json(driven.now))), driven.now)
    return Driver(again, driven.now)


def test_a_split_in_progress_is_finished_after_a_restart() -> None:
    table = driver(ThroughputSettings())
    for _ in range(200):
        table.second(3000, lambda n: key("p", scattered(n)))
    again = reopened(table, ThroughputSettings())
    assert len(again.resource.partitions) == 4
    again.resource.settle(START + 299.9)
    assert len(again.resource.partitions) == 4
    again.resource.settle(START + 300)
    assert len(again.resource.partitions) == 5
    [event] = again.resource.events
    assert (event.why, event.began, event.at) == ("heat", START + 120, START + 300)
    late = reopened(table, ThroughputSettings())
    late.idle(1_000)
    assert late.second(3000, lambda n: key("p", scattered(n))) == 2000


def test_growth_in_progress_is_finished_after_a_restart() -> None:
    table = driver(ThroughputSettings())
    quarters = [(part * 2**62 + 5).to_bytes(8, "big") for part in range(4)]
    for _ in range(61):
        for quarter in quarters:
            table.resource.charge(WRITE, quarter, 900.0, table.now)
        table.now += 1.0
    again = reopened(table, ThroughputSettings())
    again.resource.settle(START + 60 + 1799)
    assert len(again.resource.partitions) == 4
    again.resource.settle(START + 60 + 1801)
    assert len(again.resource.partitions) == 8, "3,600 units a second, twice that is 7,200"
    # A lower peak after the restart is not a new one.
    for _ in range(62):
        again.resource.charge(WRITE, quarters[0], 100.0, START + 2000 + _)
    again.resource.settle(START + 9_000)
    assert len(again.resource.partitions) == 8


def test_the_most_units_ever_provisioned_survive_a_restart() -> None:
    table = driver(ThroughputSettings(units=(50, 2500)))
    lowered = ThroughputSettings(units=(70, 5))
    table.resource.change(lowered, table.now)
    assert table.resource.warm == (70, 2500)
    assert reopened(table, lowered).resource.warm == (70, 2500)


def test_data_that_outgrow_the_partitions_add_some() -> None:
    table = ThroughputResource(ThroughputSettings(units=(5, 5)), START)
    table.hold(35 * 1024**3, START)
    assert len(table.partitions) == 4
    assert {event.why for event in table.events} == {"size"}
