"""A small design whose changes the tests watch."""

from __future__ import annotations

from stator import Design, Entity, Query, find, ident, read, ttl


class Order(Entity):
    order_id: str = ident()
    status: str = "new"
    total: int = 0
    expires: int | None = ttl(default=None)


class Customer(Entity):
    customer_id: str = ident()
    name: str


@read()
def order(order_id: str) -> Query[Order]:
    return find(Order).where(Order.order_id == order_id)


@read()
def customer(customer_id: str) -> Query[Customer]:
    return find(Customer).where(Customer.customer_id == customer_id)


shop = Design("shop", [Order, Customer], [order, customer])
