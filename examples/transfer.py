"""A transfer between two accounts: both change or neither, never below zero, never twice.

python examples/transfer.py [ADDRESS]
"""

from __future__ import annotations

import sys
from datetime import datetime
from decimal import Decimal

from stator import Db, Design, Entity, Query, connect, created, find, ident, read
from stator.errors import TransactionFailed


class Account(Entity):
    number: str = ident()
    balance: Decimal = Decimal(0)


class Transfer(Entity):
    transfer_id: str = ident()
    source: str
    target: str
    amount: Decimal
    made_at: datetime = created()


@read(rps=100)
def account(number: str) -> Query[Account]:
    return find(Account).where(Account.number == number)


@read(rps=20, returns=10)
def transfers_from(source: str) -> Query[Transfer]:
    return find(Transfer).where(Transfer.source == source).newest_first(Transfer.made_at)


bank = Design("bank", [Account, Transfer], [account, transfers_from])


def transfer(db: Db, transfer_id: str, source: str, target: str, amount: Decimal) -> None:
    """The record makes the transfer unique: a second one with the same id fails at any time."""
    with db.transaction() as tx:
        with tx.update(Account, number=source) as paying:
            paying.balance -= amount
            tx.require(Account.balance >= amount)
        with tx.update(Account, number=target) as paid:
            paid.balance += amount
        tx.create(Transfer(transfer_id=transfer_id, source=source, target=target, amount=amount))


def main(address: str | None = None) -> None:
    with connect(bank, address) as db:
        db.ensure()
        db.put(Account(number="a", balance=Decimal(100)))
        db.put(Account(number="b"))
        transfer(db, "t1", "a", "b", Decimal(30))
        for number, amount in (("t2", Decimal(500)), ("t1", Decimal(30))):
            try:
                transfer(db, number, "a", "b", amount)
            except TransactionFailed as failed:
                for _, statement, reason in failed.failures:
                    print(f"{number} refused at {statement!r}: {type(reason).__name__}")
        balances = {
            each.number: each.balance
            for each in db.get_many(Account, ["a", "b"], consistent=True)
            if each
        }
        print(balances, [each.transfer_id for each in db.fetch(transfers_from("a"))])


if __name__ == "__main__":
    main(*sys.argv[1:2])
