"""Planning from a lock on: nothing shifts because a pattern was added, and what changes is worth
it.
"""

from __future__ import annotations

import random
from datetime import datetime
from enum import Enum
from typing import Any, Literal

import pytest

from stator.design.design import Design, Layout, per
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident, unique
from stator.design.patterns.pattern import Pattern, read
from stator.design.patterns.query import Bundle2, Query, find, together
from stator.design.patterns.write_pattern import WritePattern, creates, updates, write
from stator.design.plan.lock_file import compare
from stator.design.plan.plan import Plan
from stator.errors import DesignError

from . import models
from .test_planner_optimal import a_design


class State(Enum):
    OPEN = "open"
    DONE = "done"


class Person(Entity):
    person_id: str = ident()
    email: str = unique()
    city: str
    since: datetime


class Job(Entity):
    job_id: str = ident()
    person_id: str
    state: State
    at: datetime
    level: Literal["a", "b"] = "a"


class Note(Entity):
    note_id: str = ident()
    job_id: str
    at: datetime


@read(rps=50)
def person(person_id: str) -> Query[Person]:
    return find(Person).where(Person.person_id == person_id)


@read(rps=20)
def by_email(email: str) -> Query[Person]:
    return find(Person).where(Person.email == email)


@read(rps=5, returns=50)
def in_city(city: str) -> Query[Person]:
    return find(Person).where(Person.city == city).newest_first(Person.since).limit(50)


@read(rps=20, returns=10)
def jobs_of(person_id: str) -> Query[Job]:
    return find(Job).where(Job.person_id == person_id).newest_first(Job.at).limit(10)


@read(rps=5, returns=20)
def open_jobs(person_id: str) -> Query[Job]:
    return find(Job).where(Job.person_id == person_id, Job.state == State.OPEN).newest_first(Job.at)


@read(rps=1, returns=20)
def all_open() -> Query[Job]:
    return find(Job).where(Job.state == State.OPEN).newest_first(Job.at).limit(20)


@read(rps=30)
def job(job_id: str) -> Query[Job]:
    return find(Job).where(Job.job_id == job_id)


@read(rps=30, returns=12)
def home(person_id: str) -> Bundle2[Person, Job]:
    return together(Person, Job).where(Person.person_id == person_id)


@read(rps=30, returns=5)
def notes(job_id: str) -> Query[Note]:
    return find(Note).where(Note.job_id == job_id).newest_first(Note.at)


@write(rps=2)
def hire() -> object:
    return creates(Job)


@write(rps=2)
def finish() -> object:
    return updates(Job.state)


def office(*patterns: Any, entities: tuple[Any, ...] = (Person, Job), **options: Any) -> Design:
    volumes = {Person: 10_000, Job: per(Person, 20), Note: 1000}
    options.setdefault("volumes", {each: volumes[each] for each in entities})
    return Design("office", entities, patterns, **options)


def keys_by_index(plan: Plan, entity: str) -> dict[str | None, list[str]]:
    found: dict[str | None, list[str]] = {}
    for key in plan.entity(entity).keys:
        found.setdefault(key.index, []).append(f"{key.name}={key.template}")
    return found


def grave(old: Plan, new: Plan) -> list[str]:
    return [str(each) for each in compare(old, new) if each.risk != "safe"]


# --- what stays


EVERYTHING = (person, by_email, in_city, jobs_of, open_jobs, all_open, job, home, hire, finish)


@pytest.mark.parametrize("layout", ["single-table", "aggregate", "table-per-entity"])
def test_a_plan_from_its_own_lock_on_is_the_same(layout: Layout) -> None:
    for design in (
        office(*EVERYTHING, layout=layout),
        models.shop(layout),
        models.social(layout),
        models.routers(layout),
    ):
        plan = design.plan()
        assert design.plan(previous=plan) == plan
        assert design.plan(previous=Plan.from_json(plan.to_json())) == plan


@pytest.mark.parametrize("seed", range(60))
def test_random_designs_stay_as_they_are(seed: int) -> None:
    try:
        plan = a_design(seed).plan()
    except DesignError:
        return
    assert a_design(seed).plan(previous=plan) == plan


