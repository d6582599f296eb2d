"""At the prompt and in logs: useful representations, and messages without the items' values."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from stator import Design, Entity, Query, connect, connect_async, find, ident, read, unique, version
from stator.errors import (
    ConditionFailed,
    DesignError,
    ItemExists,
    ItemMismatch,
    RequestRefused,
    StatorError,
    TransactionFailed,
    UniqueTaken,
    VersionConflict,
)
from tests.targets import Target

from .shop import Order, orders_of_user, shop

MARKER = "Zaphod"


class Person(Entity, key=("PERSON#{number}", "PERSON")):
    number: str = ident()
    email: str = unique()
    name: str
    born: datetime
    income: Decimal
    notes: list[str]
    more: dict[str, str]
    rev: int = version()


@read()
def named(name: str) -> Query[Person]:
    return find(Person).where(Person.name == name)


PEOPLE = Design("people", [Person], [named])


def person(**changed: Any) -> Person:
    given: dict[str, Any] = {
        "number": "1",
        "email": f"{MARKER}@example.com",
        "name": MARKER,
        "born": datetime(1978, 3, 8, tzinfo=UTC),
        "income": Decimal(42),
        "notes": [MARKER],
        "more": {MARKER: MARKER},
    }
    return Person(**given | changed)


def all_text(error: BaseException) -> str:
    """Everything that a log would hold: the message, the repr, the notes and the chain."""
    return "\n".join([*traceback.format_exception_only(error), repr(error), repr(error.args)])


def test_no_message_holds_a_value_of_an_item(target: Target) -> None:
    db = target.connect(PEOPLE)
    db.create(person())
    stale = db.get(Person, number="1")
    assert stale is not None
    with db.update(stale) as changing:
        changing.income += 1
    stale.rev = 1

    def update(field: str, value: Any) -> None:
        with db.update(Person, number="1") as changing:
            setattr(changing, field, value)

    def update_when() -> None:
        with db.update(Person, number="1", when=Person.name == "x") as changing:
            changing.income = Decimal(1)

    def add_text() -> None:
        with db.update(Person, number="1") as changing:
            changing.income += MARKER  # type: ignore[operator]

    def transaction() -> None:
        with db.transaction() as tx:
            tx.create(person())

    failing: dict[str, tuple[type[StatorError], Callable[[], Any]]] = {
        "exists": (ItemExists, lambda: db.create(person(email="other"))),
        "taken": (UniqueTaken, lambda: db.create(person(number="2"))),
        "stale": (VersionConflict, lambda: db.put(stale)),
        "condition": (ConditionFailed, update_when),
        "transaction": (TransactionFailed, transaction),
        "delete": (ConditionFailed, lambda: db.delete(Person, number="1", when=Person.name == "x")),
        "put int": (ItemMismatch, lambda: db.put(person(number="3", income=MARKER))),
        "put list": (ItemMismatch, lambda: db.put(person(number="3", notes=MARKER))),
        "put map": (ItemMismatch, lambda: db.put(person(number="3", more=[MARKER]))),
        "put time": (ItemMismatch, lambda: db.put(person(number="3", born=MARKER))),
        "update": (ItemMismatch, lambda: update("income", MARKER)),
        "update list": (ItemMismatch, lambda: update("notes", {MARKER})),
        "sum": (RequestRefused, add_text),
        "argument": (DesignError, lambda: list(db.fetch(named([MARKER])))),  # type: ignore[arg-type]
    }
    for name, (expected, call) in failing.items():
        with pytest.raises(expected) as caught:
            call()
        assert MARKER not in all_text(caught.value), name


def test_the_item_is_still_with_the_error() -> None:
    db = connect(PEOPLE)
    db.create(person())
    with pytest.raises(ItemExists) as exists:
        db.create(person(email="other"))
    assert exists.value.entity.name == MARKER
    with pytest.raises(UniqueTaken) as taken:
        db.create(person(number="2"))
    assert taken.value.value == f"{MARKER}@example.com"
    with pytest.raises(ItemMismatch) as mismatch:
        db.put(person(number="3", income=MARKER))
    assert (mismatch.value.field, mismatch.value.value) == ("income", MARKER)


def test_a_db_shows_its_design_its_address_and_its_tables(target: Target) -> None:
    db = target.connect(shop())
    assert "shop" in repr(db) and repr(db).startswith("<Db shop at ")
    assert "secret" not in repr(db)
    db.close()
    assert "closed" in repr(db)
    assert repr(connect(shop())) == "<Db shop at memory: shop>"
    assert repr(connect_async(shop())) == "<AsyncDb shop at memory: shop>"


def test_queries_updates_and_explanations_are_short_and_say_what_they_are() -> None:
    db = connect(shop())
    assert repr(orders_of_user("u1")) == "<Query orders_of_user(user_id='u1')>"
    assert repr(find(Order).where(Order.user_id == "u1")) == (
        "<Query of Order where Order.user_id = 'u1'>"
    )
    explained = db.explain(orders_of_user("u1"))
    assert repr(explained).startswith("<Explanation of orders_of_user: Query on ")
    assert explained._repr_html_().startswith("<pre>orders_of_user")
    update = db.update(Order, order_id="none", or_create=False)
    changing: Any = update._update.recorder()
    assert repr(changing) == "<update of Order: nothing yet>"
    changing.user_id = "u2"
    assert repr(changing) == "<update of Order: Order.user_id>"
