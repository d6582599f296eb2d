"""ST107, which simulates the declared traffic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stator import (
    Design,
    Entity,
    TableSettings,
    counter,
    creates,
    ident,
    largest,
    updates,
    write,
)
from stator.design.lint.finding import Finding, Report
from stator.design.table_settings import ProvisionedCapacity

from ..simulation.designs import capacity, events, notes, readings, settings, tickets


def throttled(report: Report) -> list[Finding]:
    return [each for each in report.findings if each.code == "ST107"]


def test_too_few_provisioned_units_are_found_and_the_named_units_are_enough() -> None:
    [found] = throttled(events(200, capacity(10, 100)).check())
    assert (found.severity, found.kind, found.subject) == ("warning", "pattern", "record")
    assert "refused 50% of its 200 calls a second" in found.message
    assert "TableWriteProvisionedThroughputExceeded" in found.message
    assert found.fix == "provision more: 200 write units of log"
    assert not throttled(events(200, capacity(10, 200)).check())


def test_units_that_auto_scaling_may_reach_count() -> None:
    scaled = ProvisionedCapacity(read_units=10, write_units=100, most_write_units=250)
    assert not throttled(events(200, TableSettings(capacity=scaled)).check())
    too_low = replace(scaled, most_write_units=150)
    assert throttled(events(200, TableSettings(capacity=too_low)).check())


def test_a_cold_table_that_heals_by_itself_is_not_reported() -> None:
    assert not throttled(events(6000).check())
    assert not throttled(notes(3000, boards=1).check())


def test_a_hot_key_of_another_finding_is_not_reported_again() -> None:
    for design in (settings(reads=8000, writes=1), readings(3000, devices=1)):
        report = design.check()
        assert report.codes() & {"ST101", "ST102", "ST104", "ST502"}
        assert not throttled(report)


def test_one_item_stays_in_one_shard_of_its_key() -> None:
    """The shard follows from the identity, so shards of the planner do not spread one item."""
    design = settings(reads=1, writes=1500)
    assert design.plan().entity("Setting").keys[0].template.parts[-1].shards > 1
    [found] = throttled(design.check())
    assert "gets 1,500 write units a second, and a partition serves 1,000" in found.message
    assert found.fix == "spread each key of Setting over 2 shards"


def test_a_counter_of_st502_is_not_reported_again() -> None:
    class Page(Entity):
        page_id: str = ident()
        views: int = counter()

    @write(rps=2000)
    def viewed() -> object:
        return updates(Page.views)

    report = Design("site", [Page], [viewed], volumes={Page: 1}).check()
    assert "ST502" in report.codes()
    assert not throttled(report)


def test_writes_that_no_pattern_makes_are_reported_on_their_entity() -> None:
    class Mark(Entity):
        mark_id: str = ident()

    design = Design("marks", [Mark], writes={Mark: 50}, settings=capacity(5, 20))
    [found] = throttled(design.check())
    assert (found.kind, found.subject) == ("entity", "Mark")


def test_an_index_that_is_too_small_refuses_the_writes_of_its_table() -> None:
    small = ProvisionedCapacity(
        read_units=100,
        write_units=400,
        indexes={"by_queue": ProvisionedCapacity(read_units=100, write_units=50)},
    )
    design = tickets(100, share=0.1)
    design.settings = TableSettings(capacity=small)
    [found] = throttled(design.check())
    assert "IndexWriteProvisionedThroughputExceeded" in found.message
    assert found.fix == "provision more: 100 write units of by_queue"


def test_a_finding_can_be_ignored() -> None:
    design = events(200, capacity(10, 100))
    design.ignore = ("ST107:record",)
    assert design.check().ok


@pytest.mark.parametrize("rate", [0, 1])
def test_a_quiet_design_has_nothing_to_report(rate: float) -> None:
    class Log(Entity):
        log_id: str = ident()

    @write(rps=rate)
    def append() -> object:
        return creates(Log)

    assert not throttled(Design("quiet", [Log], [append]).check())


class State(Entity):
    device_id: str = ident()
    battery: int


class Block(Entity):
    block_id: str = ident()
    samples: bytes


@write(rps=30_000)
def heartbeat() -> object:
    return updates(State.battery)


@write(rps=6_400)
def drop() -> object:
    return updates(State.battery)


@write(rps=13_500)
def measure() -> object:
    return creates(Block)


def a_fleet(**options: Any) -> Design:
    volumes = {State: 4_000_000, Block: 900_000_000}
    return Design(
        "fleet",
        [State, Block],
        [heartbeat, drop, measure],
        volumes=volumes,
        sizes={State: 200, Block: 700},
        **options,
    )


def test_a_table_above_its_quota_is_one_finding_with_its_units_and_the_layout_that_fits() -> None:
    [found] = throttled(a_fleet().check())
    assert (found.kind, found.subject) == ("table", "fleet")
    assert "49,900 write units a second (State 36,400, Block 13,500)" in found.message
    assert "quota of a table or index is 40,000" in found.message
    assert 'layout="aggregate"' in found.fix and "2 tables" in found.fix
    assert not throttled(a_fleet(layout="aggregate").check())


def test_counters_of_many_items_are_reported_by_what_the_most_popular_may_get() -> None:
    class Usage(Entity):
        tenant: str = ident()
        hour: str = ident()
        units: int = counter()

    def hot(rate: float, items: int, *facts: Any) -> bool:
        @write(rps=rate)
        def use() -> object:
            return updates(Usage.units)

        design = Design("usage", [Usage], [use], volumes={Usage: items}, facts=facts)
        return "ST502" in design.check().codes()

    assert not hot(4_000, 400_000)  # 0.01 a second each; an eighth of all would be 500
    assert hot(5_000, 400_000)
    assert hot(1_200, 3)
    assert not hot(30_000, 400_000, largest(Usage.tenant, 0.01))
    assert hot(4_000, 400_000, largest(Usage.tenant, 0.2))
