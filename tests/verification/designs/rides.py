"""Rides: riders, drivers by city, rides by driver, rider and state."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from stator import (
    Bundle2,
    Design,
    Entity,
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
    version,
    write,
)


class Rider(Entity):
    rider_id: str = ident()
    phone: str = unique()
    name: str


class Driver(Entity):
    driver_id: str = ident()
    licence: str = unique()
    city: str
    state: str
    rating: float
    rev: int = version()


class Ride(Entity):
    ride_id: str = ident()
    rider_id: str
    driver_id: str
    city: str
    status: str
    requested_at: datetime
    fare: Decimal


@read(rps=200, returns=1)
def open_ride_of_driver(driver_id: str) -> Query[Ride]:
    return find(Ride).where(Ride.driver_id == driver_id, Ride.status == "open")


@read(rps=50, returns=20)
def rides_of_rider(rider_id: str) -> Query[Ride]:
    return find(Ride).where(Ride.rider_id == rider_id).newest_first(Ride.requested_at).limit(20)


@read(rps=10, returns=60)
def rides_of_driver(driver_id: str, start: datetime, end: datetime) -> Query[Ride]:
    return find(Ride).where(
        Ride.driver_id == driver_id, attr(Ride.requested_at).between(start, end)
    )


@read(rps=2)
def open_rides_in(city: str) -> Query[Ride]:
    return find(Ride).where(Ride.city == city, Ride.status == "open")


@read(rps=100)
def free_drivers(city: str) -> Query[Driver]:
    return find(Driver).where(Driver.city == city, Driver.state == "free")


@read(rps=5)
def good_drivers(city: str) -> Query[Driver]:
    return find(Driver).where(Driver.city == city).filter(Driver.rating >= 4.8)


@read(rps=5)
def some_states(city: str) -> Query[Driver]:
    return find(Driver).where(Driver.city == city, attr(Driver.state).is_in(["free", "busy"]))


@read(rps=5)
def driver_and_rides(driver_id: str) -> Bundle2[Driver, Ride]:
    return together(Driver, Ride).where(Driver.driver_id == driver_id).limit(30)


@write(rps=40)
def request() -> object:
    return creates(Ride)


@write(rps=40)
def accept() -> object:
    return updates(Ride.status), updates(Driver.state)


@write(rps=2)
def join() -> object:
    return creates(Driver)


@write(rps=1)
def new_phone() -> object:
    return updates(Rider.phone)


rides = Design(
    "rides",
    [Rider, Driver, Ride],
    [
        open_ride_of_driver, rides_of_rider, rides_of_driver, open_rides_in, free_drivers,
        good_drivers, some_states, driver_and_rides, request, accept, join, new_phone,
    ],
    volumes={Rider: 1_000_000, Driver: 20_000, Ride: per(Driver, 1_500)},
    facts=[
        distinct(Ride.city, values=50),
        distinct(Driver.city, values=50),
        distinct(Driver.state, values=4),
        share(Ride.status == "open", 0.001),
    ],
)  # fmt: skip
