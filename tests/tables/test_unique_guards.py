"""Unique fields: guards, their expiry, and values that change hands."""

from __future__ import annotations

import pytest

from stator import (
    Design,
    connect,
    if_not_exists,
)
from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import (
    UniqueTaken,
    UpdateRefused,
)
from tests.targets import Target

from .bank import (
    DESIGN,
    Account,
    Member,
    member,
)
from .shop import (
    User,
    shop,
    user,
)


def test_a_unique_value_is_never_computed_by_the_service() -> None:
    db = connect(DESIGN)
    db.create(Member(member_id="m1"))
    with pytest.raises(UpdateRefused, match="unique"), db.update(Member, member_id="m1") as m:
        m.email = if_not_exists(m.email, "same@example.com")


def test_guards_stay_where_they_are_when_the_design_grows() -> None:
    engine = Engine.open()
    small = Design("grows", [User], [], layout="table-per-entity")
    connect(small, engine).create(user(1))
    class_first = Design("grows", [Account, User], [], layout="table-per-entity")
    thief = user(2)
    thief.email = "u1@example.com"
    with pytest.raises(UniqueTaken):
        connect(class_first, engine).create(thief)


def test_one_entity_with_guards_and_records_can_be_scanned() -> None:
    db = connect(Design("one", [User]))
    db.create(user(1))
    assert [each.user_id for each in db.scan(User, allow=True)] == ["u1"]


def test_a_value_is_handed_over_in_one_transaction(target: Target) -> None:
    db = target.connect(shop())
    one, two = user(1), user(2)
    db.create(one)
    two.email = one.email
    with db.transaction() as tx:
        tx.delete(User, user_id="u1")
        tx.create(two)
    assert db.get(User, user_id="u2", consistent=True) == two
    three = user(3)
    three.email = two.email
    with pytest.raises(UniqueTaken):
        db.create(three)


def test_what_has_expired_is_in_nobodys_way() -> None:
    clock = VirtualClock()
    db = connect(DESIGN, clock=clock)
    db.create(Member(member_id="m1", email="e@example.com"))
    clock.advance(4000)
    db.create(Member(member_id="m2", email="e@example.com"))
    db.delete(Member, member_id="m1")  # its guard is another's by now
    db.put(Member(member_id="m3", score=1))
    clock.advance(4000)
    db.put(Member(member_id="m3", score=2))
    with db.update(Member, member_id="m2", or_create=True) as m:
        m.score += 5
    found = db.get(Member, member_id="m2")
    assert found is not None and found.score == 5 and found.email is None
    assert db.count(member("m1")) == 0 and db.count(member("m2")) == 1
    clock.advance(4000)
    assert db.count(member("m2")) == 0


def test_a_guard_made_by_an_update_expires_with_its_item() -> None:
    clock = VirtualClock()
    db = connect(DESIGN, clock=clock)
    with db.update(Member, member_id="m1", or_create=True) as m:
        m.email = "e@example.com"
    clock.advance(4000)
    db.create(Member(member_id="m2", email="e@example.com"))
