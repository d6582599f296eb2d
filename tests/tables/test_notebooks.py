"""What a notebook shows of results: tables, well formed, with every value escaped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest

from stator import (
    Bundle2,
    Db,
    Delete,
    Design,
    Engine,
    Entity,
    Query,
    connect,
    connect_async,
    creates,
    find,
    ident,
    read,
    together,
    write,
)
from stator.bulk import BulkTarget, Copy, CopyOptions, LoadOptions, load, table_export
from stator.patterns import Counter, Leaderboard
from stator.pipeline import AuditLog, Row, StreamApp, WorkerOptions
from stator.tables.reads.item_list import ItemList
from stator.verification.verifier import verify

TAG = "<script>alert(1)</script>"


class User(Entity):
    user_id: str = ident()
    name: str = ""


class Order(Entity):
    user_id: str = ident()
    order_id: str = ident()
    note: str = ""
    total: Decimal = Decimal(0)


@read(rps=5)
def user_page(user_id: str) -> Bundle2[User, Order]:
    return together(User, Order).where(User.user_id == user_id)


@read(rps=5, returns=100)
def orders_of(user_id: str) -> Query[Order]:
    return find(Order).where(Order.user_id == user_id)


@write(rps=1)
def place() -> object:
    return creates(Order)


shop = Design("shop", [User, Order], [user_page, orders_of, place], volumes={User: 100})


class Table(HTMLParser):
    """The cells of tables by row. Fails if tags are not balanced, or a script is among them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.caption = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert tag in {"table", "caption", "thead", "tbody", "tr", "th", "td", "pre"}
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1] == "caption":
            self.caption += data
        elif self._open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def table_of(value: Any) -> Table:
    return Table(value._repr_html_())


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine.open() as engine:
        yield engine


@pytest.fixture
def db(engine: Engine) -> Iterator[Db]:
    with connect(shop, engine, measure=True) as db:
        db.put(User(user_id="u", name=TAG))
        for number in range(3):
            db.put(Order(user_id="u", order_id=f"o{number}", note=TAG, total=Decimal(number)))
        yield db


def test_what_a_pattern_finds_is_a_list_and_a_table(db: Db) -> None:
    found = db.all(orders_of("u"))
    assert isinstance(found, list)
    assert found == list(db.fetch(orders_of("u")))
    table = table_of(found)
    assert table.caption == "3 items"
    assert table.rows[0] == ["entity", "user_id", "order_id", "note", "total"]
    assert table.rows[1] == ["Order", "u", "o0", TAG, "0"]
    assert len(table.rows) == 4


def test_entities_of_a_bundle_have_the_columns_of_all(db: Db) -> None:
    table = table_of(db.all(user_page("u")))
    assert table.rows[0] == ["entity", "user_id", "order_id", "note", "total", "name"]
    users, orders = db.grouped(user_page("u"))
    assert [row[-1] for row in table_of(users).rows] == ["name", TAG]
    assert len(table_of(orders).rows) == 4


def test_missing_items_and_chosen_fields_have_their_rows(db: Db) -> None:
    table = table_of(db.get_many(User, ["u", "none"]))
    assert table.rows[1:] == [["User", "u", TAG], ["", "", ""]]
    chosen = table_of(db.all(orders_of("u").only(Order.order_id, Order.total)))
    assert chosen.rows[:2] == [["1", "2"], ["o0", "0"]]
    assert table_of(db.all(orders_of("nobody"))).caption == "0 items"


async def items_of_an_async_db() -> Any:
    async with connect_async(shop) as db:
        await db.put(Order(user_id="u", order_id="o"))
        return await db.all(orders_of("u"))


def test_an_async_db_returns_the_same_tables() -> None:
    import asyncio

    assert table_of(asyncio.run(items_of_an_async_db())).caption == "1 item"


def test_a_long_list_shows_its_first_items() -> None:
    table = table_of(ItemList(range(80)))
    assert table.caption == "80 items, the first 50 shown"
    assert len(table.rows) == 51


def test_rows_and_objects_of_other_libraries_are_shown() -> None:
    class Struct(msgspec.Struct):
        number: int

    class Model(pydantic.BaseModel):
        number: int

    for each in (Struct(number=1), Model(number=1)):
        assert table_of(ItemList([each])).rows == [["entity", "number"], [type(each).__name__, "1"]]
    assert table_of(ItemList([Row({"isp": TAG, "checks": 2})])).rows[1] == [TAG, "2"]


