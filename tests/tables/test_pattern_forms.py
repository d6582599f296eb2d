"""Patterns with several orders, with list arguments, and for items without a field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest

from stator import Design, Entity, Query, attr, distinct, find, ident, read, share
from stator.design.entities.conditions import Condition
from stator.design.plan.plan import Plan
from stator.errors import DesignError, RequestRefused, ScanNeeded
from tests.targets import Target

DONE = datetime(2026, 1, 1, tzinfo=UTC)
STATES: tuple[Literal["new", "open", "done"], ...] = ("new", "open", "done")


class Task(Entity):
    task_id: str = ident()
    team: str
    rank: int
    title: str
    status: Literal["new", "open", "done"] = "new"
    done_at: datetime | None = None


@read(rps=5, returns=20)
def ranked(team: str) -> Query[Task]:
    return find(Task).where(Task.team == team).order_by(Task.rank, Task.title)


@read(rps=5, returns=20)
def in_states(team: str, statuses: list[str]) -> Query[Task]:
    wanted = find(Task).where(Task.team == team, attr(Task.status).is_in(statuses))
    return wanted.order_by(Task.rank, Task.title, descending=True)


@read(rps=5, returns=20)
def unfinished() -> Query[Task]:
    return find(Task).where(attr(Task.done_at).not_exists()).order_by(Task.rank, Task.title)


@read(rps=5)
def by_ids(ids: list[str]) -> Query[Task]:
    return find(Task).where(attr(Task.task_id).is_in(ids))


@read(rps=5, returns=2)
def by_titles(titles: list[str]) -> Query[Task]:
    return find(Task).where(attr(Task.title).is_in(titles))


DESIGN = Design(
    "todo", [Task], [ranked, in_states, unfinished, by_ids, by_titles], volumes={Task: 100_000}
)


def tasks() -> list[Task]:
    return [
        Task(
            task_id=f"t{at}",
            team="blue" if at % 4 else "red",
            rank=at % 3,
            title=f"title {29 - at:02}",
            status=STATES[at % 3],
            done_at=DONE if at % 5 == 0 else None,
        )
        for at in range(30)
    ]


def test_items_are_ordered_by_several_fields(target: Target) -> None:
    db = target.connect(DESIGN)
    db.write_many(tasks())
    wanted = sorted(
        (each for each in tasks() if each.team == "blue"),
        key=lambda each: (each.rank, each.title),
    )
    assert db.all(ranked("blue")) == wanted
    page = db.page(ranked("blue"), limit=5)
    rest = db.page(ranked("blue"), limit=50, cursor=page.cursor)
    assert [*page, *rest] == wanted


def test_a_list_argument_finds_items_with_any_of_its_values(target: Target) -> None:
    db = target.connect(DESIGN)
    db.write_many(tasks())
    states = {"new", "done"}
    wanted = sorted(
        (each for each in tasks() if each.team == "blue" and each.status in states),
        key=lambda each: (each.rank, each.title),
        reverse=True,
    )
    assert db.all(in_states("blue", ["new", "done", "new"])) == wanted
    page = db.page(in_states("blue", ["new", "done"]), limit=4)
    rest = db.page(in_states("blue", ["new", "done"]), limit=50, cursor=page.cursor)
    assert [*page, *rest] == wanted
    assert db.count(in_states("blue", ["new", "done"])) == len(wanted)
    assert db.all(in_states("blue", [])) == []
    assert {each.task_id for each in db.fetch(by_ids(["t3", "t4", "nobody"]))} == {"t3", "t4"}
    assert {each.task_id for each in db.fetch(by_titles(["title 00", "title 01"]))} == {
        "t29",
        "t28",
    }


def test_items_without_a_field_have_an_index_of_their_own(target: Target) -> None:
    [key] = [each for each in DESIGN.plan().entity(Task).keys if each.name == "GSI1PK"]
    assert (str(key.template), key.condition) == ("DONE_AT#$none", "{done_at} is absent")
    db = target.connect(DESIGN)
    db.write_many(tasks())
    stored = {each.task_id: each for each in tasks()}

    def wanted() -> list[str]:
        without = [each for each in stored.values() if each.done_at is None]
        ordered = sorted(without, key=lambda each: (each.rank, each.title))
        return [each.task_id for each in ordered]

    assert [each.task_id for each in db.fetch(unfinished())] == wanted()
    for name, moment in (("t0", None), ("t1", DONE)):
        with db.update(stored[name]) as task:
            task.done_at = moment
        stored[name] = replace(stored[name], done_at=moment)
    assert [each.task_id for each in db.fetch(unfinished())] == wanted()
    db.delete(Task, task_id="t2")
    del stored["t2"]
    assert [each.task_id for each in db.fetch(unfinished())] == wanted()


def test_comparing_with_none_asks_the_same() -> None:
    @read(rps=5, returns=20)
    def unfinished() -> Query[Task]:
        nothing: datetime | None = None
        return find(Task).where(Task.done_at == nothing)

    plan = Design("todo", [Task], [unfinished]).plan()
    assert plan.pattern("unfinished").key_condition.startswith('GSI1PK = "DONE_AT#$none"')


def test_the_lock_keeps_such_keys() -> None:
    plan = DESIGN.plan()
    locked = Design("todo", [Task], [*DESIGN.reads], volumes={Task: 100_000})
    locked.lock = Plan.from_json(plan.to_json())
    assert locked.plan() == plan == locked.lock


@pytest.mark.parametrize("given", ["new", 5, {"new": 1}, ["new", None]])
def test_a_list_argument_is_a_list(target: Target, given: object) -> None:
    db = target.connect(DESIGN)
    with pytest.raises(RequestRefused, match="statuses"):
        db.all(in_states("blue", given))  # type: ignore[arg-type]


def test_a_filter_takes_a_hundred_values_at_most(target: Target) -> None:
    db = target.connect(DESIGN)
    assert DESIGN.plan().pattern("in_states").steps[0].filter is not None
    with pytest.raises(RequestRefused, match="101 values"):
        db.all(in_states("blue", [f"s{at}" for at in range(101)]))


def test_an_order_names_each_field_once() -> None:
    with pytest.raises(DesignError, match="names a field twice"):
        find(Task).order_by(Task.rank, Task.rank)
    with pytest.raises(DesignError, match="order is given twice"):
        find(Task).order_by(Task.rank).order_by(Task.title)
    with pytest.raises(DesignError, match="is not a field"):
        find(Task).order_by(Task.rank, "title")


@pytest.mark.parametrize(
    ("field", "member", "hint"),
    [
        ("done_at", "month", "a range"),
        ("title", "lower", "Task.title itself"),
        ("status", "value", "Task.status itself"),
    ],
)
def test_a_plain_value_has_no_members(field: str, member: str, hint: str) -> None:
    reference: Any = getattr(getattr(Task, field), member)
    with pytest.raises(DesignError, match="has no members") as caught:
        find(Task).where(reference == "x")
    assert hint in str(caught.value.hint)


def test_an_argument_is_used() -> None:
    @read(rps=1)
    def ranked(team: str, title: str) -> Query[Task]:
        return find(Task).where(Task.team == team)

    with pytest.raises(DesignError, match="does not use its argument 'title'"):
        Design("todo", [Task], [ranked])


class Place(Entity):
    place_id: str = ident()
    name: str
    tags: list[str]
    latitude: float
    longitude: float


@pytest.mark.parametrize(
    ("asked", "problem", "hint"),
    [
        (lambda: attr(Place.name).contains("cafe"), "no full-text search", "OpenSearch"),
        (lambda: attr(Place.tags).contains("cafe"), "several members", "item for each member"),
        (
            lambda: attr(Place.name).is_in(["a"]) | attr(Place.place_id).is_in(["b"]),
            "one condition or another",
            "one pattern for each side",
        ),
        (
            lambda: attr(Place.latitude).between(1, 2) & attr(Place.longitude).between(1, 2),
            "a key has one range",
            "cells of the area",
        ),
    ],
)
def test_what_no_key_can_serve_is_refused_by_name(
    asked: Callable[[], Condition], problem: str, hint: str
) -> None:
    @read(rps=1)
    def places() -> Query[Place]:
        return find(Place).where(asked())

    with pytest.raises(ScanNeeded, match=problem) as caught:
        Design("map", [Place], [places]).plan()
    assert hint in str(caught.value.hint)


class Complaint(Entity):
    complaint_id: str = ident()
    customer: str
    at: datetime
    escalated_at: datetime | None = None
    escalated_to: str | None = None


@read(rps=1, returns=10)
def escalated() -> Query[Complaint]:
    newest = find(Complaint).where(attr(Complaint.escalated_at).exists())
    return newest.newest_first(Complaint.escalated_at)


@read(rps=1, returns=3)
def escalated_of(customer: str) -> Query[Complaint]:
    mine = find(Complaint).where(
        Complaint.customer == customer, attr(Complaint.escalated_at).exists()
    )
    return mine.newest_first(Complaint.escalated_at)


@read(rps=1, returns=3)
def handed_over(customer: str) -> Query[Complaint]:
    """Its order does not guarantee the field it asks for."""
    return find(Complaint).where(
        Complaint.customer == customer, attr(Complaint.escalated_to).exists()
    )


COMPLAINTS = Design(
    "complaints",
    [Complaint],
    [escalated, escalated_of, handed_over],
    volumes={Complaint: 1_000_000},
    facts=[
        share(attr(Complaint.escalated_at).exists(), 0.001),
        distinct(Complaint.customer, values=200_000),
    ],
)


def test_a_sparse_index_needs_no_filter_for_the_field_it_is_sparse_by(target: Target) -> None:
    plan = COMPLAINTS.plan()
    for name in ("escalated", "escalated_of"):
        assert plan.pattern(name).steps[0].filter is None
    assert plan.pattern("escalated").units_per_call < 100
    assert plan.pattern("handed_over").steps[0].filter is not None
    db = target.connect(COMPLAINTS)
    for at in range(20):
        moment = DONE + timedelta(hours=at) if at % 4 == 0 else None
        someone = "anna" if at % 3 == 0 else None
        db.create(
            Complaint(
                complaint_id=str(at),
                customer="c" if at % 2 else "d",
                at=DONE,
                escalated_at=moment,
                escalated_to=someone,
            )
        )
    assert [each.complaint_id for each in db.fetch(escalated())] == ["16", "12", "8", "4", "0"]
    assert [each.complaint_id for each in db.fetch(escalated_of("d"))] == [
        "16",
        "12",
        "8",
        "4",
        "0",
    ]
    assert {each.complaint_id for each in db.fetch(handed_over("c"))} == {"3", "9", "15"}
    complaint = db.get_one(Complaint, complaint_id="16")
    with db.update(complaint) as open_one:
        open_one.escalated_at = None
    assert [each.complaint_id for each in db.fetch(escalated())] == ["12", "8", "4", "0"]


def test_the_lock_keeps_a_sparse_list() -> None:
    locked = Design(
        "complaints",
        [Complaint],
        [*COMPLAINTS.reads],
        volumes={Complaint: 1_000_000},
        facts=COMPLAINTS.facts.all,
    )
    locked.lock = Plan.from_json(COMPLAINTS.plan().to_json())
    assert locked.plan() == locked.lock
