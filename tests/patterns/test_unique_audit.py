"""Guards agree with items written through a Db; the audit repairs what was written past it."""

from __future__ import annotations

import asyncio
import random
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator import Design, Entity, Query, connect, find, ident, read, ttl, unique
from stator.clock import VirtualClock
from stator.design.design import Layout
from stator.errors import ConditionFailed, DesignError, UniqueTaken
from stator.patterns import UniqueAudit
from stator.tables.db import Db
from tests.patterns.crashing import Form, every_crash, every_item, in_threads
from tests.tables.shop import Product, User, shop, user
from tests.targets import Target


class Invite(Entity):
    invite_id: str = ident()
    code: str = unique()
    alias: str | None = unique(default=None)
    expires: datetime | None = ttl(hours=1, default=None)


@read(rps=10)
def invite_by_id(invite_id: str) -> Query[Invite]:
    return find(Invite).where(Invite.invite_id == invite_id)


def invites(layout: Layout = "single-table") -> Design:
    return Design("invites", [Invite], [invite_by_id], volumes={Invite: 100}, layout=layout)


def present() -> VirtualClock:
    """Starts today, because DynamoDB Local deletes expired items by its own clock."""
    return VirtualClock(float(int(time.time())))


def guards(db: Db) -> dict[str, Any]:
    return {item["PK"]["S"]: item for item in every_item(db) if item.get("SK") == {"S": "GUARD"}}


def put_past(db: Db, entity: Any) -> None:
    """Write an item like a program that does not know of guards."""
    of = db.context.schema.of_object(entity)
    db.call("PutItem", {"TableName": of.table.name, "Item": of.item(entity)})


def delete_past(db: Db, entity: Any) -> None:
    of = db.context.schema.of_object(entity)
    db.call("DeleteItem", {"TableName": of.table.name, "Key": of.key_of(entity)})


def drop_guard(db: Db, email: str) -> None:
    place = db.context.schema.place
    db.call(
        "DeleteItem",
        {"TableName": place.table, "Key": place.key(f"UNIQUE#User#email#{email}", "GUARD")},
    )


def kinds(findings: Any) -> list[str]:
    return sorted(finding.kind for finding in findings)


# --- guards follow their items ----------------------------------------------------------------


@pytest.mark.parametrize("layout", ["single-table", "table-per-entity"])
def test_guards_survive_update_and_delete(target: Target, layout: Layout) -> None:
    db = target.connect(shop(layout))
    audit = UniqueAudit(db, User)
    db.create(user(1))
    db.create(user(2))
    with db.update(User, user_id="u1") as change:
        change.email = "new@example.com"
    with db.update(User, user_id="u2") as change:
        change.name = "Another"
    report = audit.audit()
    assert (report.items, report.guards, report.ok) == (2, 2, True)
    with pytest.raises(UniqueTaken):
        db.create(User(user_id="u3", email="new@example.com", name="x"))
    db.create(User(user_id="u3", email="u1@example.com", name="x"))
    db.delete(User, user_id="u1")
    report = audit.audit()
    assert (report.items, report.guards, report.ok) == (2, 2, True)


def test_a_guard_expires_with_its_item(target: Target) -> None:
    clock = present()
    db = target.connect(invites(), clock=clock)
    audit = UniqueAudit(db, Invite)
    first = Invite(invite_id="i1", code="c")
    db.create(first)
    assert first.expires is not None
    ends = {"N": str(int(first.expires.timestamp()))}
    [guard] = guards(db).values()
    assert guard[db.context.schema.place.ttl] == ends
    clock.advance(1800)
    later = datetime.fromtimestamp(int(clock.now()) + 7200, UTC)
    with db.update(Invite, invite_id="i1") as change:
        change.expires = later
    [guard] = guards(db).values()
    assert guard[db.context.schema.place.ttl] == {"N": str(int(later.timestamp()))}
    assert audit.audit().ok
    clock.advance(3600)
    with pytest.raises(UniqueTaken):
        db.create(Invite(invite_id="i2", code="c"))
    clock.advance(3601)
    assert audit.audit().ok  # both have expired, and wait for the service to delete them
    db.create(Invite(invite_id="i2", code="c"))
    assert audit.audit().ok
    delete_past(db, first)  # as the service does eventually
    assert audit.audit().ok
    assert audit.repair().repaired == []


