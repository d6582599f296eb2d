"""Filters on fields that an index does not show: the reader fetches the items and checks them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stator import IndexKey
from stator.design.design import Design
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Count, Query, find
from stator.design.patterns.write_pattern import updates, write
from stator.design.value_facts import distinct
from tests.targets import Target

START = datetime(2026, 1, 1, tzinfo=UTC)


class Device(
    Entity,
    index={
        "by_fleet": IndexKey(("FLEET#{fleet_id}", "{status}#{device_id}"), projection="KEYS_ONLY"),
    },
):
    device_id: str = ident()
    fleet_id: str
    status: str
    last_seen: datetime
    settings: str


@read(rps=1, returns=20)
def silent(fleet_id: str, before: datetime) -> Query[Device]:
    return find(Device).where(Device.fleet_id == fleet_id, Device.last_seen < before)


@read(rps=1)
def first_silent(fleet_id: str, before: datetime) -> Query[Device]:
    return (
        find(Device)
        .where(Device.fleet_id == fleet_id, Device.last_seen < before)
        .order_by(Device.status)
        .limit(7)
    )


@read(rps=1)
def how_many(fleet_id: str, before: datetime) -> Count[Device]:
    return find(Device).where(Device.fleet_id == fleet_id, Device.last_seen < before).count()


@write(rps=50_000)
def heartbeat() -> object:
    return updates(Device.last_seen, Device.settings)


DESIGN = Design(
    "fleet",
    [Device],
    [silent, first_silent, how_many, heartbeat],
    volumes={Device: 1_000_000},
    facts=[distinct(Device.fleet_id, values=5_000)],
)


PLAN = DESIGN.plan()


@pytest.fixture
def db(target: Target) -> Any:
    found = target.connect(DESIGN, plan=PLAN)
    found.write_many(
        Device(
            device_id=f"d{at:03}",
            fleet_id="f1",
            status=f"s{at % 3}",
            last_seen=START + timedelta(hours=at % 24),
            settings="x",
        )
        for at in range(240)
    )
    return found


BEFORE = START + timedelta(hours=6)


def expected() -> list[str]:
    found = [(f"s{at % 3}", f"d{at:03}") for at in range(240) if at % 24 < 6]
    return [device for _, device in sorted(found)]


def test_the_plan_fetches_before_it_filters() -> None:
    for name in ("silent", "first_silent", "how_many"):
        step = PLAN.pattern(name).steps[0]
        assert step.fetch and step.fetched_filter is not None and step.filter is None


def test_a_read_returns_what_passes_and_no_other_item(db: Any) -> None:
    assert [each.device_id for each in db.all(silent("f1", BEFORE))] == expected()
    assert db.all(silent("f2", BEFORE)) == []


def test_pages_follow_each_other_without_a_gap_in_both_directions(db: Any) -> None:
    for size in (1, 7, 25, 60, 100):
        pages, page = [], db.page(silent("f1", BEFORE), limit=size)
        while True:
            assert len(page) <= size
            pages.append([each.device_id for each in page])
            if page.cursor is None:
                break
            page = db.page(silent("f1", BEFORE), limit=size, cursor=page.cursor)
        assert [device for each in pages for device in each] == expected(), size
        if len(pages) > 1:
            before = db.page(silent("f1", BEFORE), limit=size, cursor=page.previous)
            assert [each.device_id for each in before] == pages[-2]


def test_a_limit_counts_items_that_pass(db: Any) -> None:
    assert [each.device_id for each in db.all(first_silent("f1", BEFORE))] == expected()[:7]
    assert db.first(silent("f1", BEFORE)).device_id == expected()[0]


def test_a_count_counts_items_that_pass(db: Any) -> None:
    assert db.count(how_many("f1", BEFORE)) == len(expected())


def test_items_that_changed_meanwhile_are_judged_by_what_was_fetched(db: Any) -> None:
    [first] = db.all(silent("f1", BEFORE))[:1]
    with db.update(first) as changed:
        changed.last_seen = START + timedelta(days=3)
    assert first.device_id not in {each.device_id for each in db.all(silent("f1", BEFORE))}
