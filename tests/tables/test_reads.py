"""Queries by pattern: whole, in pages, counted, of several entities; on every target."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any, Literal

import pytest

from stator import (
    Bundle2,
    Design,
    Entity,
    Query,
    attr,
    connect,
    creates,
    find,
    ident,
    read,
    together,
    write,
)
from stator.errors import (
    CursorRefused,
    DesignError,
    ItemNotFound,
    RequestRefused,
    StatorError,
)
from stator.tables.reads.pattern_read import PatternRead, ReadOptions
from stator.tables.work import Call, Gather
from tests.design import models
from tests.design.test_planner_engine import WORLDS, answer, filled
from tests.targets import Target

from .bank import (
    DESIGN,
    Note,
    three_notes,
)
from .shop import (
    T0,
    Order,
    Session,
    Status,
    User,
    count_in_status,
    dear_orders,
    order,
    orders_in_status,
    orders_of_user,
    profile,
    shop,
    user,
    user_by_id,
)


def numbers(orders: Any) -> list[int]:
    return [int(each.order_id[1:]) for each in orders]


def test_a_pattern_finds_its_items_in_order(target: Target) -> None:
    db = target.connect(shop())
    assert db.write_many(order(n, user=1 + n % 2) for n in range(60)).ok
    assert numbers(db.fetch(orders_of_user("u1"))) == [*range(58, -1, -2)]
    assert numbers(db.fetch(orders_of_user("u1"), limit=3)) == [58, 56, 54]
    assert numbers(db.fetch(orders_in_status(Status.PENDING, T0 + timedelta(hours=50)))) == [
        *range(50, 60)
    ]
    assert list(db.fetch(orders_of_user("nobody"))) == []
    newest = db.first(orders_of_user("u2"))
    assert newest is not None and newest.order_id == "o059"
    assert db.first(orders_of_user("nobody")) is None
    assert db.count(count_in_status(Status.PENDING)) == 60
    assert db.count(orders_of_user("u1")) == 30
    assert db.first(user_by_id("u9")) is None


def test_pages_put_together_are_the_whole(target: Target) -> None:
    db = target.connect(shop())
    db.write_many(order(n) for n in range(25))
    found, cursor, pages = [], None, 0
    while True:
        page = db.page(orders_of_user("u1"), limit=7, cursor=cursor)
        found += numbers(page.items)
        pages += 1
        assert len(page) == (7 if page.cursor else len(page))
        cursor = page.cursor
        if cursor is None:
            break
    assert found == [*range(24, -1, -1)]
    assert pages <= 5


def test_pages_of_a_filtered_pattern_are_full(target: Target) -> None:
    db = target.connect(shop())
    db.write_many(order(n) for n in range(40))
    asked = dear_orders("u1", Decimal(10))
    page = db.page(asked, limit=8)
    assert numbers(page) == [*range(39, 31, -1)]
    page = db.page(asked, limit=8, cursor=page.cursor)
    assert numbers(page) == [*range(31, 23, -1)]
    assert numbers(db.fetch(asked)) == [*range(39, 9, -1)]


def test_several_entities_come_back_typed(target: Target) -> None:
    db = target.connect(shop())
    db.create(user())
    db.write_many([Session(session_id=f"s{n}", user_id="u1") for n in range(3)])
    found = list(db.fetch(profile("u1")))
    assert sorted(type(each).__name__ for each in found) == [
        "Session",
        "Session",
        "Session",
        "User",
    ]
    page = db.page(profile("u1"), limit=2)
    rest = db.page(profile("u1"), limit=9, cursor=page.cursor)
    assert [*page, *rest] == found
    assert rest.cursor is None


def test_several_entities_come_back_grouped(target: Target) -> None:
    db = target.connect(shop())
    anna = db.create(user(1))
    sessions = [Session(session_id=f"s{n}", user_id="u1") for n in range(3)]
    db.write_many(sessions)
    [person], found = db.grouped(profile("u1"))
    assert person == anna and found == [each for each in db.fetch(profile("u1")) if each != anna]
    assert {each.session_id for each in found} == {"s0", "s1", "s2"}
    assert db.grouped(profile("nobody")) == ([], [])
    one, rest = db.grouped(profile("u1"), limit=2)
    assert len(one) + len(rest) == 2
    with pytest.raises(RequestRefused, match="one entity"):
        db.grouped(orders_of_user("u1"))  # type: ignore[call-overload]


def test_what_must_be_there_is_returned_or_raised(target: Target) -> None:
    db = target.connect(shop())
    db.write_many(order(n) for n in range(5))
    assert db.get_one(Order, order_id="o003", user_id="u1", placed_at=order(3).placed_at) == db.get(
        Order, order_id="o003", user_id="u1", placed_at=order(3).placed_at
    )
    with pytest.raises(ItemNotFound, match=r"User\(user_id='u9'\) does not exist"):
        db.get_one(User, user_id="u9")
    assert db.first_or_raise(orders_of_user("u1")).order_id == "o004"
    with pytest.raises(ItemNotFound, match=r"orders_of_user\(user_id='u9'\) finds no item"):
        db.first_or_raise(orders_of_user("u9"))
    assert numbers(db.all(orders_of_user("u1"))) == [4, 3, 2, 1, 0]
    assert numbers(db.all(orders_of_user("u1"), limit=2)) == [4, 3]
    assert db.all(orders_of_user("u9")) == []


def test_the_same_awaited(target: Target) -> None:
    async def run() -> None:
        async with target.connect_async(shop()) as db:
            anna = await db.create(user(1))
            await db.write_many(order(n) for n in range(5))
            assert await db.get_one(User, user_id="u1") == anna
            assert (await db.first_or_raise(orders_of_user("u1"))).order_id == "o004"
            assert numbers(await db.all(orders_of_user("u1"))) == [4, 3, 2, 1, 0]
            assert await db.grouped(profile("u1")) == ([anna], [])
            with pytest.raises(ItemNotFound):
                await db.get_one(User, user_id="u9")

    asyncio.run(run())


@pytest.mark.parametrize("layout", ["single-table", "table-per-entity"])
def test_only_some_fields_come_as_tuples(target: Target, layout: Any) -> None:
    db = target.connect(shop(layout))
    db.write_many(order(n, note="x" * 100 if n % 2 else None) for n in range(30))
    anna = db.create(user(1))
    query = orders_of_user("u1").only(Order.total, Order.note, Order.status, Order.tags)
    whole = db.all(orders_of_user("u1"))
    wanted = [(each.total, each.note, each.status, each.tags) for each in whole]
    assert db.all(query) == wanted and len(wanted) == 30
    assert db.first_or_raise(query) == wanted[0]
    page = db.page(query, limit=20)
    rest = db.page(query, limit=20, cursor=page.cursor)
    assert page.items + rest.items == wanted and rest.cursor is None
    dear = dear_orders("u1", Decimal(20)).only(Order.order_id)
    assert db.all(dear) == [(f"o{n:03d}",) for n in range(29, 19, -1)]
    assert db.all(orders_in_status(Status.PENDING, T0).only(Order.order_id)) == [
        (f"o{n:03d}",) for n in range(30)
    ]
    assert db.first(user_by_id("u1").only(User.address, User.name)) == (None, anna.name)
    with pytest.raises(StatorError):
        db.put(wanted[0])  # type: ignore[call-overload]
    explained = db.explain(query)
    assert "total, note, status, tags: DynamoDB reads and bills whole items" in str(explained)
    assert explained.pattern == db.explain(orders_of_user("u1")).pattern  # the same price
    assert "ProjectionExpression" in orders_of_user("u1").only(Order.total).explain().requests[0]


def test_fields_that_cannot_be_selected_are_refused() -> None:
    query = orders_of_user("u1")
    for fields in ([], [Order.total, Order.total], [User.name], ["total"], [Order.extra["x"]]):
        with pytest.raises(DesignError):
            query.only(*fields)
    with pytest.raises(RequestRefused, match="whole items"):
        connect(shop()).delete_where(query.only(Order.total))


def test_a_scan_has_to_be_allowed(target: Target) -> None:
    db = target.connect(shop())
    db.create(user())
    db.write_many(order(n) for n in range(30))
    with pytest.raises(RequestRefused, match="every item"):
        db.scan(Order)
    for segments in (1, 4):
        assert sorted(numbers(db.scan(Order, allow=True, segments=segments))) == [*range(30)]
    assert [each.user_id for each in db.scan(User, allow=True)] == ["u1"]


def test_strong_or_eventual_is_said_per_call(target: Target) -> None:
    db = target.connect(shop())
    db.create(user())
    assert db.first(user_by_id("u1"), consistent=True) is not None
    assert db.first(user_by_id("u1"), consistent=False) is not None
    with pytest.raises(RequestRefused, match="never strongly consistent"):
        db.first(orders_in_status(Status.PENDING, T0), consistent=True)


# --- cursors ---


def test_a_cursor_is_bound_to_its_query() -> None:
    db = connect(shop(), cursor_key=b"secret")
    db.write_many(order(n, user=1 + n % 2) for n in range(20))
    cursor = db.page(orders_of_user("u1"), limit=2).cursor
    assert cursor is not None and cursor.isascii()
    assert all(letter.isalnum() or letter in "-_" for letter in cursor)
    with pytest.raises(CursorRefused):
        db.page(orders_of_user("u2"), limit=2, cursor=cursor)
    with pytest.raises(CursorRefused):
        db.page(dear_orders("u1", Decimal(0)), limit=2, cursor=cursor)
    for at in range(len(cursor)):
        other = cursor[:at] + ("A" if cursor[at] != "A" else "B") + cursor[at + 1 :]
        if at == len(cursor) - 1:
            continue  # the last letter may hold bits that are not used
        with pytest.raises(CursorRefused):
            db.page(orders_of_user("u1"), limit=2, cursor=other)
    for rubbish in ("", "x", "===", "\u00e9", "a" * 500):
        with pytest.raises(CursorRefused):
            db.page(orders_of_user("u1"), limit=2, cursor=rubbish)


def test_a_cursor_signed_with_another_key_is_refused() -> None:
    one = connect(shop(), cursor_key=b"one")
    one.write_many(order(n) for n in range(20))
    cursor = one.page(orders_of_user("u1"), limit=2).cursor
    with pytest.raises(CursorRefused):
        connect(shop(), cursor_key=b"two").page(orders_of_user("u1"), limit=2, cursor=cursor)
    with pytest.raises(CursorRefused):
        connect(shop()).page(orders_of_user("u1"), limit=2, cursor=cursor)


def test_a_page_of_nothing_is_refused() -> None:
    with pytest.raises(RequestRefused, match="must be 1 or more"):
        connect(shop()).page(orders_of_user("u1"), limit=0)


def test_a_query_outside_any_pattern_is_refused() -> None:
    with pytest.raises(RequestRefused, match="only declared patterns"):
        connect(shop()).fetch(find(Order).where(Order.user_id == "u1"))


@read(rps=20, returns=20)
def in_either(one: Status, other: Status) -> Query[Order]:
    return find(Order).where(attr(Order.status).is_in([one, other])).newest_first(Order.placed_at)


def test_one_of_several_values_is_merged_in_order(target: Target) -> None:
    design = Design("either", [Order], [in_either], volumes={Order: 1_000_000})
    assert design.plan().pattern("in_either").steps[0].alternatives
    db = target.connect(design)
    db.write_many(order(n, status=Status.SHIPPED if n % 3 else Status.PENDING) for n in range(40))
    asked = in_either(Status.PENDING, Status.SHIPPED)
    assert numbers(db.fetch(asked)) == [*range(39, -1, -1)]
    page = db.page(asked, limit=15)
    rest = db.page(asked, limit=100, cursor=page.cursor)
    assert numbers([*page, *rest]) == [*range(39, -1, -1)]
    assert rest.cursor is None
    assert numbers(db.fetch(in_either(Status.PENDING, Status.PENDING))) == [*range(39, -1, -3)]


def test_what_is_no_query_for_items_is_refused() -> None:
    db = connect(shop())
    with pytest.raises(RequestRefused, match="only declared patterns"):
        db.fetch("orders")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(RequestRefused, match="counts"):
        list(db.fetch(count_in_status(Status.PENDING)))  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(RequestRefused, match="counts"):
        db.first(count_in_status(Status.PENDING))  # type: ignore[arg-type]  # wrong on purpose


# --- shards ---


class Reading(Entity):
    device: str = ident()
    at: int = ident()
    site: Literal["s1", "s2"]
    value: int


@read(rps=50, returns=20)
def readings_of(site: Literal["s1", "s2"]) -> Query[Reading]:
    return find(Reading).where(Reading.site == site).newest_first(Reading.at)


def test_shards_are_merged_in_order_under_one_cursor(target: Target) -> None:
    hot = Design(
        "hot", [Reading], [readings_of], volumes={Reading: 100_000}, writes={Reading: 20_000}
    )
    assert hot.plan().pattern("readings_of").steps[0].shards > 5
    db = target.connect(hot)
    made = [Reading(device=f"d{n % 7}", at=n, site="s1", value=n) for n in range(200)]
    random.Random(1).shuffle(made)
    assert db.write_many(made).written == 200
    assert [each.at for each in db.fetch(readings_of("s1"))] == [*range(199, -1, -1)]
    found: list[int] = []
    cursor = None
    while True:
        page = db.page(readings_of("s1"), limit=33, cursor=cursor)
        found += [each.at for each in page]
        cursor = page.cursor
        if cursor is None:
            break
    assert found == [*range(199, -1, -1)]


# --- every published design gives through a Db what its requests give ---


@pytest.mark.parametrize("layout", ["single-table", "aggregate", "table-per-entity"])
@pytest.mark.parametrize("world", WORLDS)
def test_a_db_answers_as_the_plans_requests_do(world: str, layout: str) -> None:
    make, objects, calls = WORLDS[world]
    design = make(layout=layout)
    made = objects(random.Random(7))
    plan = design.plan()
    engine = filled(plan, made)
    db = connect(design, engine)
    by_name = {pattern.name: pattern for pattern in design.reads}
    for name, arguments in calls:
        query = by_name[name](**arguments)
        wanted = answer(engine, plan, design, name, arguments)
        if plan.pattern(name).steps[0].is_count:
            assert [db.count(query)] == [sum(wanted)]
            continue
        found = list(db.fetch(query, include_expired=True))
        if plan.pattern(name).steps[0].shards > 1:
            assert sorted(map(repr, found)) == sorted(map(repr, wanted))
        else:
            assert found == wanted
        paged: list[Any] = []
        cursor = None
        while True:
            page = db.page(query, limit=3, cursor=cursor, include_expired=True)
            paged += page.items
            cursor = page.cursor
            if cursor is None:
                break
        if (
            plan.pattern(name).steps[0].limit is None
            and plan.pattern(name).steps[0].limit_param is None
        ):
            assert paged == found


def test_a_plan_can_come_from_a_lock_file(tmp_path: Any) -> None:
    design = models.shop()
    lock = tmp_path / "shop.design.json"
    lock.write_text(design.plan().to_json())
    assert connect(design, plan=lock).context.schema.plan == design.plan()
    renamed = replace(design.plan(), name="other")
    assert connect(design, plan=renamed).context.schema.plan.name == "other"


def test_a_call_is_explained_in_the_plan_in_force() -> None:
    db = connect(shop(), prefix="dev-")
    told = db.explain(orders_of_user("u1"))
    assert all(request["TableName"] == "dev-shop" for request in told.requests)
    assert "orders_of_user" in str(told)
    with pytest.raises(RequestRefused):
        db.explain(find(Order).where(Order.user_id == "u1"))


def test_a_declared_limit_holds_for_pages_and_counts(target: Target) -> None:
    db = target.connect(DESIGN)
    db.write_many(Note(note_id=f"n{n}", topic="t") for n in range(8))
    assert len(list(db.fetch(three_notes("t")))) == 3
    page = db.page(three_notes("t"), limit=2)
    assert len(page) == 2
    rest = db.page(three_notes("t"), limit=2, cursor=page.cursor)
    assert (len(rest), rest.cursor) == (1, None)
    assert db.count(three_notes("t")) == 3


def test_entities_with_a_request_each_are_read_side_by_side(target: Target) -> None:
    class Stage(Entity):
        stage_id: str = ident()

    class Show(Entity):
        show_id: str = ident()
        stage_id: str

    @read(rps=0.01, returns=5)
    def stage_page(stage_id: str) -> Bundle2[Stage, Show]:
        return together(Stage, Show).where(Stage.stage_id == stage_id, Show.stage_id == stage_id)

    @write(rps=500)
    def add_show() -> object:
        return creates(Show)

    db = target.connect(Design("stages", [Stage, Show], [stage_page, add_show]))
    db.create(Stage(stage_id="s"))
    for number in range(5):
        db.create(Show(show_id=f"n{number}", stage_id="s"))
    query = stage_page("s")
    assert len(db.context.schema.pattern("stage_page").steps) == 2
    work = PatternRead(db.context, query, ReadOptions()).page(None)
    effect = next(work)
    assert isinstance(effect, Gather)
    assert {each.operation for each in effect.parts if isinstance(each, Call)} == {
        "GetItem",
        "Query",
    }
    assert sorted(type(each).__name__ for each in db.fetch(query)) == ["Show"] * 5 + ["Stage"]
    found: list[Any] = []
    cursor = None
    while True:
        page = db.page(query, limit=2, cursor=cursor)
        found += page.items
        cursor = page.cursor
        if cursor is None:
            break
    assert found == list(db.fetch(query))
