"""The inventory: no goods are sold twice, lost, or returned twice, whoever acts at once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from inventory import HOLD, Reservation, State, Stock, due, release, release_expired, reserve, sell
from inventory import shop as inventory

from stator import Db, Engine, connect
from stator.clock import VirtualClock
from stator.testing import kill_points
from tests.targets import Target

ALL = 50


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def db(clock: VirtualClock) -> Iterator[Db]:
    """Transactions take a moment, so that those of several buyers meet."""
    with (
        Engine.open(clock=clock, transaction_seconds=0.001) as engine,
        connect(inventory, engine, clock=clock) as db,
    ):
        db.put(Stock(sku="lamp", available=ALL))
        yield db


def counts(db: Db) -> tuple[int, int, int]:
    found = db.get_one(Stock, sku="lamp", consistent=True)
    return found.available, found.reserved, found.sold


def test_buyers_at_once_never_reserve_more_than_there_is(db: Db) -> None:
    with ThreadPoolExecutor(8) as threads:
        held = list(threads.map(lambda each: reserve(db, f"r{each}", "lamp", 3), range(40)))
    assert sum(held) == ALL // 3
    assert counts(db) == (ALL % 3, ALL - ALL % 3, 0)
    stored = [each for each in db.scan(Reservation, allow=True) if each.state == State.OPEN]
    assert sum(each.quantity for each in stored) == ALL - ALL % 3


def test_the_stock_that_is_left_goes_to_one_of_two_buyers(target: Target) -> None:
    db = target.connect(inventory)
    db.put(Stock(sku="lamp", available=1))
    assert [reserve(db, each, "lamp", 1) for each in ("r1", "r2")] == [True, False]
    assert not reserve(db, "r3", "chair", 1)
    assert counts(db) == (0, 1, 0)


def test_a_repeated_reservation_takes_nothing_more(db: Db) -> None:
    assert [reserve(db, "r1", "lamp", 2) for _ in range(3)] == [True, True, True]
    assert counts(db) == (ALL - 2, 2, 0)


def test_a_repeated_sale_sells_once(db: Db) -> None:
    reserve(db, "r1", "lamp", 2)
    assert [sell(db, "r1") for _ in range(3)] == [True, True, True]
    assert counts(db) == (ALL - 2, 0, 2)


def test_goods_that_nobody_pays_go_back_once_however_many_sweeps_run(
    db: Db, clock: VirtualClock
) -> None:
    for number in range(10):
        reserve(db, f"r{number}", "lamp", 2)
    sell(db, "r0")
    assert release_expired(db) == 0
    clock.advance(HOLD.total_seconds() + 1)
    assert not sell(db, "r1")  # too late, although no sweep has run
    with ThreadPoolExecutor(4) as threads:
        released = sum(threads.map(lambda _: release_expired(db), range(4)))
    assert released == 9
    assert counts(db) == (ALL - 2, 0, 2)
    assert not sell(db, "r1")
    assert not reserve(db, "r1", "lamp", 2)  # its id is used up


def test_a_reservation_that_is_paid_in_time_is_not_released(db: Db, clock: VirtualClock) -> None:
    reserve(db, "r1", "lamp", 2)
    reservation = db.get_one(Reservation, reservation_id="r1")
    assert not release(db, reservation)  # not due
    assert sell(db, "r1")
    clock.advance(HOLD.total_seconds() + 1)
    assert not release(db, reservation)
    assert counts(db) == (ALL - 2, 0, 2)


def test_the_sweep_reads_open_reservations_only(db: Db, clock: VirtualClock) -> None:
    for number in range(10):
        reserve(db, f"r{number}", "lamp", 1)
        sell(db, f"r{number}")
    clock.advance(HOLD.total_seconds() + 1)
    moment = datetime.fromtimestamp(clock.now(), UTC)
    assert [db.count(due(state, moment)) for state in State] == [0, 0, 0]


def test_a_program_that_is_killed_loses_no_goods() -> None:
    with connect(inventory) as db:

        def buy(db: Db) -> None:
            reserve(db, "r1", "lamp", 2)
            sell(db, "r1")

        db.put(Stock(sku="lamp", available=ALL))
        for point in kill_points(db, buy):
            assert sum(counts(db)) == ALL, point
            db.delete(Reservation, reservation_id="r1")
            db.put(Stock(sku="lamp", available=ALL))
