"""Writes are priced by what happens to the entries of an index in the life of an item."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import pytest

from stator.design.design import Design
from stator.design.entities.derived_parts import day_of, month_of, prefix_of
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Query, find
from stator.design.patterns.write_pattern import (
    DeclaredWrite,
    WritePattern,
    creates,
    deletes,
    updates,
    write,
)
from stator.design.value_facts import Fact, distinct, moving, share
from stator.errors import DesignError
from stator.verification import verify


class Job(Entity):
    job_id: str = ident()
    queue: str
    status: Literal["queued", "running", "done"] = "queued"
    created_at: datetime
    body: str


class Position(Entity):
    driver_id: str = ident()
    cell: str
    idle: bool
    at: datetime


@read(rps=50)
def queued(queue: str) -> Query[Job]:
    return (
        find(Job)
        .where(Job.queue == queue, Job.status == "queued")
        .order_by(Job.created_at)
        .limit(10)
    )


@read(rps=50)
def running(queue: str) -> Query[Job]:
    return (
        find(Job)
        .where(Job.queue == queue, Job.status == "running")
        .order_by(Job.created_at)
        .limit(10)
    )


def written(name: str, change: DeclaredWrite, rps: float = 1_000) -> WritePattern:
    def pattern() -> object:
        return change

    pattern.__name__ = name
    return write(rps=rps)(pattern)


SUBMIT = written("submit", creates(Job))
START = written("start", updates(Job.status))
FINISH = written("finish", updates(Job.status))
DECLARED_START = written(
    "start", updates(Job.status, before=Job.status == "queued", after=Job.status == "running")
)
DECLARED_FINISH = written(
    "finish", updates(Job.status, before=Job.status == "running", after=Job.status == "done")
)


def jobs(*patterns: Any) -> Design:
    return Design(
        "jobs",
        [Job],
        patterns,
        volumes={Job: 90_000_000},
        sizes={Job: 500},
        facts=[
            distinct(Job.queue, values=40),
            share(Job.status == "queued", 0.0001),
            share(Job.status == "running", 0.0005),
        ],
    )


def units(design: Design) -> dict[str, float]:
    return {
        each.name: round(each.units_per_call, 3)
        for each in design.plan().patterns
        if each.kind == "write"
    }


def check_measured(design: Design) -> None:
    report = verify(design, most_items=2_000)
    off = {row.pattern: (row.estimated_units, row.measured_units) for row in report.failed}
    assert not off
    for row in report.rows:
        if row.kind == "write":
            assert row.measured_units == pytest.approx(row.estimated_units, abs=0.1), row.pattern


def test_declared_states_say_what_each_write_does() -> None:
    design = jobs(queued, SUBMIT, DECLARED_START, DECLARED_FINISH)
    assert units(design) == {"submit": 2, "start": 2, "finish": 1}
    check_measured(design)
    assert not [each for each in design.plan().guesses if "before=" in each]


def test_undeclared_updates_take_out_what_creates_put_in() -> None:
    design = jobs(queued, SUBMIT, START, FINISH)
    assert units(design) == {"submit": 2, "start": 1.5, "finish": 1.5}
    check_measured(design)
    [guess] = [each for each in design.plan().guesses if "before=" in each]
    assert "Job.status == 'queued': 0% of the updates of Job.status make it true, and 50%" in guess


def test_a_state_in_the_middle_of_a_life_is_entered_and_left_once() -> None:
    design = jobs(running, SUBMIT, START, FINISH)
    assert units(design) == {"submit": 1, "start": 2, "finish": 2}
    check_measured(design)


def test_one_declared_update_leaves_the_rest_to_the_others() -> None:
    design = jobs(queued, SUBMIT, DECLARED_START, FINISH)
    assert units(design) == {"submit": 2, "start": 2, "finish": 1}


def test_a_create_may_say_that_it_does_not_use_the_default() -> None:
    late = written("late", creates(Job, after=Job.status == "done"))
    assert units(jobs(queued, late, DECLARED_START))["late"] == 1


def test_a_delete_may_say_what_it_deletes() -> None:
    purge = written("purge", deletes(Job, before=Job.status == "queued"))
    assert units(jobs(queued, SUBMIT, DECLARED_START, purge))["purge"] == 2


def test_a_state_of_another_field_counts_for_an_update() -> None:
    rename = written("rename", updates(Job.body, before=Job.status == "queued"), rps=0.001)
    other = written("other", updates(Job.body))
    found = units(jobs(queued, SUBMIT, DECLARED_START, rename, other))
    assert found["rename"] == 2
    assert found["other"] == pytest.approx(1, abs=0.001)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: updates(Job.body, after=Job.status == "done"), "does not change Job.status"),
        (lambda: updates(Job.status, before=Job.queue > "a"), "compare fields with constants"),
        (lambda: creates(Job, after=Position.idle == True), "not a field of Job"),  # noqa: E712
    ],
)
def test_states_that_mean_nothing_are_refused(make: Any, problem: str) -> None:
    with pytest.raises(DesignError, match=problem):
        make()


# --- parts of a field -----------------------------------------------------------------------------


@read(rps=2_500)
def idle_nearby(cell: str) -> Any:
    return (
        find(Position)
        .where(prefix_of(Position.cell, 5) == cell, Position.idle == True)  # noqa: E712
        .limit(15)
        .only(Position.driver_id)
    )


@read(rps=1, returns=20)
def seen_on(day: str) -> Query[Position]:
    return find(Position).where(day_of(Position.at) == day)


def cells(*facts: Fact, rps: float = 6_000, pattern: Any = idle_nearby) -> Design:
    return Design(
        "cells",
        [Position],
        [pattern, written("move", updates(Position.cell, Position.at), rps)],
        volumes={Position: 300_000},
        sizes={Position: 120},
        facts=[
            distinct(prefix_of(Position.cell, 5), values=40_000),
            share(Position.idle == True, 0.4),  # noqa: E712
            *facts,
        ],
    )


def test_an_update_that_keeps_the_part_does_not_write_the_index() -> None:
    assert units(cells(moving(prefix_of(Position.cell, 5), 0.0))) == {"move": 1}
    assert units(cells(moving(prefix_of(Position.cell, 5), 1.0))) == {"move": 1.8}
    found = cells(moving(prefix_of(Position.cell, 5), 0.25))
    assert units(found) == {"move": 1.2}
    check_measured(found)


def test_the_index_shows_no_field_that_every_update_changes() -> None:
    [index] = cells(moving(prefix_of(Position.cell, 5), 0.1)).plan().tables[0].indexes
    assert (index.projection, index.included[:1]) == ("INCLUDE", ("driver_id",))


def test_how_often_a_prefix_changes_is_a_guess_that_a_fact_replaces() -> None:
    assert any(
        "moving(prefix_of(Position.cell, 5), ...)" in each for each in cells().plan().guesses
    )
    known = cells(moving(prefix_of(Position.cell, 5), 0.1)).plan()
    assert not any("moving(" in each for each in known.guesses)


def test_a_day_changes_once_a_day_however_often_the_time_is_updated() -> None:
    often = units(cells(rps=300_000 * 24 / 86_400, pattern=seen_on))["move"]  # 24 times a day each
    rare = units(cells(rps=300_000 / 86_400 / 10, pattern=seen_on))["move"]  # every tenth day
    assert rare == 3
    assert often == pytest.approx(1 + 2 / 24 + 22 / 24, abs=0.01) or often < 1.2


def test_moving_takes_a_part_of_a_field_and_a_share() -> None:
    with pytest.raises(DesignError, match="takes a part of a field"):
        moving(Position.cell, 0.1)
    with pytest.raises(DesignError, match="above 1"):
        moving(month_of(Position.at), 2)
    with pytest.raises(DesignError, match="contradicts"):
        cells(moving(prefix_of(Position.cell, 5), 0.1), moving(prefix_of(Position.cell, 5), 0.2))
