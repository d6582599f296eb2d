"""The e-commerce model of the user's own notes.

Source: "DynamoDB Design Patterns That Scale", sections "Single Table Design" and "Access Patterns
and GSI Design" (../shared/seeds/002). The notes also write a second copy of each order under its
user. Their GSI1 holds the same data, so the copy is left out here. That favours the notes: the copy
would cost one more write for each order and each change of its status.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

from stator import (
    Bundle2,
    Entity,
    Query,
    attr,
    creates,
    find,
    ident,
    per,
    read,
    together,
    updates,
    write,
)

from .model import Keys, Model, Wanted

START = datetime(2026, 3, 1, tzinfo=UTC)


class Status(Enum):
    PENDING = "PENDING"
    PAID = "PAID"
    SHIPPED = "SHIPPED"


class User(Entity):
    user_id: str = ident()
    email: str
    name: str
    created_at: datetime


class Product(Entity):
    product_id: str = ident()
    name: str
    price: Decimal


class Review(Entity):
    product_id: str = ident()
    user_id: str = ident()
    stars: int


class Order(Entity):
    order_id: str = ident()
    user_id: str
    created_at: datetime
    status: Status = Status.PENDING
    total: Decimal


class OrderItem(Entity):
    order_id: str = ident()
    product_id: str = ident()
    sold_at: datetime
    price: Decimal
    quantity: int


@read(rps=200)
def user_profile(user_id: str) -> Query[User]:
    return find(User).where(User.user_id == user_id)


@read(rps=20)
def user_by_email(email: str) -> Query[User]:
    return find(User).where(User.email == email)


@read(rps=100, returns=10)
def user_orders(user_id: str) -> Query[Order]:
    return find(Order).where(Order.user_id == user_id).newest_first(Order.created_at).limit(10)


@read(rps=80, returns=4)
def order_with_items(order_id: str) -> Bundle2[Order, OrderItem]:
    return together(Order, OrderItem).where(Order.order_id == order_id)


@read(rps=2, returns=50)
def orders_by_status(status: Status) -> Query[Order]:
    return find(Order).where(Order.status == status).newest_first(Order.created_at).limit(50)


@read(rps=5, returns=40)
def product_sales(product_id: str, start: datetime, end: datetime) -> Query[OrderItem]:
    return find(OrderItem).where(
        OrderItem.product_id == product_id, attr(OrderItem.sold_at).between(start, end)
    )


@read(rps=60, returns=21)
def product_page(product_id: str) -> Bundle2[Product, Review]:
    return together(Product, Review).where(Product.product_id == product_id)


@write(rps=30)
def create_order() -> object:
    return creates(Order), creates(OrderItem, 3)


@write(rps=60)
def update_order_status() -> object:
    return updates(Order.status)


@write(rps=2)
def create_user() -> object:
    return creates(User)


def objects(chance: random.Random) -> list[Any]:
    users, products = [f"u{at}" for at in range(5)], [f"p#{at}" for at in range(4)]
    found: list[Any] = [
        User(user_id=each, email=f"{each}@x.org", name=each, created_at=START) for each in users
    ]
    for product in products:
        found.append(Product(product_id=product, name=product, price=Decimal("9.5")))
        found += [
            Review(product_id=product, user_id=each, stars=4) for each in chance.sample(users, 3)
        ]
    for at in range(60):
        when = START + timedelta(minutes=at * 7)
        found.append(
            Order(
                order_id=f"o{at}",
                user_id=chance.choice(users),
                created_at=when,
                status=chance.choice(list(Status)),
                total=Decimal(at),
            )
        )
        for each in chance.sample(products, chance.randrange(1, 4)):
            found.append(
                OrderItem(
                    order_id=f"o{at}", product_id=each, sold_at=when, price=Decimal(1), quantity=at
                )
            )
    return found


MODEL = Model(
    name="ecommerce",
    entities=(User, Product, Review, Order, OrderItem),
    patterns=(
        user_profile,
        user_by_email,
        user_orders,
        order_with_items,
        orders_by_status,
        product_sales,
        product_page,
        create_order,
        update_order_status,
        create_user,
    ),
    volumes={
        User: 100_000,
        Product: 5_000,
        Review: per(Product, 20),
        Order: per(User, 12),
        OrderItem: per(Order, 3),
    },
    keys={
        User: Keys(("USER#{user_id}", "PROFILE"), {"GSI1": ("EMAIL#{email}", "USER#{user_id}")}),
        Product: Keys(("PRODUCT#{product_id}", "METADATA")),
        Review: Keys(("PRODUCT#{product_id}", "REVIEW#{user_id}")),
        Order: Keys(
            ("ORDER#{order_id}", "METADATA"),
            {
                "GSI1": ("USER#{user_id}", "ORDER#{created_at}"),
                "GSI2": ("STATUS#{status}", "ORDER#{created_at}"),
            },
        ),
        OrderItem: Keys(
            ("ORDER#{order_id}", "ITEM#{product_id}"),
            {"GSI3": ("PRODUCT#{product_id}", "SALE#{sold_at}")},
        ),
    },
    paths={
        "user_profile": Wanted("GetItem", "table", ("user_id",)),
        "user_by_email": Wanted("Query", "index", ("email",)),
        "user_orders": Wanted("Query", "index", ("user_id",), ("created_at",)),
        "order_with_items": Wanted("Query", "table", ("order_id",)),
        "orders_by_status": Wanted("Query", "index", ("status",), ("created_at",)),
        "product_sales": Wanted("Query", "index", ("product_id",), ("sold_at",)),
        "product_page": Wanted("Query", "table", ("product_id",)),
    },
    objects=objects,
    calls=(
        ("user_profile", {"user_id": "u2"}),
        ("user_by_email", {"email": "u3@x.org"}),
        ("user_orders", {"user_id": "u1"}),
        ("order_with_items", {"order_id": "o7"}),
        ("orders_by_status", {"status": Status.PAID}),
        ("product_sales", {"product_id": "p#1", "start": START, "end": START + timedelta(hours=3)}),
        ("product_page", {"product_id": "p#2"}),
    ),
    differences={},
)
