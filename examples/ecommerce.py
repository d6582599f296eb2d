"""A shop: users, products with reviews, orders with their lines.

It reads a user by email, a user's newest orders, an order with its lines, the orders in a state,
the sales of a product between two dates, and the reviews of a product. It runs anywhere:

python examples/ecommerce.py                            in memory
python examples/ecommerce.py shop.db                    in a folder
python examples/ecommerce.py http://localhost:8000      on a server
python examples/ecommerce.py aws://eu-west-1            on AWS
"""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum

from stator import (
    Bundle2,
    Db,
    Design,
    Entity,
    Query,
    attr,
    connect,
    created,
    creates,
    find,
    ident,
    per,
    read,
    together,
    unique,
    updates,
    version,
    write,
)
from stator.errors import TransactionFailed, UniqueTaken


class Status(Enum):
    PENDING = "pending"
    SHIPPED = "shipped"


class User(Entity):
    user_id: str = ident()
    email: str = unique()
    name: str
    rev: int = version()


class Product(Entity):
    product_id: str = ident()
    name: str
    price: Decimal
    stock: int = 0


class Review(Entity):
    product_id: str = ident()
    user_id: str = ident()
    stars: int
    text: str = ""


class Order(Entity):
    order_id: str = ident()
    user_id: str
    total: Decimal
    status: Status = Status.PENDING
    placed_at: datetime = created()


class Line(Entity):
    order_id: str = ident()
    product_id: str = ident()
    name: str
    price: Decimal
    quantity: int
    sold_at: datetime = created()


@read(rps=200)
def user_by_email(email: str) -> Query[User]:
    return find(User).where(User.email == email)


@read(rps=300)
def product(product_id: str) -> Query[Product]:
    return find(Product).where(Product.product_id == product_id)


@read(rps=120, returns=10)
def orders_of_user(user_id: str) -> Query[Order]:
    return find(Order).where(Order.user_id == user_id).newest_first(Order.placed_at)


@read(rps=80, returns=4)
def order_with_lines(order_id: str) -> Bundle2[Order, Line]:
    return together(Order, Line).where(Order.order_id == order_id)


@read(rps=20)
def orders_by_status(status: Status) -> Query[Order]:
    return find(Order).where(Order.status == status).newest_first(Order.placed_at).limit(50)


@read(rps=5, returns=40)
def sales_of_product(product_id: str, start: datetime, end: datetime) -> Query[Line]:
    return find(Line).where(Line.product_id == product_id, attr(Line.sold_at).between(start, end))


@read(rps=50, returns=20)
def reviews_of(product_id: str) -> Query[Review]:
    return find(Review).where(Review.product_id == product_id)


@write(rps=40)
def place_order() -> object:
    return creates(Order), creates(Line, times=3), updates(Product.stock, times=3)


@write(rps=40)
def ship() -> object:
    return updates(Order.status)


shop = Design(
    "shop",
    [User, Product, Review, Order, Line],
    [
        user_by_email,
        product,
        orders_of_user,
        order_with_lines,
        orders_by_status,
        sales_of_product,
        reviews_of,
        place_order,
        ship,
    ],
    volumes={
        User: 100_000,
        Product: 5_000,
        Review: per(Product, 20),
        Order: per(User, 8),
        Line: per(Order, 3),
    },
    sizes={Order: 200},
)


def buy(db: Db, order_id: str, user_id: str, basket: dict[str, int]) -> Order:
    """Write an order and its lines and reduce the stock, in one transaction."""
    products = [found for found in db.get_many(Product, basket) if found is not None]
    total = sum((each.price * basket[each.product_id] for each in products), Decimal(0))
    order = Order(order_id=order_id, user_id=user_id, total=total)
    with db.transaction() as tx:
        tx.create(order)
        for each in products:
            wanted = basket[each.product_id]
            tx.create(
                Line(
                    order_id=order_id,
                    product_id=each.product_id,
                    name=each.name,
                    price=each.price,
                    quantity=wanted,
                )
            )
            with tx.update(Product, product_id=each.product_id) as bought:
                bought.stock -= wanted
                tx.require(Product.stock >= wanted)
    return order


def main(address: str | None = None) -> None:
    with connect(shop, address) as db:
        db.ensure()
        db.write_many(
            [
                Product(product_id="lamp", name="Lamp", price=Decimal("39.90"), stock=10),
                Product(product_id="desk", name="Desk", price=Decimal("249.00"), stock=2),
                Review(product_id="lamp", user_id="anna", stars=5, text="Bright."),
                Review(product_id="lamp", user_id="ben", stars=4),
            ]
        )
        anna = User(user_id="anna", email="anna@example.com", name="Anna")
        db.create(anna)
        try:
            db.create(User(user_id="other", email="anna@example.com", name="Not Anna"))
        except UniqueTaken as taken:
            print(f"refused: {taken}")

        placed = buy(db, "o1", "anna", {"lamp": 2, "desk": 1})
        try:
            buy(db, "o2", "anna", {"desk": 5})
        except TransactionFailed as failed:
            print(f"refused: {failed}")

        for each in db.fetch(orders_of_user("anna")):
            print(f"{each.order_id}: {each.total} {each.status.value}")
            with db.update(each) as order:
                order.status = Status.SHIPPED
        for status in Status:
            orders = db.page(orders_by_status(status), limit=20)
            print(f"{status.value}: {[each.order_id for each in orders]}")
        since = placed.placed_at - timedelta(minutes=1)
        sales = db.all(sales_of_product("lamp", since, since + timedelta(days=1)))
        print(f"{sum(line.quantity for line in sales)} lamps sold in a day")
        for part in db.fetch(order_with_lines("o1")):
            print(part)
        found = db.first(user_by_email("anna@example.com"))
        assert found is not None and found.name == "Anna"
        print(f"{db.count(reviews_of('lamp'))} reviews; {db.first(product('lamp'))}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
