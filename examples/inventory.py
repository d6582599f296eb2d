"""An inventory with reservations: no overselling, and reservations that expire.

The patterns: the stock of a product; a reservation; the reservations that are due to expire.

A buyer reserves goods while paying. The reservation takes them out of the stock in one transaction,
on condition that enough is left; so any number of buyers at once cannot reserve more than there is.
A paid reservation is *sold*. One that is not paid in time is *released*, and its goods go back.

Time to live cannot do this: DynamoDB deletes expired items late, and deleting an item returns no
goods. A sweep releases what is due, from an index that holds open reservations only. Each change of
a reservation has its present state as a condition, so goods go back once, however many sweeps run.

The stock of a product is one item. An item takes 1,000 write units a second, and a reservation
takes two of them.

python examples/inventory.py [ADDRESS]
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from enum import Enum

from stator import (
    Db,
    Design,
    Entity,
    Query,
    attr,
    connect,
    creates,
    find,
    ident,
    read,
    share,
    updates,
    write,
)
from stator.errors import ConditionFailed, TransactionFailed

HOLD = timedelta(minutes=15)


class Stock(Entity):
    sku: str = ident()
    available: int
    reserved: int = 0
    sold: int = 0


class State(Enum):
    OPEN = "open"
    SOLD = "sold"
    RELEASED = "released"


class Reservation(Entity):
    reservation_id: str = ident()
    sku: str
    quantity: int
    state: State = State.OPEN
    due_at: datetime | None = None
    """When the goods go back; None once the reservation is sold or released."""


@read(rps=500)
def stock(sku: str) -> Query[Stock]:
    return find(Stock).where(Stock.sku == sku)


@read(rps=0.1, returns=100)
def due(state: State, moment: datetime) -> Query[Reservation]:
    found = find(Reservation).where(Reservation.state == state, attr(Reservation.due_at) <= moment)
    return found.order_by(Reservation.due_at)


@write(rps=50)
def reserve_goods() -> object:
    return updates(Stock.available, Stock.reserved), creates(Reservation)


@write(rps=50)
def settle() -> object:
    return updates(Stock.reserved, Stock.sold), updates(Reservation.state, Reservation.due_at)


shop = Design(
    "inventory",
    [Stock, Reservation],
    [stock, due, reserve_goods, settle],
    volumes={Stock: 50_000, Reservation: 5_000_000},
    sizes={Stock: 100, Reservation: 150},
    facts=[share(attr(Reservation.due_at).exists(), 0.01)],
)


def now(db: Db) -> datetime:
    return datetime.fromtimestamp(db.context.now(), UTC)


def reserve(db: Db, reservation_id: str, sku: str, quantity: int) -> bool:
    """Take goods out of the stock. Return False if too few are left.

    A repeated call with the same id takes nothing more.
    """
    reservation = Reservation(
        reservation_id=reservation_id, sku=sku, quantity=quantity, due_at=now(db) + HOLD
    )
    try:
        with db.transaction() as tx:
            tx.create(reservation)
            with tx.update(Stock, sku=sku, when=Stock.available >= quantity) as goods:
                goods.available -= quantity
                goods.reserved += quantity
    except TransactionFailed as failed:
        raise_unless_refused(failed)
        found = db.get(Reservation, reservation_id=reservation_id, consistent=True)
        return found is not None and found.state != State.RELEASED
    return True


def sell(db: Db, reservation_id: str) -> bool:
    """Settle a paid reservation. Return whether it is sold; it is not if it expired before."""
    reservation = db.get_one(Reservation, reservation_id=reservation_id, consistent=True)
    try:
        with db.transaction() as tx:
            with tx.update(reservation, when=Reservation.state == State.OPEN) as settled:
                tx.require(attr(Reservation.due_at) > now(db))
                settled.state = State.SOLD
                settled.due_at = None
            with tx.update(Stock, sku=reservation.sku) as goods:
                goods.reserved -= reservation.quantity
                goods.sold += reservation.quantity
    except TransactionFailed as failed:
        raise_unless_refused(failed)
        found = db.get_one(Reservation, reservation_id=reservation_id, consistent=True)
        return found.state == State.SOLD
    return True


def release(db: Db, reservation: Reservation) -> bool:
    """Put the goods of an expired reservation back. Return False if it was settled before."""
    try:
        with db.transaction() as tx:
            with tx.update(reservation, when=Reservation.state == State.OPEN) as settled:
                tx.require(attr(Reservation.due_at) <= now(db))
                settled.state = State.RELEASED
                settled.due_at = None
            with tx.update(Stock, sku=reservation.sku) as goods:
                goods.reserved -= reservation.quantity
                goods.available += reservation.quantity
    except TransactionFailed as failed:
        raise_unless_refused(failed)
        return False
    return True


def raise_unless_refused(failed: TransactionFailed) -> None:
    """Raise the error again unless it says that a condition does not hold.

    Without one, other transactions have kept this one out, and the caller may try again.
    """
    if not any(isinstance(error, ConditionFailed) for _, _, error in failed.failures):
        raise failed


def release_expired(db: Db) -> int:
    """Release the reservations that are due. Several machines may run it at once, every minute."""
    return sum(release(db, each) for each in db.fetch(due(State.OPEN, now(db))))


def main(address: str | None = None) -> None:
    with connect(shop, address) as db:
        db.ensure()
        db.put(Stock(sku="lamp", available=5))
        for number, quantity in enumerate([2, 2, 2], 1):
            held = reserve(db, f"r{number}", "lamp", quantity)
            print(f"r{number}: {quantity} lamps {'reserved' if held else 'refused'}")
        print("r1 sold:", sell(db, "r1"), "and again:", sell(db, "r1"))

        with db.update(Reservation, reservation_id="r2") as waiting:  # its buyer has left
            waiting.due_at = now(db) - timedelta(seconds=1)
        print("r2 sold in time:", sell(db, "r2"))
        print("released:", release_expired(db), "and in the next sweep:", release_expired(db))
        print(db.get(Stock, sku="lamp", consistent=True))


if __name__ == "__main__":
    main(*sys.argv[1:2])
