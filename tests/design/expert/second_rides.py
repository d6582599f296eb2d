"""Rides: positions of drivers, rides and their events, payments. The second expert's."""

from datetime import datetime
from decimal import Decimal
from typing import Literal

from stator import (
    Bundle2,
    Count,
    Design,
    Entity,
    Only,
    Query,
    attr,
    created,
    creates,
    distinct,
    find,
    ident,
    largest,
    moving,
    per,
    prefix_of,
    read,
    share,
    together,
    unique,
    updates,
    write,
)


class Rider(Entity):
    rider_id: str = ident()
    phone: str = unique()
    name: str
    rating: Decimal


class Driver(Entity):
    driver_id: str = ident()
    phone: str = unique()
    name: str
    plate: str
    city: str
    rating: Decimal


class Position(Entity):
    driver_id: str = ident()
    cell: str  # geohash of 9 characters
    lat: Decimal
    lon: Decimal
    at: datetime
    state: Literal["off", "free", "busy"] = "off"


class Ride(Entity):
    ride_id: str = ident()
    rider_id: str
    driver_id: str | None = None
    city: str
    state: Literal["waiting", "assigned", "riding", "done", "cancelled"] = "waiting"
    requested_at: datetime = created()
    pickup: str
    dropoff: str
    fare: Decimal
    route: str


class RideEvent(Entity):
    ride_id: str = ident()
    at: datetime = ident()
    kind: str
    note: str


class Payment(Entity):
    payment_id: str = ident()
    ride_id: str
    rider_id: str
    cents: int
    paid_at: datetime
    method: str


@read(rps=300)
def rider(rider_id: str) -> Query[Rider]:
    return find(Rider).where(Rider.rider_id == rider_id)


@read(rps=30)
def rider_by_phone(phone: str) -> Query[Rider]:
    return find(Rider).where(Rider.phone == phone)


@read(rps=20)
def driver_by_phone(phone: str) -> Query[Driver]:
    return find(Driver).where(Driver.phone == phone)


@read(rps=600)
def driver_now(driver_id: str) -> Bundle2[Driver, Position]:
    return together(Driver, Position).where(Driver.driver_id == driver_id)


@read(rps=500, returns=20)
def free_near(cell: str) -> Query[Position]:
    return (
        find(Position)
        .where(prefix_of(Position.cell, 6) == cell, Position.state == "free")
        .limit(40)
    )


@read(rps=900, returns=7)
def ride_page(ride_id: str) -> Bundle2[Ride, RideEvent]:
    return together(Ride, RideEvent).where(Ride.ride_id == ride_id)


@read(rps=80, returns=20)
def rides_of_rider(rider_id: str) -> Only[tuple[str, datetime, str, Decimal]]:
    return (
        find(Ride)
        .where(Ride.rider_id == rider_id)
        .newest_first(Ride.requested_at)
        .limit(20)
        .only(Ride.ride_id, Ride.requested_at, Ride.state, Ride.fare)
    )


@read(rps=40, returns=60)
def rides_of_driver(driver_id: str, since: datetime) -> Only[tuple[str, datetime, str, Decimal]]:
    return (
        find(Ride)
        .where(Ride.driver_id == driver_id, Ride.requested_at >= since)
        .newest_first()
        .only(Ride.ride_id, Ride.requested_at, Ride.state, Ride.fare)
    )


@read(rps=700, returns=1)
def current_ride(driver_id: str) -> Query[Ride]:
    return find(Ride).where(
        Ride.driver_id == driver_id, attr(Ride.state).is_in(["assigned", "riding"])
    )


@read(rps=60, returns=10)
def waiting(city: str) -> Query[Ride]:
    return (
        find(Ride)
        .where(Ride.city == city, Ride.state == "waiting")
        .oldest_first(Ride.requested_at)
        .limit(50)
    )


@read(rps=10)
def waiting_count(city: str) -> Count[Ride]:
    return find(Ride).where(Ride.city == city, Ride.state == "waiting").count()


@read(rps=15, returns=1)
def payment_of(ride_id: str) -> Query[Payment]:
    return find(Payment).where(Payment.ride_id == ride_id)


@read(rps=8, returns=20)
def payments_of_rider(rider_id: str) -> Query[Payment]:
    return find(Payment).where(Payment.rider_id == rider_id).newest_first(Payment.paid_at).limit(20)


@write(rps=8000)
def ping() -> object:
    return updates(Position.cell, Position.lat, Position.lon, Position.at)


@write(rps=130)
def take() -> object:
    return updates(Position.state, before=Position.state == "free", after=Position.state == "busy")


