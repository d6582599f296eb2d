"""Hooks of entities: before a write, after a load, on every target."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from stator import (
    Delete,
    Design,
    Entity,
    Query,
    after_load,
    before_write,
    connect,
    find,
    ident,
    read,
    unique,
    version,
)
from stator.engine import Engine
from stator.errors import BatchFailed, DesignError, RequestRefused, UniqueTaken
from stator.pipeline.bulk.load.load import LoadOptions, load
from stator.pipeline.bulk.targets import BulkTarget
from stator.tables.db import Db
from tests.targets import Target


class Refused(Exception):
    """An error of the user's own."""


class Person(Entity):
    person_id: str = ident()
    name: str
    tags: list[str] | None = None
    loads: int = 0

    @before_write
    def tidy(self) -> None:
        if not self.name:
            raise Refused(self.person_id)
        self.name = self.name.strip().title()
        if self.tags is not None:
            self.tags.append("tidy")

    @after_load
    def seen(self) -> None:
        self.loads += 1


class Account(Entity):
    """Written one by one: it has a unique field and a version."""

    account_id: str = ident()
    email: str = unique()
    rev: int = version()

    @before_write
    def lower(self) -> None:
        if "@" not in self.email:
            raise Refused(self.account_id)
        self.email = self.email.lower()


class Seal(Entity, frozen=True):
    seal_id: str = ident()
    text: str

    @before_write
    def upper(self) -> Seal:
        return Seal(seal_id=self.seal_id, text=self.text.upper())

    @after_load
    def mark(self) -> Seal:
        return Seal(seal_id=self.seal_id, text=f"<{self.text}>")


@read(rps=1)
def person(person_id: str) -> Query[Person]:
    return find(Person).where(Person.person_id == person_id)


@read(rps=1, returns=10)
def people_named(name: str) -> Query[Person]:
    return find(Person).where(Person.name == name)


@read(rps=1)
def account(account_id: str) -> Query[Account]:
    return find(Account).where(Account.account_id == account_id)


@read(rps=1)
def seal(seal_id: str) -> Query[Seal]:
    return find(Seal).where(Seal.seal_id == seal_id)


DESIGN = Design("hooks", [Person, Account, Seal], [person, people_named, account, seal])


def name_of(db: Db, person_id: str) -> str | None:
    found = db.get(Person, person_id=person_id)
    return None if found is None else found.name


def test_the_stored_object_and_the_callers_have_the_changes(target: Target) -> None:
    db = target.connect(DESIGN)
    created = Person(person_id="p1", name=" anna ", tags=[])
    assert db.create(created) is created
    assert (created.name, created.tags) == ("Anna", ["tidy"])
    put = Person(person_id="p2", name="ben")
    db.put(put)
    upserted = Person(person_id="p3", name="cleo")
    assert db.upsert(upserted).name == upserted.name == "Cleo"
    with db.transaction() as tx:
        tx.create(Person(person_id="p4", name="dan"))
        tx.put(Person(person_id="p5", name="eve"))
    db.write_many([Person(person_id="p6", name="fay")])
    assert [name_of(db, f"p{n}") for n in range(1, 7)] == [
        "Anna", "Ben", "Cleo", "Dan", "Eve", "Fay",
    ]  # fmt: skip
    found = [each.person_id for each in db.fetch(people_named("Ben"))]
    assert found == ["p2"]  # the index key holds the changed value


def test_an_error_refuses_the_write_and_changes_nothing(target: Target) -> None:
    db = target.connect(DESIGN)
    wrong = Person(person_id="p1", name="", tags=[])
    for attempt in (db.create, db.put, db.upsert):
        with pytest.raises(Refused, match="p1"):
            attempt(wrong)
    with pytest.raises(Refused), db.transaction() as tx:
        tx.put(Person(person_id="p2", name="ok"))
        tx.put(wrong)
    assert wrong.tags == []
    assert db.get(Person, person_id="p1") is None
    assert db.get(Person, person_id="p2") is None


def test_in_batches_a_refused_object_is_one_failure(target: Target) -> None:
    db = target.connect(DESIGN)
    changes: list[Any] = [
        Person(person_id="p1", name="anna"),
        Person(person_id="p2", name=""),
        Account(account_id="a1", email="A@x.org"),
        Account(account_id="a2", email="nobody"),
        Delete(Person, person_id="p9"),
    ]
    with pytest.raises(BatchFailed) as failed:
        db.write_many(changes)
    assert [each.change for each in failed.value.failures] == [changes[1], changes[3]]
    assert all(isinstance(each.error, RequestRefused) for each in failed.value.failures)
    assert name_of(db, "p1") == "Anna"
    stored = db.get(Account, account_id="a1")
    assert stored is not None
    assert stored.email == changes[2].email == "a@x.org"
    assert db.get(Account, account_id="a2") is None


