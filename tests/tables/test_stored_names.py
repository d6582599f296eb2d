"""Fields stored under other names: the same program, shorter items, on every target."""

from __future__ import annotations

import asyncio
import json
from dataclasses import fields, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from stator import (
    Delete,
    Design,
    Entity,
    Get,
    Query,
    TableSettings,
    attr,
    connect,
    counter,
    created,
    find,
    ident,
    large,
    read,
    soft_delete,
    stored,
    ttl,
    unique,
    updated,
    updates,
    version,
    write,
    write_token,
)
from stator.design.entities.entity import info
from stator.engine import Engine
from stator.errors import DesignError, ItemMismatch, ItemNotFound, RequestRefused, UniqueTaken
from stator.pipeline import StreamApp, View, sum_of
from stator.pipeline.bulk.load.load import LoadOptions, load
from stator.pipeline.bulk.targets import BulkTarget
from stator.pipeline.workers.options import WorkerOptions
from stator.tables.db import Db
from tests.targets import Target


class Sensor(Entity):
    sensor_id: str = ident(stored="i")
    serial: str = unique(stored="s")
    building: str = stored("b")
    temperature: Decimal = stored("t")
    note: str | None = stored("n", default=None)
    tags: set[str] = stored("g", default_factory=set)
    text: str = large(stored="x", default="")
    hits: int = counter(stored="h")
    revision: int = version(stored="v")
    made_at: datetime = created(stored="c")
    changed_at: datetime = updated(stored="u")
    expires_at: datetime | None = ttl(stored="e", days=30, default=None)
    token: str = write_token(stored="k")
    deleted_at: datetime | None = soft_delete(stored="d")


class Point(Entity):
    line: str = ident(stored="l")
    at: datetime = ident()
    value: float = stored("v")


@read(rps=5, returns=4, paged=True)
def sensors_in(building: str) -> Query[Sensor]:
    return find(Sensor).where(Sensor.building == building).order_by(Sensor.temperature)


@read(rps=5, returns=4)
def noted_in(building: str, note: str) -> Query[Sensor]:
    return (
        find(Sensor).where(Sensor.building == building).filter(attr(Sensor.note).begins_with(note))
    )


@read(rps=5)
def by_serial(serial: str) -> Query[Sensor]:
    return find(Sensor).where(Sensor.serial == serial)


@read(rps=5, returns=9)
def points_of(line: str) -> Query[Point]:
    return find(Point).where(Point.line == line).newest_first(Point.at)


@write(rps=2)
def heat() -> Any:
    return updates(Sensor.temperature)


DESIGN = Design("sensors", [Sensor, Point], [sensors_in, noted_in, by_serial, points_of, heat])


@pytest.fixture
def db(target: Target) -> Db:
    return target.connect(DESIGN)


def a_sensor(number: int = 1, **more: Any) -> Sensor:
    values: dict[str, Any] = {
        "sensor_id": f"s{number}", "serial": f"n{number}", "building": "hq",
        "temperature": Decimal(number),
    }  # fmt: skip
    return Sensor(**(values | more))


def raw(db: Db, **identity: Any) -> dict[str, Any]:
    of = db.context.schema.of(Sensor)
    key = of.key_from(of.given(identity))
    item: dict[str, Any] = db.call("GetItem", {"TableName": of.table.name, "Key": key})["Item"]
    return item


def test_items_have_the_short_names_and_objects_the_long_ones(db: Db) -> None:
    made = db.create(a_sensor(note="x", tags={"a"}))
    item = raw(db, sensor_id="s1")
    assert {"i", "s", "b", "t", "n", "g", "v", "c", "u", "e", "k"} <= item.keys()
    assert not item.keys() & {field.name for field in fields(Sensor)}
    assert db.get(Sensor, sensor_id="s1") == made
    assert db.get_many(Sensor, ["s1", {"sensor_id": "s2"}]) == [made, None]
    assert db.snapshot(Get(Sensor, sensor_id="s1"), Get(Sensor, sensor_id="s9"))[0] == made
    assert db.first(by_serial("n1")) == made
    assert list(db.scan(Sensor, allow=True)) == [made]


