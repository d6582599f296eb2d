"""Versions that start at the clock: no object of a deleted item fits the next item of its key."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from stator import Design, Entity, ident, soft_delete, version
from stator.errors import ConditionFailed, DesignError, VersionConflict
from stator.tables.db import Db
from tests.targets import Target


class Job(Entity):
    job_id: str = ident()
    task: str = ""
    rev: int = version(start="clock")


class Note(Entity):
    note_id: str = ident()
    text: str = ""
    rev: int = version(start="clock")
    deleted_at: datetime | None = soft_delete()


desk = Design("desk", [Job, Note])


def created(db: Db) -> Any:
    return db.create(Job(job_id="1", task="second"))


def put(db: Db) -> Any:
    return db.put(Job(job_id="1", task="second"))


def upserted(db: Db) -> Any:
    return db.upsert(Job(job_id="1", task="second"))


def updated(db: Db) -> Any:
    with db.update(Job, job_id="1", or_create=True) as job:
        job.task = "second"


def in_a_transaction(db: Db) -> Any:
    with db.transaction() as tx:
        tx.create(Job(job_id="1", task="second"))


def in_a_batch(db: Db) -> Any:
    db.write_many([Job(job_id="1", task="second")])


@pytest.mark.parametrize("again", [created, put, upserted, updated, in_a_transaction, in_a_batch])
def test_an_object_of_the_deleted_item_does_not_fit_the_next(
    target: Target, again: Callable[[Db], Any]
) -> None:
    db = target.connect(desk)
    stale = db.create(Job(job_id="1", task="first"))
    db.delete(stale)
    again(db)
    stale.task = "stale"
    with pytest.raises(VersionConflict):
        db.put(stale)
    with pytest.raises(ConditionFailed):
        db.delete(stale)
    with pytest.raises(ConditionFailed), db.update(stale) as job:
        job.task = "stale"
    stored = db.get_one(Job, job_id="1", consistent=True)
    assert stored.task == "second"
    stored.task = "third"
    db.put(stored)
    assert stored.rev == db.get_one(Job, job_id="1", consistent=True).rev


def test_a_version_grows_by_one_with_each_write(target: Target) -> None:
    db = target.connect(desk)
    job = db.create(Job(job_id="1"))
    first = job.rev
    assert first > 10**15
    db.put(job)
    with db.update(job) as change:
        change.task = "mail"
    db.upsert(job)
    assert (job.rev, db.get_one(Job, job_id="1", consistent=True).rev) == (first + 3, first + 3)


def test_the_same_holds_where_a_marked_item_is_replaced(target: Target) -> None:
    db = target.connect(desk)
    stale = db.create(Note(note_id="1", text="first"))
    db.delete(Note, note_id="1")
    db.create(Note(note_id="1", text="second"))
    with pytest.raises(VersionConflict):
        db.put(stale)
    assert db.get_one(Note, note_id="1", consistent=True).text == "second"


def test_items_that_began_at_one_continue(target: Target) -> None:
    class Early(Entity, name="Job"):
        job_id: str = ident()
        task: str = ""
        rev: int = version()

    early = target.connect(Design("desk", [Early, Note]))
    early.create(Early(job_id="1"))
    db = target.connect(desk)
    job = db.get_one(Job, job_id="1", consistent=True)
    db.put(job)
    assert job.rev == 2


def test_other_starts_are_refused() -> None:
    with pytest.raises(DesignError, match="start='zero'"):
        version(start="zero")  # type: ignore[arg-type]
