"""Filters are priced by what they read, wherever they are checked.

DynamoDB checks a filter in the table or in an index that shows the fields. The reader checks it on
fetched items otherwise. The cheapest of these wins, unless a call would read too much.
"""

from __future__ import annotations

from datetime import datetime
from itertools import combinations
from typing import Any

import pytest

from stator.design.design import Design
from stator.design.entities.entity import Entity, info
from stator.design.entities.markers import ident
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Query, find
from stator.design.patterns.write_pattern import creates, updates, write
from stator.design.plan.plan import Plan
from stator.design.planner import choices as choices_module
from stator.design.planner.cost_model import MOST_PAGES, Placement
from stator.design.planner.planner import Planner
from stator.design.planner.search import search
from stator.design.value_facts import Fact, distinct, largest
from stator.verification import verify
from tests.design.test_planner_optimal import cheapest_of


class Device(Entity):
    device_id: str = ident()
    fleet_id: str
    status: str
    last_seen: datetime
    settings: str


class Message(Entity):
    channel_id: str = ident()
    message_id: int = ident()
    author: str
    text: str


@read(rps=30)
def devices_in(fleet_id: str, status: str) -> Query[Device]:
    return find(Device).where(Device.fleet_id == fleet_id, Device.status == status).limit(50)


@read(rps=0.02, returns=2_000)
def silent(fleet_id: str, before: datetime) -> Query[Device]:
    return find(Device).where(Device.fleet_id == fleet_id, Device.last_seen < before)


@read(rps=0.02)
def first_silent(fleet_id: str, before: datetime) -> Query[Device]:
    return find(Device).where(Device.fleet_id == fleet_id, Device.last_seen < before).limit(20)


@write(rps=5_000)
def heartbeat() -> object:
    return updates(Device.last_seen)


def fleet(*patterns: Any, devices: int = 2_500_000) -> Design:
    return Design(
        "fleet",
        [Device],
        patterns,
        volumes={Device: devices},
        sizes={Device: 700},
        facts=[distinct(Device.fleet_id, values=500), distinct(Device.status, values=3)],
    )


@read(rps=1_000)
def latest(channel_id: str) -> Query[Message]:
    return (
        find(Message)
        .where(Message.channel_id == channel_id)
        .newest_first(Message.message_id)
        .limit(50)
    )


@read(rps=0.1)
def from_author(channel_id: str, author: str) -> Query[Message]:
    return find(Message).where(Message.channel_id == channel_id, Message.author == author)


@write(rps=600)
def send() -> object:
    return creates(Message)


def chat(*facts: Fact, channels: int = 500_000, messages: int = 1_000_000_000) -> Design:
    return Design(
        "chat",
        [Message],
        [latest, from_author, send],
        volumes={Message: messages},
        sizes={Message: 450},
        facts=[distinct(Message.channel_id, values=channels), *facts],
    )


def test_a_rare_filter_does_not_make_every_update_write_an_index() -> None:
    plan = fleet(devices_in, silent, heartbeat).plan()
    [index] = plan.tables[0].indexes
    assert "last_seen" not in index.included and index.projection != "ALL"
    found = plan.pattern("silent")
    assert found.steps[0].fetched_filter is not None and found.steps[0].filter is None
    assert found.dollars_per_month < 20
    assert plan.pattern("heartbeat").units_per_call == 1
    assert plan.dollars_per_month < 8_500


def test_a_filter_on_a_field_that_never_changes_is_checked_in_the_index() -> None:
    plan = fleet(devices_in, two_filters).plan()
    found = plan.pattern("two_filters")
    assert found.steps[0].fetched_filter is None and found.steps[0].filter is not None


def test_a_filter_checked_by_the_reader_costs_what_is_measured() -> None:
    design = fleet(devices_in, silent, first_silent, heartbeat, devices=2_500_000)
    report = verify(design, most_items=12_000)
    for name in ("silent", "first_silent"):
        row = report.row(name)
        assert row.estimated_units == pytest.approx(row.measured_units, rel=0.25), name
    row = report.row("silent")
    assert row.estimated_units == pytest.approx(row.measured_units, rel=0.25)