@pytest.mark.parametrize("added", EVERYTHING[:-2], ids=lambda pattern: pattern.name)
def test_an_added_pattern_shifts_no_key_and_no_number(added: Pattern[..., Any]) -> None:
    before = [each for each in EVERYTHING if each is not added]
    old = office(*before).plan()
    new = office(*EVERYTHING).plan(previous=old)
    assert not [each for each in grave(old, new) if "orphans" in each]
    for entity in ("Person", "Job"):
        mine, theirs = keys_by_index(old, entity), keys_by_index(new, entity)
        assert mine[None] == theirs[None]
        for index in mine.keys() & theirs.keys():
            assert mine[index] == theirs[index]


def test_indexes_keep_their_numbers_when_another_is_dropped_and_a_new_one_gets_a_new_number() -> (
    None
):
    old = office(person, by_email, in_city, jobs_of, open_jobs, all_open, hire, finish).plan()
    numbers = {index.name: index.patterns for index in old.tables[0].indexes}
    assert len(numbers) > 1
    for dropped in (by_email, in_city):
        rest = [
            each
            for each in (person, by_email, in_city, jobs_of, open_jobs, all_open, hire, finish)
            if each is not dropped
        ]
        new = office(*rest, notes, entities=(Person, Job, Note)).plan(previous=old)
        for index in new.tables[0].indexes:
            if index.name in numbers:
                kept = set(index.patterns) - {"notes"}
                assert kept <= set(numbers[index.name])
        assert not [each for each in grave(old, new) if "its key" in each]


def test_labels_stay_when_the_pattern_is_gone_that_gave_them() -> None:
    class Tenant(Entity):
        id: str = ident()
        name: str

    class Bill(Entity):
        owner: str = ident()
        bill_id: str = ident()

    @read(rps=10, returns=5)
    def page(tenant: str) -> Any:
        return together(Tenant, Bill).where(Tenant.id == tenant, Bill.owner == tenant)

    @read(rps=10, returns=5)
    def bills(owner: str) -> Any:
        return find(Bill).where(Bill.owner == owner)

    old = Design("tenants", [Tenant, Bill], [page, bills]).plan()
    fresh, kept = (
        Design("tenants", [Tenant, Bill], [bills]).plan(),
        Design("tenants", [Tenant, Bill], [bills]).plan(previous=old),
    )
    assert grave(old, fresh)
    assert not grave(old, kept)
    assert keys_by_index(kept, "Bill")[None][0] == "PK=TENANT#{owner}"


def test_a_new_entity_gets_a_label_that_no_key_has() -> None:
    old = office(person, job).plan()

    class Job2(Entity, name="JOB"):
        key: str = ident()

    new = Design(
        "office", [Person, Job, Job2], [person, job], volumes={Person: 10_000, Job: 200_000}
    ).plan(previous=old)
    assert not grave(old, new)
    words = {keys_by_index(new, name)[None][-1] for name in ("Job", "JOB")}
    assert len(words) == 2


def test_an_aggregate_keeps_the_name_of_its_table() -> None:
    old = office(person, home, layout="aggregate").plan()

    @read(rps=1, returns=5)
    def about_job(job_id: str) -> Bundle2[Job, Note]:
        return together(Job, Note).where(Job.job_id == job_id)

    new = office(person, home, about_job, entities=(Person, Job, Note), layout="aggregate").plan(
        previous=old
    )
    assert [table.name for table in new.tables] == [table.name for table in old.tables]


def test_shards_stay_when_the_traffic_falls() -> None:
    design = models.routers()
    old = design.plan()
    calm: list[Pattern[..., Any] | WritePattern] = [
        *design.reads,
        *(WritePattern(each.function, each.rps / 50) for each in design.write_patterns),
    ]
    volumes = {entity: design.volume(entity) for entity in design.entities}
    new = Design(design.name, design.entities, calm, volumes=volumes).plan(previous=old)
    assert not [each for each in grave(old, new) if each.startswith("orphans")]
    assert (
        new.pattern("failures_since").steps[0].shards
        == old.pattern("failures_since").steps[0].shards
    )


# --- what changes