def test_the_guard_of_a_unique_field_has_the_changed_value(target: Target) -> None:
    db = target.connect(DESIGN)
    db.create(Account(account_id="a1", email="A@x.org"))
    with pytest.raises(UniqueTaken):
        db.create(Account(account_id="a2", email="a@X.org"))


def test_every_object_that_is_read_went_through_after_load(target: Target) -> None:
    db = target.connect(DESIGN)
    db.put(Person(person_id="p1", name="anna"))
    read_objects = [
        db.get(Person, person_id="p1"),
        *db.get_many(Person, ["p1"]),
        db.first(person("p1")),
        *db.fetch(people_named("Anna")),
        *db.page(people_named("Anna"), limit=3),
        *db.scan(Person, allow=True),
    ]
    assert [each.loads for each in read_objects if each is not None] == [1] * 6
    old = db.delete(Person, person_id="p1", returns="old")
    assert old is not None
    assert old.loads == 1


def test_updates_run_no_hook_before_the_write(target: Target) -> None:
    db = target.connect(DESIGN)
    db.put(Person(person_id="p1", name="anna"))
    with db.update(Person, person_id="p1") as changing:
        changing.name = "lower case"
    assert name_of(db, "p1") == "lower case"


def test_writes_by_pattern_compare_what_is_stored(target: Target) -> None:
    class Shy(Entity):
        shy_id: str = ident()
        room: str
        rank: int = 0

        @after_load
        def disguise(self) -> None:
            self.room, self.rank = "hidden", -1

    @read(rps=1)
    def shy(shy_id: str) -> Query[Shy]:
        return find(Shy).where(Shy.shy_id == shy_id)

    @read(rps=1, returns=9)
    def in_room(room: str) -> Query[Shy]:
        return find(Shy).where(Shy.room == room).order_by(Shy.rank)

    def promote(each: Shy) -> None:
        each.rank = 7

    db = target.connect(Design("shy", [Shy], [shy, in_room]))
    db.put(Shy(shy_id="s1", room="red"))
    assert db.update_where(in_room("red"), promote).written == 1
    assert db.delete_where(in_room("red")).written == 1


def test_methods_of_a_frozen_entity_return_the_copy(target: Target) -> None:
    db = target.connect(DESIGN)
    given = Seal(seal_id="s1", text="wax")
    assert db.create(given) == Seal(seal_id="s1", text="WAX")
    assert given.text == "wax"
    assert db.get(Seal, seal_id="s1") == Seal(seal_id="s1", text="<WAX>")


def test_hooks_run_on_an_async_db(target: Target) -> None:
    async def main() -> None:
        db = target.connect_async(DESIGN)
        await db.create(Person(person_id="p1", name="anna"))
        found = await db.get(Person, person_id="p1")
        assert found is not None
        assert (found.name, found.loads) == ("Anna", 1)
        await db.close()

    asyncio.run(main())


def test_bulk_loads_run_the_hooks_and_refuse_rows(tmp_path: Path) -> None:
    rows = tmp_path / "people.jsonl"
    rows.write_text(
        "".join(
            json.dumps({"person_id": f"p{n}", "name": "" if n == 3 else f"name {n}"}) + "\n"
            for n in range(6)
        )
    )
    with Engine.open() as engine:
        options = LoadOptions(dead_letters=str(tmp_path / "dead.jsonl"))
        with BulkTarget.open(engine, design=DESIGN, entity=Person) as target:
            report = load(str(rows), target, options)
        assert (report.written, report.failed) == (5, 1)
        assert "Refused: p3" in (tmp_path / "dead.jsonl").read_text()
        db = connect(DESIGN, engine)
        assert [name_of(db, f"p{n}") for n in (0, 3, 5)] == ["Name 0", None, "Name 5"]


def test_hooks_of_base_classes_run_first_and_can_be_replaced() -> None:
    class Base(Entity):
        base_id: str = ident()
        trace: str = ""

        @before_write
        def first(self) -> None:
            self.trace += "1"

        @before_write
        def second(self) -> None:
            self.trace += "2"

    class Own(Base):
        def second(self) -> None:
            self.trace += "b"

        @before_write
        def third(self) -> None:
            self.trace += "3"

    @read()
    def own(base_id: str) -> Query[Own]:
        return find(Own).where(Own.base_id == base_id)

    db = connect(Design("bases", [Own], [own]))
    assert db.put(Own(base_id="o")).trace == "1b3"


def test_wrong_hooks_are_refused() -> None:
    with pytest.raises(DesignError, match="plain method"):

        @before_write
        async def awaited(self: Any) -> None: ...

    with pytest.raises(DesignError, match="plain method"):
        before_write("name")  # type: ignore[type-var]

    class Odd(Entity):
        odd_id: str = ident()

        @before_write
        def answer(self) -> int:
            return 42

    @read()
    def odd(odd_id: str) -> Query[Odd]:
        return find(Odd).where(Odd.odd_id == odd_id)

    with pytest.raises(DesignError, match="answer returned int, not Odd"):
        connect(Design("odd", [Odd], [odd])).put(Odd(odd_id="o"))
