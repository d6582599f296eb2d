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
    assert explained._repr_html_().startswith("<table><caption>orders_of_user: Query on ")
    update = db.update(Order, order_id="none", or_create=False)
    changing: Any = update._update.recorder()
    assert repr(changing) == "<update of Order: nothing yet>"
    assert repr(update) == "<update of Order(order_id='none'): nothing yet>"
    changing.user_id = "u2"
    assert repr(changing) == "<update of Order: Order.user_id>"
    assert repr(update) == "<update of Order(order_id='none'): Order.user_id>"


def test_an_open_update_of_an_async_db_shows_its_item() -> None:
    update = connect_async(PEOPLE).update(Person, number="1")
    assert repr(update) == "<update of Person(number='1'): nothing yet>"


def test_an_open_transaction_shows_kinds_and_identities_without_values() -> None:
    db = connect(PEOPLE)
    for number in ("5", "9"):
        db.create(person(number=number, email=number))
    with db.transaction() as tx:
        assert repr(tx) == "<Transaction, open: nothing yet>"
        tx.create(person())
        tx.put(person(number="2", email="two"))
        with tx.update(Person, number="9") as changing:
            changing.name = MARKER
        tx.delete(Person, number="4")
        tx.check(Person, number="5", when=Person.name == MARKER)
        shown = repr(tx)
        assert shown == (
            "<Transaction, open: create Person(number='1'), put Person(number='2'), "
            "update Person(number='9'), delete Person(number='4'), check Person(number='5')>"
        )
        assert MARKER not in shown
        for other in range(10, 20):
            tx.delete(Person, number=str(other))
        assert repr(tx).endswith("and 5 more>")
    assert repr(tx).startswith("<Transaction, sent: create Person")


def test_a_transaction_refuses_what_is_no_entity_at_the_line_that_adds_it() -> None:
    db = connect(PEOPLE)
    with db.transaction() as tx:
        for add in (tx.create, tx.put):
            with pytest.raises(DesignError):
                add("Person")  # type: ignore[arg-type]
        assert repr(tx) == "<Transaction, open: nothing yet>"


def test_a_plan_is_short_and_a_table_in_a_notebook() -> None:
    plan = PEOPLE.plan()
    assert repr(plan) == (
        f"<Plan people: layout {plan.layout}, 1 table, 1 entity, 1 pattern, "
        f"${plan.dollars_per_month:,.2f} a month>"
    )
    table = plan._repr_html_()
    assert table.startswith("<table><caption>Plan people: layout")
    assert table.count("<tr>") == 1 + len(plan.patterns) and "<td>named</td>" in table


def test_a_page_is_a_table_in_a_notebook() -> None:
    db = connect(PEOPLE)
    for number in range(3):
        db.create(person(number=str(number), email=f"<b>{number}</b>", notes=["x" * 500]))
    page = db.page(named(MARKER), limit=2)
    table = page._repr_html_()
    assert table.count("<tr>") == 1 + len(page) and "2 items; more follow" in table
    assert "<th>email</th>" in table and "&lt;b&gt;" in table and "<b>" not in table
    assert "x" * 100 not in table
    only = db.page(named(MARKER).only(Person.number), limit=5)
    assert "3 items; the last page" in only._repr_html_() and "<td>0</td>" in only._repr_html_()
    assert "0 items" in db.page(named("nobody"), limit=5)._repr_html_()
