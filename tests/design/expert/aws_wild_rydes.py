"""Published: AWS's Wild Rydes workshop, with the rides of a user added."""

from datetime import datetime

from stator import (
    Design,
    Entity,
    Query,
    creates,
    find,
    ident,
    read,
    write,
)

SOURCE = (
    "AWS workshop Wild Rydes. From memory; confidence high for the base key (the ride's id "
    "alone); the "
    "lists are additions of mine."
)


class Ride(Entity):
    ride_id: str = ident()
    username: str
    unicorn: str
    requested_at: datetime


class Unicorn(Entity):
    name: str = ident()
    colour: str
    gender: str


@read(rps=50)
def ride(ride_id: str) -> Query[Ride]:
    return find(Ride).where(Ride.ride_id == ride_id)


@read(rps=50)
def unicorn(name: str) -> Query[Unicorn]:
    return find(Unicorn).where(Unicorn.name == name)


@read(rps=10, returns=10)
def rides_of(username: str) -> Query[Ride]:
    return find(Ride).where(Ride.username == username).newest_first(Ride.requested_at).limit(10)


@read(rps=2, returns=50)
def rides_with(unicorn: str, since: datetime) -> Query[Ride]:
    return (
        find(Ride)
        .where(Ride.unicorn == unicorn, Ride.requested_at >= since)
        .newest_first(Ride.requested_at)
    )


@write(rps=20)
def request() -> object:
    return creates(Ride)


design = Design(
    "aws_wild_rydes",
    [Ride, Unicorn],
    [ride, unicorn, rides_of, rides_with, request],
    volumes={Ride: 10_000_000, Unicorn: 300},
    sizes={Ride: 250, Unicorn: 120},
)

EXPECTED = {
    "max_indexes": 2,
    "published_indexes": 0,
    "entities": {
        "Ride": {"partition": ["ride_id"], "sort": []},
        "Unicorn": {"partition": ["name"], "sort": []},
    },
    "patterns": {
        "ride": {"by": "base"},
        "unicorn": {"by": "base"},
        "rides_of": {"by": "index", "partition": ["username"], "sort": ["requested_at"]},
        "rides_with": {"by": "index", "partition": ["unicorn"], "sort": ["requested_at"]},
    },
}
WHY = {"Ride": "The id is random and the only identity; both lists need an index of their own."}