def test_a_base_key_changes_only_when_it_is_asked_for() -> None:
    """An older plan put jobs under their person. A fresh plan has them under their identity."""

    class Job(Entity, key=("PERSON#{person_id}", "JOB#{at}#{job_id}")):
        job_id: str = ident()
        person_id: str
        state: State
        at: datetime

    def planned(of: type[Any], **options: Any) -> Plan:
        @read(rps=20, returns=10)
        def jobs_of(person_id: str) -> Query[Any]:
            return find(of).where(of.person_id == person_id).newest_first(of.at).limit(10)

        @read(rps=20)
        def job(job_id: str) -> Query[Any]:
            return find(of).where(of.job_id == job_id)

        volumes: dict[Any, Any] = {Person: 10_000, of: per(Person, 20)}
        return Design("office", [Person, of], [person, jobs_of, job], volumes=volumes).plan(
            **options
        )

    written = Job
    old = planned(written)

    class Free(Entity, name="Job"):
        job_id: str = ident()
        person_id: str
        state: State
        at: datetime

    assert keys_by_index(planned(Free), "Job")[None] == ["PK=JOB#{job_id}", "SK=JOB"]
    kept = planned(Free, previous=old)
    assert keys_by_index(kept, "Job")[None] == ["PK=PERSON#{person_id}", "SK=JOB#{at}#{job_id}"]
    assert not [each for each in grave(old, kept) if "orphans" in each]
    assert any("in addition to the identity" in each for each in kept.warnings)
    moved = planned(Free, previous=old, rekey=["Job"])
    assert keys_by_index(moved, "Job")[None] == ["PK=JOB#{job_id}", "SK=JOB"]
    assert any("orphans" in each for each in grave(old, moved))
    with pytest.raises(DesignError, match="no entity 'Jobs'"):
        planned(Free, previous=old, rekey=["Jobs"])


def test_what_was_there_is_not_written_anew_for_a_small_saving() -> None:
    """A new pattern on items that are there gets an index on their attributes, which DynamoDB fills
    by itself.
    """
    old = office(person, hire).plan()
    new = office(person, in_city, hire).plan(previous=old)
    [index] = new.tables[0].indexes
    assert index.native
    assert not grave(old, new)


def test_a_locked_key_that_a_write_now_changes_is_given_up() -> None:
    class Job(Entity, key=("PERSON#{person_id}", "JOB#{job_id}")):
        job_id: str = ident()
        person_id: str

    class Free(Entity, name="Job"):
        job_id: str = ident()
        person_id: str

    @write(rps=1)
    def hand_over() -> object:
        return updates(Free.person_id)

    old = Design("office", [Job]).plan()
    new = Design("office", [Free], [hand_over]).plan(previous=old)
    assert "person_id" not in keys_by_index(new, "Job")[None][0]
    assert any(each.startswith("orphans: entity Job") for each in grave(old, new))


def test_another_layout_is_planned_afresh() -> None:
    old = office(*EVERYTHING).plan()
    design = office(*EVERYTHING, layout="table-per-entity")
    assert design.plan(previous=old) == design.plan()


def test_keep_to_is_what_plan_goes_by_when_nothing_is_given() -> None:
    old = office(person, jobs_of, hire).plan()
    design = office(*EVERYTHING)
    fresh = design.plan()
    design.keep_to(old)
    assert design.plan() == design.plan(previous=old) == office(*EVERYTHING).plan(previous=old)
    design.keep_to(None)
    assert design.plan() == fresh


def test_equal_locks_give_equal_plans_in_any_order_of_patterns() -> None:
    old = office(person, by_email, jobs_of, hire).plan()
    wanted = office(*EVERYTHING).plan(previous=old)
    for seed in range(3):
        shuffled = list(EVERYTHING)
        random.Random(seed).shuffle(shuffled)
        assert office(*shuffled).plan(previous=old) == wanted


def test_columns_that_are_now_read_together_take_the_label_of_a_base_key() -> None:
    class Sale(Entity):
        sale_id: str = ident()
        buyer: str
        at: datetime

    @read(rps=20, returns=5)
    def sales_to(buyer: str) -> Query[Sale]:
        return find(Sale).where(Sale.buyer == buyer).newest_first(Sale.at)

    @read(rps=20)
    def sale(sale_id: str) -> Query[Sale]:
        return find(Sale).where(Sale.sale_id == sale_id)

    @read(rps=500, returns=5)
    def customer(person_id: str) -> Bundle2[Person, Sale]:
        return together(Person, Sale).where(Person.person_id == person_id, Sale.buyer == person_id)

    volumes = {Person: 10_000, Sale: 100_000}
    old = Design("sales", [Person, Sale], [person, sale, sales_to], volumes=volumes).plan()
    new = Design("sales", [Person, Sale], [person, sale, sales_to, customer], volumes=volumes).plan(
        previous=old
    )
    assert keys_by_index(new, "Person")[None] == keys_by_index(old, "Person")[None]
    assert keys_by_index(new, "Sale")[None] == keys_by_index(old, "Sale")[None]
    [step] = new.pattern("customer").steps
    assert step.operation == "Query" and "PERSON#{person_id}" in step.key_condition
