"""Order states: only declared steps, each once, and a history that agrees with the order."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from order_states import (
    STEPS,
    Order,
    State,
    StepRefused,
    history,
    move,
    oldest_in_state,
    orders,
)

from stator import Db, Engine, connect
from stator.errors import ItemNotFound
from stator.testing import kill_points
from tests.targets import Target


def agrees(db: Db, order_id: str) -> State:
    """The state of an order, after a check that its history leads there."""
    order, steps = db.get_one(Order, order_id=order_id, consistent=True), history(db, order_id)
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    assert all(before.after == after.before for before, after in pairwise(steps))
    assert [step.before for step in steps[:1]] in ([State.PLACED], [])
    assert order.state == (steps[-1].after if steps else State.PLACED)
    return order.state


@pytest.mark.parametrize("before", State)
@pytest.mark.parametrize("after", State)
def test_only_declared_steps_are_taken(before: State, after: State) -> None:
    with connect(orders) as db:
        db.create(Order(order_id="o", customer_id="c", state=before))
        if after in STEPS[before]:
            assert move(db, "o", after, by="x", step_id="s").state == after
            assert [(step.before, step.after) for step in history(db, "o")] == [(before, after)]
        else:
            with pytest.raises(StepRefused, match=f"o is {before.value}"):
                move(db, "o", after, by="x", step_id="s")
            assert history(db, "o") == []


def test_a_step_that_is_asked_for_again_is_in_the_history_once(target: Target) -> None:
    db = target.connect(orders)
    db.create(Order(order_id="o", customer_id="c"))
    for _ in range(3):
        move(db, "o", State.PAID, by="payments", step_id="payment-1")
    move(db, "o", State.SHIPPED, by="warehouse", step_id="parcel-1")
    assert move(db, "o", State.PAID, by="payments", step_id="payment-1").state == State.SHIPPED
    assert [(step.by, step.after) for step in history(db, "o")] == [
        ("payments", State.PAID),
        ("warehouse", State.SHIPPED),
    ]
    assert agrees(db, "o") == State.SHIPPED


def test_of_programs_that_move_an_order_at_once_one_wins() -> None:
    with (
        Engine.open(transaction_seconds=0.001) as engine,
        connect(orders, engine) as db,
        ThreadPoolExecutor(8) as threads,
    ):
        db.create(Order(order_id="o", customer_id="c"))

        def attempt(number: int) -> bool:
            to = State.PAID if number % 2 else State.CANCELLED
            try:
                move(db, "o", to, by=str(number), step_id=f"s{number}")
            except StepRefused:
                return False
            return True

        worked = list(threads.map(attempt, range(16)))
        # Paid and then cancelled is two steps; cancelled is one, and the last.
        assert agrees(db, "o") == State.CANCELLED
        assert sum(worked) == len(history(db, "o")) in (1, 2)


def test_orders_in_a_state_are_listed_the_longest_waiting_first(target: Target) -> None:
    db = target.connect(orders)
    for number in range(3):
        db.create(Order(order_id=f"o{number}", customer_id="c"))
    for number in (2, 0):
        move(db, f"o{number}", State.PAID, by="x", step_id="s")
    paid = [order.order_id for order in db.fetch(oldest_in_state(State.PAID))]
    assert paid == ["o2", "o0"]
    assert [order.order_id for order in db.fetch(oldest_in_state(State.PLACED))] == ["o1"]


def test_an_order_that_does_not_exist_is_an_error() -> None:
    with connect(orders) as db, pytest.raises(ItemNotFound):
        move(db, "none", State.PAID, by="x", step_id="s")


def test_a_program_that_is_killed_leaves_order_and_history_in_agreement() -> None:
    with connect(orders) as db:
        db.create(Order(order_id="o", customer_id="c"))

        def pay(db: Db) -> None:
            move(db, "o", State.PAID, by="x", step_id="s")

        for _ in kill_points(db, pay):
            assert agrees(db, "o") in (State.PLACED, State.PAID)
        assert agrees(db, "o") == State.PAID
