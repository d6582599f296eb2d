"""A value of the wrong type, or one that is too large, is named in the error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from stator import Db, Design, Entity, Query, connect, find, ident, read
from stator.errors import (
    BatchFailed,
    DesignError,
    ItemMismatch,
    RequestRefused,
    TransactionFailed,
    ValidationFailed,
)
from tests.targets import Target

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NAIVE = datetime(2026, 3, 1)


class Order(Entity):
    order_id: str = ident()
    team: str
    placed_at: datetime
    note: str = ""


class Slot(Entity):
    at: datetime = ident()
    team: str


@read(rps=1)
def order(order_id: str) -> Query[Order]:
    return find(Order).where(Order.order_id == order_id)


@read(rps=1)
def since(team: str, start: datetime) -> Query[Order]:
    return find(Order).where(Order.team == team, Order.placed_at >= start)


@read(rps=1)
def slots(team: str) -> Query[Slot]:
    return find(Slot).where(Slot.team == team)


@read(rps=1)
def after_x(order_id: str) -> Query[Order]:
    return find(Order).where(Order.order_id == order_id, Order.placed_at > "x")  # type: ignore[operator]


DESIGN = Design("wrong", [Order, Slot], [order, since, slots])
ANY: Any = None


@pytest.fixture
def db() -> Iterator[Db]:
    with connect(DESIGN) as opened:
        yield opened


def an_order(order_id: Any = "o1", placed_at: Any = NOW, note: str = "") -> Order:
    return Order(order_id=order_id, team="t", placed_at=placed_at, note=note)


WRITES: list[tuple[Callable[[], Any], str]] = [
    (lambda: an_order(order_id=5), "Order.order_id: expected str, got int"),
    (lambda: an_order(order_id=ANY), "Order.order_id: expected str, got NoneType"),
    (lambda: an_order(placed_at=NAIVE), "Order.placed_at: a datetime needs a time zone"),
    (lambda: Slot(at=NAIVE, team="t"), "Slot.at: a datetime needs a time zone"),
    (lambda: Slot(at=ANY, team="t"), "Slot.at: expected datetime, got NoneType"),
]


@pytest.mark.parametrize("way", ["put", "create", "write_many", "transaction"])
@pytest.mark.parametrize(("made", "problem"), WRITES)
def test_a_write_names_the_field_and_the_value(
    db: Db, way: str, made: Callable[[], Any], problem: str
) -> None:
    with pytest.raises((ItemMismatch, BatchFailed)) as caught:
        if way == "transaction":
            with db.transaction() as tx:
                tx.put(made())
        else:
            given: Any = [made()] if way == "write_many" else made()
            getattr(db, way)(given)
    assert problem in str(caught.value)


QUERIES: list[tuple[Callable[[], Any], str]] = [
    (lambda: order(ANY), "order_id is None, which no key contains"),
    (lambda: since(ANY, NOW), "team is None, which no key contains"),
    (lambda: since("t", ANY), "start is None, which no key contains"),
    (lambda: slots(ANY), "team is None, which no key contains"),
    (lambda: order(5), "order_id: a key needs str here, not int 5"),  # type: ignore[arg-type]
    (lambda: slots(5), "team: expected str, got int: 5"),  # type: ignore[arg-type]
    (
        lambda: since("t", NAIVE),
        "start: a datetime needs a time zone: datetime.datetime(2026, 3, 1, 0, 0)",
    ),
    (lambda: since("t", "2026"), "start: expected datetime, got str: '2026'"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("asked", "problem"), QUERIES)
def test_a_query_names_the_argument_and_the_value(
    db: Db, asked: Callable[[], Any], problem: str
) -> None:
    with pytest.raises((DesignError, RequestRefused)) as caught:
        db.all(asked())
    assert str(caught.value).startswith(problem)


def test_a_condition_names_the_field_and_the_value(db: Db) -> None:
    with pytest.raises(DesignError, match=r"Order\.placed_at: expected datetime, got str: 'x'"):
        db.put(an_order(), when=Order.placed_at > "x")  # type: ignore[operator]


def test_a_constant_in_a_pattern_names_the_field_and_the_value() -> None:
    with pytest.raises(DesignError, match=r"after_x: Order\.placed_at: expected datetime, got str"):
        Design("wrong", [Order], [after_x]).plan()


LARGE = "x" * 500_000
FACTS = (
    r"the maximum allowed size: .*Order.* has 500,\d+ bytes, of which note takes 500,000;"
    r" the limit is 409,600 bytes"
)


def test_an_item_that_is_too_large_is_named_with_its_size_and_largest_attribute(db: Db) -> None:
    db.put(an_order())
    large = an_order(note=LARGE)
    with pytest.raises(ValidationFailed, match=FACTS) as refused:
        db.put(large)
    assert "large()" in str(refused.value.hint)
    with pytest.raises(BatchFailed, match=FACTS):
        db.write_many([large, an_order("o2")])
    assert db.get(Order, order_id="o2") is not None
    with pytest.raises(TransactionFailed, match=FACTS), db.transaction() as tx:
        tx.put(large)
        tx.put(an_order("o3"))
    changing = db.update(Order, order_id="o1")
    with pytest.raises(ValidationFailed, match=r"maximum allowed size: update Order\(") as refused:  # noqa: SIM117
        with changing as found:
            found.note = LARGE
    assert "409,600 bytes" in str(refused.value)


class Reading(Entity):
    reading_id: str = ident()
    value: Decimal = Decimal(0)
    rates: list[float] = field(default_factory=list)


def test_a_number_that_cannot_be_stored_is_named_with_its_field(target: Target) -> None:
    db = target.connect(Design("numbers", [Reading]))
    for wrong, name in (
        (Reading(reading_id="1", value=Decimal("1" * 39)), "value"),
        (Reading(reading_id="1", rates=[1.0, 1e308]), "rates"),
        (Reading(reading_id="1", rates=[1e-300]), "rates"),
    ):
        with pytest.raises(ValidationFailed, match=f": {name} of put Reading"):
            db.put(wrong)
        with pytest.raises(BatchFailed, match=f": {name} of put of Reading"):
            db.write_many([wrong])
    db.put(Reading(reading_id="1"))
    with pytest.raises(ValidationFailed, match=r": update Reading\(reading_id='1'\)"):
        db.patch(Reading, {"value": Decimal("1" * 39)}, reading_id="1")


class Coded(Entity):
    coded_id: str = ident()
    code: str | None = None


@read()
def by_code(code: str) -> Query[Coded]:
    return find(Coded).where(Coded.code == code)


def test_an_empty_text_in_the_key_of_an_index_is_named_with_field_and_index(target: Target) -> None:
    db = target.connect(Design("codes", [Coded], [by_code]))
    message = r"Coded\.code is a key of the index GSI1, and a key cannot be an empty text"
    with pytest.raises(ValidationFailed, match=message):
        db.put(Coded(coded_id="1", code=""))
    with pytest.raises(TransactionFailed, match=message), db.transaction() as tx:
        tx.put(Coded(coded_id="1", code=""))
