"""An online shop.

Sources: aws-samples/amazon-dynamodb-design-patterns, examples/an-online-shop/README.md, in its
state after step 13, and "Using DynamoDB as a data store for an online shop" in the DynamoDB
developer guide. Sixteen patterns use a table and two overloaded indexes. "All details of an order"
are five kinds of items. ``together`` takes four, so the items of shipments are read separately.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from stator import (
    Bundle2,
    Bundle4,
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

from .model import Difference, Keys, Model, Wanted, base_of, indexes_of

START = datetime(2020, 6, 1, tzinfo=UTC)


class Customer(Entity):
    customer_id: str = ident()
    email: str
    name: str


class Product(Entity):
    product_id: str = ident()
    description: str
    price: Decimal


class Warehouse(Entity):
    warehouse_id: str = ident()
    address: str


class WarehouseItem(Entity):
    product_id: str = ident()
    warehouse_id: str = ident()
    quantity: int


class Order(Entity):
    order_id: str = ident()
    customer_id: str
    ordered_at: datetime


class OrderItem(Entity):
    order_id: str = ident()
    product_id: str = ident()
    customer_id: str
    ordered_at: datetime
    price: Decimal
    quantity: int


class Invoice(Entity):
    order_id: str = ident()
    invoice_id: str = ident()
    customer_id: str
    invoiced_at: datetime
    amount: Decimal
    payments: dict[str, Decimal]


class Shipment(Entity):
    order_id: str = ident()
    shipment_id: str = ident()
    warehouse_id: str
    address: str


class ShipmentItem(Entity):
    order_id: str = ident()
    shipment_id: str = ident()
    product_id: str = ident()
    quantity: int


@read(rps=100)
def customer(customer_id: str) -> Query[Customer]:
    return find(Customer).where(Customer.customer_id == customer_id)


@read(rps=300)
def product(product_id: str) -> Query[Product]:
    return find(Product).where(Product.product_id == product_id)


@read(rps=5)
def warehouse(warehouse_id: str) -> Query[Warehouse]:
    return find(Warehouse).where(Warehouse.warehouse_id == warehouse_id)


@read(rps=100, returns=5)
def inventory_of_product(product_id: str) -> Query[WarehouseItem]:
    return find(WarehouseItem).where(WarehouseItem.product_id == product_id)


@read(rps=50, returns=7)
def order_details(order_id: str) -> Bundle4[Order, OrderItem, Invoice, Shipment]:
    return together(Order, OrderItem, Invoice, Shipment).where(Order.order_id == order_id)


@read(rps=50, returns=3)
def shipped_items_of_order(order_id: str) -> Query[ShipmentItem]:
    return find(ShipmentItem).where(ShipmentItem.order_id == order_id)


@read(rps=20, returns=3)
def products_of_order(order_id: str) -> Query[OrderItem]:
    return find(OrderItem).where(OrderItem.order_id == order_id)


@read(rps=20)
def invoice_of_order(order_id: str) -> Query[Invoice]:
    return find(Invoice).where(Invoice.order_id == order_id)


@read(rps=20, returns=2)
def shipments_of_order(order_id: str) -> Query[Shipment]:
    return find(Shipment).where(Shipment.order_id == order_id)


@read(rps=10, returns=30)
def orders_of_product(product_id: str, start: datetime, end: datetime) -> Query[OrderItem]:
    return find(OrderItem).where(
        OrderItem.product_id == product_id, attr(OrderItem.ordered_at).between(start, end)
    )


@read(rps=20, returns=1)
def invoice(invoice_id: str) -> Query[Invoice]:
    return find(Invoice).where(Invoice.invoice_id == invoice_id)


@read(rps=20, returns=3)
def shipment(shipment_id: str) -> Bundle2[Shipment, ShipmentItem]:
    return together(Shipment, ShipmentItem).where(Shipment.shipment_id == shipment_id)


@read(rps=5, returns=100)
def shipments_of_warehouse(warehouse_id: str) -> Query[Shipment]:
    return find(Shipment).where(Shipment.warehouse_id == warehouse_id)


@read(rps=5, returns=100)
def inventory_of_warehouse(warehouse_id: str) -> Query[WarehouseItem]:
    return find(WarehouseItem).where(WarehouseItem.warehouse_id == warehouse_id)


@read(rps=10, returns=5)
def invoices_of_customer(customer_id: str, start: datetime, end: datetime) -> Query[Invoice]:
    return find(Invoice).where(
        Invoice.customer_id == customer_id, attr(Invoice.invoiced_at).between(start, end)
    )


@read(rps=10, returns=15)
def products_of_customer(customer_id: str, start: datetime, end: datetime) -> Query[OrderItem]:
    return find(OrderItem).where(
        OrderItem.customer_id == customer_id, attr(OrderItem.ordered_at).between(start, end)
    )


@write(rps=20)
def place_order() -> object:
    return (
        creates(Order),
        creates(OrderItem, 3),
        creates(Invoice),
        updates(WarehouseItem.quantity, times=3),
    )


@write(rps=20)
def ship() -> object:
    return creates(Shipment), creates(ShipmentItem, 2)


@write(rps=10)
def pay() -> object:
    return updates(Invoice.payments)


def objects(chance: random.Random) -> list[Any]:
    customers, products, warehouses = (
        ["c1", "c2", "c#3"],
        [f"p{at}" for at in range(5)],
        ["w1", "w2"],
    )
    found: list[Any] = [
        Customer(customer_id=each, email=f"{each}@x.org", name=each) for each in customers
    ]
    found += [Product(product_id=each, description=each, price=Decimal(3)) for each in products]
    found += [Warehouse(warehouse_id=each, address="a") for each in warehouses]
    found += [
        WarehouseItem(product_id=one, warehouse_id=each, quantity=5)
        for one in products
        for each in warehouses
    ]
    for at in range(30):
        order, when, who = f"o{at}", START + timedelta(hours=at), chance.choice(customers)
        found.append(Order(order_id=order, customer_id=who, ordered_at=when))
        bought = chance.sample(products, 2)
        found += [
            OrderItem(
                order_id=order,
                product_id=each,
                customer_id=who,
                ordered_at=when,
                price=Decimal(1),
                quantity=at,
            )
            for each in bought
        ]
        found.append(
            Invoice(
                order_id=order,
                invoice_id=f"i{at}",
                customer_id=who,
                invoiced_at=when,
                amount=Decimal(at),
                payments={"gift": Decimal(1)},
            )
        )
        for number, each in enumerate(bought):
            shipment = f"sh{at}-{number}"
            found.append(
                Shipment(
                    order_id=order,
                    shipment_id=shipment,
                    warehouse_id=chance.choice(warehouses),
                    address="b",
                )
            )
            found.append(
                ShipmentItem(order_id=order, shipment_id=shipment, product_id=each, quantity=1)
            )
    return found


MODEL = Model(
    name="online-shop",
    entities=(
        Customer,
        Product,
        Warehouse,
        WarehouseItem,
        Order,
        OrderItem,
        Invoice,
        Shipment,
        ShipmentItem,
    ),
    patterns=(
        customer,
        product,
        warehouse,
        inventory_of_product,
        order_details,
        shipped_items_of_order,
        products_of_order,
        invoice_of_order,
        shipments_of_order,
        orders_of_product,
        invoice,
        shipment,
        shipments_of_warehouse,
        inventory_of_warehouse,
        invoices_of_customer,
        products_of_customer,
        place_order,
        ship,
        pay,
    ),
    volumes={
        Customer: 100_000,
        Product: 10_000,
        Warehouse: 500,
        WarehouseItem: per(Product, 5),
        Order: per(Customer, 20),
        OrderItem: per(Order, 3),
        Invoice: per(Order, 1),
        Shipment: per(Order, 1.5),
        ShipmentItem: per(Shipment, 2),
    },
    keys={
        Customer: Keys(("c#{customer_id}", "c#{customer_id}")),
        Product: Keys(("p#{product_id}", "p#{product_id}")),
        Warehouse: Keys(("w#{warehouse_id}", "w#{warehouse_id}")),
        WarehouseItem: Keys(
            ("p#{product_id}", "w#{warehouse_id}"),
            {"GSI-2": ("w#{warehouse_id}", "p#{product_id}")},
        ),
        Order: Keys(("o#{order_id}", "c#{customer_id}")),
        OrderItem: Keys(
            ("o#{order_id}", "p#{product_id}"),
            {
                "GSI-1": ("p#{product_id}", "{ordered_at}"),
                "GSI-2": ("c#{customer_id}", "p#{ordered_at}"),
            },
        ),
        Invoice: Keys(
            ("o#{order_id}", "i#{invoice_id}"),
            {
                "GSI-1": ("i#{invoice_id}", "i#{invoice_id}"),
                "GSI-2": ("c#{customer_id}", "i#{invoiced_at}"),
            },
        ),
        Shipment: Keys(
            ("o#{order_id}", "sh#{shipment_id}"),
            {
                "GSI-1": ("sh#{shipment_id}", "sh#{shipment_id}"),
                "GSI-2": ("w#{warehouse_id}", "sh#{shipment_id}"),
            },
        ),
        ShipmentItem: Keys(
            ("o#{order_id}", "shp#{shipment_id}#{product_id}"),
            {"GSI-1": ("sh#{shipment_id}", "p#{product_id}")},
        ),
    },
    paths={
        "customer": Wanted("GetItem", "table", ("customer_id",)),
        "product": Wanted("GetItem", "table", ("product_id",)),
        "warehouse": Wanted("GetItem", "table", ("warehouse_id",)),
        "inventory_of_product": Wanted("Query", "table", ("product_id",)),
        "order_details": Wanted("Query", "table", ("order_id",)),
        "shipped_items_of_order": Wanted("Query", "table", ("order_id",)),
        "products_of_order": Wanted("Query", "table", ("order_id",)),
        "invoice_of_order": Wanted("Query", "table", ("order_id",)),
        "shipments_of_order": Wanted("Query", "table", ("order_id",)),
        "orders_of_product": Wanted("Query", "index", ("product_id",), ("ordered_at",)),
        "invoice": Wanted("Query", "index", ("invoice_id",)),
        "shipment": Wanted("Query", "index", ("shipment_id",)),
        "shipments_of_warehouse": Wanted("Query", "index", ("warehouse_id",)),
        "inventory_of_warehouse": Wanted("Query", "index", ("warehouse_id",)),
        "invoices_of_customer": Wanted("Query", "index", ("customer_id",), ("invoiced_at",)),
        "products_of_customer": Wanted("Query", "index", ("customer_id",), ("ordered_at",)),
    },
    objects=objects,
    calls=(
        ("customer", {"customer_id": "c#3"}),
        ("product", {"product_id": "p3"}),
        ("warehouse", {"warehouse_id": "w1"}),
        ("inventory_of_product", {"product_id": "p1"}),
        ("order_details", {"order_id": "o3"}),
        ("shipped_items_of_order", {"order_id": "o3"}),
        ("products_of_order", {"order_id": "o3"}),
        ("invoice_of_order", {"order_id": "o9"}),
        ("shipments_of_order", {"order_id": "o12"}),
        (
            "orders_of_product",
            {"product_id": "p2", "start": START, "end": START + timedelta(hours=12)},
        ),
        ("invoice", {"invoice_id": "i4"}),
        ("shipment", {"shipment_id": "sh5-1"}),
        ("shipments_of_warehouse", {"warehouse_id": "w2"}),
        ("inventory_of_warehouse", {"warehouse_id": "w1"}),
        (
            "invoices_of_customer",
            {"customer_id": "c1", "start": START, "end": START + timedelta(hours=20)},
        ),
        (
            "products_of_customer",
            {
                "customer_id": "c#3",
                "start": START + timedelta(hours=5),
                "end": START + timedelta(days=9),
            },
        ),
    ),
    differences={
        "Order": Difference(
            "The customer in the sort key of an order distinguishes nothing, because an order "
            "has one customer. Without it, the order id alone is the key.",
            lambda ours, theirs: (
                base_of(ours, "Order") == (("order_id",), ())
                and base_of(theirs, "Order")[1] == ("customer_id",)
            ),
        ),
        "indexes": Difference(
            "Six indexes cost less than two. An entity that is often updated and rarely listed "
            "(stock by warehouse, invoices) gets an index that holds only keys, so updates do "
            "not write to it. Such an index cannot be shared with entities whose index holds "
            "whole items.",
            lambda ours, theirs: (
                {"Invoice", "WarehouseItem"}
                == {
                    name
                    for each in indexes_of(ours)
                    if each.projection == "KEYS_ONLY"
                    for name in each.entities
                }
                and theirs.dollars_per_month - ours.dollars_per_month > 30
            ),
        ),
    },
)
