from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from stator import connect
from stator.clock import VirtualClock
from stator.errors import LeaseLost, LockBusy
from stator.patterns.lock import Lock
from tests.patterns.crashing import Form, every_crash
from tests.tables.shop import Product, shop
from tests.targets import Target


def test_one_holder_at_a_time(target: Target) -> None:
    db = target.connect(shop())
    one, other = Lock(db, "job"), Lock(db, "job")
    lease = one.acquire()
    with pytest.raises(LockBusy) as caught:
        other.acquire()
    assert caught.value.owner == lease.owner
    assert other.holder() == lease
    assert one.release(lease)
    assert other.holder() is None
    second = other.acquire()
    assert second.fence > lease.fence
    assert not one.release(lease)
    with pytest.raises(LeaseLost):
        one.renew(lease)
    assert lease.is_lost


def test_a_lease_that_is_over_is_taken_and_fences_the_first_off() -> None:
    clock = VirtualClock()
    db = connect(shop(), clock=clock)
    one = Lock(db, "job", lease_seconds=10, drift_seconds=1)
    first = one.acquire()
    clock.advance(10.5)
    other = Lock(db, "job", lease_seconds=10)
    with pytest.raises(LockBusy):
        other.acquire()  # clocks may differ by a second
    clock.advance(1)
    second = other.acquire()
    assert second.fence == first.fence + 1
    with pytest.raises(LeaseLost):
        one.renew(first)
    other.renew(second)
    assert second.until == clock.now() + 10


def test_threads_that_share_a_lock_object_exclude_each_other_too() -> None:
    lock = Lock(connect(shop()), "job", owner="me")
    with lock.held() as lease:
        assert lease.owner.startswith("me ")
        with pytest.raises(LockBusy):
            lock.acquire()


def test_a_lease_whose_time_is_over_does_not_pass() -> None:
    clock = VirtualClock()
    lease = Lock(connect(shop(), clock=clock), "job", lease_seconds=10).acquire()
    lease.check()
    clock.advance(11)
    with pytest.raises(LeaseLost):
        lease.check()


def test_waiting_for_it() -> None:
    clock = VirtualClock()
    db = connect(shop(), clock=clock)
    Lock(db, "job", lease_seconds=5).acquire()
    started = clock.now()
    assert Lock(db, "job").acquire(wait_seconds=30).fence == 2
    assert 6 <= clock.now() - started <= 9


def test_threads_take_turns(target: Target) -> None:
    """Read, think, write: only the lock keeps these from losing each other's work."""
    db = target.connect(shop())
    db.put(Product(sku="s1", stock=0))

    def work() -> None:
        for _ in range(4):
            with Lock(db, "stock", lease_seconds=20).held(wait_seconds=30) as lease:
                lease.check()
                found = db.get(Product, sku="s1", consistent=True)
                assert found is not None
                time.sleep(0.002)
                db.put(Product(sku="s1", stock=found.stock + 1))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert db.get(Product, sku="s1", consistent=True) == Product(sku="s1", stock=16)


def test_a_holder_renews_while_it_works(target: Target) -> None:
    db = target.connect(shop())
    with Lock(db, "job", lease_seconds=0.3, drift_seconds=0).held() as lease:
        time.sleep(0.7)
        assert not lease.is_lost
        with pytest.raises(LockBusy):
            Lock(db, "job", drift_seconds=0).acquire()
    assert Lock(db, "job").acquire().fence == lease.fence + 1


def test_awaited(target: Target) -> None:
    async def main() -> None:
        async with target.connect_async(shop()) as db:
            order: list[int] = []

            async def work(number: int) -> None:
                async with Lock(db, "job").held(wait_seconds=20) as lease:
                    order.append(lease.fence)
                    await asyncio.sleep(0.001)

            await asyncio.gather(*(work(n) for n in range(5)))
            assert order == sorted(order) and len(order) == 5

    asyncio.run(main())


def test_a_holder_that_dies_at_any_call_has_the_lock_until_its_lease_ends(form: Form) -> None:
    clock = VirtualClock()
    db = connect(shop(), clock=clock)
    fences = [0]

    def hold(dying: Any) -> Iterator[Any]:
        lock = Lock(dying, "job", lease_seconds=30)
        lease = yield lock.acquire()
        yield lock.renew(lease)
        yield lock.release(lease)

    for _ in every_crash(db, hold, form=form):
        clock.advance(32)  # a second more than its lease, for clocks that differ
        lock = Lock(db, "job", lease_seconds=30)
        lease = lock.acquire()
        assert lease.fence > fences[-1]
        fences.append(lease.fence)
        assert lock.release(lease)
    assert len(fences) > 6


def test_a_released_lease_is_not_said_to_be_taken_by_others(target: Target) -> None:
    lock = Lock(target.connect(shop()), "report")
    lease = lock.acquire()
    assert lock.release(lease)
    with pytest.raises(LeaseLost, match="it was released, or another process "):
        lock.renew(lease)
