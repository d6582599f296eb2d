"""Soft deletes: marked, hidden from reads, absent to writes, restored, purged; on every target."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stator import (
    Delete,
    Design,
    Entity,
    Get,
    Query,
    attr,
    connect,
    find,
    ident,
    read,
    soft_delete,
    ttl,
    unique,
    version,
)
from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import (
    ConditionFailed,
    DesignError,
    ItemExists,
    ItemNotFound,
    RequestRefused,
    TransactionFailed,
    UniqueTaken,
    UpdateRefused,
    VersionConflict,
)
from stator.tables.db import Db
from tests.targets import Target


class User(Entity):
    user_id: str = ident()
    team: str
    email: str = unique()
    rev: int = version()
    deleted_at: datetime | None = soft_delete()


class Note(Entity):
    note_id: str = ident()
    team: str
    text: str = ""
    expires_at: datetime | None = ttl(default=None)
    deleted_at: datetime | None = soft_delete(days=30)


class Kept(Entity):
    kept_id: str = ident()
    text: str = ""
    hint: str | None = None
    deleted_at: datetime | None = soft_delete()


@read(rps=5, returns=5)
def users_of(team: str) -> Query[User]:
    return find(User).where(User.team == team)


@read(rps=1, returns=5)
def deleted_users_of(team: str) -> Query[User]:
    return find(User).where(User.team == team, attr(User.deleted_at).exists())


@read(rps=5, returns=5)
def notes_of(team: str) -> Query[Note]:
    return find(Note).where(Note.team == team)


@read(rps=5)
def number_of_notes(team: str) -> Any:
    return find(Note).where(Note.team == team).count()


club = Design("club", [User, Note, Kept], [users_of, deleted_users_of, notes_of, number_of_notes])


@pytest.fixture
def db(target: Target) -> Db:
    db = target.connect(club)
    db.create(User(user_id="1", team="a", email="ann@x"))
    db.create(User(user_id="2", team="a", email="bob@x"))
    db.write_many([Note(note_id=str(n), team="a", text="n") for n in range(3)])
    return db


def test_reads_leave_deleted_items_out(db: Db) -> None:
    db.delete(User, user_id="1")
    assert db.get(User, user_id="1") is None
    assert not db.exists(User, user_id="1")
    assert db.get_many(User, ["1", "2"])[0] is None
    assert db.snapshot(Get(User, user_id="1"), Get(User, user_id="2"))[0] is None
    assert [each.user_id for each in db.fetch(users_of("a"))] == ["2"]
    assert [each.user_id for each in db.scan(User, allow=True)] == ["2"]
    assert db.all(users_of("a").only(User.user_id)) == [("2",)]
    db.delete_many(Note, ["0", "1"])
    assert db.count(number_of_notes("a")) == 1
    assert [each.note_id for each in db.fetch(notes_of("a"))] == ["2"]


def test_deleted_items_can_be_seen_on_request(db: Db) -> None:
    db.delete(User, user_id="1")
    seen = db.get_one(User, user_id="1", include_deleted=True)
    assert seen.deleted_at is not None
    assert seen.rev == 2
    assert [each.user_id for each in db.fetch(deleted_users_of("a"))] == ["1"]
    assert len(db.get_many(User, ["1"], include_deleted=True)) == 1
    assert len(list(db.scan(User, allow=True, include_deleted=True))) == 2


def test_a_deleted_item_comes_back_as_it_was(db: Db) -> None:
    before = db.get_one(User, user_id="1")
    db.delete(User, user_id="1")
    back = db.restore(User, user_id="1")
    assert replace(back, rev=before.rev) == before
    assert len(db.all(users_of("a"))) == 2
    assert db.restore(User, user_id="1") == back  # nothing to do
    with pytest.raises(ItemNotFound):
        db.restore(User, user_id="9")
    with pytest.raises(UniqueTaken):
        db.create(User(user_id="3", team="a", email="ann@x"))


def test_a_deleted_item_is_absent_to_writes(db: Db) -> None:
    db.delete(User, user_id="1")
    with pytest.raises(ItemNotFound, match="is deleted"), db.update(User, user_id="1") as user:
        user.team = "b"
    with pytest.raises(ItemNotFound):
        db.delete(User, user_id="1", must_exist=True)
    assert db.delete(User, user_id="1") is None
    with pytest.raises(TransactionFailed, match="is deleted"), db.transaction() as tx:
        tx.check(User, user_id="1")
    made = db.create(User(user_id="1", team="b", email="new@x"))
    assert made.rev == 1
    assert db.get(User, user_id="1") == made
    with pytest.raises(ItemExists):
        db.create(User(user_id="1", team="b", email="other@x"))


def test_unique_values_of_deleted_items_are_free(db: Db) -> None:
    db.delete(User, user_id="1")
    db.create(User(user_id="3", team="a", email="ann@x"))
    with pytest.raises(UniqueTaken):
        db.restore(User, user_id="1")
    db.delete(User, user_id="3")
    assert db.restore(User, user_id="1").email == "ann@x"


def test_an_object_is_deleted_only_in_its_version(db: Db) -> None:
    mine, theirs = db.get_one(User, user_id="1"), db.get_one(User, user_id="1")
    with db.update(theirs) as user:
        user.team = "b"
    with pytest.raises(VersionConflict):
        db.delete(mine)
    with pytest.raises(ConditionFailed):
        db.delete(User, user_id="1", when=User.team == "a")
    db.delete(theirs)
    assert db.get(User, user_id="1") is None


def test_a_purge_removes_the_item(db: Db) -> None:
    db.delete(User, user_id="1", purge=True)
    assert db.get(User, user_id="1", include_deleted=True) is None
    db.delete(User, user_id="2")
    with db.transaction() as tx:
        tx.delete(User, user_id="2", purge=True)
    assert not list(db.scan(User, allow=True, include_deleted=True))
    db.create(User(user_id="3", team="a", email="ann@x"))


def test_an_update_that_may_create_replaces_a_deleted_item(db: Db) -> None:
    db.delete(Note, note_id="0")
    with db.update(Note, or_create=True, note_id="0") as note:
        note.team = "b"
        note.expires_at = None
    stored = db.get_one(Note, note_id="0")
    assert (stored.team, stored.text, stored.deleted_at) == ("b", "", None)


def test_batches_and_pattern_writes_mark_items(db: Db) -> None:
    db.write_many([Delete(Note, note_id="0")])
    assert db.get(Note, note_id="0", include_deleted=True) is not None
    assert db.delete_where(notes_of("a")).written == 2
    assert db.delete_where(notes_of("a")).written == 0
    old = db.delete(User, user_id="1", returns="old")
    assert old is not None
    assert old.deleted_at is None


def test_deleted_items_expire() -> None:
    clock = VirtualClock()
    with Engine.open(clock=clock) as engine:
        db = connect(club, engine, clock=clock)
        db.create(Note(note_id="1", team="a"))
        db.delete(Note, note_id="1")
        gone = db.get_one(Note, note_id="1", include_deleted=True)
        assert gone.expires_at is not None
        assert gone.deleted_at is not None
        assert gone.expires_at - gone.deleted_at.replace(microsecond=0) == timedelta(days=30)
        assert db.restore(Note, note_id="1").expires_at is None
        db.delete(Note, note_id="1")
        clock.advance(31 * 86_400)
        assert db.get(Note, note_id="1", include_deleted=True) is None


def test_a_delete_that_lost_a_race_is_planned_again(db: Db) -> None:
    of = db.context.schema.of(User)
    calls: list[int] = []

    def change(*_: Any) -> None:
        if not calls:
            calls.append(1)
            with db.update(User, user_id="1") as user:
                user.team = "c"

    planner: Any = db.operations._writes
    stored = planner.stored

    def slow(*given: Any) -> Any:
        found = yield from stored(*given)
        change()
        return found

    planner.stored = slow
    db.delete(User, user_id="1")
    del planner.stored
    gone = db.get_one(User, user_id="1", include_deleted=True)
    assert (gone.team, gone.rev) == ("c", 3)
    assert of.is_deleted({"deleted_at": {"S": "x"}})


def test_wrong_use_is_refused() -> None:
    class Plain(Entity):
        plain_id: str = ident()

    db = connect(Design("plain", [Plain], []))
    with pytest.raises(RequestRefused, match="no soft_delete"):
        db.restore(Plain, plain_id="1")

    class Wrong(Entity):
        wrong_id: str = ident()
        deleted_at: str = soft_delete()

    with pytest.raises(DesignError, match="optional time"):
        Design("wrong", [Wrong], []).plan()

    class Late(Entity):
        late_id: str = ident()
        deleted_at: datetime | None = soft_delete(days=3)

    with pytest.raises(DesignError, match=r"no ttl\(\) field"):
        Design("late", [Late], []).plan()


def test_the_mark_cannot_be_set_by_hand(db: Db) -> None:
    with pytest.raises(UpdateRefused), db.update(User, user_id="1") as user:
        user.deleted_at = None
    with pytest.raises(UpdateRefused):
        db.patch(User, {"deleted_at": None}, user_id="1")


# -- a refused write leaves a deleted item as it was


def _set_fields(note: Any, **fields: Any) -> None:
    for name, value in fields.items():
        setattr(note, name, value)


def _refused_updates(db: Db) -> list[tuple[type[Exception], Any]]:
    """Updates with or_create of deleted items that are refused, each for another reason."""

    def without_a_required_field() -> None:
        with db.update(Note, note_id="0", or_create=True) as note:
            note.text = "x"

    def with_a_false_condition() -> None:
        with db.update(Note, note_id="0", or_create=True, when=Note.text == "n") as note:
            _set_fields(note, team="b", text="x")

    def with_a_taken_value(**options: Any) -> None:
        with db.update(User, user_id="1", or_create=True, **options) as user:
            _set_fields(user, team="b", email="bob@x")

    def in_a_transaction_that_fails() -> None:
        with db.transaction() as tx:
            tx.check(Note, note_id="none")
            with tx.update(Note, note_id="0", or_create=True) as note:
                note.team = "b"

    def in_a_transaction_with_a_false_condition() -> None:
        with db.transaction() as tx:
            tx.check(Note, note_id="1")
            with tx.update(Note, note_id="0", or_create=True, when=Note.text == "n") as note:
                note.team = "b"

    def in_a_transaction_with_a_taken_value() -> None:
        with (
            db.transaction() as tx,
            tx.update(User, user_id="1", or_create=True) as user,
        ):
            _set_fields(user, team="b", email="bob@x")

    return [
        (UpdateRefused, without_a_required_field),
        (ConditionFailed, with_a_false_condition),
        (UniqueTaken, with_a_taken_value),
        (UniqueTaken, lambda: with_a_taken_value(once=True)),
        (TransactionFailed, in_a_transaction_that_fails),
        (TransactionFailed, in_a_transaction_with_a_false_condition),
        (TransactionFailed, in_a_transaction_with_a_taken_value),
    ]


def test_a_refused_update_with_or_create_leaves_a_deleted_item_as_it_was(db: Db) -> None:
    db.delete(User, user_id="1")
    db.delete(Note, note_id="0")

    def stored() -> list[Any]:
        found: list[Any] = [db.get(Note, note_id="0", include_deleted=True)]
        return [*found, db.get(User, user_id="1", include_deleted=True)]

    before = stored()
    assert None not in before
    for reason, refused in _refused_updates(db):
        with pytest.raises(reason):
            refused()
        assert stored() == before, refused.__name__


def test_an_update_with_or_create_replaces_a_deleted_item_as_if_there_were_none(db: Db) -> None:
    db.put(Note(note_id="0", team="a", text="old"))
    db.delete(Note, note_id="0")
    with db.update(Note, note_id="0", or_create=True, returns="old") as note:
        note.team = "b"
    assert db.get(Note, note_id="0") == Note(note_id="0", team="b")
    db.delete(User, user_id="1")
    changing = db.update(User, user_id="1", or_create=True, returns="new")
    with changing as user:
        _set_fields(user, team="b", email="new@x")
    assert changing.result == db.get(User, user_id="1")
    assert db.get_one(User, user_id="1").rev == 1
    db.create(User(user_id="9", team="a", email="ann@x"))  # the deleted item's value is free
    with pytest.raises(UniqueTaken):
        db.create(User(user_id="8", team="a", email="new@x"))


def test_an_update_with_or_create_that_only_takes_attributes_away(db: Db) -> None:
    for text in ("", "old"):  # as the default, and not
        db.put(Kept(kept_id="1", text=text))
        db.delete(Kept, kept_id="1")
        with db.update(Kept, kept_id="1", or_create=True) as kept:
            kept.hint = None
        assert db.get(Kept, kept_id="1") == Kept(kept_id="1")
        db.delete(Kept, kept_id="1", purge=True)


def test_restore_brings_back_the_items_own_expiry(db: Db) -> None:
    own = datetime(2100, 1, 1, tzinfo=UTC)
    for note in (
        Note(note_id="7", team="a", expires_at=own),
        Note(note_id="8", team="a", expires_at=None),
    ):
        db.put(note)
        for _ in range(2):
            db.delete(Note, note_id=note.note_id)
            assert db.restore(Note, note_id=note.note_id) == note


def test_a_dry_run_of_a_delete_says_that_it_depends_on_the_item(db: Db) -> None:
    shown = str(db.dry_run().delete(Note, note_id="0"))
    assert shown.startswith("the write depends on the stored item")
    assert "GetItem" in shown
    with db.dry_run().transaction() as tx:
        tx.delete(Note, note_id="0")
