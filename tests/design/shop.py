"""A shop's entities and patterns, as a user would write them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Literal
from uuid import UUID

from stator.design.design import Design, per
from stator.design.entities.entity import Entity
from stator.design.entities.markers import created, ident, ttl, unique, updated, version
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Bundle2, Count, Query, find, together
from stator.design.patterns.write_pattern import creates, updates, write
from stator.design.value_facts import share


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
    channel: Literal["web", "shop"] = "web"
    tags: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)
    token: UUID | None = None
    weights: tuple[float, ...] = ()
    extra: dict[str, int] = field(default_factory=dict)
    expires: datetime | None = ttl(days=90, default=None)
    made: datetime = created()
    seen: datetime = updated()


@read(rps=200)
def user_by_id(user_id: str) -> Query[User]:
    return find(User).where(User.user_id == user_id)


@read(rps=120, returns=25)
def orders_of_user(user_id: str, since: datetime) -> Query[Order]:
    return (
        find(Order)
        .where(Order.user_id == user_id, Order.placed_at >= since)
        .newest_first(Order.placed_at)
        .limit(25)
    )


@read(rps=40, returns=30)
def profile_page(user_id: str) -> Bundle2[User, Order]:
    return together(User, Order).where(User.user_id == user_id)


@read(rps=1)
def pending_count() -> Count[Order]:
    return find(Order).where(Order.status == Status.PENDING).count()


@write(rps=30)
def place_order() -> object:
    """An order and the user's profile, in one transaction."""
    return creates(Order), updates(User.name)


shop = Design(
    "shop",
    [User, Order],
    [user_by_id, orders_of_user, profile_page, pending_count, place_order],
    volumes={User: 2_000_000, Order: per(User, 12)},
    facts=[share(Order.status == Status.PENDING, 0.001)],
)