@write(rps=130)
def free() -> object:
    return updates(Position.state, before=Position.state == "busy", after=Position.state == "free")


@write(rps=140)
def request() -> object:
    return creates(Ride), creates(RideEvent)


@write(rps=130)
def assign() -> object:
    return (
        updates(
            Ride.state,
            Ride.driver_id,
            before=Ride.state == "waiting",
            after=Ride.state == "assigned",
        ),
        creates(RideEvent),
    )


@write(rps=128)
def start() -> object:
    return (
        updates(Ride.state, before=Ride.state == "assigned", after=Ride.state == "riding"),
        creates(RideEvent),
    )


@write(rps=128)
def finish() -> object:
    return (
        updates(Ride.state, Ride.fare, before=Ride.state == "riding", after=Ride.state == "done"),
        creates(RideEvent),
        creates(Payment),
    )


@write(rps=10)
def cancel() -> object:
    return (
        updates(Ride.state, before=Ride.state == "waiting", after=Ride.state == "cancelled"),
        creates(RideEvent),
    )


@write(rps=1)
def join() -> object:
    return creates(Rider)


design = Design(
    "rides",
    [Rider, Driver, Position, Ride, RideEvent, Payment],
    [
        rider,
        rider_by_phone,
        driver_by_phone,
        driver_now,
        free_near,
        ride_page,
        rides_of_rider,
        rides_of_driver,
        current_ride,
        waiting,
        waiting_count,
        payment_of,
        payments_of_rider,
        ping,
        take,
        free,
        request,
        assign,
        start,
        finish,
        cancel,
        join,
    ],
    volumes={
        Rider: 40_000_000,
        Driver: 300_000,
        Position: per(Driver, 1),
        Ride: 2_000_000_000,
        RideEvent: per(Ride, 4),
        Payment: 1_850_000_000,
    },
    sizes={Rider: 300, Driver: 400, Position: 220, Ride: 1_300, RideEvent: 200, Payment: 250},
    facts=[
        distinct(Ride.rider_id, values=40_000_000),
        distinct(Ride.driver_id, values=900_000),
        distinct(Ride.city, values=400),
        largest(Ride.city, 0.06),
        share(Ride.state == "waiting", 0.000005),
        share(Ride.state == "assigned", 0.00001),
        share(Ride.state == "riding", 0.00005),
        share(Position.state == "free", 0.25),
        share(Position.state == "busy", 0.3),
        distinct(prefix_of(Position.cell, 6), values=4_000),
        moving(prefix_of(Position.cell, 6), 0.12),
        distinct(Payment.ride_id, values=1_850_000_000),
        distinct(Payment.rider_id, values=40_000_000),
        share(attr(Ride.driver_id).exists(), 0.93),
    ],
)

EXPECTED = {
    "no_index_has": ["lat", "lon"],
    "entities": {
        "Rider": {"partition": ["rider_id"], "sort": []},
        "Driver": {"partition": ["driver_id"], "sort": []},
        "Position": {"partition": ["driver_id"], "sort": []},
        "Ride": {"partition": ["ride_id"], "sort": []},
        "RideEvent": {"partition": ["ride_id"], "sort": ["at"]},
        "Payment": {"partition": ["payment_id"], "sort": []},
    },
    "patterns": {
        "rider": {"by": "base"},
        "rider_by_phone": {"by": "guard"},
        "driver_by_phone": {"by": "guard"},
        "driver_now": {"by": "base"},
        "free_near": {
            "by": "index",
            "partition": ["state", "cell"],
            "sort": [],
            "projection": "KEYS_ONLY",
        },
        "ride_page": {"by": "base"},
        "rides_of_rider": {
            "by": "index",
            "partition": ["rider_id"],
            "sort": ["requested_at"],
            "projection": "INCLUDE",
        },
        "rides_of_driver": {
            "by": "index",
            "partition": ["driver_id"],
            "sort": ["requested_at"],
            "projection": "INCLUDE",
        },
        "current_ride": {"by": "index", "partition": ["active", "driver_id"], "sort": []},
        "waiting": {
            "by": "index",
            "partition": ["state", "city"],
            "sort": ["requested_at"],
            "projection": "KEYS_ONLY",
        },
        "waiting_count": {"by": "index", "partition": ["state", "city"], "sort": ["requested_at"]},
        "payment_of": {"by": "index", "partition": ["ride_id"], "sort": []},
        "payments_of_rider": {"by": "index", "partition": ["rider_id"], "sort": ["paid_at"]},
    },
}
WHY = {
    "free_near": (
        "Keys alone, by a prefix of the cell: with the position in the index, "
        "each of 8,000 pings a second would write it. "
    ),
}
