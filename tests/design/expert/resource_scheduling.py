"""Published: booking of rooms and other resources, after AWS's reservation and scheduling "
"samples."""

from datetime import date, datetime
from typing import Literal

from stator import (
    Bundle2,
    Design,
    Entity,
    Query,
    attr,
    creates,
    deletes,
    distinct,
    find,
    ident,
    per,
    read,
    together,
    updates,
    write,
)

SOURCE = (
    "AWS reservation and scheduling samples (resource and day, then start). From memory; "
    "confidence low "
    "on names: several samples exist. The principle is the same in all: slot conflicts are "
    "excluded by "
    "the key itself, so the slot's start is part of the identity."
)

Status = Literal["tentative", "confirmed", "cancelled", "done"]


class Resource(Entity):
    resource_id: str = ident()
    building: str
    kind: str
    capacity: int


class Slot(Entity):
    resource_id: str = ident()
    day: date = ident()
    starts_at: datetime = ident()
    booking_id: str
    booked_by: str


class Booking(Entity):
    booking_id: str = ident()
    resource_id: str
    booked_by: str
    status: Status
    starts_at: datetime
    ends_at: datetime
    agenda: str


class Attendee(Entity):
    booking_id: str = ident()
    person_id: str = ident()
    starts_at: datetime
    answer: Literal["yes", "no", "open"]


@read(rps=50)
def resource(resource_id: str) -> Query[Resource]:
    return find(Resource).where(Resource.resource_id == resource_id)


@read(rps=20, returns=15)
def resources_in(building: str, kind: str) -> Query[Resource]:
    return (
        find(Resource)
        .where(Resource.building == building, Resource.kind == kind)
        .order_by(Resource.capacity)
    )


@read(rps=10, returns=6)
def resources_in_with_capacity(building: str, kind: str, people: int) -> Query[Resource]:
    return (
        find(Resource)
        .where(Resource.building == building, Resource.kind == kind, Resource.capacity >= people)
        .order_by(Resource.capacity)
    )


@read(rps=300, returns=8)
def slots_of_day(resource_id: str, day: date) -> Query[Slot]:
    return (
        find(Slot)
        .where(Slot.resource_id == resource_id, Slot.day == day)
        .oldest_first(Slot.starts_at)
    )


@read(rps=40, returns=40)
def slots_of_week(resource_id: str, first: date, last: date) -> Query[Slot]:
    return find(Slot).where(Slot.resource_id == resource_id, Slot.day >= first, Slot.day <= last)


@read(rps=60, returns=7)
def booking_with_attendees(booking_id: str) -> Bundle2[Booking, Attendee]:
    return together(Booking, Attendee).where(Booking.booking_id == booking_id)


@read(rps=30, returns=20)
def bookings_by(booked_by: str, since: datetime) -> Query[Booking]:
    return (
        find(Booking)
        .where(Booking.booked_by == booked_by, Booking.starts_at >= since)
        .oldest_first(Booking.starts_at)
        .limit(20)
    )


@read(rps=20, returns=10)
def live_bookings_by(booked_by: str, since: datetime) -> Query[Booking]:
    return (
        find(Booking)
        .where(
            Booking.booked_by == booked_by,
            attr(Booking.status).is_in(["tentative", "confirmed"]),
            Booking.starts_at >= since,
        )
        .oldest_first(Booking.starts_at)
        .limit(10)
    )


@read(rps=90, returns=15)
def calendar_of(person_id: str, start: datetime, end: datetime) -> Query[Attendee]:
    return (
        find(Attendee)
        .where(
            Attendee.person_id == person_id,
            Attendee.starts_at >= start,
            Attendee.starts_at < end,
        )
        .oldest_first(Attendee.starts_at)
    )


@write(rps=10)
def book() -> object:
    return creates(Booking), creates(Slot, times=2), creates(Attendee, times=6)


@write(rps=8)
def confirm() -> object:
    return updates(Booking.status)


@write(rps=2)
def cancel() -> object:
    return updates(Booking.status), deletes(Slot, times=2)


@write(rps=30)
def answer() -> object:
    return updates(Attendee.answer)


design = Design(
    "resource_scheduling",
    [Resource, Slot, Booking, Attendee],
    [
        resource,
        resources_in,
        resources_in_with_capacity,
        slots_of_day,
        slots_of_week,
        booking_with_attendees,
        bookings_by,
        live_bookings_by,
        calendar_of,
        book,
        confirm,
        cancel,
        answer,
    ],
    facts=[distinct(Booking.booked_by, values=600_000)],
    volumes={
        Resource: 20_000,
        Slot: per(Resource, 1_500),
        Booking: 15_000_000,
        Attendee: per(Booking, 6),
    },
    sizes={Resource: 300, Slot: 160, Booking: 900, Attendee: 140},
)

EXPECTED = {
    "max_indexes": 2,
    "entities": {
        "Resource": {"partition": ["resource_id"], "sort": []},
        "Slot": {"partition": ["resource_id"], "sort": ["day", "starts_at"]},
        "Booking": {"partition": ["booking_id"], "sort": []},
        "Attendee": {"partition": ["booking_id"], "sort": ["person_id"]},
    },
    "patterns": {
        "resource": {"by": "base"},
        "resources_in": {"by": "index", "partition": ["building", "kind"], "sort": ["capacity"]},
        "resources_in_with_capacity": {
            "by": "index",
            "partition": ["building", "kind"],
            "sort": ["capacity"],
            "shares_with": "resources_in",
        },
        "slots_of_day": {"by": "base"},
        "slots_of_week": {"by": "base"},
        "booking_with_attendees": {"by": "base"},
        "bookings_by": {"by": "index", "partition": ["booked_by"], "sort": ["starts_at"]},
        "live_bookings_by": {
            "by": "filter",
            "partition": ["booked_by"],
            "sort": ["starts_at"],
            "shares_with": "bookings_by",
            "or": [{"by": "legs", "partition": ["booked_by", "status"], "sort": ["starts_at"]}],
        },
        "calendar_of": {"by": "index", "partition": ["person_id"], "sort": ["starts_at"]},
    },
}
WHY = {
    "Slot": "The week is a range over days, so the day belongs to the sort key: the finer "
    "partition of "
    "resource and day would need seven requests.",
    "live_bookings_by": "Bookings from today on are nearly all live: a filter on the index "
    "that exists "
    "discards a tenth. Legs over an index by status would pay a third index and a move at "
    "every change.",
}
