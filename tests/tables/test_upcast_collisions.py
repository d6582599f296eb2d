"""Items whose upcast value is taken by another item: updates and soft deletes still work."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from stator import Design, Entity, ident, soft_delete, unique, upcast
from stator.errors import ConditionFailed, ItemExists, UniqueTaken
from stator.tables.db import Db
from tests.targets import Target


class OldUser(Entity, name="User"):
    user_id: str = ident()
    email: str = unique()
    visits: int = 0
    deleted_at: datetime | None = soft_delete()


class User(Entity, version=2):
    user_id: str = ident()
    email: str = unique()
    visits: int = 0
    deleted_at: datetime | None = soft_delete()


@upcast(User, 1)
def lower(item: dict[str, Any]) -> dict[str, Any]:
    item["email"] = item["email"].lower()
    return item


@pytest.fixture
def db(target: Target) -> Db:
    old = target.connect(Design("users", [OldUser]))
    for number, email in enumerate(["Ann@x", "ann@x", "Cy@x"], 1):
        old.create(OldUser(user_id=str(number), email=email))
    return target.connect(Design("users", [User]))


def test_a_soft_delete_needs_no_value_that_another_item_has(db: Db) -> None:
    db.delete(User, user_id="1")
    assert db.get(User, user_id="1") is None
    with pytest.raises(UniqueTaken):
        db.restore(User, user_id="1")
    assert db.get_one(User, user_id="2").email == "ann@x"
    with pytest.raises(UniqueTaken):
        db.create(User(user_id="9", email="ann@x"))


def test_an_update_can_resolve_the_collision(db: Db) -> None:
    with db.update(User, user_id="1") as user:
        user.email, user.visits = "free@x", 4
    assert db.get_one(User, user_id="1") == User(user_id="1", email="free@x", visits=4)
    db.create(User(user_id="9", email="Ann@x"))  # the old value is free
    with pytest.raises(UniqueTaken):
        db.create(User(user_id="8", email="free@x"))


def test_an_update_upgrades_and_changes_the_item_in_one_write(db: Db) -> None:
    with db.update(User, user_id="3", when=User.email == "cy@x") as user:
        user.visits += 2
    assert db.get_one(User, user_id="3") == User(user_id="3", email="cy@x", visits=2)
    with pytest.raises(UniqueTaken):
        db.create(User(user_id="8", email="cy@x"))


def test_a_refused_update_does_not_upgrade_the_item(target: Target, db: Db) -> None:
    with pytest.raises(ConditionFailed):
        db.patch(User, {"visits": 1}, user_id="3", when=User.visits > 100)
    old = target.connect(Design("users", [OldUser]))
    assert old.get_one(OldUser, user_id="3").email == "Cy@x"


def test_a_create_over_an_item_of_a_later_version_finds_that_it_exists(
    target: Target, db: Db
) -> None:
    db.create(User(user_id="9", email="new@x"))
    old = target.connect(Design("users", [OldUser]))
    with pytest.raises(ItemExists):
        old.create(OldUser(user_id="9", email="other@x"))


def test_a_restore_of_an_item_of_an_earlier_shape_upgrades_it(target: Target, db: Db) -> None:
    target.connect(Design("users", [OldUser])).delete(OldUser, user_id="3")
    assert db.restore(User, user_id="3") == User(user_id="3", email="cy@x")
    with pytest.raises(UniqueTaken):
        db.create(User(user_id="8", email="cy@x"))


def test_a_transaction_updates_and_deletes_items_of_an_earlier_shape(db: Db) -> None:
    with db.transaction() as tx:
        with tx.update(User, user_id="3") as user:
            user.visits += 1
        tx.delete(User, user_id="1")
    assert db.get_one(User, user_id="3") == User(user_id="3", email="cy@x", visits=1)
    assert db.get(User, user_id="1") is None
