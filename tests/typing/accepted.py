"""Uses that mypy and pyright must accept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from decimal import Decimal

from stator import Page, connect, connect_async
from stator.design.entities.conditions import attr
from stator.design.patterns.pattern import Query, find, read
from stator.patterns.counter import Counter
from stator.patterns.rollups.rollup import Summary
from stator.patterns.sequence import Sequence
from stator.patterns.series.series import Series
from stator.tables.async_db import AsyncDb
from stator.tables.db import Db
from tests.design.shop import Order, Status, User, orders_of_user, profile_page, shop

User(user_id="u", email="e", name="n")
Order(order_id="o", user_id="u", placed_at=datetime.now(), total=Decimal(1), tags={"x"})
orders_of_user("u1", datetime.now())
profile_page("u1")
find(Order).where(
    (Order.total > 10) & (Order.status == Status.SHIPPED), Order.user_id >= "a"
).newest_first(Order.placed_at)
find(Order).where(attr(Order.status).is_in([Status.PENDING]), attr(Order.user_id).begins_with("u"))
order = Order(order_id="o", user_id="u", placed_at=datetime.now(), total=Decimal(1))
total: Decimal = order.total

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
    print(got, number)


@read(rps=1)
def by_user(user_id: str) -> Query[Order]:
    return find(Order).where(Order.user_id == user_id)


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
