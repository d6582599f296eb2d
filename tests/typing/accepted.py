"""Uses that mypy and pyright must accept."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any, assert_type

from msgspec import Struct
from pydantic import BaseModel

from stator import (
    Bundle3,
    Bundle4,
    Count,
    Delete,
    Entity,
    Get,
    Page,
    PatternWritePreview,
    PatternWriteResult,
    adapt,
    connect,
    connect_async,
    day_of,
    descending,
    hour_of,
    ident,
    month_of,
    prefix_of,
    version,
    year_of,
)
from stator.design.entities.conditions import attr
from stator.design.patterns.explanation import Explanation
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Query, find
from stator.patterns.counter import Counter
from stator.patterns.once import Once
from stator.patterns.rollups.rollup import Summary
from stator.patterns.sequence import Sequence
from stator.patterns.series.series import Series
from stator.tables.db import AsyncDb, Db
from stator.tables.dry_run import WriteExplanation
from stator.tables.writes.batches import BatchResult
from stator.tables.writes.transactions import Transaction
from tests.design.shop import Order, Status, User, orders_of_user, profile_page, shop

User(user_id="u", email="e", name="n")
Order(order_id="o", user_id="u", placed_at=datetime.now(), total=Decimal(1), tags={"x"})
orders_of_user("u1", datetime.now())
profile_page("u1")
find(Order).where(
    (Order.total > 10) & (Order.status == Status.SHIPPED), Order.user_id >= "a"
).newest_first(Order.placed_at)
find(Order).where(attr(Order.status).is_in([Status.PENDING]), attr(Order.user_id).begins_with("u"))
find(Order).where(~(Order.total > 10), ~(Order.status == Status.SHIPPED) & (Order.total < 5))
find(Order).filter(attr(Order.token).exists() & (Order.total > 1), ~attr(Order.token).exists())
find(Order).filter((Order.total > 1) & ~attr(Order.token).exists() | (Order.total < 0))
find(Order).where(attr(Order.expires) > datetime.now(), attr(Order.total) <= Decimal(5))
find(Order).where(attr(Order.expires).between(datetime.now(), datetime.now()))
find(Order).where(Order.expires == None, Order.token != None)  # noqa: E711
find(Order).where(
    month_of(Order.placed_at) == "2026-11", year_of(Order.expires) == date(2026, 1, 1)
)
find(Order).where(hour_of(Order.placed_at) == datetime.now(), day_of(Order.expires) == "2026-11-05")
find(Order).order_by(descending(Order.total), Order.user_id, descending=True)
find(Order).where(prefix_of(Order.user_id, 3) == "abc", ~(prefix_of(User.name, 3) == "abc"))
order = Order(order_id="o", user_id="u", placed_at=datetime.now(), total=Decimal(1))
total: Decimal = order.total


def ship(order: Order) -> None:
    order.status = Status.SHIPPED


db = connect(shop)
found: Order | None = db.get(Order, order_id="o")
for each in db.fetch(orders_of_user("u1", datetime.now())):
    amount: Decimal = each.total
for part in db.fetch(profile_page("u1")):
    kind: User | Order = part
page: Page[Order] = db.page(orders_of_user("u1", datetime.now()), limit=3, cursor=None)
with db.update(Order, order_id="o") as changing:
    changing.total += 5
    changing.tags.add("x")
with db.update(order, returns="new") as changing:
    changing.status = Status.SHIPPED
with db.transaction() as tx, tx.update(User, user_id="u") as person:
    person.name = "n"
    tx.require(User.name == "m")
assert_type(Once(db, "payments").run("k", lambda: order), Order)
counter = Counter(db, "views")
views: int = counter.value()


async def awaited() -> None:
    other = connect_async(shop)
    got: Order | None = await other.get(Order, order_id="o")
    async for each in other.fetch(orders_of_user("u1", datetime.now())):
        amount = each.total
        print(amount)
    async with other.update(Order, order_id="o") as changing:
        changing.total -= 1
    number: int = await Counter(other, "views").value()
    assert_type(await Once(other, "payments").run("k", other.close), None)
    print(got, number)


@read(rps=1)
def by_user(user_id: str) -> Query[Order]:
    return find(Order).where(Order.user_id == user_id)


@read(rps=1)
def how_many(user_id: str) -> Count[Order]:
    return find(Order).where(Order.user_id == user_id).count()


class Tag(Entity):
    tag: str = ident()


class Mark(Entity, frozen=True):
    mark: str = ident()
    rev: int = version()


mark: Mark = dataclasses.replace(Mark(mark="m"), mark="n")


def series(db: Db) -> list[Summary]:
    orders = Series(db, Order, by=Order.user_id, at=Order.placed_at)
    orders.add(order)
    found: Iterator[Order] = orders.range("u1")
    page: Page[Order] = orders.page("u1", limit=5)
    numbered: Order = Sequence(db, "orders").create(lambda number: order)
    print(next(found).total, page.items[0].total, orders.latest("u1")[0].total, numbered.total)
    return orders.rollup("hour", of=Order.total).range("u1", order.placed_at, order.placed_at)


async def series_awaited(db: AsyncDb) -> int:
    orders = Series(db, Order, by=Order.user_id, at=Order.placed_at)
    await orders.add(order)
    found: AsyncIterator[Order] = orders.range("u1")
    async for each in found:
        print(each.total)
    return await orders.count("u1") + await Sequence(db, "orders").next()


def every_method(
    db: Db, wide: Bundle3[User, Order, Tag], widest: Bundle4[User, Order, Tag, Mark]
) -> None:
    """What each method of a Db returns; ``every_awaited_method`` says the same of an AsyncDb."""
    assert_type(db.within(1.0), Db)
    assert_type(db.call("ListTables", {}, idempotent=True), dict[str, Any])
    assert_type(db.ensure(), list[str])
    assert_type(db.create(order, when=Order.total > 1, once=True), Order)
    assert_type(db.put(order), Order)
    assert_type(db.put(order, returns="old"), Order | None)
    assert_type(db.upsert(order), Order)
    assert_type(db.get(User, user_id="u", consistent=True, include_expired=True), User | None)
    assert_type(db.get_many(Order, ["o1", {"order_id": "o2"}]), list[Order | None])
    assert_type(db.get_one(User, user_id="u", consistent=True), User)
    assert_type(db.first_or_raise(by_user("u")), Order)
    assert_type(db.all(by_user("u"), limit=3), list[Order])
    assert_type(db.all(profile_page("u1")), list[User | Order])
    assert_type(db.grouped(profile_page("u1")), tuple[list[User], list[Order]])
    assert_type(db.grouped(wide), tuple[list[User], list[Order], list[Tag]])
    assert_type(db.grouped(widest), tuple[list[User], list[Order], list[Tag], list[Mark]])
    assert_type(db.patch(User, {"name": "n"}, user_id="u"), None)
    assert_type(db.patch(User, {"name": "n"}, user_id="u", returns="new"), User)
    assert_type(db.patch(order, {"total": 1}, returns="new", when=Order.total > 1), Order)
    assert_type(
        db.snapshot(Get(User, user_id="u"), Get(Order, order_id="o")),
        tuple[User | None, Order | None],
    )
    assert_type(db.snapshot([Get(Order, order_id="o")], include_expired=True), list[Order | None])
    assert_type(db.dry_run().create(order, once=True), WriteExplanation)
    assert_type(db.dry_run().put(order, returns="old"), WriteExplanation)
    explained = db.dry_run().update(Order, order_id="o")
    with explained as opened:
        assert_type(opened, Order)
    assert_type(explained.explanation, WriteExplanation)
    pairs = by_user("u").only(Order.order_id, Order.total)
    assert_type(db.all(pairs), list[tuple[str, Decimal]])
    assert_type(db.fetch(pairs), Iterator[tuple[str, Decimal]])
    assert_type(db.first(by_user("u").only(Order.status)), tuple[Status] | None)
    assert_type(db.exists(User, user_id="u"), bool)
    assert_type(db.delete(User, user_id="u", must_exist=True, returns="old"), User | None)
    assert_type(db.delete(order, when=Order.total > 1), Order | None)
    assert_type(db.fetch(by_user("u"), limit=3, consistent=True), Iterator[Order])
    assert_type(db.fetch(profile_page("u1")), Iterator[User | Order])
    assert_type(db.fetch(wide), Iterator[User | Order | Tag])
    assert_type(db.fetch(widest), Iterator[User | Order | Tag | Mark])
    assert_type(db.page(profile_page("u1"), limit=3), Page[User | Order])
    assert_type(db.page(by_user("u"), limit=3, cursor="x"), Page[Order])
    assert_type(db.page(widest, limit=3), Page[User | Order | Tag | Mark])
    assert_type(db.first(by_user("u")), Order | None)
    assert_type(db.first(profile_page("u1")), User | Order | None)
    assert_type(db.count(by_user("u")), int)
    assert_type(db.count(how_many("u")), int)
    assert_type(db.explain(by_user("u")), Explanation)
    assert_type(db.scan(Order, allow=True, segments=4), Iterator[Order])
    assert_type(db.write_many([order, Delete(Order, order_id="o")]), BatchResult)
    assert_type(db.write_many([order], on_error="collect"), BatchResult)
    assert_type(db.delete_many(Order, ["o"]), BatchResult)
    assert_type(db.delete_where(by_user("u"), limit=3), PatternWriteResult)
    assert_type(db.delete_where(wide, dry_run=True), PatternWritePreview)
    assert_type(db.update_where(by_user("u"), ship), PatternWriteResult)
    assert_type(db.update_where(by_user("u"), ship, dry_run=True), PatternWritePreview)
    assert_type(db.run(db.operations.get(User, user_id="u")), User | None)
    with db.transaction(token="t") as tx:
        assert_type(tx, Transaction)
    changing = db.update(Order, order_id="o", or_create=True, returns="new", once=True)
    changing.require(Order.total > 1)
    with changing as recorded:
        assert_type(recorded, Order)
    assert_type(changing.result, Order | None)
    with db.update(order) as recorded:
        assert_type(recorded, Order)


async def every_awaited_method(
    db: AsyncDb, wide: Bundle3[User, Order, Tag], widest: Bundle4[User, Order, Tag, Mark]
) -> None:
    assert_type(db.within(1.0), AsyncDb)
    assert_type(await db.call("ListTables", {}, idempotent=True), dict[str, Any])
    assert_type(await db.ensure(), list[str])
    assert_type(await db.create(order, when=Order.total > 1, once=True), Order)
    assert_type(await db.put(order), Order)
    assert_type(await db.put(order, returns="old"), Order | None)
    assert_type(await db.upsert(order), Order)
    assert_type(await db.get(User, user_id="u", consistent=True, include_expired=True), User | None)
    assert_type(await db.get_many(Order, ["o1", {"order_id": "o2"}]), list[Order | None])
    assert_type(await db.get_one(User, user_id="u", consistent=True), User)
    assert_type(await db.first_or_raise(by_user("u")), Order)
    assert_type(await db.all(by_user("u"), limit=3), list[Order])
    assert_type(await db.all(profile_page("u1")), list[User | Order])
    assert_type(await db.grouped(profile_page("u1")), tuple[list[User], list[Order]])
    assert_type(await db.grouped(wide), tuple[list[User], list[Order], list[Tag]])
    assert_type(await db.grouped(widest), tuple[list[User], list[Order], list[Tag], list[Mark]])
    assert_type(await db.patch(User, {"name": "n"}, user_id="u"), None)
    assert_type(await db.patch(User, {"name": "n"}, user_id="u", returns="new"), User)
    assert_type(await db.patch(order, {"total": 1}, returns="new", when=Order.total > 1), Order)
    assert_type(
        await db.snapshot(Get(User, user_id="u"), Get(Order, order_id="o")),
        tuple[User | None, Order | None],
    )
    assert_type(
        await db.snapshot([Get(Order, order_id="o")], include_expired=True), list[Order | None]
    )
    assert_type(db.dry_run().create(order, once=True), WriteExplanation)
    assert_type(db.dry_run().put(order, returns="old"), WriteExplanation)
    explained = db.dry_run().update(Order, order_id="o")
    with explained as opened:
        assert_type(opened, Order)
    assert_type(explained.explanation, WriteExplanation)
    pairs = by_user("u").only(Order.order_id, Order.total)
    assert_type(await db.all(pairs), list[tuple[str, Decimal]])
    assert_type(db.fetch(pairs), AsyncIterator[tuple[str, Decimal]])
    assert_type(await db.first(by_user("u").only(Order.status)), tuple[Status] | None)
    assert_type(await db.exists(User, user_id="u"), bool)
    assert_type(await db.delete(User, user_id="u", must_exist=True, returns="old"), User | None)
    assert_type(await db.delete(order, when=Order.total > 1), Order | None)
    assert_type(db.fetch(by_user("u"), limit=3, consistent=True), AsyncIterator[Order])
    assert_type(db.fetch(profile_page("u1")), AsyncIterator[User | Order])
    assert_type(db.fetch(wide), AsyncIterator[User | Order | Tag])
    assert_type(db.fetch(widest), AsyncIterator[User | Order | Tag | Mark])
    assert_type(await db.page(profile_page("u1"), limit=3), Page[User | Order])
    assert_type(await db.page(by_user("u"), limit=3, cursor="x"), Page[Order])
    assert_type(await db.page(widest, limit=3), Page[User | Order | Tag | Mark])
    assert_type(await db.first(by_user("u")), Order | None)
    assert_type(await db.first(profile_page("u1")), User | Order | None)
    assert_type(await db.count(by_user("u")), int)
    assert_type(await db.count(how_many("u")), int)
    assert_type(db.explain(by_user("u")), Explanation)
    assert_type(db.scan(Order, allow=True, segments=4), AsyncIterator[Order])
    assert_type(await db.write_many([order, Delete(Order, order_id="o")]), BatchResult)
    assert_type(await db.delete_many(Order, ["o"]), BatchResult)
    assert_type(await db.delete_where(by_user("u"), limit=3), PatternWriteResult)
    assert_type(await db.delete_where(wide, dry_run=True), PatternWritePreview)
    assert_type(await db.update_where(by_user("u"), ship), PatternWriteResult)
    assert_type(await db.update_where(by_user("u"), ship, dry_run=True), PatternWritePreview)
    assert_type(await db.run(db.operations.get(User, user_id="u")), User | None)
    async with db.transaction(token="t") as tx:
        assert_type(tx, Transaction)
    changing = db.update(Order, order_id="o", or_create=True, returns="new", once=True)
    changing.require(Order.total > 1)
    async with changing as recorded:
        assert_type(recorded, Order)
    assert_type(changing.result, Order | None)
    async with db.update(order) as recorded:
        assert_type(recorded, Order)
    task = asyncio.create_task(db.get(User, user_id="u"))
    assert_type(await task, User | None)


class CustomerModel(BaseModel):
    customer_id: str


class ParcelStruct(Struct):
    parcel_id: str


Customer = adapt(CustomerModel, ident="customer_id")
Parcel = adapt(ParcelStruct, ident="parcel_id")


def models(db: Db) -> None:
    assert_type(db.create(Customer(customer_id="c")), CustomerModel)
    assert_type(db.get(Parcel, parcel_id="p"), ParcelStruct | None)
    with db.transaction() as tx:
        tx.create(Customer(customer_id="c"))
        tx.put(Parcel(parcel_id="p"))
    db.write_many([Customer(customer_id="c"), Parcel(parcel_id="p"), order])
