"""A field without a value is in no index on the field: shares of None are about no key value."""

from __future__ import annotations

from datetime import datetime

import pytest

from stator.design.design import Design
from stator.design.entities.conditions import attr
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Query, find
from stator.design.patterns.write_pattern import creates, updates, write
from stator.design.planner.cost_model import WRITE_LIMIT, shards_for
from stator.design.simulation.value_groups import ValueRanks
from stator.design.value_facts import Fact, distinct, largest, share
from stator.errors import DesignError


class Task(Entity):
    task_id: str = ident()
    title: str
    assignee: str | None = None
    updated_at: datetime


@read(rps=60)
def assigned_to(login: str) -> Query[Task]:
    return find(Task).where(Task.assignee == login).newest_first(Task.updated_at)


@write(rps=3000)
def create() -> object:
    return creates(Task)


@write(rps=3000)
def touch() -> object:
    return updates(Task.updated_at)


def tasks(*facts: Fact) -> Design:
    return Design(
        "tasks",
        [Task],
        [assigned_to, create, touch],
        volumes={Task: 100_000_000},
        sizes={Task: 300},
        facts=[*facts, distinct(Task.assignee, values=800_000)],
    )


ABSENT = [
    share(Task.assignee == None, 0.8),  # noqa: E711
    share(attr(Task.assignee).not_exists(), 0.8),
    share(attr(Task.assignee).exists(), 0.2),
]


@pytest.mark.parametrize("fact", ABSENT, ids=str)
def test_none_is_not_the_largest_value_of_an_index(fact: Fact) -> None:
    """The expert's design got 3 shards and three queries a call for a value that nobody has."""
    plan = tasks(fact).plan()
    [pattern] = [each for each in plan.patterns if each.name == "assigned_to"]
    [step] = pattern.steps
    assert all(part.shards == 1 for key in plan.entity("Task").keys for part in key.template.parts)
    assert "largest value" not in " ".join(pattern.reasons)
    assert step.units == pytest.approx(13, rel=0.1)  # 25 keys, and the items one by one
    assert "ST408" not in {each.code for each in tasks(fact).check().findings}


@pytest.mark.parametrize("fact", ABSENT[1:], ids=str)
def test_every_way_to_say_that_a_field_is_absent_gives_the_same_plan(fact: Fact) -> None:
    first, second = tasks(ABSENT[0]).plan(), tasks(fact).plan()
    assert first.tables == second.tables
    assert first.patterns == second.patterns


def test_calls_about_a_field_concern_items_that_have_it() -> None:
    assert ValueRanks(tasks(ABSENT[0])).shares(Task, "assignee") == ()
    skewed = tasks(ABSENT[0], largest(Task.assignee, 0.05))
    assert ValueRanks(skewed).shares(Task, "assignee")[0] == pytest.approx(0.25)


def test_the_largest_value_has_its_share_of_the_items_in_the_index() -> None:
    """5 % of all tasks are a quarter of the assigned ones, and of the index's writes."""
    design = tasks(ABSENT[0], largest(Task.assignee, 0.05))
    [path] = [key for key in design.plan().entity("Task").keys if key.index and not key.is_sort]
    entries = 0.2 * (3000 + 2 * 3000)
    assert max(part.shards for part in path.template.parts) == shards_for(
        entries * 0.25, WRITE_LIMIT
    )


def test_the_largest_value_cannot_have_more_items_than_have_any() -> None:
    with pytest.raises(DesignError, match=r"more than the 0\.2 of the items that have assignee"):
        tasks(ABSENT[0], largest(Task.assignee, 0.3))
