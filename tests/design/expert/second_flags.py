"""Feature flags: environments, rules, segments, an audit log. The second expert's."""

# ruff: noqa: E712 - a comparison makes a condition

from datetime import datetime
from typing import Literal

from stator import (
    Design,
    Entity,
    Only,
    Query,
    counter,
    created,
    creates,
    distinct,
    find,
    ident,
    largest,
    month_of,
    per,
    read,
    share,
    unique,
    updates,
    version,
    write,
)


class Project(Entity):
    project_id: str = ident()
    name: str
    team: str


class Environment(Entity):
    project_id: str = ident()
    env: str = ident()
    name: str
    sdk_key: str = unique()
    revision: int = counter()


class Flag(Entity):
    project_id: str = ident()
    flag: str = ident()
    name: str
    description: str
    kind: Literal["bool", "string", "number", "json"]
    owner: str
    archived: bool = False
    tags: set[str]
    created_at: datetime = created()


class Rule(Entity):
    project_id: str = ident()
    env: str = ident()
    flag: str = ident()
    enabled: bool = False
    targets: list[str]
    conditions: dict[str, str]
    rollout: int = 0
    rev: int = version()


class Segment(Entity):
    project_id: str = ident()
    segment: str = ident()
    name: str
    members: list[str]


class Audit(Entity):
    project_id: str = ident()
    audit_id: str = ident()
    flag: str
    env: str
    actor: str
    at: datetime
    before: dict[str, str]
    after: dict[str, str]


class Scheduled(Entity):
    change_id: str = ident()
    project_id: str
    flag: str
    env: str
    run_at: datetime
    state: Literal["pending", "done", "failed"] = "pending"
    patch: dict[str, str]


@read(rps=400)
def env_by_key(sdk_key: str) -> Query[Environment]:
    return find(Environment).where(Environment.sdk_key == sdk_key)


@read(rps=5000)
def poll(project_id: str, env: str) -> Query[Environment]:
    return find(Environment).where(Environment.project_id == project_id, Environment.env == env)


@read(rps=200)
def rules_of(project_id: str, env: str) -> Query[Rule]:
    return find(Rule).where(Rule.project_id == project_id, Rule.env == env)


@read(rps=20)
def rule(project_id: str, env: str, flag: str) -> Query[Rule]:
    return find(Rule).where(Rule.project_id == project_id, Rule.env == env, Rule.flag == flag)


@read(rps=30, returns=4)
def flag_everywhere(project_id: str, flag: str) -> Query[Rule]:
    return find(Rule).where(Rule.project_id == project_id, Rule.flag == flag)


@read(rps=40)
def flag(project_id: str, flag: str) -> Query[Flag]:
    return find(Flag).where(Flag.project_id == project_id, Flag.flag == flag)


@read(rps=25)
def flags_of(project_id: str) -> Only[tuple[str, str, str, datetime]]:
    live = find(Flag).where(Flag.project_id == project_id, Flag.archived == False)
    return (
        live.newest_first(Flag.created_at)
        .limit(50)
        .only(Flag.flag, Flag.name, Flag.owner, Flag.created_at)
    )


@read(rps=15)
def environments(project_id: str) -> Query[Environment]:
    return find(Environment).where(Environment.project_id == project_id)


@read(rps=10, returns=10)
def segments(project_id: str) -> Only[tuple[str, str]]:
    return find(Segment).where(Segment.project_id == project_id).only(Segment.segment, Segment.name)


@read(rps=200)
def segment(project_id: str, segment: str) -> Query[Segment]:
    return find(Segment).where(Segment.project_id == project_id, Segment.segment == segment)


@read(rps=4, returns=50)
def audit_of_project(project_id: str) -> Query[Audit]:
    return find(Audit).where(Audit.project_id == project_id).newest_first(Audit.at).limit(50)


@read(rps=6, returns=20)
def audit_of_flag(project_id: str, flag: str) -> Query[Audit]:
    return (
        find(Audit)
        .where(Audit.project_id == project_id, Audit.flag == flag)
        .newest_first(Audit.at)
        .limit(20)
    )


@read(rps=0.2, returns=100)
def audit_of_actor(actor: str, month: str) -> Query[Audit]:
    return find(Audit).where(Audit.actor == actor, month_of(Audit.at) == month)


