"""A handler of changes, as a worker and as an AWS Lambda function.

When an order is placed, its customer gets a confirmation and the warehouse a parcel to pack. When
its status changes, the customer is told. When an order is deleted, its parcel is dropped.

Every change arrives at least once. What a handler writes has an identity that follows from the
change, such as the order and the kind of the mail. So a change that arrives again finds its work
done: ``create`` raises ItemExists, and the handler returns.

The same app runs in three places:

- in threads of a program: ``with app.start(db)``, as ``main`` does;
- on AWS Lambda: ``handler``, behind an event source mapping with ``ReportBatchItemFailures``;
- as processes of their own: ``stator work module:app``, where the module has ``app = app_for(db)``.

python examples/stream_handler.py [ADDRESS]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any

from stator import Db, Design, Entity, Query, connect, creates, find, ident, read, updates, write
from stator.errors import ItemExists
from stator.pipeline import Insert, Modify, Remove, StreamApp, WorkerOptions


class Status(Enum):
    PLACED = "placed"
    SHIPPED = "shipped"


class Order(Entity):
    order_id: str = ident()
    email: str
    cents: int
    status: Status = Status.PLACED


class Mail(Entity):
    order_id: str = ident()
    kind: str = ident()
    to: str
    text: str


class Parcel(Entity):
    order_id: str = ident()
    packed: bool = False


@read(rps=5, returns=2)
def mails_of(order_id: str) -> Query[Mail]:
    return find(Mail).where(Mail.order_id == order_id)


@read(rps=5)
def parcel(order_id: str) -> Query[Parcel]:
    return find(Parcel).where(Parcel.order_id == order_id)


@write(rps=20)
def place_order() -> object:
    return creates(Order)


@write(rps=20)
def ship() -> object:
    return updates(Order.status)


shop = Design("mail-order", [Order, Mail, Parcel], [mails_of, parcel, place_order, ship])


def app_for(db: Db) -> StreamApp:
    app = StreamApp(shop, "fulfilment")

    @app.on.insert(Order)
    def confirm(change: Insert[Order]) -> None:
        order = change.new
        text = f"We have your order of {order.cents / 100:.2f}."
        once(db, Mail(order_id=order.order_id, kind="confirmation", to=order.email, text=text))

    @app.on.insert(Order)
    def pack(change: Insert[Order]) -> None:
        once(db, Parcel(order_id=change.new.order_id))

    @app.on.modify(Order, when_changed=Order.status)
    def tell(change: Modify[Order]) -> None:
        order = change.new
        text = f"Your order is {order.status.value}."
        once(db, Mail(order_id=order.order_id, kind=order.status.value, to=order.email, text=text))

    @app.on.remove(Order)
    def drop(change: Remove[Order]) -> None:
        db.delete(Parcel, order_id=change.old.order_id)

    return app


def once(db: Db, entity: Mail | Parcel) -> None:
    """Create an item unless an earlier delivery of the change has done so."""
    try:
        db.create(entity)
    except ItemExists:
        return


@cache
def lambda_handler() -> Callable[[Mapping[str, Any], Any], dict[str, Any]]:
    """Connect when the first event arrives, and once in each process of the function."""
    db = connect(shop, f"aws://{os.environ['AWS_REGION']}")
    return app_for(db).lambda_handler(db)


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Handle a batch of changes on AWS Lambda, and report the first one that failed."""
    return lambda_handler()(event, context)


def main(address: str | None = None) -> None:
    with connect(shop, address) as db:
        app = app_for(db)
        for line in app.ensure(db):
            print(line)
        with app.start(db, WorkerOptions(start="oldest")) as worker:
            db.create(Order(order_id="o1", email="anna@example.com", cents=1990))
            db.create(Order(order_id="o2", email="ben@example.com", cents=500))
            with db.update(Order, order_id="o1") as order:
                order.status = Status.SHIPPED
            db.delete(Order, order_id="o2")
            worker.catch_up()
        for order_id in ("o1", "o2"):
            for mail in db.fetch(mails_of(order_id)):
                print(f"to {mail.to}: {mail.text}")
            print(f"{order_id} has {'a' if db.first(parcel(order_id)) else 'no'} parcel to pack")


if __name__ == "__main__":
    main(*sys.argv[1:2])