def test_every_write_finds_its_field(db: Db) -> None:
    made = db.create(a_sensor())
    with db.update(Sensor, sensor_id="s1") as sensor:
        sensor.temperature -= 3
        sensor.hits += 2
        sensor.tags.add("hot")
        sensor.note = "warm"
    found = db.get_one(Sensor, sensor_id="s1")
    assert (found.temperature, found.hits, found.tags, found.note) == (
        Decimal(-2),
        2,
        {"hot"},
        "warm",
    )
    assert (found.revision, found.made_at) == (2, made.made_at)
    with db.update(found) as sensor:
        sensor.building = "lab"
    assert found.building == "lab"
    assert [each.sensor_id for each in db.fetch(sensors_in("lab"))] == ["s1"]
    db.patch(Sensor, {"note": None, "temperature": "4.5"}, sensor_id="s1")
    db.put(replace(db.get_one(Sensor, sensor_id="s1"), text="long" * 50))
    found = db.get_one(Sensor, sensor_id="s1")
    assert (found.note, found.temperature, found.text[:4]) == (None, Decimal("4.5"), "long")
    back = db.upsert(a_sensor(note="again"))
    assert (back.note, back.made_at) == ("again", made.made_at)
    with pytest.raises(UniqueTaken):
        db.create(a_sensor(2, serial="n1"))
    with db.update(Point, or_create=True, line="a", at=made.made_at) as point:
        point.value = 2.5
    [stored_point] = db.fetch(points_of("a"))
    assert stored_point.value == 2.5


def test_patterns_filters_projections_and_pages(db: Db) -> None:
    for number in range(5):
        db.create(a_sensor(number, note="abc"[number % 3]))
    assert [each.temperature for each in db.fetch(sensors_in("hq"))] == list(range(5))
    assert {each.sensor_id for each in db.fetch(noted_in("hq", "a"))} == {"s0", "s3"}
    only = sensors_in("hq").only(Sensor.sensor_id, Sensor.temperature)
    assert db.all(only)[0] == ("s0", Decimal(0))
    page = db.page(sensors_in("hq"), limit=2)
    more = db.page(sensors_in("hq"), limit=2, cursor=page.cursor)
    assert [each.sensor_id for each in more.items] == ["s2", "s3"]
    assert db.delete_where(noted_in("hq", "b")).written == 2
    changed = db.update_where(noted_in("hq", "a"), lambda sensor: setattr(sensor, "note", "z"))
    assert changed.written == 2
    assert len(db.all(noted_in("hq", "z"))) == 2


def test_transactions_batches_deletes_and_restores(db: Db) -> None:
    db.write_many([a_sensor(1), a_sensor(2)])
    with db.transaction() as tx:
        tx.check(Sensor, sensor_id="s1", when=Sensor.building == "hq")
        with tx.update(Sensor, sensor_id="s2") as sensor:
            sensor.note = "tx"
        tx.create(a_sensor(3))
    assert db.get_one(Sensor, sensor_id="s2").note == "tx"
    db.write_many([Delete(Sensor, sensor_id="s1")])
    assert db.get(Sensor, sensor_id="s1") is None
    assert db.restore(Sensor, sensor_id="s1").building == "hq"
    db.delete_many(Sensor, ["s2"])
    db.delete(Sensor, sensor_id="s3", purge=True, when=Sensor.temperature == 3)
    assert [each.sensor_id for each in db.fetch(sensors_in("hq"))] == ["s1"]


def test_messages_have_the_long_names(db: Db) -> None:
    with pytest.raises(ItemNotFound, match=r"Sensor\(sensor_id='s9'\)"):
        db.get_one(Sensor, sensor_id="s9")
    with pytest.raises(ItemMismatch, match=r"Sensor\.temperature"):
        db.create(a_sensor(temperature="warm"))
    with pytest.raises(DesignError, match="sensor_id"):
        db.get(Sensor, serial="n1")
    with (
        pytest.raises(RequestRefused, match="temperature"),
        db.update(Sensor, sensor_id="s1") as sensor,
    ):
        sensor.nothing = 1  # type: ignore[attr-defined]
    assert repr(Sensor.temperature > 3) == "Sensor.temperature > 3"


def test_awaited(tmp_path: Path) -> None:
    from stator import connect_async

    async def run() -> None:
        db = connect_async(DESIGN)
        await db.create(a_sensor())
        async with db.update(Sensor, sensor_id="s1") as sensor:
            sensor.note = "x"
        assert (await db.get_one(Sensor, sensor_id="s1")).note == "x"

    asyncio.run(run())