def test_the_service_may_delete_item_or_guard_first(target: Target) -> None:
    clock = present()
    db = target.connect(invites(), clock=clock)
    audit = UniqueAudit(db, Invite)
    one, other = Invite(invite_id="i1", code="c1"), Invite(invite_id="i2", code="c2")
    db.create(one)
    db.create(other)
    clock.advance(3601)
    delete_past(db, one)
    place = db.context.schema.place
    db.call(
        "DeleteItem", {"TableName": place.table, "Key": place.key("UNIQUE#Invite#code#c2", "GUARD")}
    )
    assert audit.audit().ok
    db.create(Invite(invite_id="i3", code="c1"))
    db.create(Invite(invite_id="i4", code="c2"))
    assert audit.audit().ok


# --- findings ---------------------------------------------------------------------------------


def test_every_kind_of_finding_is_found_and_repaired(target: Target) -> None:
    db = target.connect(shop())
    for number in range(1, 8):
        db.create(user(number))
    audit = UniqueAudit(db, User)
    assert audit.audit().ok
    delete_past(db, user(1))  # orphan
    drop_guard(db, "u2@example.com")  # missing
    put_past(db, User(user_id="u3", email="changed@example.com", name="x"))  # orphan and missing
    put_past(db, User(user_id="u8", email="u4@example.com", name="x"))  # duplicate
    delete_past(db, user(5))
    put_past(db, User(user_id="u9", email="u5@example.com", name="x"))  # orphan and foreign
    report = audit.audit()
    assert kinds(report.findings) == [
        "duplicate",
        "foreign",
        "missing",
        "missing",
        "orphan",
        "orphan",
        "orphan",
    ]
    assert (report.items, report.guards) == (7, 6)
    repaired = audit.repair()
    assert kinds(repaired.repaired) == ["foreign", "missing", "missing", "orphan", "orphan"]
    [left] = repaired.left
    assert left.kind == "duplicate" and "u4@example.com" in str(left.guard)
    assert left.item == {"PK": {"S": "USER#u8"}, "SK": left.item["SK"]} if left.item else False
    assert kinds(audit.audit().findings) == ["duplicate"]
    db.delete(User, user_id="u4")  # a person decides; the guard is deleted with the item
    assert kinds(audit.repair().repaired) == ["missing"]
    assert audit.audit().ok
    for email in ("u2@example.com", "u5@example.com", "changed@example.com", "u4@example.com"):
        with pytest.raises(UniqueTaken):
            db.create(User(user_id="new", email=email, name="x"))
    db.create(User(user_id="new", email="u1@example.com", name="x"))


def test_of_two_unguarded_items_with_the_same_value_one_is_a_duplicate(target: Target) -> None:
    db = target.connect(shop())
    for number in (1, 2):
        put_past(db, User(user_id=f"u{number}", email="same@example.com", name="x"))
    report = UniqueAudit(db, User).repair()
    assert (kinds(report.repaired), kinds(report.left)) == (["missing"], ["duplicate"])


def test_a_different_expiry_is_repaired(target: Target) -> None:
    clock = present()
    db = target.connect(invites("table-per-entity"), clock=clock)
    audit = UniqueAudit(db, Invite)
    db.create(Invite(invite_id="i1", code="c", alias="a"))
    put_past(
        db,
        Invite(
            invite_id="i1",
            code="c",
            alias="a",
            expires=datetime.fromtimestamp(clock.now() + 9000, UTC),
        ),
    )
    assert kinds(audit.audit().findings) == ["expiry", "expiry"]
    assert kinds(audit.repair().repaired) == ["expiry", "expiry"]
    assert audit.audit().ok
    clock.advance(8000)
    with pytest.raises(UniqueTaken):
        db.create(Invite(invite_id="i2", code="c"))


def test_a_repair_that_dies_at_any_call_is_finished_by_the_next(target: Target, form: Form) -> None:
    db = target.connect(shop())
    audit = UniqueAudit(db, User)

    def break_it() -> None:
        put_past(db, user(1))
        put_past(db, user(2))
        drop_guard(db, "u1@example.com")
        db.put(user(3))
        delete_past(db, user(3))

    break_it()
    for _ in every_crash(db, lambda dying: UniqueAudit(dying, User).repair(), step=3, form=form):
        audit.repair()
        assert audit.audit().ok
        break_it()
    assert audit.audit().ok


