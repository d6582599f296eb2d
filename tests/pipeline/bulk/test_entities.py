"""Rows typed by a design: what the data layer reads back is what the file meant."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stator import Design, Entity, Query, connect, find, ident, read
from stator.engine import Engine
from stator.errors import ConfigurationError, ItemMismatch
from stator.pipeline.bulk.export.export import ExportOptions
from stator.pipeline.bulk.export.sources import table_export
from stator.pipeline.bulk.load.estimate import estimate
from stator.pipeline.bulk.load.load import LoadOptions, LoadPlan, load
from stator.pipeline.bulk.targets import BulkTarget, ThreadUnits
from stator.tables.connection import make_context
from stator.tables.db import Db
from stator.tables.runner import Runner
from stator.testing import Fault, FaultyTransport, InterceptedCall

from ...tables.shop import Order, Status, User
from ...tables.shop import shop as make_shop
from .stock import write_lines

shop = make_shop()


class Box(Entity):
    label: str = ident()
    size: int
    note: str | None = None


class Lid(Entity):
    lid_id: str = ident()
    label: str


@read()
def lids_of(label: str) -> Query[Lid]:
    return find(Lid).where(Lid.label == label)


@read()
def box_of(label: str) -> Query[Box]:
    return find(Box).where(Box.label == label)


ROWS = [
    {
        "order_id": f"o{number}",
        "user_id": "u1",
        "placed_at": f"2026-11-{number + 1:02d}T10:00:00Z",
        "status": "shipped",
        "total": "12.50",
        "tags": "gift,new",
        "lines": '["a", "b"]',
        "extra": '{"x": 1}',
        "note": "",
    }
    for number in range(20)
]


def as_csv(path: Path) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ROWS[0].keys())
        writer.writeheader()
        writer.writerows(ROWS)
    return path


def as_parquet(path: Path) -> Path:
    pq.write_table(
        pa.table(
            {
                "order_id": [row["order_id"] for row in ROWS],
                "user_id": ["u1"] * 20,
                "placed_at": [datetime.fromisoformat(row["placed_at"]) for row in ROWS],
                "status": ["shipped"] * 20,
                "total": pa.array([Decimal("12.50")] * 20),
                "tags": [["gift", "new"]] * 20,
                "lines": [["a", "b"]] * 20,
                "extra": ['{"x": 1}'] * 20,
                "note": pa.nulls(20, pa.string()),
            }
        ),
        path,
    )
    return path


def as_lines(path: Path) -> Path:
    return write_lines(
        path,
        (
            row
            | {
                "total": 12.5,
                "tags": ["gift", "new"],
                "lines": ["a", "b"],
                "extra": {"x": 1},
                "note": None,
            }
            for row in ROWS
        ),
    )


@pytest.mark.parametrize(
    ("name", "make"), [("x.csv", as_csv), ("x.parquet", as_parquet), ("x.jsonl", as_lines)]
)
def test_a_design_types_the_values_and_makes_the_keys(
    name: str, make: Callable[[Path], Path], tmp_path: Path
) -> None:
    path = make(tmp_path / name)
    with Engine.open() as engine, BulkTarget.open(engine, design=shop, entity=Order) as target:
        report = load(str(path), target)
        assert (report.written, report.failed) == (20, 0)
        with connect(shop, engine) as db:
            order = db.get(Order, order_id="o3")
            assert order is not None
            assert order.placed_at == datetime(2026, 11, 4, 10, tzinfo=UTC)
            assert (order.status, order.total, order.tags) == (
                Status.SHIPPED,
                Decimal("12.5"),
                {"gift", "new"},
            )
            assert (order.lines, order.extra, order.note) == (["a", "b"], {"x": 1}, None)
            assert order.made > datetime(2020, 1, 1, tzinfo=UTC)


def test_rows_that_do_not_fit_the_entity_say_why(tmp_path: Path) -> None:
    good = {"order_id": "a", "user_id": "u", "placed_at": "2026-01-01", "total": 1}
    rows = [
        good,
        good | {"total": "much"},
        good | {"status": "lost"},
        {"order_id": "b"},
        good | {"colour": "red"},
        good | {"placed_at": "soon"},
    ]
    path = write_lines(tmp_path / "x.jsonl", rows)
    with Engine.open() as engine, BulkTarget.open(engine, design=shop, entity=Order) as target:
        report = load(str(path), target, LoadOptions(dead_letters=tmp_path / "dead.jsonl"))
        assert (report.written, report.failed) == (1, 5)
        letters = [json.loads(line) for line in (tmp_path / "dead.jsonl").read_text().splitlines()]
        reasons = {letter["row"]: letter["reason"] for letter in letters}
        assert (
            "Order.total" in reasons[2]
            and "Order.status" in reasons[3]
            and "Order.user_id is missing" in reasons[4]
        )
        assert "Order has no field colour" in reasons[5] and "Order.placed_at" in reasons[6]


def test_a_column_that_is_no_field_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("order_id,colour\na,red\n")
    with (
        Engine.open() as engine,
        BulkTarget.open(engine, design=shop, entity=Order) as target,
        pytest.raises(ConfigurationError, match="Order has no field colour"),
    ):
        load(str(path), target)


def test_unique_fields_are_guarded_and_their_duplicates_are_dead_letters(tmp_path: Path) -> None:
    rows = [
        {"user_id": f"u{number}", "email": f"{number % 9}@x", "name": "n"} for number in range(10)
    ]
    path = write_lines(tmp_path / "x.jsonl", rows)
    with Engine.open() as engine, BulkTarget.open(engine, design=shop, entity=User) as target:
        report = load(str(path), target, LoadOptions(window_rows=1, writers=1))
        assert (report.written, report.failed) == (9, 1)
        again = load(str(path), target, LoadOptions(window_rows=1, writers=1))
        assert (again.written, again.failed) == (9, 1)
        with pytest.raises(ConfigurationError, match="conditions of their own"):
            load(str(path), target, LoadOptions(condition="attribute_not_exists(PK)"))


def test_a_row_is_written_once_its_write_is_whatever_fails_afterwards(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", [{"user_id": "u1", "email": "1@x", "name": "n"}])
    is_stored = False

    def fail_afterwards(call: InterceptedCall) -> Fault | None:
        nonlocal is_stored
        if is_stored and call.operation == "GetItem":
            return Fault("lost answer")
        is_stored = is_stored or call.operation == "TransactWriteItems"
        return None

    with Engine.open() as engine, BulkTarget.open(engine, design=shop, entity=User) as target:
        transport = FaultyTransport(target.transport, fail_afterwards)
        units = ThreadUnits()
        context = make_context(shop, {})
        db = Db(context, Runner(transport, context.clock, observers=(units,)))
        with BulkTarget(
            transport,
            target.table,
            schema=target.schema,
            entity=target.entity,
            db=db,
            units=units,
            context=context,
        ) as through:
            report = load(str(path), through, LoadOptions(window_rows=1, writers=1))
        assert (report.written, report.failed) == (1, 0)


def test_an_export_with_a_design_has_a_folder_for_each_entity(tmp_path: Path) -> None:
    with Engine.open() as engine, connect(shop, engine) as db:
        db.write_many(
            Order(
                order_id=f"o{n}",
                user_id="u",
                placed_at=datetime(2026, 1, 1, tzinfo=UTC),
                total=Decimal(n),
            )
            for n in range(5)
        )
        db.put(User(user_id="u", email="a@b", name="n"))
        table = next(name for name in (db.context.schema.of(Order).table.name,))
        with BulkTarget.open(engine, table, design=shop) as target:
            table_export(target, str(tmp_path / "out"), ExportOptions(format="parquet")).run()
        found = pq.ParquetDataset(tmp_path / "out" / "entity=Order").read()
        assert found.num_rows == 5
        with BulkTarget.open(engine, design=shop, entity=Order) as target:
            assert table_export(target, str(tmp_path / "orders.jsonl")).run().items == 5


def test_units_of_a_load_and_of_its_estimate_count_guards_and_indexes(tmp_path: Path) -> None:
    rows = [{"user_id": f"u{number}", "email": f"{number}@x", "name": "A"} for number in range(10)]
    path = write_lines(tmp_path / "users.jsonl", rows)
    for entity in (User, Order):
        if entity is Order:
            path = as_lines(tmp_path / "orders.jsonl")
        with Engine.open() as engine, BulkTarget.open(engine, design=shop, entity=entity) as target:
            found = estimate(LoadPlan(str(path), target, LoadOptions(keep_journal=False)))
            report = load(str(path), target)
            assert (found.failed, report.failed) == (0, 0)
            assert found.write_units == report.consumed_units > report.written


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.jsonl"])
def test_an_empty_identity_is_refused_by_a_load_as_by_a_put(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name.endswith(".csv"):
        path.write_text("label,size\n,1\na,1\n")
    elif name.endswith(".jsonl"):
        write_lines(path, [{"label": each, "size": 1} for each in ("", "a")])
    else:
        pq.write_table(pa.table({"label": ["", "a"], "size": [1, 1]}), path)
    boxes = Design("boxes", [Box, Lid], [box_of, lids_of])
    with Engine.open() as engine, BulkTarget.open(engine, design=boxes, entity=Box) as target:
        report = load(str(path), target, LoadOptions(dead_letters=tmp_path / "bad.jsonl"))
        assert (report.written, report.failed) == (1, 1)
        with connect(boxes, engine) as db:
            with pytest.raises(ItemMismatch, match=r"Box\.label.*identity cannot be empty"):
                db.put(Box(label="", size=1))
            db.put(Box(label="b", size=1, note=""))
            assert db.get(Box, label="b") == Box(label="b", size=1, note="")
