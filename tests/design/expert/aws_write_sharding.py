"""Published: AWS's write sharding example: orders of a day, at a rate that one key cannot take."""

from datetime import date, datetime

from stator import (
    Design,
    Entity,
    Query,
    creates,
    distinct,
    find,
    ident,
    read,
    write,
)

SOURCE = (
    "AWS developer guide, write sharding. From memory; confidence high: the date gets a "
    "suffix, computed "
    "from the order id, and a reader asks all suffixes."
)


class Order(Entity):
    order_id: str = ident()
    customer_id: str
    day: date
    placed_at: datetime
    cents: int


class Customer(Entity):
    customer_id: str = ident()
    country: str
    name: str


@read(rps=2_000)
def order(order_id: str) -> Query[Order]:
    return find(Order).where(Order.order_id == order_id)


@read(rps=0.01, returns=300_000)
def orders_between(day: date, start: datetime, end: datetime) -> Query[Order]:
    return (
        find(Order)
        .where(Order.day == day, Order.placed_at >= start, Order.placed_at < end)
        .oldest_first(Order.placed_at)
    )


@read(rps=300, returns=10)
def orders_of(customer_id: str) -> Query[Order]:
    return (
        find(Order).where(Order.customer_id == customer_id).newest_first(Order.placed_at).limit(10)
    )


@read(rps=500)
def customer(customer_id: str) -> Query[Customer]:
    return find(Customer).where(Customer.customer_id == customer_id)


@write(rps=5_000)
def place() -> object:
    return creates(Order)


design = Design(
    "aws_write_sharding",
    [Order, Customer],
    [order, orders_between, orders_of, customer, place],
    facts=[
        distinct(Order.day, values=93),
        distinct(Order.customer_id, values=30_000_000),
    ],
    volumes={Order: 40_000_000_000, Customer: 30_000_000},
    sizes={Order: 200, Customer: 300},
)

EXPECTED = {
    "max_indexes": 2,
    "entities": {
        "Order": {"partition": ["order_id"], "sort": []},
        "Customer": {"partition": ["customer_id"], "sort": []},
    },
    "patterns": {
        "order": {"by": "base"},
        "orders_between": {
            "by": "index",
            "partition": ["day"],
            "sort": ["placed_at"],
            "shards": [6, 32],
        },
        "orders_of": {"by": "index", "partition": ["customer_id"], "sort": ["placed_at"]},
        "customer": {"by": "base"},
    },
}
WHY = {
    "orders_between": "5,000 writes a second on one date is five times what a key takes, and "
    "the whole "
    "table is throttled by its index. At least six shards, more for growth. It is the only "
    "design here "
    "with a key that is really hot; every other one must get none.",
}
