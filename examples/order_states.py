"""The states of an order, with history: no step is skipped, repeated, or missing in the history.

The patterns: an order with its history; the oldest orders in a state, for the people who work on
them.

``STEPS`` lists the states that may follow each state. A step changes the order and writes a history
entry in one transaction, so the two cannot disagree. The order's version is part of the condition:
of two programs that move an order at the same time, one succeeds and the other reads again.

A caller passes an id for its step, such as the id of the message that asks for it. The id becomes
part of the history, and a step whose id is there already changes nothing.

python examples/order_states.py [ADDRESS]
"""

from __future__ import annotations

import sys
from datetime import datetime
from enum import Enum

from stator import (
    Bundle2,
    Db,
    Design,
    Entity,
    Query,
    connect,
    created,
    creates,
    find,
    ident,
    per,
    read,
    together,
    updated,
    updates,
    version,
    write,
)
from stator.errors import ConditionFailed, TransactionFailed


class State(Enum):
    PLACED = "placed"
    PAID = "paid"
    SHIPPED = "shipped"
    DELIVERED = "delivered"
    CANCELLED = "cancelled"


STEPS = {
    State.PLACED: {State.PAID, State.CANCELLED},
    State.PAID: {State.SHIPPED, State.CANCELLED},
    State.SHIPPED: {State.DELIVERED},
    State.DELIVERED: set[State](),
    State.CANCELLED: set[State](),
}


class Order(Entity):
    order_id: str = ident()
    customer_id: str
    state: State = State.PLACED
    placed_at: datetime = created()
    moved_at: datetime = updated()
    rev: int = version()


class Step(Entity):
    order_id: str = ident()
    step_id: str = ident()
    number: int
    before: State
    after: State
    by: str
    at: datetime = created()


class StepRefused(Exception):
    """The order is in a state from which the step is not allowed."""


@read(rps=50, returns=5)
def order_with_history(order_id: str) -> Bundle2[Order, Step]:
    return together(Order, Step).where(Order.order_id == order_id)


@read(rps=5)
def oldest_in_state(state: State) -> Query[Order]:
    return find(Order).where(Order.state == state).order_by(Order.moved_at).limit(50)


@write(rps=20)
def place() -> object:
    return creates(Order)


@write(rps=60)
def take_step() -> object:
    return updates(Order.state), creates(Step)


orders = Design(
    "orders",
    [Order, Step],
    [order_with_history, oldest_in_state, place, take_step],
    volumes={Order: 2_000_000, Step: per(Order, 3)},
    sizes={Order: 200, Step: 200},
)


def move(db: Db, order_id: str, to: State, *, by: str, step_id: str) -> Order:
    """Move an order to a state and return it. A repeated ``step_id`` changes nothing."""
    while True:
        order = db.get_one(Order, order_id=order_id, consistent=True)
        if db.get(Step, order_id=order_id, step_id=step_id, consistent=True) is not None:
            return order
        if to not in STEPS[order.state]:
            raise StepRefused(f"{order_id} is {order.state.value}, and cannot become {to.value}")
        step = Step(
            order_id=order_id,
            step_id=step_id,
            number=order.rev,
            before=order.state,
            after=to,
            by=by,
        )
        try:
            with db.transaction() as tx:
                tx.create(step)
                with tx.update(order) as moving:
                    moving.state = to
        except TransactionFailed as failed:
            if not any(isinstance(error, ConditionFailed) for _, _, error in failed.failures):
                raise
            continue  # another program has moved the order: look at it again
        return db.get_one(Order, order_id=order_id, consistent=True)


def history(db: Db, order_id: str) -> list[Step]:
    """Return the steps of an order, oldest first."""
    _, steps = db.grouped(order_with_history(order_id))
    return sorted(steps, key=lambda step: step.number)


def main(address: str | None = None) -> None:
    with connect(orders, address) as db:
        db.ensure()
        for number in (1, 2):
            db.create(Order(order_id=f"o{number}", customer_id="anna"))
        move(db, "o1", State.PAID, by="payments", step_id="payment-17")
        move(db, "o1", State.PAID, by="payments", step_id="payment-17")  # delivered again
        move(db, "o1", State.SHIPPED, by="warehouse", step_id="parcel-4")
        try:
            move(db, "o1", State.CANCELLED, by="anna", step_id="click-9")
        except StepRefused as refused:
            print(f"refused: {refused}")
        for step in history(db, "o1"):
            print(f"{step.number}. {step.before.value} -> {step.after.value}, by {step.by}")
        waiting = db.page(oldest_in_state(State.PLACED), limit=10)
        print(f"waiting for payment: {[order.order_id for order in waiting]}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
