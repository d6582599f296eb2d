"""Queries by pattern: whole, in pages, counted, of several entities; on every target."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
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
    updates,
    write,
)
from stator.clock import VirtualClock
from stator.errors import (
    ConfigurationError,
    CursorRefused,
    DesignError,
    ItemNotFound,
    RequestRefused,
    StatorError,
)
from stator.tables.reads.pattern_read import Page, PatternRead, ReadOptions
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
    sessions_of,
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
            one = await db.page(orders_of_user("u1"), limit=3)
            two = await db.page(orders_of_user("u1"), limit=3, cursor=one.cursor)
            back = await db.page(orders_of_user("u1"), limit=3, cursor=two.previous)
            assert (numbers(two), numbers(back), back.previous) == ([1, 0], [4, 3, 2], None)
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
        pages: list[Page[Any]] = []
        cursor = None
        while True:
            page = db.page(query, limit=3, cursor=cursor, include_expired=True)
            pages.append(page)
            cursor = page.cursor
            if cursor is None:
                break
        paged = [each for page in pages for each in page]
        backward: list[Any] = []
        while page.previous is not None:
            page = db.page(query, limit=3, cursor=page.previous, include_expired=True)
            backward[:0] = page.items
        assert backward == [each for page in pages[:-1] for each in page]
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


def test_the_plan_of_another_design_is_refused() -> None:
    design = models.shop()
    with pytest.raises(ConfigurationError, match="a plan of the design other, not of shop"):
        connect(design, plan=replace(design.plan(), name="other"))


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


def test_a_limit_holds_for_entities_with_a_request_each(target: Target) -> None:
    class Venue(Entity):
        venue_id: str = ident()

    class Gig(Entity):
        gig_id: str = ident()
        venue_id: str

    @read(rps=0.01, returns=3)
    def venue_page(venue_id: str) -> Bundle2[Venue, Gig]:
        page = together(Venue, Gig).where(Venue.venue_id == venue_id, Gig.venue_id == venue_id)
        return page.limit(3)

    @write(rps=500)
    def add_gig() -> object:
        return creates(Gig)

    db = target.connect(Design("venues", [Venue, Gig], [venue_page, add_gig]))
    assert db.context.schema.pattern("venue_page").steps[0].operation == "GetItem"
    db.create(Venue(venue_id="v"))
    for number in range(5):
        db.create(Gig(gig_id=f"g{number}", venue_id="v"))
    assert len(list(db.fetch(venue_page("v")))) == 3
    page = db.page(venue_page("v"), limit=2)
    rest = db.page(venue_page("v"), limit=2, cursor=page.cursor)
    assert (len(page), len(rest), rest.cursor) == (2, 1, None)


# --- backward pages ---


class Blob(Entity):
    blob_id: str = ident()
    owner: str
    body: str


@read(rps=0.1, returns=2)
def blobs_of(owner: str) -> Query[Blob]:
    return find(Blob).where(Blob.owner == owner)


@read(rps=100)
def blob_by_id(blob_id: str) -> Query[Blob]:
    return find(Blob).where(Blob.blob_id == blob_id)


@write(rps=50)
def rewrite_blob() -> object:
    return updates(Blob.body)


class Hall(Entity):
    hall_id: str = ident()


class Concert(Entity):
    concert_id: str = ident()
    hall_id: str


@read(rps=0.01, returns=5)
def hall_page(hall_id: str) -> Bundle2[Hall, Concert]:
    return together(Hall, Concert).where(Hall.hall_id == hall_id, Concert.hall_id == hall_id)


@write(rps=500)
def add_concert() -> object:
    return creates(Concert)


@dataclass(frozen=True)
class Walk:
    """A pattern to walk through, and the item of each number that it may find."""

    design: Design
    query: Any
    made: Callable[[int], Any]


def _either(number: int) -> Order:
    return order(
        number,
        status=Status.SHIPPED if number % 3 else Status.PENDING,
        placed_at=T0 + timedelta(hours=number // 3),
    )


def _hall(number: int) -> Any:
    return Concert(concert_id=f"c{number:03d}", hall_id="h") if number else Hall(hall_id="h")


def _session(number: int) -> Session:
    late = T0 + timedelta(days=-9999 if number % 4 == 0 else 9999)
    return Session(session_id=f"s{number:03d}", user_id="u1", expires=late)


WALKS = {
    "one request": Walk(shop(), orders_of_user("u1"), order),
    "some fields": Walk(shop(), orders_of_user("u1").only(Order.order_id), order),
    "a filter": Walk(shop(), dear_orders("u1", Decimal(9)), order),
    "a global index": Walk(shop(), orders_in_status(Status.PENDING, T0), order),
    "expired items": Walk(shop(), sessions_of("u1"), _session),
    "alternatives": Walk(
        Design("either", [Order], [in_either], volumes={Order: 1_000_000}),
        in_either(Status.PENDING, Status.SHIPPED),
        _either,
    ),
    "shards": Walk(
        Design(
            "hot", [Reading], [readings_of], volumes={Reading: 100_000}, writes={Reading: 20_000}
        ),
        readings_of("s1"),
        lambda number: Reading(device=f"d{number}", at=number // 2, site="s1", value=number),
    ),
    "keys only": Walk(
        Design(
            "blobs",
            [Blob],
            [blobs_of, blob_by_id, rewrite_blob],
            volumes={Blob: 100_000},
            sizes={Blob: 9000},
        ),
        blobs_of("o"),
        lambda number: Blob(blob_id=f"b{number:03d}", owner="o", body="x"),
    ),
    "several steps": Walk(
        Design("halls", [Hall, Concert], [hall_page, add_concert]), hall_page("h"), _hall
    ),
}


def test_the_walks_cover_every_way_to_read() -> None:
    steps = {
        name: walk.design.plan().pattern(walk.query.pattern.name).steps
        for name, walk in WALKS.items()
    }
    assert steps["a filter"][0].filter and steps["a global index"][0].index
    assert steps["alternatives"][0].alternatives and steps["shards"][0].shards > 5
    assert steps["keys only"][0].fetch
    assert {step.operation for step in steps["several steps"]} == {"GetItem", "Query"}


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
def test_pages_read_backward_are_those_read_forward(target: Target, walk: Walk) -> None:
    db = target.connect(walk.design)
    assert db.write_many(walk.made(n) for n in range(40)).ok
    for limit in (3, 10, 100):
        pages = [db.page(walk.query, limit=limit)]
        while pages[-1].cursor is not None:
            pages.append(db.page(walk.query, limit=limit, cursor=pages[-1].cursor))
        assert [each for page in pages for each in page] == db.all(walk.query)
        page = pages.pop()
        while pages:
            following, page = page, db.page(walk.query, limit=limit, cursor=page.previous)
            assert page.items == pages.pop().items
            if page.cursor is not None:
                again = db.page(walk.query, limit=limit, cursor=page.cursor)
                assert again.items == following.items
            else:
                assert following.items == []
        if walk is WALKS["expired items"] and page.previous is not None:
            page = db.page(walk.query, limit=limit, cursor=page.previous)
            assert page.items == []  # the first item has expired
        assert page.previous is None


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
def test_a_walk_to_and_fro_misses_and_repeats_nothing(target: Target, walk: Walk) -> None:
    """Items with even numbers stay. The others come and go between the pages."""
    db = target.connect(walk.design)
    chance = random.Random(5)
    assert db.write_many(walk.made(n) for n in range(0, 50, 2)).ok
    lasting = db.all(walk.query)
    for _ in range(3 if target.kind == "memory" else 1):
        page, low = db.page(walk.query, limit=3), 0
        for _ in range(40):
            shown = [each for each in page if each in lasting]
            assert shown == lasting[low : low + len(shown)]
            high = low + len(shown)
            assert page.previous is not None or low == 0
            assert page.cursor is not None or high == len(lasting)
            for number in chance.sample(range(1, 50, 2), 3):
                if chance.random() < 0.5:
                    db.put(walk.made(number))
                else:
                    db.delete(walk.made(number))
            limit = chance.randint(1, 7)
            if page.cursor is None or (page.previous is not None and chance.random() < 0.5):
                if page.previous is None:
                    break
                page = db.page(walk.query, limit=limit, cursor=page.previous)
                low -= sum(each in lasting for each in page)
            else:
                page = db.page(walk.query, limit=limit, cursor=page.cursor)
                low = high


def test_the_page_before_an_empty_last_page_is_the_last(target: Target) -> None:
    db = target.connect(shop())
    db.write_many(order(n) for n in range(6))
    asked = orders_of_user("u1")
    two = db.page(asked, limit=3, cursor=db.page(asked, limit=3).cursor)
    db.delete_where(asked)
    assert two.previous is not None
    none = db.page(asked, limit=3, cursor=two.previous)
    assert (none.items, none.previous) == ([], None)
    db.write_many(order(n) for n in range(4))
    assert none.cursor is not None
    assert numbers(db.page(asked, limit=3, cursor=none.cursor)) == [3, 2, 1]
    one = db.page(asked, limit=3)
    for n in range(4):
        db.delete(order(n))
    end = db.page(asked, limit=3, cursor=one.cursor)
    assert (end.items, end.cursor) == ([], None)
    db.write_many(order(n) for n in range(9))
    last = db.page(asked, limit=3, cursor=end.previous)
    assert (numbers(last), last.cursor) == ([2, 1, 0], None)


def test_a_declared_limit_holds_for_backward_pages(target: Target) -> None:
    clock = VirtualClock(1_700_000_000.0)
    db = target.connect(DESIGN, clock=clock)

    def add(number: int) -> None:
        clock.advance(60)
        db.put(Note(note_id=f"n{number}", topic="t"))

    def page(cursor: str | None, limit: int = 2) -> tuple[list[str], Page[Note]]:
        found = db.page(three_notes("t"), limit=limit, cursor=cursor)
        return [each.note_id for each in found], found

    for number in range(8):
        add(number)
    _, one = page(None)
    ids, two = page(one.cursor)
    assert (ids, two.cursor) == (["n5"], None)
    ids, back = page(two.previous)
    assert (ids, back.previous) == (["n7", "n6"], None)
    ids, again = page(back.cursor, limit=9)
    assert (ids, again.cursor) == (["n5"], None)
    db.delete(Note, note_id="n7")
    ids, back = page(again.previous, limit=9)
    assert (ids, back.previous) == (["n6"], None)
    assert page(back.cursor, limit=9)[0] == ["n5", "n4"]
    for number in range(8, 12):
        add(number)
    ids, back = page(again.previous, limit=9)
    assert ids == ["n9", "n8", "n6"]
    ids, first = page(back.previous, limit=9)
    assert (ids, first.previous) == (["n11", "n10"], None)
    ids, last = page(first.cursor, limit=9)
    assert (ids, last.cursor) == (["n9"], None)


@read(rps=0.001, returns=50, allow_scan=True)
def sessions_with(prefix: str) -> Query[Session]:
    return find(Session).filter(attr(Session.session_id).begins_with(prefix))


def test_a_pattern_that_scans_has_no_page_before(target: Target) -> None:
    design = Design("scanned", [Session], [sessions_with])
    assert design.plan().pattern("sessions_with").operation == "Scan"
    db = target.connect(design)
    db.write_many(_session(n) for n in range(20))
    page = db.page(sessions_with("s"), limit=4)
    page = db.page(sessions_with("s"), limit=4, cursor=page.cursor)
    assert (len(page), page.previous) == (4, None)


def test_a_backward_cursor_is_bound_to_its_query() -> None:
    db = connect(shop(), cursor_key=b"secret")
    db.write_many(order(n, user=1 + n % 2) for n in range(20))
    one = db.page(orders_of_user("u1"), limit=2)
    cursor = db.page(orders_of_user("u1"), limit=2, cursor=one.cursor).previous
    assert cursor is not None
    assert all(letter.isalnum() or letter in "-_" for letter in cursor)
    with pytest.raises(CursorRefused):
        db.page(orders_of_user("u2"), limit=2, cursor=cursor)
    with pytest.raises(CursorRefused):
        db.delete_where(orders_of_user("u1"), cursor=cursor)