def test_loads_take_the_long_names(tmp_path: Path) -> None:
    path = tmp_path / "points.jsonl"
    rows = [{"line": "a", "at": f"2026-01-0{n}T00:00:00Z", "value": n} for n in range(1, 5)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    csv = tmp_path / "points.csv"
    csv.write_text("line,at,value\nb,2026-01-01T00:00:00Z,7.5\n")
    with Engine.open() as engine:
        for each in (path, csv):
            with BulkTarget.open(engine, design=DESIGN, entity=Point) as target:
                assert load(str(each), target, LoadOptions()).failed == 0
        db = connect(DESIGN, engine)
        assert [each.value for each in db.fetch(points_of("a"))] == [4.0, 3.0, 2.0, 1.0]
        assert db.all(points_of("b"))[0].value == 7.5


def test_changes_and_views() -> None:
    seen: list[Any] = []
    view = View("heat", of=Sensor, by=[Sensor.building], total=sum_of(Sensor.temperature))
    with Engine.open() as engine, connect(DESIGN, engine) as db:
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        app = StreamApp(DESIGN, "app")
        app.add(view)

        @app.on.modify(Sensor, when_changed=Sensor.note)
        def noted(change: Any) -> None:
            seen.append((dict(change.identity), change.old.note, change.new.note))

        db.create(a_sensor(1))
        db.create(a_sensor(2))
        db.patch(Sensor, {"note": "x"}, sensor_id="s1")
        with app.start(db, WorkerOptions(start="oldest", idle_seconds=0.02)) as running:
            running.catch_up(20)
        assert seen == [({"sensor_id": "s1"}, None, "x")]
        row = view.on(db).get(building="hq")
        assert row is not None
        assert row.total == 3
        assert row.building == "hq"


def test_keys_by_hand_name_the_fields() -> None:
    class Order(Entity, key=("USER#{user_id}", "ORDER#{order_id}")):
        user_id: str = ident(stored="u")
        order_id: str = ident(stored="o")

    db = connect(Design("orders", [Order], []))
    db.put(Order(user_id="u1", order_id="o1"))
    assert db.get(Order, user_id="u1", order_id="o1") is not None


def test_short_names_make_items_smaller() -> None:
    class Long(Entity):
        reading_id: str = ident()
        temperature_in_celsius: float

    class Short(Entity):
        reading_id: str = ident()
        temperature_in_celsius: float = stored("t")

    sizes = [
        len(json.dumps(info(cls).codec.encode(cls(reading_id="1", temperature_in_celsius=1.5))))
        for cls in (Long, Short)
    ]
    assert sizes[0] - sizes[1] == len("temperature_in_celsius") - 1
    plans = [Design("sized", [cls], []).plan() for cls in (Long, Short)]
    assert plans[0].entities[0].item_bytes > plans[1].entities[0].item_bytes


@pytest.mark.parametrize("name", ["other", "shown"])
def test_a_stored_name_must_be_free(name: str) -> None:
    with pytest.raises(DesignError, match="cannot be stored as"):

        class Wrong(Entity):
            wrong_id: str = ident()
            other: str = ""
            value: int = stored(name, default=0)

            def shown(self) -> str:
                return ""


@pytest.mark.parametrize("name", ["first-name", "class", "a.b", "2nd name"])
def test_a_stored_name_need_not_be_an_identifier(name: str) -> None:
    class Foreign(Entity):
        foreign_id: str = ident()
        value: int = stored(name, default=0)

    @read(rps=1)
    def large_ones(foreign_id: str) -> Query[Foreign]:
        return find(Foreign).where(Foreign.foreign_id == foreign_id, Foreign.value > 1)

    with Engine.open() as engine, connect(Design("foreign", [Foreign], [large_ones]), engine) as db:
        db.put(Foreign(foreign_id="f", value=3))
        assert db.all(large_ones("f")) == [Foreign(foreign_id="f", value=3)]
        with db.update(Foreign, foreign_id="f") as changed:
            changed.value = 5
        [item] = engine.call("Scan", {"TableName": "foreign"})["Items"]
        assert item[name] == {"N": "5"}


def test_subclasses_inherit_stored_names() -> None:
    class Base(Entity):
        base_id: str = ident(stored="i")
        size: int = stored("z", default=1)

    class Big(Base, variant="big"):
        weight: int = stored("w")

    db = connect(Design("sized", [Base], []))
    db.put(Big(base_id="1", weight=7))
    assert db.get(Base, base_id="1") == Big(base_id="1", weight=7)
