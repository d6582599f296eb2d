"""Transactions: all or nothing, and a reason for each statement that stood in the way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from decimal import Decimal
from itertools import product as product_of
from typing import Any

import pytest

from stator import Db, Design, Entity, Query, connect, find, ident, read
from stator.engine import Engine
from stator.errors import (
    ConditionFailed,
    IdempotentParameterMismatch,
    ItemExists,
    ItemNotFound,
    RequestRefused,
    TransactionFailed,
    UniqueTaken,
    VersionConflict,
)
from stator.tables.writes.transactions import Transaction
from tests.targets import Target

from .shop import Order, Product, User, order, shop, user


def stock(db: Db, sku: str = "s1") -> int | None:
    found = db.get(Product, sku=sku, consistent=True)
    return None if found is None else found.stock


def test_all_or_nothing(target: Target) -> None:
    db = target.connect(shop())
    db.put(Product(sku="s1", stock=5))
    with db.transaction() as tx:
        tx.create(order(1))
        with tx.update(Product, sku="s1") as p:
            p.stock -= 2
            tx.require(Product.stock >= 2)
    assert stock(db) == 3
    with pytest.raises(TransactionFailed) as caught, db.transaction() as tx:
        tx.create(order(2))
        with tx.update(Product, sku="s1") as p:
            p.stock -= 4
            tx.require(Product.stock >= 4)
    [(at, shown, error)] = caught.value.failures
    assert isinstance(error, ConditionFailed)
    assert (at, type(error), error.entity) == (1, ConditionFailed, Product(sku="s1", stock=3))
    assert "Product" in shown
    assert stock(db) == 3
    assert db.get(Order, order_id="o002", user_id="u1", placed_at=order(2).placed_at) is None


def test_an_exception_sends_nothing(target: Target) -> None:
    db = target.connect(shop())
    with pytest.raises(ZeroDivisionError), db.transaction() as tx:
        tx.create(Product(sku="s1"))
        raise ZeroDivisionError
    assert stock(db) is None


def test_each_kind_of_failure_is_told_apart(target: Target) -> None:
    db = target.connect(shop())
    mine = user(1)
    db.create(mine)
    stale = db.get(User, user_id="u1", consistent=True)
    assert stale is not None
    with db.update(mine) as u:
        u.name = "newer"
    db.put(Product(sku="s1", stock=1))
    double = user(2)
    double.email = mine.email
    with pytest.raises(TransactionFailed) as caught, db.transaction() as tx:
        tx.create(Product(sku="s1"))
        tx.put(stale)
        tx.create(double)
        with tx.update(Product, sku="none") as p:
            p.stock = 1
        tx.check(Product, sku="s0")
        tx.delete(Order, order_id="x", user_id="u", placed_at=order(1).placed_at)
    kinds = [type(error) for _, _, error in caught.value.failures]
    assert kinds == [ItemExists, VersionConflict, UniqueTaken, ItemNotFound, ItemNotFound]
    assert stock(db) == 1
    assert db.get(User, user_id="u2") is None


def test_checks_delete_and_put(target: Target) -> None:
    db = target.connect(shop())
    db.put(Product(sku="s1", stock=1))
    db.put(Product(sku="s2", stock=1))
    with db.transaction() as tx:
        tx.check(Product, sku="s1", when=Product.stock == 1)
        stocked: Any = Product.stock.exists()  # type: ignore[attr-defined]  # a reference, not an int
        tx.check(Product, sku="s9", when=~stocked, must_exist=False)
        tx.delete(Product, sku="s2")
        tx.put(Product(sku="s3", stock=3))
    assert [stock(db, sku) for sku in ("s1", "s2", "s3")] == [1, None, 3]


def test_a_token_makes_it_happen_once(target: Target) -> None:
    db = target.connect(shop())
    db.put(Product(sku="s1", stock=10))
    for _ in range(3):
        with db.transaction(token="order-17") as tx, tx.update(Product, sku="s1") as p:
            p.stock -= 1
    assert stock(db) == 9
    with pytest.raises(IdempotentParameterMismatch), db.transaction(token="order-17") as tx:
        tx.put(Product(sku="s1", stock=0))


def test_an_update_asked_for_once_goes_out_with_a_token(target: Target) -> None:
    db = target.connect(shop())
    db.put(Product(sku="s1", stock=10))
    change = db.update(Product, sku="s1", once=True, returns="new")
    with change as p:
        p.stock += 1
    assert change.result == Product(sku="s1", stock=11)
    with (
        pytest.raises(ConditionFailed),
        db.update(Product, sku="s1", once=True, when=Product.stock == 0) as p,
    ):
        p.stock += 1


def test_unique_values_move_between_items_in_one_transaction(target: Target) -> None:
    db = target.connect(shop())
    one, two = user(1), user(2)
    db.create(one)
    db.create(two)
    with db.transaction() as tx:
        tx.delete(User, user_id="u1")
        with tx.update(User, user_id="u2") as u:
            u.name = "Only one left"
    three = user(3)
    three.email = one.email
    db.create(three)
    left = db.get(User, user_id="u2", consistent=True)
    assert left is not None and left.name == "Only one left"


def test_limits_and_misuse_are_refused() -> None:
    db = connect(shop())
    with pytest.raises(RequestRefused, match="101 writes"), db.transaction() as tx:
        for n in range(101):
            tx.put(Product(sku=f"s{n}"))
    with pytest.raises(RequestRefused, match="no update is open"), db.transaction() as tx:
        tx.require(Product.stock > 1)
    with pytest.raises(RequestRefused, match="can never fail"), db.transaction() as tx:
        tx.check(Product, sku="s", must_exist=False)
    with db.transaction() as tx:
        pass
    with pytest.raises(RequestRefused, match="sent already"):
        tx.put(Product(sku="late"))
    assert list(db.scan(Product, allow=True)) == []


def test_two_statements_about_one_item_are_refused_by_name(target: Target) -> None:
    db = target.connect(shop())
    db.put(Product(sku="s1", stock=1))
    stored = db.get_one(Product, sku="s1")

    def update(tx: Transaction) -> None:
        with tx.update(Product, sku="s1") as product:
            product.stock += 1

    steps: dict[str, Callable[[Transaction], None]] = {
        "create": lambda tx: tx.create(Product(sku="s1")),
        "put": lambda tx: tx.put(Product(sku="s1")),
        "delete": lambda tx: tx.delete(stored),
        "check": lambda tx: tx.check(Product, sku="s1"),
        "update": update,
    }
    for first, second in product_of(steps, repeat=2):
        with (
            pytest.raises(RequestRefused, match=rf"one item: {first} .*s1.*, and {second} .*s1"),
            db.transaction() as tx,
        ):
            steps[first](tx)
            steps[second](tx)
    assert db.get(Product, sku="s1") == stored
    with (
        pytest.raises(RequestRefused, match=r"unique value: guard User\.email"),
        db.transaction() as tx,
    ):
        for id in ("1", "2"):
            tx.create(User(user_id=id, name="n", email="same@x"))


class Account(Entity):
    number: str = ident()
    balance: Decimal = Decimal(0)


@read()
def account(number: str) -> Query[Account]:
    return find(Account).where(Account.number == number)


def test_money_is_neither_made_nor_lost(target: Target) -> None:
    """Threads move money to and fro; those that would overdraw fail; the sum stays."""
    db = target.connect(Design("bank", [Account], [account]))
    for n in range(4):
        db.create(Account(number=f"a{n}", balance=Decimal(100)))

    kinds: set[type] = set()

    def move(seed: int) -> None:
        for step in range(15):
            source, to = f"a{(seed + step) % 4}", f"a{(seed * 3 + step + 1) % 4}"
            if source == to:
                continue
            try:
                with db.transaction() as tx:
                    with tx.update(Account, number=source) as a:
                        a.balance -= 30
                        tx.require(Account.balance >= 30)
                    with tx.update(Account, number=to) as a:
                        a.balance += 30
            except TransactionFailed as failed:
                kinds.update(type(error) for _, _, error in failed.failures)

    threads = [threading.Thread(target=move, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    balances = [each.balance for each in db.scan(Account, allow=True, consistent=True)]
    assert sum(balances) == 400
    assert kinds <= {ConditionFailed}
    assert all(balance >= 0 for balance in balances)


def test_a_conflict_with_another_transaction_is_tried_again() -> None:
    engine = Engine.open(transaction_seconds=0.05)
    db = connect(shop(), engine)
    db.put(Product(sku="s1", stock=0))

    def add() -> None:
        for _ in range(5):
            with db.transaction() as tx, tx.update(Product, sku="s1") as p:
                p.stock += 1

    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stock(db) == 10
