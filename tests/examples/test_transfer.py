"""Transfers: money is neither made nor lost, whatever happens at once or in between."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from transfer import Account, Transfer, bank, transfer, transfers_from

from stator import Db, Engine, connect
from stator.errors import ConditionFailed, ItemExists, TransactionFailed
from stator.testing import kill_points
from tests.targets import Target


def opened(db: Db) -> Db:
    db.write_many([Account(number="a", balance=Decimal(100)), Account(number="b")])
    return db


def balances(db: Db) -> list[Decimal]:
    return [each.balance for each in db.get_many(Account, ["a", "b"], consistent=True) if each]


def test_a_transfer_that_is_sent_twice_happens_once(target: Target) -> None:
    db = opened(target.connect(bank))
    transfer(db, "t1", "a", "b", Decimal(30))
    with pytest.raises(TransactionFailed) as refused:
        transfer(db, "t1", "a", "b", Decimal(30))
    assert [type(error) for _, _, error in refused.value.failures] == [ItemExists]
    assert balances(db) == [70, 30]
    assert [each.amount for each in db.fetch(transfers_from("a"))] == [30]


def test_an_account_cannot_be_overdrawn(target: Target) -> None:
    db = opened(target.connect(bank))
    with pytest.raises(TransactionFailed) as refused:
        transfer(db, "t1", "a", "b", Decimal("100.01"))
    assert [type(error) for _, _, error in refused.value.failures] == [ConditionFailed]
    assert balances(db) == [100, 0]
    assert db.get(Transfer, transfer_id="t1") is None


def test_transfers_at_once_keep_the_sum_and_never_overdraw() -> None:
    with (
        Engine.open(transaction_seconds=0.002) as engine,
        connect(bank, engine) as db,
        ThreadPoolExecutor(8) as threads,
    ):
        opened(db)

        def attempt(number: int) -> bool:
            try:
                transfer(db, f"t{number}", "a", "b", Decimal(15))
            except TransactionFailed:
                return False
            return True

        assert sum(threads.map(attempt, range(12))) == 6
        assert balances(db) == [10, 90]


def test_a_program_that_is_killed_leaves_both_accounts_or_none_changed() -> None:
    with connect(bank) as db:
        opened(db)
        for point in kill_points(db, lambda db: transfer(db, "t1", "a", "b", Decimal(30))):
            assert balances(db) in ([100, 0], [70, 30]), point
            db.delete(Transfer, transfer_id="t1")
            opened(db)
