"""Published: the e-commerce example of The DynamoDB Book."""

from datetime import datetime
from decimal import Decimal
from typing import Literal

from stator import (
    Bundle2,
    Design,
    Entity,
    Query,
    creates,
    find,
    ident,
    per,
    read,
    together,
    unique,
    updates,
    write,
)

SOURCE = (
    "The DynamoDB Book, e-commerce chapter. From memory; confidence high. Customer and its "
    "orders share "
    "the customer's partition; addresses are a map in the customer; an order's items are "
    "found with the "
    "order by one overloaded index; e-mail addresses are guarded by items of their own."
)


class Customer(Entity):
    username: str = ident()
    email: str = unique()
    name: str
    addresses: dict[str, str]


class Order(Entity):
    username: str = ident()
    order_id: str = ident()  # a KSUID: sorts by time
    status: Literal["placed", "shipped", "delivered"]
    created_at: datetime
    amount: Decimal
    item_count: int


class OrderItem(Entity):
    order_id: str = ident()
    item_id: str = ident()
    description: str
    price: Decimal


@read(rps=100)
def customer(username: str) -> Query[Customer]:
    return find(Customer).where(Customer.username == username)


@read(rps=5)
def customer_by_email(email: str) -> Query[Customer]:
    return find(Customer).where(Customer.email == email)


@read(rps=60, returns=11)
def customer_with_orders(username: str) -> Bundle2[Customer, Order]:
    return together(Customer, Order).where(Customer.username == username)


@read(rps=30, returns=10)
def orders_of_customer(username: str) -> Query[Order]:
    return find(Order).where(Order.username == username).newest_first(Order.order_id).limit(10)


@read(rps=40, returns=4)
def order_with_items(order_id: str) -> Bundle2[Order, OrderItem]:
    return together(Order, OrderItem).where(Order.order_id == order_id)


@write(rps=1)
def sign_up() -> object:
    return creates(Customer)


@write(rps=2)
def change_addresses() -> object:
    return updates(Customer.addresses)


@write(rps=10)
def place_order() -> object:
    return creates(Order), creates(OrderItem, times=3)


@write(rps=15)
def change_status() -> object:
    return updates(Order.status)


design = Design(
    "book_ecommerce",
    [Customer, Order, OrderItem],
    [
        customer,
        customer_by_email,
        customer_with_orders,
        orders_of_customer,
        order_with_items,
        sign_up,
        change_addresses,
        place_order,
        change_status,
    ],
    volumes={Customer: 500_000, Order: per(Customer, 10), OrderItem: per(Order, 3)},
    sizes={Customer: 900, Order: 350, OrderItem: 250},
)

EXPECTED = {
    "max_indexes": 1,
    "entities": {
        "Customer": {"partition": ["username"], "sort": []},
        "Order": {"partition": ["username"], "sort": ["order_id"]},
        "OrderItem": {
            "partition": ["order_id", "item_id"],
            "sort": [],
            "or": [{"partition": ["order_id"], "sort": ["item_id"]}],
        },
    },
    "patterns": {
        "customer": {"by": "base"},
        "customer_by_email": {
            "by": "guard",
            "or": [{"by": "index", "partition": ["email"], "sort": []}],
        },
        "customer_with_orders": {"by": "base"},
        "orders_of_customer": {"by": "base"},
        "order_with_items": {"by": "index", "partition": ["order_id"], "sort": []},
    },
}
WHY = {
    "OrderItem": "Items are read only with their order, through the index; alone in the base "
    "is what "
    "the book does. Putting them at the order's id in the base cannot help: the order is "
    "elsewhere.",
}
