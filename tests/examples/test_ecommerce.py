"""The shop: orders by status, sales of a product by date, and a stock that is never oversold."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from ecommerce import (
    Order,
    Product,
    Status,
    buy,
    order_with_lines,
    orders_by_status,
    sales_of_product,
    shop,
)

from stator import Db, connect
from stator.clock import VirtualClock
from stator.errors import TransactionFailed
from tests.targets import Target


def stocked(db: Db, stock: int) -> Db:
    db.put(Product(product_id="lamp", name="Lamp", price=Decimal("39.90"), stock=stock))
    db.put(Product(product_id="desk", name="Desk", price=Decimal(249), stock=stock))
    return db


def test_an_order_has_its_lines_its_total_and_takes_from_the_stock(target: Target) -> None:
    db = stocked(target.connect(shop), stock=10)
    order = buy(db, "o1", "anna", {"lamp": 2, "desk": 1})
    assert order.total == Decimal("328.80")
    [stored], lines = db.grouped(order_with_lines("o1"))
    assert stored.total == sum(line.price * line.quantity for line in lines)
    left = db.get_many(Product, ["lamp", "desk"], consistent=True)
    assert [each.stock for each in left if each] == [8, 9]


def test_an_order_that_cannot_be_filled_leaves_nothing(target: Target) -> None:
    db = stocked(target.connect(shop), stock=3)
    with pytest.raises(TransactionFailed):
        buy(db, "o1", "anna", {"lamp": 1, "desk": 4})
    assert db.all(order_with_lines("o1")) == []
    assert db.get_one(Product, product_id="lamp").stock == 3


def test_orders_are_listed_by_status_newest_first(target: Target) -> None:
    db = target.connect(shop)
    for number in range(6):
        order = db.create(Order(order_id=f"o{number}", user_id="u", total=Decimal(1)))
        if number % 2:
            with db.update(order) as changing:
                changing.status = Status.SHIPPED
    shipped = db.page(orders_by_status(Status.SHIPPED), limit=2)
    assert [each.order_id for each in shipped] == ["o5", "o3"]
    rest = db.page(orders_by_status(Status.SHIPPED), limit=2, cursor=shipped.cursor)
    assert [each.order_id for each in rest] == ["o1"]
    assert [each.order_id for each in db.fetch(orders_by_status(Status.PENDING))] == [
        "o4",
        "o2",
        "o0",
    ]


def test_the_sales_of_a_product_lie_between_two_dates() -> None:
    clock = VirtualClock()
    with connect(shop, clock=clock) as db:
        stocked(db, stock=100)
        start = datetime.fromtimestamp(clock.now(), UTC)
        for day in range(5):
            buy(db, f"o{day}", "anna", {"lamp": day + 1, "desk": 1})
            clock.advance(timedelta(days=1).total_seconds())
        sales = db.all(
            sales_of_product("lamp", start + timedelta(days=1), start + timedelta(days=3))
        )
        assert [(line.product_id, line.quantity) for line in sales] == [
            ("lamp", 2),
            ("lamp", 3),
            ("lamp", 4),
        ]


def test_buyers_at_once_cannot_buy_more_than_there_is() -> None:
    with connect(shop) as db, ThreadPoolExecutor(8) as threads:
        stocked(db, stock=10)

        def attempt(number: int) -> bool:
            try:
                buy(db, f"o{number}", "anna", {"lamp": 3})
            except TransactionFailed:
                return False
            return True

        assert sum(threads.map(attempt, range(20))) == 3
        assert db.get_one(Product, product_id="lamp").stock == 1
        assert db.count(orders_by_status(Status.PENDING)) == 3
