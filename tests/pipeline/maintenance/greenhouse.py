"""A design with patterns that an app maintains."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from stator import Design, Entity, Query, find, ident, read, ttl, unique
from stator.patterns import Links, Outbox, Rollup, Series
from stator.pipeline import StreamApp

START = datetime(2026, 11, 16, 7, tzinfo=UTC)


class Plant(Entity):
    plant_id: str = ident()
    name: str
    label: str | None = unique(default=None)
    expires: int | None = ttl(default=None)


class Bed(Entity):
    bed_id: str = ident()
    title: str


class Reading(Entity):
    bed_id: str = ident()
    at: datetime = ident()
    value: int


@read()
def plant(plant_id: str) -> Query[Plant]:
    return find(Plant).where(Plant.plant_id == plant_id)


@read()
def bed(bed_id: str) -> Query[Bed]:
    return find(Bed).where(Bed.bed_id == bed_id)


greenhouse = Design("greenhouse", [Plant, Bed], [plant, bed])


def readings(db: Any) -> Series[Any, Reading]:
    rollups = [Rollup("minute", of=Reading.value), Rollup("hour", of=Reading.value)]
    return Series(
        db,
        Reading,
        by=Reading.bed_id,
        at=Reading.at,
        bucket="hour",
        shards=2,
        rollups=rollups,
        rollups_from="stream",
    )


def plantings(db: Any) -> Links[Any, Plant, Bed]:
    return Links(db, Plant, Bed, copy_left=[Plant.name], copy_right=[Bed.title])


def orders(db: Any) -> Outbox[Any]:
    return Outbox(db, "orders", shards=2, retry_seconds=0.05)


app = StreamApp(greenhouse, "maintenance")
app.roll_up(readings)
app.refresh(plantings)
app.release_guards()
