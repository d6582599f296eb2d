"""Published: event ticketing, after AWS's ticket and seat holding samples."""

from datetime import datetime
from typing import Literal

from stator import (
    Bundle2,
    Design,
    Entity,
    Only,
    Query,
    attr,
    creates,
    distinct,
    find,
    ident,
    per,
    read,
    share,
    together,
    unique,
    updates,
    write,
)

SOURCE = (
    "AWS ticketing samples and talks (seats under the event; a hold is a conditional update "
    "with an "
    "expiry; free seats in a sparse index). From memory; confidence low on names, high on the "
    "principle."
)


class Venue(Entity):
    venue_id: str = ident()
    city: str
    name: str


class Event(Entity):
    event_id: str = ident()
    venue_id: str
    city: str
    category: str
    starts_at: datetime
    title: str
    description: str
    on_sale: bool


class Seat(Entity):
    event_id: str = ident()
    section: str = ident()
    seat_no: str = ident()
    free_price: int | None = None  # the price while it is free; removed when held or sold
    hold_until: datetime | None = None
    order_id: str | None = None


class Order(Entity):
    order_id: str = ident()
    customer_id: str
    event_id: str
    placed_at: datetime
    status: Literal["held", "paid", "refunded"]
    cents: int


class Ticket(Entity):
    order_id: str = ident()
    ticket_no: int = ident()
    barcode: str = unique()
    event_id: str
    seat: str


@read(rps=2_000)
def event(event_id: str) -> Query[Event]:
    return find(Event).where(Event.event_id == event_id)


@read(rps=200, returns=30)
def events_in(city: str, since: datetime) -> Only[tuple[str, str, datetime]]:
    return (
        find(Event)
        .where(Event.city == city, Event.starts_at >= since)
        .oldest_first(Event.starts_at)
        .limit(30)
        .only(Event.event_id, Event.title, Event.starts_at)
    )


@read(rps=100, returns=30)
def events_of_category(
    city: str, category: str, since: datetime
) -> Only[tuple[str, str, datetime]]:
    return (
        find(Event)
        .where(Event.city == city, Event.category == category, Event.starts_at >= since)
        .oldest_first(Event.starts_at)
        .limit(30)
        .only(Event.event_id, Event.title, Event.starts_at)
    )


@read(rps=5, returns=20)
def events_at(venue_id: str, since: datetime) -> Query[Event]:
    return (
        find(Event)
        .where(Event.venue_id == venue_id, Event.starts_at >= since)
        .oldest_first(Event.starts_at)
        .limit(20)
    )


@read(rps=10)
def venue(venue_id: str) -> Query[Venue]:
    return find(Venue).where(Venue.venue_id == venue_id)


@read(rps=300, returns=400)
def seats_of_section(event_id: str, section: str) -> Query[Seat]:
    return find(Seat).where(Seat.event_id == event_id, Seat.section == section)


@read(rps=500, consistent=True)
def seat(event_id: str, section: str, seat_no: str) -> Query[Seat]:
    return find(Seat).where(
        Seat.event_id == event_id, Seat.section == section, Seat.seat_no == seat_no
    )


@read(rps=400, returns=10)
def cheapest_free_seats(event_id: str, section: str) -> Query[Seat]:
    return (
        find(Seat)
        .where(Seat.event_id == event_id, Seat.section == section, attr(Seat.free_price).exists())
        .order_by(Seat.free_price)
        .limit(10)
    )


@read(rps=50, returns=3)
def order_with_tickets(order_id: str) -> Bundle2[Order, Ticket]:
    return together(Order, Ticket).where(Order.order_id == order_id)


@read(rps=20, returns=5)
def orders_of(customer_id: str) -> Query[Order]:
    return (
        find(Order).where(Order.customer_id == customer_id).newest_first(Order.placed_at).limit(8)
    )


@read(rps=150)
def ticket_by_barcode(barcode: str) -> Query[Ticket]:
    return find(Ticket).where(Ticket.barcode == barcode)


@write(rps=100)
def hold() -> object:
    return updates(Seat.free_price, Seat.hold_until, times=2), creates(Order)


@write(rps=70)
def pay() -> object:
    return updates(Order.status), updates(Seat.order_id, times=2), creates(Ticket, times=2)


@write(rps=0.005)
def announce() -> object:
    return creates(Event)


@write(rps=20)
def add_seat() -> object:
    return creates(Seat)


design = Design(
    "event_ticketing",
    [Venue, Event, Seat, Order, Ticket],
    [
        event,
        events_in,
        events_of_category,
        events_at,
        venue,
        seats_of_section,
        seat,
        cheapest_free_seats,
        order_with_tickets,
        orders_of,
        ticket_by_barcode,
        hold,
        pay,
        announce,
        add_seat,
    ],
    facts=[
        distinct(Event.city, values=300),
        distinct(Event.category, values=12),
        share(attr(Seat.free_price).exists(), 0.02),
        distinct(Order.customer_id, values=8_000_000),
    ],
    volumes={
        Venue: 5_000,
        Event: 200_000,
        Seat: per(Event, 4_000),
        Order: 40_000_000,
        Ticket: per(Order, 2),
    },
    sizes={Venue: 400, Event: 5_000, Seat: 130, Order: 300, Ticket: 220},
)

EXPECTED = {
    "max_indexes": 3,
    "entities": {
        "Venue": {"partition": ["venue_id"], "sort": []},
        "Event": {"partition": ["event_id"], "sort": []},
        "Seat": {"partition": ["event_id", "section"], "sort": ["seat_no"]},
        "Order": {"partition": ["order_id"], "sort": []},
        "Ticket": {"partition": ["order_id"], "sort": ["ticket_no"]},
    },
    "patterns": {
        "event": {"by": "base"},
        "events_in": {
            "by": "index",
            "partition": ["city"],
            "sort": ["starts_at"],
            "projection": "INCLUDE",
        },
        "events_of_category": {
            "by": "index",
            "partition": ["city", "category"],
            "sort": ["starts_at"],
            "projection": "INCLUDE",
            "or": [{"by": "filter", "partition": ["city"], "sort": ["starts_at"]}],
        },
        "events_at": {"by": "index", "partition": ["venue_id"], "sort": ["starts_at"]},
        "venue": {"by": "base"},
        "seats_of_section": {"by": "base"},
        "seat": {"by": "base"},
        "cheapest_free_seats": {
            "by": "index",
            "partition": ["event_id", "section"],
            "sort": ["free_price"],
            "sparse": True,
        },
        "order_with_tickets": {"by": "base"},
        "orders_of": {"by": "index", "partition": ["customer_id"], "sort": ["placed_at"]},
        "ticket_by_barcode": {
            "by": "guard",
            "or": [{"by": "index", "partition": ["barcode"], "sort": []}],
        },
    },
    "no_index_has": ["description"],
}
WHY = {
    "Seat": "At the start of a sale one event takes all writes; event and section in the partition "
    "spread them over the sections of the house, event alone would not.",
    "events_in": "Events are 5 KB and announced rarely: indexes are cheap to write, dear to "
    "read whole.",
    "ticket_by_barcode": "At the gate, 150 a second; the guard costs two reads and no index.",
}
