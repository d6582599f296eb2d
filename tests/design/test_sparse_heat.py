"""Heat of sparse indexes: entries that come and go count, however few there are at a time."""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any, Literal

import pytest

from stator.design.design import Design
from stator.design.entities.conditions import attr
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Query, find
from stator.design.patterns.write_pattern import WritePattern, creates, deletes, updates, write
from stator.design.planner.cost_model import WRITE_LIMIT, shards_for
from stator.design.simulation import TrafficShape, simulate
from stator.design.value_facts import Fact, distinct, largest, share


class Job(Entity):
    job_id: str = ident()
    tenant: str
    at: datetime
    state: Literal["queued", "running", "done"] = "queued"


@read(rps=10)
def queued() -> Query[Job]:
    return find(Job).where(Job.state == "queued").oldest_first(Job.at).limit(10)


@read(rps=10)
def queued_of(tenant: str) -> Query[Job]:
    return find(Job).where(Job.tenant == tenant, Job.state == "queued").limit(10)


def writes(rate: float, *, removes: bool = False) -> list[WritePattern]:
    @write(rps=rate)
    def add() -> object:
        return creates(Job)

    @write(rps=rate)
    def start() -> object:
        if removes:
            return deletes(Job, before=Job.state == "queued")
        return updates(Job.state, before=Job.state == "queued", after=Job.state == "running")

    return [add, start]


def jobs(reader: Any, rate: float, *facts: Fact, removes: bool = False) -> Design:
    return Design(
        "jobs",
        [Job],
        [reader, *writes(rate, removes=removes)],
        volumes={Job: 50_000_000},
        sizes={Job: 300},
        facts=facts,
    )


@pytest.mark.parametrize("part", [None, 0.5, 0.1, 0.01, 0.0001, 0.0000001])
def test_a_queue_is_sharded_however_few_jobs_are_in_it(part: float | None) -> None:
    facts = () if part is None else (share(Job.state == "queued", part),)
    found = jobs(queued, 2_000, *facts)
    assert found.plan().pattern("queued").steps[0].shards == 6  # 4,000 entries a second
    assert not [each for each in found.check().findings if each.fails]


@pytest.mark.parametrize("seed", range(12))
def test_the_plan_has_the_shards_that_the_simulation_needs(seed: int) -> None:
    rng = random.Random(seed)
    part = 10 ** rng.uniform(-6, -0.5)
    facts: list[Fact] = [share(Job.state == "queued", part)]
    reader: Any = queued
    if rng.random() < 0.6:
        reader = queued_of
        facts += [distinct(Job.tenant, values=1_000), largest(Job.tenant, rng.uniform(0.2, 0.95))]
    design = jobs(reader, rng.uniform(300, 6_000), *facts, removes=rng.random() < 0.5)
    shards = design.plan().pattern(reader.name).steps[0].shards
    simulated = simulate(design, TrafficShape(minutes=1), cures=False)
    hottest = simulated.pattern("add").hottest
    assert hottest is not None
    assert shards == shards_for(hottest.units * shards, WRITE_LIMIT)


class Task(Entity, index={"waiting": ("WAITING", "{waits_since}")}):
    task_id: str = ident()
    waits_since: datetime | None = None


def test_lint_finds_the_hot_key_of_a_handwritten_sparse_index() -> None:
    @read(rps=10)
    def waiting() -> Query[Task]:
        return (
            find(Task).where(attr(Task.waits_since).exists()).oldest_first(Task.waits_since)
        ).limit(10)

    @write(rps=900)
    def add() -> object:
        return creates(Task, after=attr(Task.waits_since).exists())

    @write(rps=900)
    def done() -> object:
        return updates(
            Task.waits_since,
            before=attr(Task.waits_since).exists(),
            after=attr(Task.waits_since).not_exists(),
        )

    design = Design(
        "tasks",
        [Task],
        [waiting, add, done],
        volumes={Task: 50_000_000},
        facts=[share(attr(Task.waits_since).exists(), 0.00001)],
    )
    found = [each for each in design.check().findings if each.code == "ST104"]
    assert found and "1,800 write units a second" in found[0].message


def test_splits_do_not_help_entries_that_have_the_same_sort_key() -> None:
    class Ping(Entity, index={"all": ("PING#{kind}", "PING")}):
        ping_id: str = ident()
        kind: Literal["a", "b"] = "a"

    @read(rps=1)
    def of_kind(kind: Literal["a", "b"]) -> Query[Ping]:
        return find(Ping).where(Ping.kind == kind).limit(10)

    @write(rps=5_000)
    def ping() -> object:
        return creates(Ping)

    design = Design("pings", [Ping], [of_kind, ping], volumes={Ping: 1_000_000}, sizes={Ping: 100})
    found = simulate(design, TrafficShape(minutes=60)).pattern("ping")
    assert found.healthy_after_minutes is None
    assert "splits cure it" not in found.advice
