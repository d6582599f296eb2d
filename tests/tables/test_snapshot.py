"""Snapshots: several items as they were at one moment."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from stator import Get, connect
from stator.clock import VirtualClock
from stator.errors import RequestRefused, TransactionCanceled, TransactionConflict
from stator.tables.db import Db
from stator.testing import Fault, FaultyTransport, InterceptedCall
from tests.targets import Target

from .shop import T0, Product, Session, User, shop, user


def test_items_of_several_entities_in_the_order_of_the_arguments(target: Target) -> None:
    db = target.connect(shop())
    anna = db.create(user(1))
    db.put(Product(sku="s1", stock=3))
    person, product = db.snapshot(Get(User, user_id="u1"), Get(Product, sku="s1"))
    assert person == anna and product == Product(sku="s1", stock=3)
    found = db.snapshot(Get(Product, sku="none"), Get(Product, sku="s1"), Get(User, user_id="u1"))
    assert found == (None, product, anna)


def test_a_list_gives_a_list_and_reads_an_item_once(target: Target) -> None:
    db = target.connect(shop(), measure=True)
    db.write_many(Product(sku=f"s{n}", stock=n) for n in range(100))
    wanted = [Get(Product, sku=f"s{n}") for n in (*range(100), 7, 7)]
    found = db.snapshot(wanted)
    assert [each and each.stock for each in found] == [*range(100), 7, 7]
    assert db.snapshot([]) == []
    assert db.meter is not None
    usage = db.meter.by_label["snapshot"]
    assert usage.calls == 1 and usage.read_units == 200


def test_what_a_snapshot_cannot_read_is_refused(target: Target) -> None:
    db = target.connect(shop())
    with pytest.raises(RequestRefused, match="101 items"):
        db.snapshot(Get(Product, sku=f"s{n}") for n in range(101))
    with pytest.raises(RequestRefused, match="Get"):
        db.snapshot([User])  # type: ignore[arg-type]
    with pytest.raises(RequestRefused, match="lacks fields of the key"):
        db.snapshot([Get(Session, user_id="u1")])


def test_expired_items_and_other_values_count_as_absent(target: Target) -> None:
    db = target.connect(shop())
    late = Session(session_id="s", user_id="u1", expires=T0 - timedelta(days=3000))
    db.put(late)
    get = Get(Session, session_id="s", user_id="u1")
    assert db.snapshot([get]) == [None]
    assert [each is not None for each in db.snapshot([get], include_expired=True)] == [True]
    db.put(Product(sku="s1", stock=3))
    assert db.snapshot([Get(Product, sku="s1", stock=4)]) == [None]


def test_the_same_awaited(target: Target) -> None:
    async def run() -> None:
        async with target.connect_async(shop()) as db:
            await db.create(user(1))
            person, missing = await db.snapshot(Get(User, user_id="u1"), Get(Product, sku="s"))
            assert person is not None and person.name == "User 1" and missing is None

    asyncio.run(run())


def with_conflicts(db: Db, number: int) -> list[str]:
    """Let the first ``number`` snapshots meet a transaction in progress."""
    seen: list[str] = []

    def fault(call: InterceptedCall) -> Fault | None:
        if call.operation != "TransactGetItems":
            return None
        seen.append(call.operation)
        return Fault("conflict") if len(seen) <= number else None

    db.runner.transport = FaultyTransport(db.runner.transport, fault)
    return seen


def test_a_snapshot_waits_for_a_transaction_in_progress() -> None:
    db = connect(shop(), clock=VirtualClock())
    db.put(Product(sku="s1", stock=3))
    seen = with_conflicts(db, 3)
    [found] = db.snapshot([Get(Product, sku="s1")])
    assert found is not None and found.stock == 3 and len(seen) == 4


def test_a_snapshot_that_never_gets_through_says_so() -> None:
    db = connect(shop(), clock=VirtualClock())
    with_conflicts(db, 1000)
    with pytest.raises((TransactionConflict, TransactionCanceled)):
        db.snapshot([Get(Product, sku="s1")])
