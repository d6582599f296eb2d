"""Simulations whose results can be worked out by hand."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any, Literal

import pytest

from stator import Design, Entity, Query, creates, find, ident, largest, read, share, write
from stator.cli.design_file import load_design
from stator.design.simulation import (
    BatchWindow,
    HotKey,
    Launch,
    SimulatedLoad,
    Simulation,
    Spike,
    TrafficShape,
    ZipfKeys,
    simulate,
)
from stator.errors import ConfigurationError

from .designs import capacity, events, notes, posts, readings, settings, tickets


def reasons(found: Simulation, name: str) -> set[str]:
    return set(found.pattern(name).reasons)


def splits(found: Simulation, table: str, index: str | None = None) -> list[tuple[float, str]]:
    return [(each.minute, each.why) for each in found.place(table, index).splits]


# --- keys


def test_even_traffic_below_the_limits_is_served() -> None:
    found = events(900).simulate()
    pattern = found.pattern("record")
    assert (pattern.calls, pattern.refused, pattern.reasons) == (900 * 3600, 0.0, {})
    assert (pattern.healthy_after_minutes, pattern.cure, pattern.advice) == (0.0, None, "")
    assert splits(found, "log") == []
    assert found.ok


def test_one_item_gets_a_partition_and_no_more() -> None:
    found = settings(reads=100, writes=1500).simulate()
    change = found.pattern("change")
    assert change.refused_share == pytest.approx(1 / 3)
    assert reasons(found, "change") == {"TableWriteKeyRangeThroughputExceeded"}
    assert change.healthy_after_minutes is None
    assert change.hottest is not None
    assert (change.hottest.units, change.hottest.limit, change.hottest.kind) == (
        1500,
        1000,
        "write",
    )
    assert splits(found, "app") == [(2.0, "one key")]
    assert found.pattern("setting").refused == 0
    assert not found.ok


def test_two_shards_cure_one_item_written_1500_times_a_second() -> None:
    """1500 / 1000 / 0.8 = 1.9, and a second run with two shards refuses nothing in the end."""
    cure = settings(reads=100, writes=1500).simulate().pattern("change").cure
    assert cure is not None
    assert (cure.entity, cure.index, cure.shards, cure.is_verified) == ("Setting", None, 2, True)
    again = settings(reads=100, writes=1500).simulate(TrafficShape(shards={"Setting": 2}))
    assert again.pattern("change").healthy_after_minutes is not None
    hottest = again.pattern("change").hottest
    assert hottest is not None and hottest.units == 750


def test_reads_of_one_item_need_copies_by_three_thousand_units() -> None:
    found = settings(reads=20_000, writes=1).simulate().pattern("setting")
    assert found.refused_share == pytest.approx(1 - 3000 / 10_000)
    assert found.cure is not None and found.cure.shards == 4
    assert set(found.reasons) == {"TableReadKeyRangeThroughputExceeded"}


def test_a_collection_with_random_sort_keys_is_split_until_it_is_healthy() -> None:
    found = notes(3000, boards=1).simulate()
    assert splits(found, "wall")[:1] == [(5.0, "heat")]
    assert found.pattern("add").healthy_after_minutes == 15.0
    assert found.pattern("add").cure is None


def test_a_rising_sort_key_is_never_split_and_shards_cure_it() -> None:
    found = readings(3000, devices=1).simulate()
    measure = found.pattern("measure")
    assert splits(found, "grid") == [(2.0, "sequential")]
    assert measure.steady_refused == pytest.approx(2 / 3, abs=0.01)
    assert measure.cure is not None
    assert (measure.cure.shards, measure.cure.is_verified) == (4, True)


def test_rising_keys_of_many_devices_are_even_traffic() -> None:
    assert readings(3000, devices=10_000).simulate().pattern("measure").refused == 0


def test_entries_of_a_local_index_are_charged_to_the_table_and_prevent_splits() -> None:
    """1,500 items and 1,500 entries of 1 KB each are 3,000 units on one board."""
    found = posts(1500).simulate()
    assert found.pattern("publish").steady_refused == pytest.approx(2 / 3, abs=0.01)
    assert splits(found, "forum") == [(2.0, "local index")]
    assert [(place.table, place.index) for place in found.places] == [("forum", None)]


def test_a_crowded_index_key_refuses_writes_to_the_table() -> None:
    found = tickets(1900, share=0.9).simulate(TrafficShape(minutes=5))
    assert reasons(found, "open_ticket") == {"IndexWriteKeyRangeThroughputExceeded"}
    # Its partition gets 1,710 tickets, and a quarter of the 190 of other queues. It takes 1,000.
    refused = 1710 + 190 / 4 - 1000
    assert found.pattern("open_ticket").refused_share == pytest.approx(refused / 1900, abs=0.001)
    hottest = found.pattern("open_ticket").hottest
    assert hottest is not None
    assert (hottest.index, hottest.key) == ("by_queue", "QUEUE#queue-1")


def test_values_with_a_declared_share_name_the_hot_key() -> None:
    class Job(Entity, index={"by_state": ("STATE#{state}", "JOB#{job_id}")}):
        job_id: str = ident()
        state: str

    @write(rps=1000)
    def submit() -> object:
        return creates(Job)

    @read(rps=1, returns=5)
    def in_state(state: str) -> Query[Job]:
        return find(Job).where(Job.state == state).limit(5)

    design = Design(
        "jobs",
        [Job],
        [submit, in_state],
        volumes={Job: 10_000},
        facts=[share(Job.state == "queued", 0.6), largest(Job.state, 0.6)],
    )
    hottest = design.simulate(TrafficShape(minutes=2)).pattern("submit").hottest
    assert hottest is not None
    assert hottest.key == "STATE#queued"
    assert hottest.units == pytest.approx(600, abs=10)


# --- capacity


def test_provisioned_units_refuse_with_their_own_reason() -> None:
    found = events(200, capacity(10, 100)).simulate()
    assert found.pattern("record").refused_share == pytest.approx(0.5)
    assert reasons(found, "record") == {"TableWriteProvisionedThroughputExceeded"}
    assert found.pattern("record").advice == "provision more: 200 write units of log"
    assert found.pattern("record").cure is None


def test_saved_units_serve_a_spike_until_they_are_used_up() -> None:
    """100 units a second save up to 30,000 units. A spike of 300 uses 200 of them a second."""
    spike = Spike("record", 6, at=1200, seconds=600)
    found = events(50, capacity(10, 100)).simulate(TrafficShape(spikes=(spike,)))
    pattern = found.pattern("record")
    assert pattern.first_refused_minute == pytest.approx((1200 + 150) / 60, abs=0.1)
    assert pattern.refused == pytest.approx((600 - 150) * 200, rel=0.02)
    assert pattern.healthy_after_minutes == pytest.approx(30.0)


def test_a_maximum_set_by_the_user_shows_in_the_reason() -> None:
    found = events(500).simulate(TrafficShape(minutes=10, maximum=(1000, 100)))
    assert reasons(found, "record") == {"TableWriteMaxOnDemandThroughputExceeded"}
    assert found.pattern("record").steady_refused == pytest.approx(0.8)


def test_the_quota_of_an_account_shows_in_the_reason() -> None:
    found = events(50_000).simulate(TrafficShape(minutes=5, warm=(0, 100_000)))
    assert reasons(found, "record") == {"TableWriteAccountLimitExceeded"}
    assert found.pattern("record").steady_refused == pytest.approx(0.2, abs=0.01)


def test_a_cold_launch_is_refused_until_partitions_split_and_warm_throughput_avoids_it() -> None:
    launch = Launch(factor=4, seconds=120)
    cold = events(2000).simulate(TrafficShape(launch=launch, minutes=30))
    assert cold.pattern("record").refused_share > 0.08
    assert cold.place("log").partitions_before == 4
    assert cold.place("log").partitions_after >= 8
    assert cold.pattern("record").healthy_after_minutes is not None
    warm = events(2000).simulate(TrafficShape(launch=launch, minutes=30, warm=(0, 10_000)))
    assert warm.pattern("record").refused == 0


def test_a_table_with_much_data_starts_with_more_partitions() -> None:
    design = events(6000, volume=800_000_000)
    found = design.simulate(TrafficShape(minutes=2))
    assert found.place("log").partitions_before > 4
    assert found.pattern("record").refused == 0


# --- traffic


def test_a_load_in_key_order_hits_one_partition_and_a_shuffled_one_hits_all() -> None:
    ordered, shuffled = (
        events(1).simulate(TrafficShape(minutes=30, loads=(load,)))
        for load in (
            SimulatedLoad("Event", 600_000, 3900),
            SimulatedLoad("Event", 600_000, 3900, is_shuffled=True),
        )
    )
    assert ordered.loads[0].seconds == pytest.approx(601, abs=2)
    assert shuffled.loads[0].seconds == pytest.approx(600_000 / 3900, abs=2)
    assert shuffled.pattern("load of Event").refused == 0
    assert ordered.pattern("load of Event").advice == "load the items in shuffled order"
    assert {why for _, why in splits(ordered, "log")} <= {"sequential", "heat"}
    assert ordered.ok  # a load that is done is healthy


def test_a_load_that_does_not_finish_is_not_healthy() -> None:
    load = SimulatedLoad("Event", 10_000_000, 3900)
    found = events(1).simulate(TrafficShape(minutes=5, loads=(load,)))
    assert found.loads[0].seconds is None
    assert found.loads[0].done == pytest.approx(300_000, rel=0.01)
    assert not found.ok


def test_a_spike_is_over_when_it_is_over() -> None:
    spike = Spike("record", 10, at=600, seconds=120)
    pattern = events(900).simulate(TrafficShape(spikes=(spike,))).pattern("record")
    assert pattern.peak_per_second == 9000
    assert pattern.first_refused_minute == 10.0
    assert pattern.healthy_after_minutes == 12.0
    assert pattern.refused == pytest.approx(120 * 5000, rel=0.01)


def test_a_batch_job_runs_only_in_its_window() -> None:
    window = BatchWindow("record", start=23.5 * 3600, end=0.5 * 3600)
    shape = TrafficShape(windows=(window,), start=23 * 3600, minutes=120)
    assert events(10).simulate(shape).pattern("record").calls == pytest.approx(10 * 3600)


@pytest.mark.parametrize("profile", ["day", "office"])
def test_a_profile_keeps_the_declared_average(profile: str) -> None:
    shape = TrafficShape(profile=profile)  # type: ignore[arg-type]
    assert shape.seconds == 86_400
    found = events(10).simulate(shape).pattern("record")
    assert found.calls_per_second == pytest.approx(10, rel=0.01)
    assert found.peak_per_second > 17


def test_a_hot_key_takes_its_share_of_a_pattern() -> None:
    found = notes(3000, boards=5000).simulate(TrafficShape(minutes=3, hot=(HotKey("add", 0.5),)))
    hottest = found.pattern("add").hottest
    assert hottest is not None
    assert hottest.units == pytest.approx(1500, rel=0.01)
    assert found.pattern("add").refused > 0


def test_zipf_makes_the_first_value_the_hottest() -> None:
    found = notes(1000, boards=1000).simulate(TrafficShape(minutes=2, zipf=(ZipfKeys("add", 1.0),)))
    hottest = found.pattern("add").hottest
    assert hottest is not None
    assert hottest.key == "BOARD#board-1"
    assert hottest.units == pytest.approx(1000 / 7.485, rel=0.01)  # the 1000th harmonic number


def test_a_time_in_the_partition_key_gathers_all_writes() -> None:
    class Log(Entity, key=("DAY#{day}", "LINE#{line}")):
        day: date = ident()
        line: str = ident()

    @write(rps=900)
    def append() -> object:
        return creates(Log)

    found = Design("logs", [Log], [append], volumes={Log: 10_000_000}).simulate()
    hottest = found.pattern("append").hottest
    assert hottest is not None and hottest.units == 900


# --- results


def test_equal_seeds_give_equal_results_and_others_may_differ() -> None:
    design = tickets(5000, share=0.6)
    first, second = (simulate(design, TrafficShape(seed=3)) for _ in range(2))
    assert first == second
    assert json.dumps(first.to_data()) == json.dumps(second.to_data())
    design = notes(3000, boards=8)  # how many of them share a partition is chance
    others = [simulate(design, TrafficShape(seed=seed, minutes=10)) for seed in range(6)]
    assert len({each.pattern("add").refused for each in others}) > 1


def test_a_heat_map_shows_what_partitions_were_asked_for() -> None:
    found = settings(reads=0.5, writes=1500).simulate(TrafficShape(minutes=10))
    rows = found.place("app").rows
    assert found.column_seconds == 10
    hot = [row for row in rows if max(row.heat) > 1]
    assert len(hot) == 1
    assert hot[0].heat == pytest.approx((1.5,) * 60)
    assert hot[0].refused == pytest.approx((1 / 3,) * 60, abs=0.01)
    assert all(max(row.heat) == 0 for row in rows if row is not hot[0])


def test_data_is_json_and_names_every_pattern() -> None:
    data = json.loads(json.dumps(tickets(100, share=0.5).simulate().to_data()))
    assert {each["name"] for each in data["patterns"]} == {"open_ticket", "of_queue"}
    assert data["ok"] is True


def test_an_unknown_name_is_refused_with_those_that_exist() -> None:
    for shape in (
        TrafficShape(spikes=(Spike("nothing", 2, 0, 60),)),
        TrafficShape(hot=(HotKey("nothing", 0.5),)),
        TrafficShape(loads=(SimulatedLoad("nothing", 1, 1),)),
        TrafficShape(shards={"nothing": 2}),
    ):
        with pytest.raises(ConfigurationError, match="nothing") as caught:
            events(1).simulate(shape)
        assert "record" in str(caught.value.hint) or "Event" in str(caught.value.hint)


def test_a_result_is_found_by_name() -> None:
    found = events(1).simulate(TrafficShape(minutes=1))
    with pytest.raises(KeyError):
        found.pattern("nothing")
    with pytest.raises(KeyError):
        found.place("nothing")
    assert found.place("log").name == "log"


# --- cost


def write_many(folder: Path) -> str:
    """Write a design of 21 patterns to a file, and return its path."""
    source = ["from datetime import datetime", "from stator import *"]
    names: list[str] = []
    for number in range(7):
        source.append(
            f"""
