"""What follows changes and moves data reads every entity version, and writes the current one."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest

from stator import Db, Design, Engine, Entity, TableSettings, connect, ident, upcast
from stator.bulk import BulkTarget, ExportOptions, LoadOptions, load, table_export
from stator.errors import NewerVersion
from stator.pipeline import (
    Change,
    Insert,
    Modify,
    ParquetSink,
    Projection,
    Remove,
    StreamApp,
    TableSink,
    View,
    count,
    maximum,
    read_changes,
    sum_of,
    top,
)
from stator.pipeline.views.rebuild.rebuild import Rebuild, RebuildOptions, rebuild_together
from stator.pipeline.workers.handlers.parked_retry import ParkedRetry
from tests.targets import Target

from .test_lambda import event_of
from .test_workers import QUICK, work

KEY = ("SALE#{sale_id}", "SALE")


class SaleV1(Entity, name="Sale", key=KEY):
    sale_id: str = ident()
    shop: str = "north"
    euros: Decimal


class SaleV2(Entity, name="Sale", key=KEY, version=2):
    sale_id: str = ident()
    shop: str = "north"
    cents: int = 0


@upcast(SaleV2, 1)
def in_cents(fields: dict[str, Any]) -> dict[str, Any]:
    fields["cents"] = int(fields.pop("euros") * 100)
    return fields


FORMER = Design("sales", [SaleV1])
CURRENT = Design("sales", [SaleV2])


@pytest.fixture
def former(engine: Engine) -> Iterator[Db]:
    """The deployment before the version was raised. It creates the table."""
    with connect(FORMER, engine) as db:
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        yield db


@pytest.fixture
def db(engine: Engine, former: Db) -> Iterator[Db]:
    with connect(CURRENT, engine) as opened:
        yield opened


def write_both(former: Db, db: Db) -> None:
    """Write s1 old, s2 new, s3 old and then new, and delete s4, which is old."""
    former.put(SaleV1(sale_id="s1", euros=Decimal(1)))
    db.put(SaleV2(sale_id="s2", cents=20))
    former.put(SaleV1(sale_id="s3", euros=Decimal(4)))
    with db.update(SaleV2, sale_id="s3") as sale:
        sale.cents = 300
    former.put(SaleV1(sale_id="s4", euros=Decimal(9)))
    db.delete(SaleV2, sale_id="s4")


CENTS = {"s1": 100, "s2": 20, "s3": 300}


def test_handlers_get_the_current_shape_of_both_images(db: Db, former: Db) -> None:
    app = StreamApp(CURRENT, "audit")
    told: list[Any] = []

    @app.on.insert(SaleV2)
    def inserted(change: Insert[SaleV2]) -> None:
        told.append(("insert", change.new.sale_id, change.new.cents))

    @app.on.modify(SaleV2, when_changed=SaleV2.cents)
    def modified(change: Modify[SaleV2]) -> None:
        told.append(("modify", change.old.cents, change.new.cents))

    @app.on.remove(SaleV2)
    def removed(change: Remove[SaleV2]) -> None:
        told.append(("remove", change.old.sale_id, change.old.cents))

    write_both(former, db)
    work(app, db)

    assert sorted(told) == sorted(
        [
            ("insert", "s1", 100), ("insert", "s2", 20), ("insert", "s3", 400),
            ("insert", "s4", 900), ("modify", 400, 300), ("remove", "s4", 900),
        ]
    )  # fmt: skip


def test_an_upgrade_alone_is_no_change_of_a_field(db: Db, former: Db) -> None:
    app = StreamApp(CURRENT, "audit")
    told: list[Any] = []

    @app.on.modify(SaleV2, when_changed=SaleV2.cents)
    def modified(change: Modify[SaleV2]) -> None:
        told.append(change.changed)

    former.put(SaleV1(sale_id="s1", euros=Decimal(1)))
    with db.update(SaleV2, sale_id="s1") as sale:  # upgrades the item first
        sale.shop = "south"
    work(app, db)
    assert told == []


def test_a_lambda_function_gets_the_current_shape(engine: Engine, db: Db, former: Db) -> None:
    app = StreamApp(CURRENT, "audit")
    told: list[Any] = []

    @app.on.any(SaleV2)
    def seen(change: Change[SaleV2]) -> None:
        told.append(change.new.cents if change.new else None)

    write_both(former, db)
    assert app.lambda_handler(db)(event_of(engine, db), None) == {"batchItemFailures": []}
    assert sorted(str(each) for each in told) == sorted(["100", "20", "400", "300", "900", "None"])


def make_views() -> tuple[Any, Any]:
    by_shop = View(
        "by_shop",
        of=SaleV2,
        by=SaleV2.shop,
        sales=count(),
        total=sum_of(SaleV2.cents),
        best=maximum(SaleV2.cents),
        largest=top(2, by=SaleV2.cents),
    )
    listed = Projection("listed", of=SaleV2, key=SaleV2.shop, sort=SaleV2.cents)
    return by_shop, listed


def check_views(db: Db, views: tuple[Any, Any]) -> None:
    by_shop, listed = views
    row = by_shop.on(db).get(shop="north")
    assert (row.sales, row.total, row.best) == (3, 420, 300)
    assert [each.sale_id for each in row.largest] == ["s3", "s1"]
    assert [each.cents for each in listed.on(db).find(shop="north")] == [20, 100, 300]


def test_views_and_projections_count_every_version(db: Db, former: Db) -> None:
    views = make_views()
    app = StreamApp(CURRENT, "audit")
    for view in views:
        app.add(view)
    write_both(former, db)
    work(app, db)
    check_views(db, views)
    with db.update(SaleV2, sale_id="s1") as sale:  # takes back what the old item counted for
        sale.shop = "south"
    work(app, db)
    assert views[0].on(db).get(shop="north").total == 320
    assert views[0].on(db).get(shop="south").total == 100


@pytest.mark.usefixtures("attentive")
def test_a_rebuilt_view_counts_every_version(db: Db, former: Db) -> None:
    views = make_views()
    app = StreamApp(CURRENT, "audit")
    for view in views:
        app.add(view)
    latest = dataclasses.replace(QUICK, start="latest")
    write_both(former, db)
    options = RebuildOptions(settle_seconds=0.0, grace_seconds=0.0)
    work(app, db, latest)
    with app.start(db, latest):
        builds = [Rebuild(view.in_database(db.context), options) for view in views]
        assert [each.scanned for each in db.run(rebuild_together(builds))] == [3, 3]
    check_views(db, views)


def test_sinks_send_the_current_shape(db: Db, former: Db, tmp_path: Path) -> None:
    app = StreamApp(CURRENT, "audit")
    app.add(ParquetSink("lake", tmp_path))
    with Engine.open() as far, connect(CURRENT, far) as copied:
        copied.ensure()
        app.add(TableSink("copy", copied))
        write_both(former, db)
        work(app, db)
        assert {sale.sale_id: sale.cents for sale in copied.scan(SaleV2, allow=True)} == CENTS
    newest: dict[str, Any] = {}
    for row in sorted(read_changes(tmp_path), key=lambda row: int(row["_sequence"])):
        newest[row["sale_id"]] = row["cents"]
    assert {name: newest[name] for name in CENTS} == CENTS


def test_changes_of_newer_items_are_parked_until_the_code_knows_them(db: Db, former: Db) -> None:
    told: list[str] = []

    def app_of(design: Design, sale: type[Any]) -> StreamApp:
        app = StreamApp(design, "audit")

        @app.on.any(sale)
        def seen(change: Change[Any]) -> None:
            assert change.new is not None
            told.append(change.new.sale_id)

        return app

    db.put(SaleV2(sale_id="s2", cents=20))
    former.put(SaleV1(sale_id="s1", euros=Decimal(1)))
    work(app_of(FORMER, SaleV1), former, QUICK)
    assert told == ["s1"]

    newer = ParkedRetry(db.context, app_of(CURRENT, SaleV2))
    [parked] = db.run(newer.parking.keys())
    outcome = db.run(newer.retry(parked.mark))
    assert outcome is not None and outcome.error is None
    assert told == ["s1", "s2"]


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_exports_have_the_current_shape(
    engine: Engine, db: Db, former: Db, tmp_path: Path, format: str
) -> None:
    write_both(former, db)
    with BulkTarget.open(engine, design=CURRENT, entity=SaleV2) as target:
        table_export(target, str(tmp_path), ExportOptions(format=format)).run()
    found: dict[str, int] = {}
    for path in tmp_path.rglob(f"*.{format}*"):
        if format == "parquet":
            rows = parquet.ParquetFile(path).read().to_pylist()
        elif format == "jsonl":
            rows = [json.loads(line) for line in path.read_text().splitlines()]
        else:
            head, *lines = (line.split(",") for line in path.read_text().splitlines())
            rows = [dict(zip(head, line)) for line in lines]
        found |= {row["sale_id"]: int(row["cents"]) for row in rows}
    assert found == CENTS


CONDITION = "attribute_not_exists(PK) OR #shop <> :shop"


@pytest.mark.parametrize("condition", [None, CONDITION])
def test_a_load_replaces_items_of_another_version_whole(
    target: Target, tmp_path: Path, condition: str | None
) -> None:
    db, former = target.connect(CURRENT), target.connect(FORMER)
    rows = tmp_path / "rows.jsonl"
    for code, stored, row in (
        (SaleV1, SaleV2(sale_id="s", cents=500, shop="a"), {"euros": "1.00"}),
        (SaleV2, SaleV1(sale_id="s", euros=Decimal(9), shop="a"), {"cents": 3}),
    ):
        (db if isinstance(stored, SaleV2) else former).put(stored)
        rows.write_text(json.dumps({"sale_id": "s", "shop": "b", **row}))
        own, design = (former, FORMER) if code is SaleV1 else (db, CURRENT)
        with target.bulk(design, code) as bulk:
            report = load(str(rows), bulk, LoadOptions(condition=condition))
        assert (report.written, report.failed) == (1, 0)
        item = own.call("GetItem", {"TableName": bulk.table, "Key": key_of(own)})["Item"]
        assert set(item) - {"PK", "SK", "_type"} == {
            "sale_id", "shop", *(("euros",) if code is SaleV1 else ("cents", "_v"))
        }  # fmt: skip
    assert db.get_one(SaleV2, sale_id="s").cents == 3
    with pytest.raises(NewerVersion):
        former.get_one(SaleV1, sale_id="s")


def key_of(db: Db) -> Any:
    of = next(iter(db.context.schema.maps.values()))
    return of.key_from({"sale_id": "s"})


class PostLess(Entity, name="Post"):
    post_id: str = ident()
    text: str = ""


class PostMore(Entity, name="Post"):
    post_id: str = ident()
    text: str = ""
    status: str = "new"


def test_the_first_write_of_a_default_is_no_change(engine: Engine) -> None:
    with (
        connect(Design("blog", [PostLess]), engine) as former,
        connect(Design("blog", [PostMore]), engine) as db,
    ):
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        app = StreamApp(db.context.schema.design, "app")
        told: list[Any] = []

        @app.on.modify(PostMore, when_changed=PostMore.status)
        def announce(change: Modify[PostMore]) -> None:
            told.append((change.old.status, change.new.status))

        former.put(PostLess(post_id="p1"))
        db.put(PostMore(post_id="p1", text="edited"))
        db.put(PostMore(post_id="p1", text="edited", status="done"))
        work(app, db)
    assert told == [("new", "done")]
