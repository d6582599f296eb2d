"""Uses that mypy and pyright must accept."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from stator.design.conditions import attr
from stator.design.patterns import Query, find, read
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
