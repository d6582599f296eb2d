"""Patches: partial updates from a plain dict."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any, Literal
from uuid import UUID

import pydantic
import pytest

from stator import (
    Design,
    Entity,
    Query,
    adapt,
    connect,
    created,
    find,
    ident,
    read,
    version,
    write_token,
)
from stator.errors import (
    ConditionFailed,
    ItemMismatch,
    ItemNotFound,
    UpdateRefused,
    VersionConflict,
)
from tests.targets import Target


class Level(Enum):
    LOW = 1
    HIGH = 2


@dataclass
class Place:
    city: str
    since: date
    floor: int | None = None


class Paper(Entity):
    paper_id: str = ident()
    owner: str
    title: str = ""
    price: Decimal = Decimal(0)
    ratio: float = 0.0
    count: int = 0
    is_open: bool = True
    at: datetime | None = None
    day: date | None = None
    hour: time | None = None
    number: UUID | None = None
    raw: bytes | None = None
    level: Level = Level.LOW
    kind: Literal["a", "b"] = "a"
    tags: set[str] = field(default_factory=set)
    place: Place | None = None
    places: list[Place] = field(default_factory=list)
    prices: dict[str, Decimal] = field(default_factory=dict)
    pair: tuple[int, Decimal] | None = None
    rev: int = version()
    made: datetime = created()
    proof: str = write_token()


@read(rps=10)
def paper_by_id(paper_id: str) -> Query[Paper]:
    return find(Paper).where(Paper.paper_id == paper_id)


@read(rps=10)
def papers_of(owner: str) -> Query[Paper]:
    return find(Paper).where(Paper.owner == owner)


DESIGN = Design("papers", [Paper], [paper_by_id, papers_of])


def test_the_json_of_a_request_becomes_typed_values(target: Target) -> None:
    db = target.connect(DESIGN)
    db.create(Paper(paper_id="p", owner="o", title="old"))
    body = json.loads(
        """{"title": "new", "price": 10.1, "ratio": 2, "count": 7, "is_open": false,
        "at": "2026-01-02T03:04:05Z", "day": "2026-01-02", "hour": "03:04:05",
        "number": "12345678-1234-5678-1234-567812345678", "raw": "AAE=", "level": 2, "kind": "b",
        "tags": ["x", "y", "x"], "place": {"city": "Bern", "since": "2020-02-02"},
        "places": [{"city": "Genf", "since": "2021-01-01", "floor": 3}],
        "prices": {"chf": "1.50", "eur": 2}, "pair": [1, "0.5"]}"""
    )
    patched = db.patch(Paper, body, paper_id="p", returns="new")
    assert patched == db.get(Paper, paper_id="p", consistent=True)
    assert (patched.rev, patched.owner, patched.title) == (2, "o", "new")
    assert patched.price == Decimal("10.1") and patched.ratio == 2.0 and not patched.is_open
    assert patched.at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert (patched.day, patched.hour) == (date(2026, 1, 2), time(3, 4, 5))
    assert patched.number == UUID("12345678-1234-5678-1234-567812345678")
    assert patched.raw == b"\x00\x01"
    assert (patched.level, patched.kind, patched.tags) == (Level.HIGH, "b", {"x", "y"})
    assert patched.place == Place("Bern", date(2020, 2, 2))
    assert patched.places == [Place("Genf", date(2021, 1, 1), 3)]
    assert patched.prices == {"chf": Decimal("1.50"), "eur": Decimal(2)}
    assert patched.pair == (1, Decimal("0.5"))


def test_values_of_the_right_type_are_taken_as_they_are(target: Target) -> None:
    db = target.connect(DESIGN)
    db.create(Paper(paper_id="p", owner="o"))
    given = {"price": Decimal(3), "level": Level.HIGH, "tags": {"z"}, "place": Place("B", date.min)}
    assert db.patch(Paper, given, paper_id="p") is None
    found = db.get_one(Paper, paper_id="p")
    assert {name: getattr(found, name) for name in given} == given


def test_none_removes_an_optional_field_and_no_other(target: Target) -> None:
    db = target.connect(DESIGN)
    db.create(Paper(paper_id="p", owner="o", day=date.min, place=Place("B", date.min)))
    found = db.patch(Paper, {"day": None, "place": None}, paper_id="p", returns="new")
    assert (found.day, found.place) == (None, None)
    for name in ("title", "owner", "count", "tags", "level"):
        with pytest.raises(ItemMismatch, match=f"Paper.{name}"):
            db.patch(Paper, {name: None}, paper_id="p")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"nope": 1}, "no field 'nope'"),
        ({"__class__": 1}, "no field"),
        ({"title": "x", "paper_id": "q"}, "Paper.paper_id is part of the item's key"),
        ({"rev": 3}, "Paper.rev is set by Stator"),
        ({"made": "2026-01-02T03:04:05Z"}, "Paper.made is set by Stator"),
        ({"proof": "x"}, "Paper.proof is set by Stator"),
        ({}, "empty"),
    ],
)
def test_names_that_a_patch_may_not_change_are_refused(
    target: Target, changes: dict[str, Any], told: str
) -> None:
    db = target.connect(DESIGN)
    made = db.create(Paper(paper_id="p", owner="o"))
    with pytest.raises(UpdateRefused, match=told) as refused:
        db.patch(Paper, changes, paper_id="p")
    assert refused.value.hint
    assert db.get(Paper, paper_id="p", consistent=True) == made


@pytest.mark.parametrize(
    "changes",
    [
        {"title": 3},
        {"count": "7"},
        {"count": True},
        {"count": 1.5},
        {"is_open": "yes"},
        {"is_open": 1},
        {"price": "much"},
        {"price": [1]},
        {"at": "yesterday"},
        {"day": "2026-13-01"},
        {"number": "x"},
        {"raw": "%%%"},
        {"level": 3},
        {"level": True},
        {"kind": "c"},
        {"tags": "x"},
        {"tags": [1]},
        {"tags": [["x"]]},
        {"place": {"city": "Bern"}},
        {"place": {"city": "Bern", "since": "2020-02-02", "nope": 1}},
        {"place": {"city": 3, "since": "2020-02-02"}},
        {"place": "Bern"},
        {"places": [{"city": "Bern", "since": "never"}]},
        {"prices": {"chf": "x"}},
        {"prices": {1: 2}},
        {"pair": [1]},
    ],
)
def test_values_that_do_not_fit_are_refused(changes: dict[str, Any]) -> None:
    db = connect(DESIGN)
    made = db.create(Paper(paper_id="p", owner="o"))
    [name] = changes
    with pytest.raises(ItemMismatch, match=f"Paper.{name}"):
        db.patch(Paper, changes, paper_id="p")
    assert db.get(Paper, paper_id="p", consistent=True) == made


def test_a_patch_changes_what_exists_and_what_its_condition_allows(target: Target) -> None:
    db = target.connect(DESIGN)
    with pytest.raises(ItemNotFound):
        db.patch(Paper, {"title": "x"}, paper_id="none")
    made = db.create(Paper(paper_id="p", owner="o"))
    with pytest.raises(ConditionFailed):
        db.patch(Paper, {"title": "x"}, paper_id="p", when=Paper.rev == 7)
    old = db.patch(Paper, {"title": "x"}, paper_id="p", when=Paper.rev == 1, returns="old")
    assert (old.title, old.rev) == ("", 1)
    with pytest.raises(VersionConflict):
        db.patch(made, {"title": "y"})
    current = db.get_one(Paper, paper_id="p")
    changed = db.patch(current, {"owner": "o2", "count": 4}, returns="new", once=True)
    assert (changed.owner, changed.count, changed.rev, current.rev) == ("o2", 4, 3, 3)
    assert db.all(papers_of("o2")) == [changed] and db.all(papers_of("o")) == []


class Profile(pydantic.BaseModel):
    name: str
    born: date


class Person(pydantic.BaseModel):
    person_id: str
    profile: Profile | None = None
    rev: int = 0


People: type[Person] = adapt(Person, ident="person_id", markers={"rev": version()})


@read()
def person(person_id: str) -> Query[Person]:
    return find(People).where(People.person_id == person_id)


def test_adapted_models_awaited(target: Target) -> None:
    async def run() -> None:
        entities: list[Any] = [People]
        async with target.connect_async(Design("people", entities, [person])) as db:
            await db.create(People(person_id="a"))
            body = {"profile": {"name": "Anna", "born": "2000-01-01"}}
            found = await db.patch(People, body, person_id="a", returns="new")
            assert found.profile == Profile(name="Anna", born=date(2000, 1, 1)) and found.rev == 2
            with pytest.raises(ItemMismatch, match="profile"):
                await db.patch(People, {"profile": {"name": "Anna", "born": "x"}}, person_id="a")

    asyncio.run(run())