@read(rps=0.2, returns=10)
def due(now: datetime) -> Query[Scheduled]:
    return (
        find(Scheduled)
        .where(Scheduled.state == "pending", Scheduled.run_at <= now)
        .oldest_first(Scheduled.run_at)
        .limit(25)
    )


@write(rps=8)
def change_rule() -> object:
    return (
        updates(Rule.enabled, Rule.conditions, Rule.rollout),
        updates(Environment.revision),
        creates(Audit),
    )


@write(rps=0.5)
def new_flag() -> object:
    return creates(Flag), creates(Rule, times=4)


@write(rps=0.2)
def archive() -> object:
    return updates(Flag.archived, before=Flag.archived == False, after=Flag.archived == True)


@write(rps=1)
def edit_segment() -> object:
    return updates(Segment.members)


@write(rps=0.5)
def schedule() -> object:
    return creates(Scheduled)


@write(rps=0.5)
def ran() -> object:
    return updates(
        Scheduled.state, before=Scheduled.state == "pending", after=Scheduled.state == "done"
    )


design = Design(
    "flags",
    [Project, Environment, Flag, Rule, Segment, Audit, Scheduled],
    [
        env_by_key,
        poll,
        rules_of,
        rule,
        flag_everywhere,
        flag,
        flags_of,
        environments,
        segments,
        segment,
        audit_of_project,
        audit_of_flag,
        audit_of_actor,
        due,
        change_rule,
        new_flag,
        archive,
        edit_segment,
        schedule,
        ran,
    ],
    volumes={
        Project: 20_000,
        Environment: per(Project, 4),
        Flag: per(Project, 300),
        Rule: per(Flag, 4),
        Segment: per(Project, 10),
        Audit: 500_000_000,
        Scheduled: 15_000_000,
    },
    sizes={
        Project: 200,
        Environment: 250,
        Flag: 700,
        Rule: 1_300,
        Segment: 12_000,
        Audit: 700,
        Scheduled: 350,
    },
    facts=[
        share(Flag.archived == True, 0.6),
        share(Scheduled.state == "pending", 0.001),
        distinct(Audit.project_id, values=20_000),
        distinct(Audit.project_id, Audit.flag, values=6_000_000),
        distinct(Audit.actor, values=100_000),
        largest(Flag.project_id, 0.002),
    ],
)

EXPECTED = {
    "entities": {
        "Project": {"partition": ["project_id"], "sort": []},
        "Environment": {"partition": ["project_id"], "sort": ["env"]},
        "Flag": {"partition": ["project_id"], "sort": ["flag"]},
        "Rule": {"partition": ["project_id", "env"], "sort": ["flag"]},
        "Segment": {"partition": ["project_id"], "sort": ["segment"]},
        "Audit": {"partition": ["project_id"], "sort": ["audit_id"]},
        "Scheduled": {"partition": ["change_id"], "sort": []},
    },
    "patterns": {
        "env_by_key": {"by": "guard"},
        "poll": {"by": "base"},
        "rules_of": {"by": "base"},
        "rule": {"by": "base"},
        "flag": {"by": "base"},
        "flag_everywhere": {
            "by": "index",
            "partition": ["project_id", "flag"],
            "sort": [],
            "projection": "ALL",
            "projection_or": ["KEYS_ONLY"],
        },
        "flags_of": {
            "by": "index",
            "partition": ["archived", "project_id"],
            "sort": ["created_at"],
            "projection": "INCLUDE",
            "or": [{"by": "base"}],
        },
        "environments": {"by": "base"},
        "segments": {"by": "base"},
        "segment": {"by": "base"},
        "audit_of_project": {
            "by": "index",
            "partition": ["project_id"],
            "sort": ["at"],
            "projection": "INCLUDE",
        },
        "audit_of_flag": {"by": "index", "partition": ["project_id", "flag"], "sort": ["at"]},
        "audit_of_actor": {"by": "index", "partition": ["actor"], "sort": ["at"]},
        "due": {"by": "index", "partition": ["state"], "sort": ["run_at"]},
    },
}
WHY = {
    "Rule": ("All rules of an environment are one query of the table. "),
    "flag_everywhere": (
        "Whole rules, since writes are rare, or keys and the environments that are known. "
    ),
}