class Thing{number}(Entity):
    thing_id: str = ident()
    owner_id: str
    at: datetime

@write(rps={2000 * (number + 1)})
def put{number}() -> object:
    return creates(Thing{number})

@write(rps=10)
def change{number}() -> object:
    return updates(Thing{number}.at)

@read(rps={1000 * (number + 1)}, returns=10)
def of_owner{number}(owner_id: str) -> Query[Thing{number}]:
    return find(Thing{number}).where(Thing{number}.owner_id == owner_id).limit(10)
"""
        )
        names += [f"put{number}", f"change{number}", f"of_owner{number}"]
    things = ", ".join(f"Thing{number}" for number in range(7))
    source.append(f"design = Design('many', [{things}], [{', '.join(names)}])")
    file = folder / "many_things.py"
    file.write_text("\n".join(source))
    return str(file)


def test_an_hour_of_twenty_patterns_charges_partitions_a_bounded_number_of_times(
    tmp_path: Path,
) -> None:
    """Not once for each request: 20 patterns send 400 million of them."""
    design = load_design(write_many(tmp_path))
    found = design.simulate()
    assert len(found.patterns) == 21
    assert sum(each.calls for each in found.patterns) > 200_000_000
    # 3,600 seconds, and some 60 partitions of a table and an index, each for reads and writes.
    assert found.charges < 600_000


def test_a_table_of_many_terabytes_is_simulated_with_the_partitions_that_matter() -> None:
    found = events(900, volume=100_000_000_000).simulate()
    assert found.place("log").partitions_before > 500
    assert len(found.place("log").rows) < 100
    assert found.pattern("record").refused == 0


class QueuedJob(Entity):
    job_id: str = ident()
    state: Literal["waiting", "done"]


def test_adaptive_shards_are_told_as_the_cure() -> None:
    @read(rps=1, returns=10, shards="adaptive")
    def jobs_in(state: Literal["waiting", "done"]) -> Query[QueuedJob]:
        return find(QueuedJob).where(QueuedJob.state == state)

    @write(rps=10)
    def add() -> Any:
        return creates(QueuedJob)

    design = Design("jobs", [QueuedJob], [jobs_in, add], volumes={QueuedJob: 1000})
    traffic = TrafficShape(minutes=3, spikes=(Spike("add", 400, 0, 180),))
    found = design.simulate(traffic).pattern("add")
    assert found.cure is not None and found.cure.index == "GSI1"
    assert found.advice.endswith("its shards are adaptive, so programs do this while they run")
