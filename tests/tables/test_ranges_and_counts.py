"""Ranges that are empty, and counts that leave out what reads leave out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from stator import Count, Design, Entity, Query, attr, descending, find, ident, read, ttl
from stator.clock import VirtualClock
from stator.errors import RequestRefused
from stator.tables.db import Db
from tests.targets import Target

T0 = datetime(2026, 3, 1, tzinfo=UTC)


class Event(Entity):
    user: str = ident()
    event_id: str = ident()
    at: datetime
    day: date
    price: Decimal
    number: int


class Ticket(Entity):
    ticket_id: str = ident()
    queue: str
    title: str = ""
    expires_at: datetime | None = ttl(default=None)


@read(rps=50)
def during(user: str, start: datetime, end: datetime) -> Query[Event]:
    return find(Event).where(Event.user == user, Event.at >= start, Event.at < end)


@read(rps=50)
def days(user: str, low: date, high: date) -> Query[Event]:
    return find(Event).where(Event.user == user, attr(Event.day).between(low, high))


@read(rps=50)
def prices(user: str, low: Decimal, high: Decimal) -> Query[Event]:
    return find(Event).where(Event.user == user, attr(Event.price).between(low, high))


@read(rps=50)
def numbers(user: str, low: int, high: int) -> Query[Event]:
    return find(Event).where(Event.user == user, Event.number > low, Event.number < high)


@read(rps=50)
def newest(user: str, start: datetime, end: datetime) -> Query[Event]:
    within = find(Event).where(Event.user == user, Event.at >= start, Event.at < end)
    return within.order_by(descending(Event.at))


@read(rps=50, returns=20)
def waiting(queue: str) -> Count[Ticket]:
    return find(Ticket).where(Ticket.queue == queue).count()


@read(rps=1)
def tickets(queue: str) -> Query[Ticket]:
    return find(Ticket).where(Ticket.queue == queue)


RANGES: list[Any] = [during, days, prices, numbers, newest]
DESIGN = Design("ranges", [Event], RANGES)
COUNTED = Design("counts", [Ticket], [waiting])
BOTH = Design("both", [Ticket], [waiting, tickets])


def test_a_range_that_ends_before_it_begins_is_empty(target: Target) -> None:
    db = target.connect(DESIGN)
    db.put(Event(user="u", event_id="1", at=T0, day=T0.date(), price=Decimal("2.5"), number=3))
    day, hour = T0.date(), timedelta(hours=1)
    found: list[tuple[Any, bool]] = [
        (during("u", T0, T0 + hour), True), (during("u", T0, T0), False),
        (during("u", T0 + hour, T0), False), (newest("u", T0, T0), False),
        (newest("u", T0, T0 + hour), True), (days("u", day, day), True),
        (days("u", day, day - timedelta(days=1)), False),
        (prices("u", Decimal(2), Decimal(10)), True), (prices("u", Decimal(10), Decimal(2)), False),
        (numbers("u", 2, 4), True), (numbers("u", 3, 4), False), (numbers("u", 9, -9), False),
    ]  # fmt: skip
    for query, is_there in found:
        assert len(db.all(query)) == is_there, query
        assert db.count(query) == is_there
        assert len(db.page(query, limit=5).items) == is_there
        assert (db.first(query) is not None) is is_there
        assert db.delete_where(query, dry_run=True).count == is_there
        assert str(db.explain(query))


def counting(design: Design) -> Callable[[Target], None]:
    def check(target: Target) -> None:
        clock = VirtualClock(datetime.now(UTC).timestamp())
        db = target.connect(design, clock=clock)
        now = datetime.fromtimestamp(clock.now(), UTC)
        for number, expires_at in enumerate((None, now + timedelta(days=9), now - timedelta(1))):
            db.put(Ticket(ticket_id=str(number), queue="q", expires_at=expires_at))
        assert db.count(waiting("q")) == 2
        assert db.count(waiting("q"), include_expired=True) == 3

    return check


def test_a_count_leaves_out_expired_items_whatever_index_it_reads(target: Target) -> None:
    counting(COUNTED)(target)


def test_a_count_beside_a_read_leaves_out_expired_items(target: Target) -> None:
    counting(BOTH)(target)


def test_a_query_of_some_fields_can_be_counted(target: Target) -> None:
    db = target.connect(BOTH)
    db.put(Ticket(ticket_id="1", queue="q"))
    some: Any = tickets("q")
    assert db.count(some.only(Ticket.title)) == 1


def test_an_empty_text_in_a_key_names_the_argument() -> None:
    class Tag(Entity, key={"name": "{name}"}):
        name: str = ident()

    @read(rps=1)
    def tagged(name: str) -> Query[Tag]:
        return find(Tag).where(Tag.name == name)

    from stator import connect

    db: Db = connect(Design("tags", [Tag], [tagged]))
    with pytest.raises(RequestRefused, match="name is empty, which no key contains"):
        db.all(tagged(""))
    with pytest.raises(RequestRefused, match="query is a Pattern") as caught:
        db.explain(tagged)  # type: ignore[arg-type]
    assert "called with its arguments" in str(caught.value.hint)
