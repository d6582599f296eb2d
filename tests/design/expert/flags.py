"""Feature flags: projects, environments, flags, rules, segments, an audit log."""

from datetime import datetime

from stator import (
    Bundle2,
    Bundle3,
    Design,
    Entity,
    Only,
    Query,
    attr,
    creates,
    distinct,
    find,
    ident,
    per,
    read,
    share,
    together,
    unique,
    updates,
    write,
)


class Project(Entity):
    project_id: str = ident()
    name: str


class Environment(Entity):
    project_id: str = ident()
    env: str = ident()
    sdk_key: str = unique()


class Flag(Entity):
    project_id: str = ident()
    flag_key: str = ident()
    name: str
    description: str
    created_at: datetime
    archived_at: datetime | None = None


class Rule(Entity):
    project_id: str = ident()
    env: str = ident()
    flag_key: str = ident()
    position: int = ident()
    condition: str
    value: str


class Segment(Entity):
    project_id: str = ident()
    env: str = ident()
    segment_key: str = ident()
    members: list[str]


class AuditEntry(Entity):
    project_id: str = ident()
    entry_id: str = ident()  # a ULID: sorts by time
    flag_key: str
    actor: str
    action: str
    before: str
    after: str


@read(rps=200)
def environment_by_key(sdk_key: str) -> Query[Environment]:
    return find(Environment).where(Environment.sdk_key == sdk_key)


@read(rps=20)
def environment(project_id: str, env: str) -> Query[Environment]:
    return find(Environment).where(Environment.project_id == project_id, Environment.env == env)


@read(rps=15, returns=124)
def project_page(project_id: str) -> Bundle3[Project, Environment, Flag]:
    return together(Project, Environment, Flag).where(Project.project_id == project_id)


@read(rps=10, returns=120)
def flags_of(project_id: str) -> Query[Flag]:
    return find(Flag).where(Flag.project_id == project_id)


@read(rps=30)
def flag(project_id: str, flag_key: str) -> Query[Flag]:
    return find(Flag).where(Flag.project_id == project_id, Flag.flag_key == flag_key)


@read(rps=1, returns=20)
def archived_flags(project_id: str) -> Query[Flag]:
    return (
        find(Flag)
        .where(Flag.project_id == project_id, attr(Flag.archived_at).exists())
        .newest_first(Flag.archived_at)
    )


@read(rps=180, returns=260)
def sdk_download(project_id: str, env: str) -> Bundle2[Rule, Segment]:
    return together(Rule, Segment).where(Rule.project_id == project_id, Rule.env == env)


@read(rps=40, returns=2)
def rules_of_flag(project_id: str, env: str, flag_key: str) -> Query[Rule]:
    return (
        find(Rule)
        .where(Rule.project_id == project_id, Rule.env == env, Rule.flag_key == flag_key)
        .oldest_first(Rule.position)
    )


@read(rps=8, returns=8)
def rules_of_flag_everywhere(project_id: str, flag_key: str) -> Query[Rule]:
    return find(Rule).where(Rule.project_id == project_id, Rule.flag_key == flag_key)


@read(rps=3)
def segment(project_id: str, env: str, segment_key: str) -> Query[Segment]:
    return find(Segment).where(
        Segment.project_id == project_id, Segment.env == env, Segment.segment_key == segment_key
    )


@read(rps=2, returns=50)
def audit_of_project(project_id: str) -> Query[AuditEntry]:
    return (
        find(AuditEntry)
        .where(AuditEntry.project_id == project_id)
        .newest_first(AuditEntry.entry_id)
        .limit(50)
    )


@read(rps=6, returns=20)
def audit_of_flag(project_id: str, flag_key: str) -> Only[tuple[str, str, str]]:
    return (
        find(AuditEntry)
        .where(AuditEntry.project_id == project_id, AuditEntry.flag_key == flag_key)
        .newest_first(AuditEntry.entry_id)
        .limit(20)
        .only(AuditEntry.entry_id, AuditEntry.actor, AuditEntry.action)
    )


@read(rps=0.2, returns=50)
def audit_of_actor(project_id: str, actor: str) -> Query[AuditEntry]:
    return (
        find(AuditEntry)
        .where(AuditEntry.project_id == project_id, AuditEntry.actor == actor)
        .newest_first(AuditEntry.entry_id)
        .limit(50)
    )


@read(rps=4)
def audit_entry(project_id: str, entry_id: str) -> Query[AuditEntry]:
    return find(AuditEntry).where(
        AuditEntry.project_id == project_id, AuditEntry.entry_id == entry_id
    )


