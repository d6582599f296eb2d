"""Uses that mypy and pyright must accept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from decimal import Decimal

from stator.design.conditions import attr
from stator.design.patterns import Query, find, read
from stator.patterns.rollup import Summary
from stator.patterns.sequence import Sequence
from stator.patterns.series import Series
from stator.tables.async_db import AsyncDb
from stator.tables.db import Db
from stator.tables.reads import Page
from tests.design.shop import Order, Status, User, orders_of_user, profile_page

User(user_id="u", email="e", name="n")
Order(order_id="o", user_id="u", placed_at=datetime.now(), total=Decimal(1), tags={"x"})
orders_of_user("u1", datetime.now())
profile_page("u1")
find(Order).where((Order.total > 10) & (Order.status == Status.SHIPPED), Order.user_id >= "a").newest_first(
    Order.placed_at
)
find(Order).where(attr(Order.status).is_in([Status.PENDING]), attr(Order.user_id).begins_with("u"))
order = Order(order_id="o", user_id="u", placed_at=datetime.now(), total=Decimal(1))
total: Decimal = order.total


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
