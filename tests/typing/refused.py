"""Uses that mypy and pyright must refuse: the lines marked ``# refused`` are the only errors."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from stator import Entity, connect, connect_async, ident, month_of, prefix_of
from stator.design.entities.conditions import attr
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Bundle2, Query, find, together
from stator.patterns.counter import Counter
from stator.patterns.once import Once
from tests.design.shop import Order, Status, User, orders_of_user, shop


class Seal(Entity, frozen=True):
    seal: str = ident()


User(user_id="u", email="e")  # refused: name is missing
User(user_id=1, email="e", name="n")  # refused: an id is a str
User(user_id="u", email="e", name="n", rev=3)  # refused: the version is not for the caller
orders_of_user("u1")  # refused: an argument is missing
orders_of_user(1, datetime.now())  # refused: a wrong argument
find(Order).where(Order.total > "abc")  # refused: a Decimal against a str
find(Order).where(Order.nope == 1)  # refused: no such field
find(Order).where(attr(Order.user_id).is_in([1]))  # refused: a str in a list of int
find(Order).where(attr(Order.status).between(Status.PENDING, 3))  # refused: not a Status
Order(order_id="o", user_id="u", placed_at="today", total=Decimal(1))  # refused: not a datetime
order = Order(order_id="o", user_id="u", placed_at=datetime.now(), total=Decimal(1))
order.total = "x"  # refused: a str is no Decimal
Seal(seal="s").seal = "t"  # refused: frozen
order.email  # refused: no such field  # noqa: B018

find(Order).where(attr(Order.expires) > "soon")  # refused: a datetime against a str
find(Order).where("text")  # refused: not a condition
find(Order).where(attr(Order.total) > 1, attr(Order.user_id) > 1)  # refused: a str against an int


read(paged="yes")  # refused: a bool
find(Order).where(month_of(Order.total) == "2026-11")  # refused: a Decimal has no month
find(Order).where(month_of(Order.placed_at) < "2026-11")  # refused: only ==
find(Order).where(prefix_of(Order.user_id, "3") == "abc")  # refused: a length is an int


def rename_user(user: User) -> None:
    user.name = "x"


db = connect(shop)
db.create("text")  # refused: a str is no entity
db.put(Status.PENDING)  # refused: an Enum is no entity
db.upsert({"order_id": "o"})  # refused: a dict is no entity
db.get(str, user_id="u")  # refused: a str is no entity
db.write_many(["text"])  # refused: a str is no entity
with db.transaction() as tx:
    tx.create("text")  # refused: a str is no entity
counted: int = Once(db, "o").run("k", lambda: "text")  # refused: a str
name: User | None = db.get(Order, order_id="o")  # refused: an order is no user
for each in db.fetch(orders_of_user("u1", datetime.now())):
    each.email  # refused: an order has none  # noqa: B018
with db.update(Order, order_id="o") as changing:
    changing.total = "x"  # refused: a str is no Decimal
    changing.nope = 1  # refused: no such field
views: str = Counter(db, "views").value()  # refused: an int
waiting: int = Counter(connect_async(shop), "views").value()  # refused: it is to be awaited

db.get(3, user_id="u")  # refused: an entity class comes first
db.get(User, consistent="yes", user_id="u")  # refused: a bool
db.get_many(Order, ["o"], allow=True)  # refused: no such option
db.page(orders_of_user("u1", datetime.now()))  # refused: limit is missing
db.fetch(find(Order).count())  # refused: a count finds no items
missing: User | None = db.get_one(Order, order_id="o")  # refused: an order is no user
db.grouped(orders_of_user("u1", datetime.now()))  # refused: one entity needs no groups
db.patch(User, [("name", "n")], user_id="u")  # refused: a mapping
db.patch(User, {"name": "n"}, user_id="u", returns="both")  # refused: old or new
db.snapshot([User])  # refused: Get(User, ...)
db.dry_run().put(order, onec=True)  # refused: no such option
db.put(db.all(orders_of_user("u1", datetime.now()).only(Order.total))[0])  # refused: a tuple
db.put(order, returns="new")  # refused: only what it replaces
db.delete_where(find(Order).count())  # refused: a count finds no items
db.update_where(orders_of_user("u1", datetime.now()))  # refused: the change is missing
db.update_where(orders_of_user("u1", datetime.now()), rename_user)  # refused: a user's change
db.update(order, or_create=True)  # refused: an object exists
db.scan(Order, segments="4")  # refused: an int
db.write_many([order], on_error="ignore")  # refused: raise or collect
db.transaction("token")  # refused: by name
db.ensure("stream")  # refused: TableSettings
connect(shop, treads=4)  # refused: no such option
connect(shop, threads="4")  # refused: an int
connect_async(shop, measure="yes")  # refused: a bool


async def awaited() -> None:
    other = connect_async(shop)
    name: User | None = await other.get(Order, order_id="o")  # refused: an order is no user
    found: Order | None = other.get(Order, order_id="o")  # refused: it is to be awaited
    await other.get(3, user_id="u")  # refused: an entity class comes first
    await other.create("text")  # refused: a str is no entity
    result: int = await Once(other, "o").run("k", other.close)  # refused: None
    print(result)
    await other.page(orders_of_user("u1", datetime.now()))  # refused: limit is missing
    await other.delete(order, returns="new")  # refused: only what it deletes
    other.fetch(find(Order).count())  # refused: a count finds no items
    for each in other.fetch(orders_of_user("u1", datetime.now())):  # refused: async for
        print(each)
    async for each in other.fetch(orders_of_user("u1", datetime.now())):
        each.email  # refused: an order has none  # noqa: B018
    with other.update(Order, order_id="o"):  # refused: async with
        pass
    async with other.update(Order, order_id="o") as changing:
        changing.total = "x"  # refused: a str is no Decimal
    print(name, found)


@read()
def wrong_entity(user_id: str) -> Query[User]:
    return find(Order).where(Order.user_id == user_id)  # refused: a query for orders


@read()
def wrong_bundle(user_id: str) -> Bundle2[User, Order]:
    return together(Order, User).where(User.user_id == user_id)  # refused: the other way round