def test_a_plan_an_explanation_a_bill_a_check_and_a_verification_are_tables(db: Db) -> None:
    plan = table_of(shop.plan())
    assert [row[0] for row in plan.rows[1:]] == [each.name for each in shop.plan().patterns]
    explained = dict(row for row in table_of(db.explain(orders_of(TAG))).rows if row[0] == "key")
    assert explained["key"] == shop.plan().pattern("orders_of").key_condition

    bill = table_of(shop.cost())
    assert bill.caption.startswith("shop: $")
    assert [row[0] for row in bill.rows[1:]] == list(shop.cost().by_pattern())

    check = shop.check()
    found = table_of(check)
    assert found.caption.startswith("ok: " if check.ok else "not ok: ")
    assert len(found.rows) == 1 + len(check.findings)

    report = verify(shop, most_items=200)
    measured = table_of(report)
    assert [row[0] for row in measured.rows[1:]] == [row.pattern for row in report.rows]


def test_results_of_writes_are_counts_and_failures(db: Db) -> None:
    long = "x" * 500_000
    written = db.write_many(
        [Order(user_id="v", order_id=TAG, note=long), Delete(Order, user_id="u", order_id="o0")],
        on_error="collect",
    )
    table = table_of(written)
    assert "1 written" in table.caption and "1 failed" in table.caption
    assert TAG in table.rows[1][0]

    preview = db.delete_where(orders_of("u"), dry_run=True)
    assert table_of(preview).caption.startswith("2 items, such as these")
    assert table_of(preview).rows[1] == ["u", "o1"]
    assert table_of(db.delete_where(orders_of("u"))).caption.startswith("2 found, 2 written")
    assert db.meter is not None
    labels = {row[0] for row in table_of(db.meter).rows[1:]}
    assert labels == set(db.meter.by_label)


def test_reports_of_loads_exports_and_copies_are_tables(engine: Engine, tmp_path: Path) -> None:
    rows = [{"user_id": "u", "order_id": f"o{n}", "note": "", "total": n} for n in range(5)]
    file = tmp_path / "<b>.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with connect(shop, engine), BulkTarget.open(engine, design=shop, entity=Order) as orders:
        loaded = load(str(file), orders, LoadOptions(keep_journal=False))
        exported = table_export(orders, str(tmp_path / "<b>.json")).run()
    with BulkTarget.open(engine, "shop") as source, BulkTarget.open(engine, "twin") as target:
        copied = Copy(source, target, CopyOptions(create=True)).run()
    for report in (loaded, exported, copied):
        facts = dict(table_of(report).rows)
        data = report.to_data()
        assert facts == {
            name.replace("_", " "): "" if value is None else str(value)
            for name, value in data.items()
        }
    assert table_of(loaded).caption == "Load into shop"


def test_pattern_objects_explain_themselves_in_tables(db: Db) -> None:
    facts = table_of(Counter(db, "<views>").explain()).rows
    assert {"items", "operation"} <= {row[0] for row in facts}
    board = Leaderboard(db, "week")
    board.set_score(TAG, 5)
    assert table_of(board.top()).rows[1][:3] == ["Standing", TAG, "5"]
    assert table_of(board.around(TAG)).caption == "1 item"


def test_an_audit_log_and_its_verification_are_tables(engine: Engine, db: Db) -> None:
    log = AuditLog("ledger", who=User.name)
    app = StreamApp(shop, "audit")
    app.add(log)
    app.ensure(db)
    with app.start(db, WorkerOptions(start="oldest")) as worker:
        db.put(User(user_id="w", name=TAG))
        worker.catch_up()
    [row] = table_of(log.history(db, User, user_id="w")).rows[1:]
    assert TAG in row
    assert table_of(log.verify(db)).caption == "sound: 1 entry in 1 chain"
    forged = table_of(AuditLog("ledger", secret="x").verify(db))
    assert forged.caption.startswith("not sound") and len(forged.rows) > 1


def test_a_time_is_shown_as_text() -> None:
    moment = datetime(2026, 11, 16, tzinfo=UTC)
    assert table_of(ItemList([(moment,)])).rows[1] == [str(moment)]
