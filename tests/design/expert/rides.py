"""Rides: drivers, riders, rides of which 0.1 % are open, payments, positions that change often."""

from datetime import datetime
from decimal import Decimal
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

RideStatus = Literal["requested", "accepted", "started", "finished", "cancelled"]


class Driver(Entity):
    driver_id: str = ident()
    phone: str = unique()
    name: str
    city: str
    current_ride: str | None = None


class Rider(Entity):
    rider_id: str = ident()
    phone: str = unique()
    name: str
    current_ride: str | None = None


class Vehicle(Entity):
    vehicle_id: str = ident()
    plate: str = unique()
    driver_id: str
    model: str


class Position(Entity):
    driver_id: str = ident()
    cell: str | None = None  # a geohash; only drivers without a ride have one
    lat: float
    lon: float
    at: datetime


class Ride(Entity):
    ride_id: str = ident()
    rider_id: str
    driver_id: str | None = None
    city: str
    status: RideStatus
    requested_at: datetime
    start_address: str
    end_address: str
    route: str
    fare: Decimal | None = None


class Payment(Entity):
    ride_id: str = ident()
    attempt: int = ident()
    status: Literal["authorised", "captured", "failed"]
    amount: Decimal
    at: datetime


@read(rps=500)
def driver(driver_id: str) -> Query[Driver]:
    return find(Driver).where(Driver.driver_id == driver_id)


@read(rps=20)
def driver_by_phone(phone: str) -> Query[Driver]:
    return find(Driver).where(Driver.phone == phone)


@read(rps=800)
def rider(rider_id: str) -> Query[Rider]:
    return find(Rider).where(Rider.rider_id == rider_id)


@read(rps=60)
def rider_by_phone(phone: str) -> Query[Rider]:
    return find(Rider).where(Rider.phone == phone)


@read(rps=20, returns=1)
def vehicles_of_driver(driver_id: str) -> Query[Vehicle]:
    return find(Vehicle).where(Vehicle.driver_id == driver_id)


@read(rps=600, returns=12)
def free_drivers_in(cell: str) -> Only[tuple[str]]:
    return find(Position).where(Position.cell == cell).only(Position.driver_id)


@read(rps=3_000)
def position(driver_id: str) -> Query[Position]:
    return find(Position).where(Position.driver_id == driver_id)


@read(rps=900)
def ride(ride_id: str) -> Query[Ride]:
    return find(Ride).where(Ride.ride_id == ride_id)


@read(rps=150, returns=3)
def ride_with_payments(ride_id: str) -> Bundle2[Ride, Payment]:
    return together(Ride, Payment).where(Ride.ride_id == ride_id)


@read(rps=80, returns=20)
def rides_of_rider(rider_id: str) -> Only[tuple[str, datetime, str, Decimal | None]]:
    return (
        find(Ride)
        .where(Ride.rider_id == rider_id)
        .newest_first(Ride.requested_at)
        .limit(20)
        .only(Ride.ride_id, Ride.requested_at, Ride.end_address, Ride.fare)
    )


@read(rps=25, returns=40)
def rides_of_driver(driver_id: str, since: datetime) -> Only[tuple[str, datetime, Decimal | None]]:
    return (
        find(Ride)
        .where(Ride.driver_id == driver_id, Ride.requested_at >= since)
        .newest_first(Ride.requested_at)
        .only(Ride.ride_id, Ride.requested_at, Ride.fare)
    )


@read(rps=200, returns=15)
def waiting_rides_in(city: str) -> Query[Ride]:
    return (
        find(Ride)
        .where(Ride.city == city, Ride.status == "requested")
        .oldest_first(Ride.requested_at)
    )


@read(rps=300, returns=2)
def payments_of(ride_id: str) -> Query[Payment]:
    return find(Payment).where(Payment.ride_id == ride_id).oldest_first(Payment.attempt)


@read(rps=0.1, returns=300)
def failed_payments_since(since: datetime) -> Query[Payment]:
    return (
        find(Payment)
        .where(Payment.status == "failed", Payment.at >= since)
        .oldest_first(Payment.at)
    )


@write(rps=120)
def request_ride() -> object:
    return creates(Ride), updates(Rider.current_ride)


@write(rps=115)
def accept() -> object:
    return (
        updates(Ride.status, Ride.driver_id),
        updates(Driver.current_ride),
        updates(Position.cell),
    )


