"""Published: AWS's serverless airline booking sample."""

from datetime import datetime
from typing import Literal

from stator import (
    Design,
    Entity,
    Query,
    attr,
    creates,
    find,
    ident,
    read,
    updates,
    write,
)

SOURCE = (
    "aws-samples serverless airline booking. From memory; confidence high on the two index keys "
    "(departure airport then time; customer then status), middling on loyalty."
)

BookingStatus = Literal["unconfirmed", "confirmed", "cancelled"]


class Flight(Entity):
    flight_id: str = ident()
    departure_airport: str
    arrival_airport: str
    departs_at: datetime
    price_cents: int
    seats_left: int
    details: str


class Booking(Entity):
    booking_id: str = ident()
    customer: str
    flight_id: str
    status: BookingStatus
    reference: str | None = None
    created_at: datetime


class LoyaltyPoints(Entity):
    points_id: str = ident()
    customer: str
    points: int
    active: bool
    earned_at: datetime


@read(rps=300)
def flight(flight_id: str) -> Query[Flight]:
    return find(Flight).where(Flight.flight_id == flight_id)


@read(rps=200, returns=30)
def departures(airport: str, start: datetime, end: datetime) -> Query[Flight]:
    return (
        find(Flight)
        .where(
            Flight.departure_airport == airport,
            Flight.departs_at >= start,
            Flight.departs_at < end,
        )
        .oldest_first(Flight.departs_at)
    )


@read(rps=60)
def booking(booking_id: str) -> Query[Booking]:
    return find(Booking).where(Booking.booking_id == booking_id)


@read(rps=40, returns=3)
def bookings_by_status(customer: str, status: BookingStatus) -> Query[Booking]:
    return find(Booking).where(Booking.customer == customer, Booking.status == status)


@read(rps=15, returns=2)
def current_bookings(customer: str) -> Query[Booking]:
    return find(Booking).where(
        Booking.customer == customer,
        attr(Booking.status).is_in(["unconfirmed", "confirmed"]),
    )


@read(rps=10, returns=8)
def bookings_of(customer: str) -> Query[Booking]:
    return find(Booking).where(Booking.customer == customer)


@read(rps=30, returns=15)
def points_of(customer: str) -> Query[LoyaltyPoints]:
    return find(LoyaltyPoints).where(LoyaltyPoints.customer == customer)


@write(rps=10)
def book() -> object:
    return creates(Booking), updates(Flight.seats_left)


@write(rps=9)
def confirm() -> object:
    return updates(Booking.status, Booking.reference)


@write(rps=9)
def earn() -> object:
    return creates(LoyaltyPoints)


design = Design(
    "aws_airline",
    [Flight, Booking, LoyaltyPoints],
    [
        flight,
        departures,
        booking,
        bookings_by_status,
        current_bookings,
        bookings_of,
        points_of,
        book,
        confirm,
        earn,
    ],
    volumes={Flight: 2_000_000, Booking: 30_000_000, LoyaltyPoints: 30_000_000},
    sizes={Flight: 900, Booking: 300, LoyaltyPoints: 140},
)

EXPECTED = {
    "max_indexes": 1,
    "published_indexes": 3,
    "entities": {
        "Flight": {"partition": ["flight_id"], "sort": []},
        "Booking": {"partition": ["booking_id"], "sort": []},
        "LoyaltyPoints": {"partition": ["points_id"], "sort": []},
    },
    "patterns": {
        "flight": {"by": "base"},
        "departures": {"by": "index", "partition": ["departure_airport"], "sort": ["departs_at"]},
        "booking": {"by": "base"},
        "bookings_by_status": {"by": "index", "partition": ["customer"], "sort": ["status"]},
        "current_bookings": {
            "by": "filter",
            "partition": ["customer"],
            "sort": ["status"],
            "shares_with": "bookings_by_status",
            "or": [{"by": "legs", "on": "index", "partition": ["customer"], "sort": ["status"]}],
        },
        "bookings_of": {
            "by": "index",
            "partition": ["customer"],
            "sort": ["status"],
            "shares_with": "bookings_by_status",
        },
        "points_of": {"by": "index", "partition": ["customer"], "sort": []},
    },
}
WHY = {
    "current_bookings": "Eight bookings of 300 bytes are half a unit, so one query with a "
    "filter is cheaper "
    "than two legs of half a unit each (an addition of mine).",
    "bookings_by_status": "customer then status, not customer+status as partition: the list of all "
    "bookings needs the prefix, so the coarser key wins here.",
    "max_indexes": "One table for each entity in the sample, each with one index; overloaded "
    "it is one.",
}
