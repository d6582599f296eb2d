"""Keys with parts of fields: every way to write keeps them right, and every read finds by them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from stator import (
    Design,
    Engine,
    Entity,
    IndexKey,
    Query,
    connect,
    find,
    ident,
    month_of,
    prefix_of,
    read,
    unique,
    version,
)
from stator.errors import RequestRefused
from stator.pipeline.bulk.load.load import load
from stator.pipeline.bulk.targets import BulkTarget
from stator.tables.db import Db
from tests.targets import Target

OCTOBER = datetime(2026, 10, 31, 22, tzinfo=UTC)
NOVEMBER = datetime(2026, 11, 1, tzinfo=UTC)


class Parcel(
    Entity, index={"by_hand": IndexKey(("DAY#{day_of(sent_at)}", "{prefix_of(cell, 2)}"))}
):
    parcel_id: str = ident()
    label: str = unique()
    cell: str
    sent_at: datetime
    seen_at: datetime | None = None
    edition: int = version()


class Reading(Entity, key=("D#{device}#{month_of(at)}", "{at}")):
    device: str = ident()
    at: datetime = ident()
    value: int = 0


@read(rps=20)
def sent_in(month: str) -> Query[Parcel]:
    return find(Parcel).where(month_of(Parcel.sent_at) == month).newest_first(Parcel.sent_at)


@read(rps=20)
def seen_in(month: str) -> Query[Parcel]:
    return find(Parcel).where(month_of(Parcel.seen_at) == month)


@read(rps=20)
def in_cell(cell: str) -> Query[Parcel]:
    return find(Parcel).where(prefix_of(Parcel.cell, 4) == cell).order_by(Parcel.parcel_id)


@read(rps=20)
def readings(device: str, month: date) -> Query[Reading]:
    return find(Reading).where(Reading.device == device, month_of(Reading.at) == month)


DESIGN = Design(
    "parcels",
    [Parcel, Reading],
    [sent_in, seen_in, in_cell, readings],
    volumes={Parcel: 100_000, Reading: 100_000},
)


def parcel(number: int, at: datetime = OCTOBER, cell: str = "u33dbc") -> Parcel:
    return Parcel(parcel_id=f"p{number}", label=f"l{number}", cell=cell, sent_at=at)


def found(db: Db, query: Query[Parcel]) -> list[str]:
    return [each.parcel_id for each in db.fetch(query)]


def by_create(db: Db) -> None:
    db.create(parcel(1, NOVEMBER, "u44abc"))


def by_put(db: Db) -> None:
    db.create(parcel(1))
    there = db.get_one(Parcel, parcel_id="p1")
    there.sent_at, there.cell = NOVEMBER, "u44abc"
    db.put(there)


def by_upsert(db: Db) -> None:
    db.upsert(parcel(1))
    db.upsert(parcel(1, NOVEMBER, "u44abc"))


def by_update(db: Db) -> None:
    there = db.create(parcel(1))
    with db.update(there) as changing:
        changing.sent_at = NOVEMBER
        changing.cell = "u44abc"


def by_blind_update(db: Db) -> None:
    db.create(parcel(1))
    with db.update(Parcel, parcel_id="p1") as changing:
        changing.sent_at = NOVEMBER
        changing.cell = "u44abc"


def by_patch(db: Db) -> None:
    db.create(parcel(1))
    db.patch(Parcel, {"sent_at": NOVEMBER, "cell": "u44abc"}, parcel_id="p1")


def by_transaction(db: Db) -> None:
    with db.transaction() as writing:
        writing.create(parcel(1, NOVEMBER, "u44abc"))
        writing.create(Reading(device="d", at=NOVEMBER))


def by_batch(db: Db) -> None:
    assert db.write_many([parcel(1, NOVEMBER, "u44abc")]).ok


def by_pattern_write(db: Db) -> None:
    db.create(parcel(1))

    def move(changing: Any) -> None:
        changing.sent_at = NOVEMBER
        changing.cell = "u44abc"

    assert db.update_where(sent_in("2026-10"), move).ok


_WRITES: list[Callable[[Db], None]] = [
    by_create, by_put, by_upsert, by_update, by_blind_update, by_patch, by_transaction, by_batch,
    by_pattern_write,
]  # fmt: skip


@pytest.mark.parametrize("store", _WRITES, ids=[each.__name__ for each in _WRITES])
def test_every_way_to_write_computes_the_parts(store: Callable[[Db], None]) -> None:
    with connect(DESIGN, ":memory:") as db:
        db.ensure()
        store(db)
        assert found(db, sent_in("2026-11")) == found(db, in_cell("u44a")) == ["p1"]
        assert found(db, sent_in("2026-10")) == found(db, in_cell("u33d")) == []
        assert found(db, seen_in("2026-11")) == []
        [item] = db.call("Scan", {"TableName": "parcels", "IndexName": "by_hand"})["Items"]
        shown = [str(value) for value in item.values()]
        assert any("DAY#2026-11-01" in each for each in shown)


def test_a_bulk_load_computes_the_parts(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"device": f"d{at % 2}", "at": at, "value": at} for at in range(6)
    ]
    for row in rows:
        row["at"] = (NOVEMBER + timedelta(days=12 * int(row["at"]))).isoformat()
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with Engine.open() as engine:
        connect(DESIGN, engine).ensure()
        load(str(file), BulkTarget.open(engine, design=DESIGN, entity=Reading))
        db = connect(DESIGN, engine)
        assert [each.value for each in db.fetch(readings("d0", date(2026, 11, 1)))] == [0, 2]
        assert [each.value for each in db.fetch(readings("d1", date(2026, 12, 9)))] == [3, 5]


def test_an_update_of_the_source_moves_the_item_and_removing_it_takes_it_away(
    target: Target,
) -> None:
    db = target.connect(DESIGN)
    there = db.create(parcel(1))
    assert found(db, seen_in("2026-10")) == []
    for seen, months in ((OCTOBER, ["2026-10"]), (NOVEMBER, ["2026-11"]), (None, [])):
        with db.update(there) as changing:
            changing.seen_at = seen
        assert [each for each in ("2026-10", "2026-11") if found(db, seen_in(each))] == months
    db.delete(there)
    assert found(db, sent_in("2026-10")) == []


def test_pages_with_cursors_go_both_ways_through_a_month(target: Target) -> None:
    db = target.connect(DESIGN)
    days = [NOVEMBER + timedelta(days=at) for at in range(-3, 33)]
    assert db.write_many(parcel(at, day) for at, day in enumerate(days)).ok
    pages, cursor = [], None
    while True:
        page = db.page(sent_in("2026-11"), limit=7, cursor=cursor)
        pages.append([each.sent_at for each in page])
        cursor = page.cursor
        if cursor is None:
            break
    whole = [moment for page in pages for moment in page]
    assert whole == sorted((day for day in days if day.month == 11), reverse=True)
    first = db.page(sent_in("2026-11"), limit=7)
    second = db.page(sent_in("2026-11"), limit=7, cursor=first.cursor)
    back = db.page(sent_in("2026-11"), limit=7, cursor=second.previous)
    assert back.items == first.items
    assert db.first(in_cell("u33d")) is not None


def test_an_item_is_found_by_its_identity_where_the_key_holds_a_part_of_it(target: Target) -> None:
    db = target.connect(DESIGN)
    for at in (OCTOBER, NOVEMBER):
        db.create(Reading(device="d1", at=at, value=at.month))
    assert db.get_one(Reading, device="d1", at=NOVEMBER).value == 11
    db.patch(Reading, {"value": 12}, device="d1", at=NOVEMBER)
    assert [each.value for each in db.fetch(readings("d1", date(2026, 11, 1)))] == [12]
    of = db.context.schema.of(Reading)
    key = of.plan.base_key(device="d1", at=NOVEMBER)
    assert of.key_identity.read(key) == {"device": "d1", "at": NOVEMBER}
    assert of.key_identity.read({**key, "PK": {"S": "D#d1#2026-10"}}) is None


def test_asyncio_reads_and_explains_the_same(target: Target) -> None:
    async def main() -> None:
        async with target.connect_async(DESIGN) as db:
            await db.create(parcel(1, NOVEMBER))
            assert [each.parcel_id async for each in db.fetch(sent_in("2026-11"))] == ["p1"]
            with pytest.raises(RequestRefused, match="'2026-11-01' is not a month"):
                await db.all(sent_in("2026-11-01"))
            assert "month_of(sent_at)" in str(db.explain(sent_in("2026-11")))

    asyncio.run(main())


def test_a_condition_of_a_write_may_test_a_part() -> None:
    with connect(DESIGN, ":memory:") as db:
        db.ensure()
        there = db.create(parcel(1))
        there = db.put(there, when=month_of(Parcel.sent_at) == OCTOBER)
        with pytest.raises(Exception, match="condition"):
            db.put(there, when=month_of(Parcel.sent_at) == NOVEMBER)