@write(rps=3)
def change_rule() -> object:
    return updates(Rule.value, Rule.condition), creates(AuditEntry)


@write(rps=0.5)
def add_flag() -> object:
    return creates(Flag), creates(Rule, times=4), creates(AuditEntry)


@write(rps=0.2)
def archive_flag() -> object:
    return updates(Flag.archived_at), creates(AuditEntry)


@write(rps=0.3)
def change_segment() -> object:
    return updates(Segment.members), creates(AuditEntry)


design = Design(
    "flags",
    [Project, Environment, Flag, Rule, Segment, AuditEntry],
    [
        environment_by_key,
        environment,
        project_page,
        flags_of,
        flag,
        archived_flags,
        sdk_download,
        rules_of_flag,
        rules_of_flag_everywhere,
        segment,
        audit_of_project,
        audit_of_flag,
        audit_of_actor,
        audit_entry,
        change_rule,
        add_flag,
        archive_flag,
        change_segment,
    ],
    facts=[
        share(attr(Flag.archived_at).exists(), 0.15),
        distinct(AuditEntry.flag_key, values=100_000),
        distinct(AuditEntry.actor, values=40_000),
        distinct(AuditEntry.project_id, AuditEntry.flag_key, values=960_000),
        distinct(AuditEntry.project_id, AuditEntry.actor, values=80_000),
    ],
    volumes={
        Project: 8_000,
        Environment: per(Project, 4),
        Flag: per(Project, 120),
        Rule: per(Environment, 240),
        Segment: per(Environment, 20),
        AuditEntry: per(Project, 15_000),
    },
    sizes={Project: 300, Environment: 250, Flag: 700, Rule: 400, Segment: 1_500, AuditEntry: 3_000},
)

EXPECTED = {
    "max_indexes": 2,
    "entities": {
        "Project": {"partition": ["project_id"], "sort": []},
        "Environment": {"partition": ["project_id"], "sort": ["env"]},
        "Flag": {"partition": ["project_id"], "sort": ["flag_key"]},
        "Rule": {"partition": ["project_id", "env"], "sort": ["flag_key", "position"]},
        "Segment": {"partition": ["project_id", "env"], "sort": ["segment_key"]},
        "AuditEntry": {"partition": ["project_id"], "sort": ["entry_id"]},
    },
    "patterns": {
        "environment_by_key": {
            "by": "guard",
            "or": [{"by": "index", "partition": ["sdk_key"], "sort": []}],
        },
        "environment": {"by": "base"},
        "project_page": {"by": "base"},
        "flags_of": {"by": "base"},
        "flag": {"by": "base"},
        "archived_flags": {
            "by": "index",
            "partition": ["project_id"],
            "sort": ["archived_at"],
            "sparse": True,
            "or": [{"by": "filter", "partition": ["project_id"], "sort": ["flag_key"]}],
        },
        "sdk_download": {"by": "base"},
        "rules_of_flag": {"by": "base"},
        "rules_of_flag_everywhere": {
            "by": "index",
            "partition": ["project_id", "flag_key"],
            "sort": [],
        },
        "segment": {"by": "base"},
        "audit_of_project": {"by": "base"},
        "audit_of_flag": {
            "by": "index",
            "partition": ["project_id", "flag_key"],
            "sort": ["entry_id"],
            "projection": "INCLUDE",
            "projection_or": ["ALL"],
        },
        "audit_of_actor": {
            "by": "index",
            "partition": ["project_id", "actor"],
            "sort": ["entry_id"],
        },
        "audit_entry": {"by": "base"},
    },
}
WHY = {
    "Rule": "The SDK's download needs all rules of an environment in one partition; the flag comes "
    "first in the sort key, so the rules of one flag are a prefix of the same key.",
    "AuditEntry": "The audit entries share the project's id but must not share its partition "
    "with the "
    "flags in such a way that project_page reads them: the prefix of the entity keeps them apart.",
    "audit_of_flag": "Texts before and after are 3 KB; the list shows three fields.",
    "audit_of_actor": "0.2 calls a second: an index of whole entries costs more in storage "
    "than the "
    "reads; the cheapest is keys only plus reads of the 50 entries, and ALL is what most "
    "people write.",
    "archived_flags": "A filter over the 120 flags (10 RCU, once a second) is nearly as good; "
    "the index is "
    "right only because it is one that other entities need anyway.",
}
