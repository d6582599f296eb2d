"""Values of several fields together: fields that may depend on each other are a guess."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import pytest

from stator.design.design import Design, per
from stator.design.entities.derived_parts import day_of
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Query, find
from stator.design.patterns.write_pattern import creates, write
from stator.design.plan.plan import Step
from stator.design.value_facts import Fact, distinct, largest


class Repo(Entity):
    owner: str = ident()
    name: str = ident()
    about: str


class Issue(Entity):
    owner: str = ident()
    repo: str = ident()
    number: int = ident()
    created_at: datetime


class Ticket(Entity):
    owner: str = ident()
    project: str = ident()
    number: int = ident()
    created_at: datetime


@read(rps=500)
def issues(owner: str, repo: str) -> Query[Issue]:
    return find(Issue).where(Issue.owner == owner, Issue.repo == repo).newest_first()


@read(rps=500)
def tickets(owner: str, project: str) -> Query[Ticket]:
    return find(Ticket).where(Ticket.owner == owner, Ticket.project == project).newest_first()


@read(rps=500, returns=200)
def all_tickets(owner: str, project: str) -> Query[Ticket]:
    return find(Ticket).where(Ticket.owner == owner, Ticket.project == project).newest_first()


SINGLE = [distinct(Ticket.owner, values=500_000), distinct(Ticket.project, values=1_200_000)]
JOINT = distinct(Ticket.owner, Ticket.project, values=2_000_000)


def design(pattern: Any, *facts: Fact) -> Design:
    child = pattern.trace().targets[0]
    return Design(
        "tracker",
        [Repo, child],
        [pattern],
        volumes={Repo: 2_000_000, child: per(Repo, 200)},
        sizes={child: 300},
        facts=facts,
    )


def step(found: Design) -> Step:
    [pattern] = found.plan().patterns
    [only] = pattern.steps
    return only


def guesses(found: Design) -> str:
    return " ".join(map(str, found.plan().patterns[0].guesses))


def test_a_field_named_after_the_parent_completes_the_parents_identity() -> None:
    """``Issue.owner`` and ``Issue.repo`` refer to a Repo, whose identity is owner and name."""
    assert step(design(issues)).units == pytest.approx(9.5, abs=2)
    assert not guesses(design(issues))


def test_independence_of_two_fields_is_a_guess_and_names_the_fact_that_repairs_it() -> None:
    """Both counts are true, and their product says that a project has one ticket."""
    found = design(tickets, *SINGLE)
    assert "distinct(Ticket.owner, Ticket.project, values=...)" in guesses(found)
    assert not step(found).in_memory  # a guess never decides that


@pytest.mark.parametrize("found", [design(tickets, *SINGLE, JOINT), design(all_tickets, *SINGLE)])
def test_the_joint_fact_or_returns_repairs_it(found: Design) -> None:
    assert step(found).units == pytest.approx(9.5, abs=2)
    assert not guesses(found)
    assert not [each for each in found.check().findings if "contradicts" in each.message]


class Report(Entity):
    report_id: str = ident()
    device: str
    kind: Literal["hourly", "daily"]
    sent_at: datetime


@read(rps=10)
def of_day(device: str, day: str) -> Query[Report]:
    return find(Report).where(Report.device == device, day_of(Report.sent_at) == day)


@read(rps=10)
def of_kind(device: str, kind: Literal["hourly", "daily"]) -> Query[Report]:
    return find(Report).where(Report.device == device, Report.kind == kind)


@pytest.mark.parametrize("pattern", [of_day, of_kind], ids=lambda each: str(each.name))
def test_days_and_values_of_a_type_are_spread_over_the_values_of_another_field(
    pattern: Any,
) -> None:
    facts = [distinct(Report.device, values=1_000), distinct(day_of(Report.sent_at), values=365)]
    found = Design(
        "fleet", [Report], [pattern], volumes={Report: 10_000_000}, sizes={Report: 90}, facts=facts
    )
    assert "combinations" not in guesses(found)


class Bug(Entity):
    owner: str = ident()
    bug_id: str = ident()
    repo: str
    state: Literal["open", "closed"]
    opened_at: datetime


@read(rps=0.01)
def of_repo(owner: str, repo: str) -> Query[Bug]:
    return find(Bug).where(Bug.owner == owner, Bug.repo == repo).newest_first(Bug.bug_id).limit(25)


@read(rps=1)
def of_owner(owner: str) -> Query[Bug]:
    return find(Bug).where(Bug.owner == owner).newest_first(Bug.bug_id).limit(25)


@write(rps=300)
def report() -> object:
    return creates(Bug)


def bugs(part: float | None) -> Design:
    facts = [
        distinct(Bug.owner, values=4_000_000),
        distinct(Bug.owner, Bug.repo, values=15_000_000),
        distinct(Bug.repo, values=3_000_000),
    ]
    return Design(
        "bugs",
        [Bug],
        [of_repo, of_owner, report],
        volumes={Bug: 100_000_000},
        sizes={Bug: 300},
        facts=facts if part is None else [*facts, largest(Bug.owner, part)],
    )


def test_the_largest_owner_has_more_repositories_and_not_more_issues_in_each() -> None:
    """25,000 issues of the largest owner were taken for those of four repositories."""
    even = bugs(None).plan().pattern("of_repo").steps[0]
    assert even.filter is not None and even.units < 5  # 25 items of an owner, 7 of a repository
    # 100,000 items of an owner, 7 of a repository: 29 pages, if a filter had to find them.
    assert bugs(0.001).plan().pattern("of_repo").steps[0].filter is None
