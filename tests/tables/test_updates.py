"""Updates: conditions, creation, relative changes, and objects that stay in step."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from stator import (
    connect,
)
from stator.clock import VirtualClock
from stator.errors import (
    ConditionFailed,
    TransactionFailed,
)
from tests.targets import Target

from .bank import (
    DESIGN,
    Account,
    Member,
    Note,
    accounts_in,
    newest_notes,
)
from .shop import (
    T0,
    Order,
    Status,
    order,
    orders_in_status,
    orders_of_user,
    shop,
)


def test_all_conditions_of_an_update_hold(target: Target) -> None:
    db = target.connect(DESIGN)
    db.create(Account(number="a", balance=5, limit=9))
    with (
        pytest.raises(TransactionFailed),
        db.transaction() as tx,
        tx.update(Account, number="a") as a,
    ):
        a.balance -= 30
        tx.require(Account.balance >= 30)
        tx.require(Account.limit >= 1)
    change = db.update(Account, number="a", when=Account.balance >= 30)
    with pytest.raises(ConditionFailed), change as a:
        a.balance -= 30
        change.require(Account.limit >= 1)
    assert db.get(Account, number="a", consistent=True) == Account(number="a", balance=5, limit=9)


def test_fields_beside_the_key_must_be_so(target: Target) -> None:
    db = target.connect(DESIGN)
    db.create(Account(number="a", balance=5))
    assert db.get(Account, number="a", balance=5) is not None
    assert db.get(Account, number="a", balance=6) is None
    with pytest.raises(ConditionFailed):
        db.delete(Account, number="a", balance=6)
    with pytest.raises(ConditionFailed), db.update(Account, number="a", state="closed") as a:
        a.balance = 0
    db.delete(Account, number="a", balance=5)
    db.delete(Account, number="a", balance=5)


def test_an_update_that_creates_stores_the_defaults(target: Target) -> None:
    db = target.connect(DESIGN)
    with db.update(Account, number="a", or_create=True, returns="old") as a:
        a.balance += 1
    assert [each.number for each in db.fetch(accounts_in("open"))] == ["a"]
    with db.update(Account, number="a", when=Account.state == "open") as a:
        a.state = "closed"
    with db.update(Account, number="a") as a:
        del a.state
    assert [each.number for each in db.fetch(accounts_in("open"))] == ["a"]


def test_actions_on_list_places_count_as_relative() -> None:
    from stator.tables.writes.recorder import Recorder, Recording

    of = connect(DESIGN).context.schema.of(Account)
    recording = Recording(of)
    del Recorder(recording).moves[0]
    assert recording.relative


def test_an_upsert_keeps_index_keys_and_times_in_step(target: Target) -> None:
    clock = VirtualClock(datetime(2026, 11, 1, tzinfo=UTC).timestamp())
    db = target.connect(DESIGN, clock=clock)
    db.upsert(Note(note_id="n1", topic="t"))
    clock.advance(60)
    db.upsert(Note(note_id="n2", topic="t"))
    clock.advance(60)
    again = db.upsert(Note(note_id="n1", topic="t", text="changed"))
    assert again.text == "changed"
    assert [each.note_id for each in db.fetch(newest_notes("t"))] == ["n2", "n1"]
    db.upsert(again)
    assert len(list(db.scan(Note, allow=True))) == 2


def test_objects_are_brought_up_to_date_by_every_kind_of_update(target: Target) -> None:
    db = target.connect(DESIGN)
    there = Member(member_id="m1", email="e@example.com")
    db.create(there)
    with db.transaction() as tx, tx.update(there) as m:
        m.score = 3
    assert (there.rev, there.score) == (2, 3)
    change = db.update(there, returns="old")
    with change as m:
        m.score = 4
    assert (there.rev, there.score) == (3, 4)
    assert change.result is not None and change.result.score == 3
    db.put(there)
    assert there.rev == 4


def test_an_expiry_taken_away_stays_away() -> None:
    db = connect(DESIGN)
    there = Member(member_id="m1")
    db.create(there)
    there.expires = None
    db.put(there)
    assert there.expires is None


def test_a_transaction_brings_an_updated_object_and_its_index_up_to_date() -> None:
    db = connect(shop())
    there = order(1, total=Decimal(3))
    db.put(there)
    with db.transaction() as tx, tx.update(there) as o:
        o.status = Status.SHIPPED
    assert there.status is Status.SHIPPED
    assert [each.order_id for each in db.fetch(orders_in_status(Status.SHIPPED, T0))] == ["o001"]
    assert isinstance(db.first(orders_of_user("u1")), Order)
