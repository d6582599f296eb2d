"""Every request the data layer sends for a pattern, and its key prefix, is in the IAM policy."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from stator import Design, Entity, connect, ident, ttl, unique, write
from stator.addresses import EngineTransport
from stator.design.export.iam import policy
from stator.design.patterns.write_pattern import creates, deletes, updates
from stator.patterns.counter import Counter
from stator.tables.db import Db


class Member(Entity):
    member_id: str = ident()
    email: str = unique()
    handle: str | None = unique(default=None)
    name: str = ""
    until: datetime | None = ttl(days=30, default=None)


class Visit(Entity):
    visit_id: str = ident()
    member_id: str


@write(rps=1)
def join() -> object:
    return creates(Member)


@write(rps=1)
def rename() -> object:
    return updates(Member.name)


@write(rps=1)
def change_email() -> object:
    return updates(Member.email)


@write(rps=1)
def prolong() -> object:
    return updates(Member.until)


@write(rps=1)
def leave() -> object:
    return deletes(Member)


@write(rps=1)
def visit() -> object:
    return creates(Visit)


CLUB = Design("club", [Member, Visit], [join, rename, change_email, prolong, leave, visit])
ANN = Member(member_id="m1", email="ann@example.org", handle="ann")
_ACTIONS = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
}
Need = tuple[str, str, str]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Need]:
    """Action, table and partition key of each request, as IAM sees them."""
    found: list[Need] = []
    call = EngineTransport.call

    def recorded(
        self: EngineTransport, operation: str, request: dict[str, Any], **options: Any
    ) -> Any:
        if operation in ("GetItem", "PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"):
            found.extend(_needs(operation, request))
        return call(self, operation, request, **options)

    monkeypatch.setattr(EngineTransport, "call", recorded)
    return found


def _needs(operation: str, request: dict[str, Any]) -> Iterator[Need]:
    if operation == "TransactWriteItems":
        for each in request["TransactItems"]:
            for kind, part in each.items():
                yield from _needs(_ACTIONS[kind], part)
        return
    key = request.get("Key") or request["Item"]
    name = next(name for name in ("PK", "member_id", "visit_id") if name in key)
    yield operation, request["TableName"], key[name]["S"]


def _is_allowed(need: Need, statements: list[dict[str, Any]]) -> bool:
    action, table, key = need
    for each in statements:
        if f"dynamodb:{action}" not in each["Action"] or not each["Resource"].endswith(
            f":table/{table}"
        ):
            continue
        patterns = (
            each.get("Condition", {}).get("ForAllValues:StringLike", {}).get("dynamodb:LeadingKeys")
        )
        if patterns is None or any(fnmatch.fnmatchcase(key, pattern) for pattern in patterns):
            return True
    return False


def statements(*patterns: str, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        policy(CLUB.plan(), patterns, design=CLUB, **options).text
    )["Statement"]
    return found


def _change(**fields: Any) -> Callable[[Db], None]:
    def run(db: Db) -> None:
        with db.update(Member, member_id="m1") as member:
            for name, value in fields.items():
                setattr(member, name, value)

    return run


def _read_and_put(db: Db) -> None:
    db.put(Member(member_id="m2", email="bob@example.org"))


WRITES: list[tuple[str, Callable[[Db], object], bool]] = [
    (
        "join",
        lambda db: db.create(Member(member_id="m2", email="bob@example.org", handle="bob")),
        True,
    ),
    ("join", _read_and_put, True),
    ("rename", _change(name="Ann"), False),
    ("change_email", _change(email="anne@example.org"), True),
    ("prolong", _change(until=datetime(2030, 1, 1, tzinfo=UTC)), True),
    ("leave", lambda db: db.delete(Member, member_id="m1"), True),
    ("visit", lambda db: db.create(Visit(visit_id="v1", member_id="m1")), False),
]


@pytest.mark.parametrize(("pattern", "run", "guarded"), WRITES)
def test_every_request_of_a_write_is_allowed(
    pattern: str, run: Callable[[Db], object], guarded: bool, sent: list[Need]
) -> None:
    with connect(CLUB) as db:
        db.create(ANN)
        sent.clear()
        run(db)
    assert any(table == "club-stator" for _, table, _ in sent) == guarded
    allowed = statements(pattern)
    assert [need for need in sent if not _is_allowed(need, allowed)] == []
    assert any(each["Resource"].endswith("club-stator") for each in allowed) == guarded


def test_guards_of_other_fields_and_entities_are_not_touched() -> None:
    [own] = [
        each for each in statements("change_email") if each["Resource"].endswith("club-stator")
    ]
    assert own["Action"] == ["dynamodb:PutItem", "dynamodb:DeleteItem"]
    assert own["Condition"] == {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["UNIQUE#Member#email#*"]}
    }
    assert not _is_allowed(("PutItem", "club-stator", "UNIQUE#Member#handle#ann"), [own])
    [create] = [each for each in statements("join") if each["Resource"].endswith("club-stator")]
    assert create["Action"] == ["dynamodb:PutItem"]


def test_pattern_objects_and_tokens_are_allowed_where_they_are_asked_for(sent: list[Need]) -> None:
    with connect(CLUB) as db:
        sent.clear()
        Counter(db, "visitors").add(1)
        with db.transaction(token="visit-1") as tx:
            tx.create(Visit(visit_id="v1", member_id="m1"))
    counters = [need for need in sent if need[2].startswith("COUNTER#")]
    assert {operation for operation, *_ in counters} == {"GetItem", "UpdateItem"}
    assert len(sent) > len(counters)
    assert [
        need for need in sent if not _is_allowed(need, statements("visit", with_patterns=True))
    ] == []
    assert any(not _is_allowed(need, statements("visit")) for need in sent)
