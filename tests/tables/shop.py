"""A shop as the data layer's tests use it: every marker, every shape of key."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Any

from stator import (
    Bundle2,
    Count,
    Design,
    Entity,
    Query,
    created,
    find,
    ident,
    per,
    read,
    together,
    ttl,
    unique,
    updated,
    version,
)
from stator.design.design import Layout
from stator.design.patterns.pattern import Pattern
from stator.design.patterns.write_pattern import WritePattern


class Status(Enum):
    PENDING = "pending"
    SHIPPED = "shipped"


@dataclass
class Address:
    street: str
    city: str
    floor: int | None = None


class User(Entity):
    user_id: str = ident()
    email: str = unique()
    name: str
    address: Address | None = None
    rev: int = version()


class Order(Entity):
    order_id: str = ident()
    user_id: str
    placed_at: datetime
    status: Status = Status.PENDING
    total: Decimal
    tags: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)
    extra: dict[str, int] = field(default_factory=dict)
    note: str | None = None
    made: datetime = created()
    seen: datetime = updated()


class Product(Entity):
    sku: str = ident()
    stock: int = 0
    price: Decimal = Decimal(0)


class Session(Entity):
    session_id: str = ident()
    user_id: str
    expires: datetime | None = ttl(hours=1, default=None)


@read(rps=100)
def user_by_id(user_id: str) -> Query[User]:
    return find(User).where(User.user_id == user_id)


@read(rps=50)
def order_by_id(order_id: str) -> Query[Order]:
    return find(Order).where(Order.order_id == order_id)


@read(rps=100, returns=25)
def orders_of_user(user_id: str) -> Query[Order]:
    return find(Order).where(Order.user_id == user_id).newest_first(Order.placed_at)


@read(rps=10, returns=50)
def orders_in_status(status: Status, since: datetime) -> Query[Order]:
    return find(Order).where(Order.status == status, Order.placed_at >= since)


@read(rps=1)
def count_in_status(status: Status) -> Count[Order]:
    return find(Order).where(Order.status == status).count()


@read(rps=5, returns=5)
def dear_orders(user_id: str, least: Decimal) -> Query[Order]:
    return (
        find(Order)
        .where(Order.user_id == user_id)
        .filter(Order.total >= least)
        .newest_first(Order.placed_at)
    )


@read(rps=20)
def product_by_sku(sku: str) -> Query[Product]:
    return find(Product).where(Product.sku == sku)


@read(rps=20, returns=3)
def sessions_of(user_id: str) -> Query[Session]:
    return find(Session).where(Session.user_id == user_id)


@read(rps=20, returns=5)
def profile(user_id: str) -> Bundle2[User, Session]:
    return together(User, Session).where(User.user_id == user_id)


PATTERNS: list[Pattern[..., Any] | WritePattern] = [
    user_by_id,
    order_by_id,
    orders_of_user,
    orders_in_status,
    count_in_status,
    dear_orders,
    product_by_sku,
    sessions_of,
    profile,
]
T0 = datetime(2026, 1, 1, tzinfo=UTC)


@cache
def shop(layout: Layout = "single-table") -> Design:
    """The design, which is planned once: over a thousand tests connect with it."""
    return Design(
        "shop",
        [User, Order, Product, Session],
        PATTERNS,
        volumes={User: 10_000, Order: per(User, 12), Product: 1000, Session: per(User, 2)},
        layout=layout,
    )


def user(number: int = 1) -> User:
    return User(user_id=f"u{number}", email=f"u{number}@example.com", name=f"User {number}")


def order(number: int, user: int = 1, **more: Any) -> Order:
    given: dict[str, Any] = {
        "order_id": f"o{number:03d}",
        "user_id": f"u{user}",
        "placed_at": T0 + timedelta(hours=number),
        "total": Decimal(number),
    }
    return Order(**(given | more))