@write(rps=112)
def start() -> object:
    return updates(Ride.status)


@write(rps=110)
def finish() -> object:
    return (
        updates(Ride.status, Ride.fare),
        updates(Driver.current_ride),
        updates(Rider.current_ride),
        creates(Payment),
    )


@write(rps=20_000)
def move() -> object:
    return updates(Position.lat, Position.lon, Position.at)


@write(rps=500)
def change_cell() -> object:
    return updates(Position.cell)


@write(rps=110)
def settle() -> object:
    return updates(Payment.status)


design = Design(
    "rides",
    [Driver, Rider, Vehicle, Position, Ride, Payment],
    [
        driver,
        driver_by_phone,
        rider,
        rider_by_phone,
        vehicles_of_driver,
        free_drivers_in,
        position,
        ride,
        ride_with_payments,
        rides_of_rider,
        rides_of_driver,
        waiting_rides_in,
        payments_of,
        failed_payments_since,
        request_ride,
        accept,
        start,
        finish,
        move,
        change_cell,
        settle,
    ],
    facts=[
        distinct(Ride.city, values=480),
        distinct(Ride.rider_id, values=2_000_000),
        distinct(Ride.driver_id, values=80_000),
        share(Ride.status == "requested", 0.00005),
        share(Ride.status == "accepted", 0.00025),
        share(Ride.status == "started", 0.0007),
        share(Payment.status == "failed", 0.01),
        share(attr(Position.cell).exists(), 0.4),
        distinct(Position.cell, values=3_000),
    ],
    volumes={
        Driver: 80_000,
        Rider: 2_000_000,
        Vehicle: per(Driver, 1),
        Position: per(Driver, 1),
        Ride: 150_000_000,
        Payment: per(Ride, 1.1),
    },
    sizes={Driver: 700, Rider: 600, Vehicle: 300, Position: 120, Ride: 2_800, Payment: 220},
)

EXPECTED = {
    "max_indexes": 4,
    "entities": {
        "Driver": {"partition": ["driver_id"], "sort": []},
        "Rider": {"partition": ["rider_id"], "sort": []},
        "Vehicle": {"partition": ["vehicle_id"], "sort": []},
        "Position": {"partition": ["driver_id"], "sort": []},
        "Ride": {"partition": ["ride_id"], "sort": []},
        "Payment": {"partition": ["ride_id"], "sort": ["attempt"]},
    },
    "patterns": {
        "driver": {"by": "base"},
        "driver_by_phone": {
            "by": "guard",
            "or": [{"by": "index", "partition": ["phone"], "sort": []}],
        },
        "rider": {"by": "base"},
        "rider_by_phone": {
            "by": "guard",
            "or": [{"by": "index", "partition": ["phone"], "sort": []}],
        },
        "vehicles_of_driver": {"by": "index", "partition": ["driver_id"], "sort": []},
        "free_drivers_in": {
            "by": "index",
            "partition": ["cell"],
            "sort": [],
            "sparse": True,
            "projection": "KEYS_ONLY",
            "projection_or": ["INCLUDE"],
        },
        "position": {"by": "base"},
        "ride": {"by": "base"},
        "ride_with_payments": {"by": "base"},
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
            "sparse": True,
        },
        "waiting_rides_in": {
            "by": "index",
            "partition": ["city", "status"],
            "sort": ["requested_at"],
            "sparse": "status",
            "or": [
                {"by": "index", "partition": ["city"], "sort": ["requested_at"], "sparse": "status"}
            ],
        },
        "payments_of": {"by": "base"},
        "failed_payments_since": {
            "by": "index",
            "partition": ["status"],
            "sort": ["at"],
            "sparse": "status",
        },
    },
    "no_index_has": ["lat", "lon"],
}
WHY = {
    "waiting_rides_in": "Only rides with the constant status have the index key: open rides "
    "are 0.1 % of 150 million, waiting ones fewer. "
    "A full index on city and status would copy every ride and be rewritten at each of its states.",
    "failed_payments_since": "One value in the partition, but a failed payment every second "
    "or two: "
    "no shards, and only failed ones in the index.",
    "free_drivers_in": "An index that copies lat and lon is written 20,000 times a second; "
    "with keys "
    "only, 600 times. The caller then reads the dozen positions.",
    "current_ride": "The open ride of a person is a field of the person, not a third index on "
    "rides.",
    "vehicles_of_driver": "Cheap; it must share an index with another entity and not add one.",
}