def test_a_rare_filter_reads_the_table_however_few_items_it_keeps() -> None:
    plan = chat().plan()
    found = plan.pattern("from_author")
    assert (found.index, found.steps[0].filter is None) == (None, False)
    assert 3 < found.dollars_per_month < 5
    assert "an index" in found.runner_up and "$1,0" in found.runner_up


def test_a_fact_about_a_pair_says_how_many_items_a_filter_keeps() -> None:
    plan = chat(distinct(Message.channel_id, Message.author, values=1_000_000)).plan()
    found = plan.pattern("from_author")
    assert "reads about 2,000 items to return 1,000" in found.reasons[-1]


def test_a_filter_that_reads_many_pages_is_no_choice_and_the_plan_says_why() -> None:
    plan = chat(channels=50_000).plan()
    assert plan.pattern("from_author").index is not None
    [index] = plan.tables[0].indexes
    assert "would read 10 pages of 1 MB a call and filter them" in index.reason
    assert "scan" not in index.reason


def test_the_largest_value_counts_for_the_number_of_pages() -> None:
    plan = chat(largest(Message.channel_id, 0.02)).plan()
    assert plan.pattern("from_author").index is not None
    [index] = plan.tables[0].indexes
    assert "pages of 1 MB a call for the largest value" in index.reason


def test_a_lock_keeps_the_filter_of_fetched_items() -> None:
    plan = fleet(devices_in, silent, heartbeat).plan()
    assert Plan.from_json(plan.to_json()) == plan
    assert fleet(devices_in, silent, heartbeat).plan(previous=plan) == plan


# --- the oracle -----------------------------------------------------------------------------------


@read(rps=0.5, returns=5)
def two_filters(fleet_id: str, status: str, before: datetime) -> Query[Device]:
    return (
        find(Device)
        .where(Device.fleet_id == fleet_id)
        .filter(Device.status != status, Device.last_seen < before)
    )


@read(rps=40, returns=5_000)
def listed(fleet_id: str) -> Any:
    return find(Device).where(Device.fleet_id == fleet_id).only(Device.device_id, Device.status)


@write(rps=20)
def status_changes() -> object:
    return updates(Device.status)


@pytest.mark.parametrize(
    "patterns",
    [
        (silent, heartbeat),
        (devices_in, silent, heartbeat),
        (two_filters, heartbeat),
        (two_filters, listed, heartbeat),
        (two_filters, listed, status_changes),
        (two_filters, silent, heartbeat, status_changes),
        (two_filters, devices_in),
    ],
)
def test_no_other_projection_is_cheaper(patterns: tuple[Any, ...]) -> None:
    """The planner tries some sets of projected fields. No other set would save anything."""
    planning = Planner(fleet(*patterns))
    [(_, members)] = planning.tables()
    components = planning.components(members)
    found = search(components)
    assert found.proven
    [choices] = components[0].choices
    fields = [name for name in info(Device).fields if name != "settings"]
    every = [chosen for size in range(1, 5) for chosen in combinations(fields, size)]
    placements: dict[Placement, None] = {}
    for each in choices.considered:
        placements[each] = None
        own = {*each.path.partition, *each.path.sort} if each.is_native else set()
        for chosen in every:
            if not own & set(chosen):
                placements[Placement(each.path, each.kind, "INCLUDE", chosen)] = None
    choices.secondary = tuple(placements)
    for placement in choices.secondary:
        choices.price(placement)
    choices.secondary = choices_module._undominated(choices)
    assert found.dollars <= cheapest_of(components) + 1e-6


def test_the_limit_of_pages_is_about_single_requests() -> None:
    """Four pages of 1 MB are 512 read units: a sixth of what a partition serves in a second."""
    assert MOST_PAGES * 1024 * 1024 / 4096 / 2 < 3_000 / 5