def test_writers_continue_during_a_repair(target: Target) -> None:
    """No correct guard is ever reported, and no repair takes a value from its item."""
    db = target.connect(shop())
    for number in range(6):
        db.create(user(number))
    delete_past(db, user(5))

    def writer(seed: int) -> None:
        chance = random.Random(seed)
        for turn in range(10):
            with db.update(User, user_id=f"u{seed}") as change:
                change.email = f"{seed}-{turn}-{chance.random()}@example.com"

    def auditor() -> None:
        for _ in range(4):
            report = UniqueAudit(db, User).repair()
            assert kinds(report.repaired) in ([], ["orphan"]) and report.left == []

    assert in_threads(lambda: writer(0), lambda: writer(1), auditor, auditor) == []
    assert UniqueAudit(db, User).audit().ok
    assert len(guards(db)) == 5


def test_asyncio_tasks_audit_and_repair(target: Target) -> None:
    async def main() -> None:
        async with target.connect_async(shop()) as db:
            await db.create(user(1))
            assert (await UniqueAudit(db, User).audit()).guards == 1
            assert (await UniqueAudit(db, User).repair()).repaired == []

    asyncio.run(main())


PEOPLE, EMAILS = st.sampled_from("pqr"), st.sampled_from("abc")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "delete", "put past", "delete past", "drop guard"]), PEOPLE, EMAILS
    ),
    max_size=20,
)


@settings(max_examples=60)
@given(STEPS)
def test_after_a_repair_only_duplicates_are_left(steps: list[tuple[str, str, str]]) -> None:
    with connect(shop()) as db:
        for what, who, email in steps:
            entity = User(user_id=who, email=email, name="x")
            known = db.get(User, user_id=who, consistent=True)
            entity.rev = 0 if known is None else known.rev
            try:
                match what:
                    case "put":
                        db.put(entity)
                    case "delete":
                        db.delete(User, user_id=who)
                    case "put past":
                        put_past(db, entity)
                    case "delete past":
                        delete_past(db, entity)
                    case _:
                        drop_guard(db, email)
            except ConditionFailed:
                continue  # the value or its guard belongs to another item
        UniqueAudit(db, User).repair()
        left = UniqueAudit(db, User).audit().findings
        assert {finding.kind for finding in left} <= {"duplicate"}
        stored = list(db.scan(User, allow=True, consistent=True))
        emails = {each.email for each in stored}
        assert len(left) == len(stored) - len(emails)
        assert len(guards(db)) == len(emails)


def test_explain_shows_the_cost_and_an_entity_without_unique_fields_is_refused() -> None:
    db = connect(shop())
    assert "UNIQUE#User#<field>#<value>" in str(UniqueAudit(db, User).explain())
    with pytest.raises(DesignError):
        UniqueAudit(db, Product)


def test_findings_show_identities_and_fields_but_no_values(target: Target) -> None:
    clock = present()
    db = target.connect(invites(), clock=clock)

    def invite(number: int, code: str, expires: datetime | None = None) -> Invite:
        return Invite(invite_id=f"i{number}", code=code, expires=expires)

    later = datetime.fromtimestamp(clock.now() + 7200, UTC)
    for number in range(4):
        db.create(invite(number, f"Zaphod{number}"))
    put_past(db, invite(0, "Zaphod-new"))  # its old guard is an orphan, the new value has none
    put_past(db, invite(1, "Zaphod1", later))
    put_past(db, invite(5, "Zaphod2"))
    delete_past(db, invite(3, "Zaphod3"))
    put_past(db, invite(6, "Zaphod3"))
    findings = UniqueAudit(db, Invite).audit().findings
    assert sorted(map(str, findings)) == [
        "duplicate: Invite(invite_id='i5') has a value of code that Invite(invite_id='i2') has",
        "expiry: a guard of Invite.code and Invite(invite_id='i1') expire at different times",
        "foreign: Invite(invite_id='i6') has a value of code that is guarded for a former owner",
        "missing: Invite(invite_id='i0') has a value of code without a guard",
        "orphan: a guard of Invite.code belongs to an item that no longer exists",
        "orphan: a guard of Invite.code names Invite(invite_id='i0'), which has another code",
    ]
