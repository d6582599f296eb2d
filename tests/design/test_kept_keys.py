"""A locked base key stays, shards included, and advice to keep a key works when it is followed."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pytest

from stator.design.declaration import Layout
from stator.design.design import Design
from stator.design.entities.derived_parts import month_of
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident
from stator.design.patterns.pattern import read
from stator.design.patterns.query import find, together
from stator.design.patterns.write_pattern import creates, write
from stator.design.plan.lock_file import compare
from stator.design.plan.plan import Plan
from stator.design.value_facts import distinct, largest


def entity(**options: Any) -> Any:
    class Event(Entity, **options):
        tenant: str = ident()
        at: datetime = ident()
        event_id: str = ident()
        body: str

    return Event


class Tenant(Entity):
    tenant: str = ident()
    name: str


def design(event: Any, rate: float, *, grouped: bool = False) -> Design:
    @read(rps=1, returns=100)
    def events(tenant: str, since: datetime, until: datetime) -> Any:
        return (
            find(event)
            .where(event.tenant == tenant, event.at >= since, event.at < until)
            .order_by(event.at)
        )

    @read(rps=1, returns=100)
    def page(tenant: str) -> Any:
        return together(Tenant, event).where(Tenant.tenant == tenant)

    @write(rps=rate)
    def put() -> object:
        return creates(event)

    return Design(
        "events",
        [event, Tenant],
        [events, put, *([page] if grouped else [])],
        volumes={event: 500_000_000, Tenant: 1_000},
        sizes={event: 300},
        facts=[distinct(event.tenant, values=1_000), largest(event.tenant, 0.5)],
    )


def shards(plan: Plan, name: str = "Event") -> int:
    return plan.entity(name).shards


@pytest.mark.parametrize("grouped", [False, True])
def test_a_locked_key_keeps_its_shards_when_the_traffic_rises(grouped: bool) -> None:
    event = entity()
    lock = design(event, 9_000).plan()
    busier = design(event, 30_000, grouped=grouped)
    assert shards(busier.plan()) > shards(lock) > 1
    after = busier.plan(previous=lock)
    assert shards(after) == shards(lock)
    kept = [each for each in lock.entity("Event").keys if each.index is None]
    assert [each for each in after.entity("Event").keys if each.index is None] == kept
    assert not [each for each in compare(lock, after) if each.risk == "orphans"]


def test_a_locked_key_that_became_hot_is_found_and_can_be_changed_on_request() -> None:
    event = entity()
    lock = design(event, 9_000).plan()
    busier = design(event, 30_000)
    [hot] = [each for each in busier.check(lock).findings if each.code == "ST104"]
    assert hot.severity == "error"
    asked = re.search(r"stator plan --rekey (\w+)", hot.fix)
    assert asked is not None
    moved = busier.plan(previous=lock, rekey=[asked[1]])
    assert shards(moved) == shards(busier.plan())


# --- advice to keep a key -------------------------------------------------------------------------


def listed(event: Any, by: str, layout: Layout) -> Design:
    """A design in which only the base key can serve the list, because it is consistent."""

    @read(rps=1, consistent=True)
    def of_tenant(tenant: str) -> Any:
        return find(event).where(event.tenant == tenant).order_by(event.at)

    @read(rps=1, consistent=True, returns=10)
    def of_month(tenant: str, month: str) -> Any:
        return find(event).where(event.tenant == tenant, month_of(event.at) == month)

    @read(rps=1, consistent=True)
    def of_event(event_id: str) -> Any:
        return find(event).where(event.event_id == event_id)

    found: dict[str, Any] = {"tenant": of_tenant, "month": of_month, "event": of_event}
    return Design("events", [event], [found[by]], layout=layout, volumes={event: 1_000_000})


@pytest.mark.parametrize("layout", ["single-table", "table-per-entity"])
@pytest.mark.parametrize("by", ["tenant", "month"])
def test_the_advice_to_keep_a_key_is_accepted_and_keeps_it(by: str, layout: Layout) -> None:
    old = listed(entity(), by, layout).plan()
    changed = listed(entity(), "event", layout).plan()
    advice = advised(old, changed)
    assert advice is not None
    kept = listed(entity(key=advice), by, layout).plan()
    assert not [each for each in compare(old, kept) if each.risk == "orphans"]


def test_no_advice_is_given_where_no_handwritten_key_would_help() -> None:
    event = entity()
    sharded, one = design(event, 9_000).plan(), design(event, 1).plan()
    assert shards(sharded) > 1 == shards(one)
    [change] = [each for each in compare(sharded, one) if each.risk == "orphans"]
    assert change.do == "copy every item to its new key"


def advised(old: Plan, new: Plan) -> Any:
    """Return the key that the advice about a changed base key names, or None."""
    [change] = [
        each
        for each in compare(old, new)
        if each.risk == "orphans" and each.subject[:6] == "entity"
    ]
    found = re.search(r"`class Event\(Entity, key=(.*?)\)`", change.do)
    return None if found is None else eval(found[1])
