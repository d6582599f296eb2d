"""The audit trail: every change once, with its author, and every forgery found."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from audit_trail import Salary, app, history, payroll, trail

from stator import Db, Engine, connect
from stator.pipeline import AuditLog, StreamApp, WorkerOptions

TABLE = "payroll-stator"


@pytest.fixture
def db() -> Iterator[Db]:
    with Engine.open() as engine, connect(payroll, engine) as db:
        app.ensure(db)
        with app.start(db, WorkerOptions(start="oldest")) as worker:
            db.create(Salary(employee_id="e1", amount=Decimal(4000), changed_by="anna"))
            with db.update(Salary, employee_id="e1") as raised:
                raised.amount = Decimal(4400)
                raised.changed_by = "ben"
            db.create(Salary(employee_id="e2", amount=Decimal(3900), changed_by="anna"))
            worker.catch_up()
        yield db


def stored(db: Db, number: str) -> dict[str, Any]:
    """The item of an entry with this number, of the longest chain."""
    items = db.call("Scan", {"TableName": TABLE})["Items"]
    entries = [item for item in items if "entry" in item and item["SK"]["S"].startswith(number)]
    return max(entries, key=lambda item: len(item["entry"]["S"]))


def test_the_history_names_authors_and_values_in_order(db: Db) -> None:
    assert history(db, "e1") == [
        "1. INSERT by anna: None -> 4000",
        "2. MODIFY by ben: 4000 -> 4400",
    ]
    assert history(db, "nobody") == []


def test_changes_that_are_read_again_are_logged_once(db: Db) -> None:
    again = AuditLog("salaries", who=Salary.changed_by, secret="only the worker knows this")
    other = StreamApp(payroll, "a second group")
    other.add(again)
    with other.start(db, WorkerOptions(start="oldest")) as worker:
        worker.catch_up()
    report = trail.verify(db)
    assert (report.is_sound, report.entries, report.chains) == (True, 3, 2)


def test_an_entry_that_was_changed_is_found(db: Db) -> None:
    entry = stored(db, "000000000002")
    assert "4400" in entry["entry"]["S"]
    entry["entry"]["S"] = entry["entry"]["S"].replace("4400", "9900")
    db.call("PutItem", {"TableName": TABLE, "Item": entry})
    report = trail.verify(db)
    assert not report.is_sound
    assert {problem.number for problem in report.problems} == {2}


def test_a_trail_that_was_removed_is_found_with_a_seal(db: Db) -> None:
    seal = trail.seal(db)
    for item in db.call("Scan", {"TableName": TABLE})["Items"]:
        if item["PK"]["S"].startswith("AUDIT#"):
            key = {name: item[name] for name in ("PK", "SK")}
            db.call("DeleteItem", {"TableName": TABLE, "Key": key})
    assert trail.verify(db).is_sound  # nothing is left to be wrong
    assert len({problem.chain for problem in trail.verify(db, since=seal).problems}) == 2


def test_a_trail_that_another_secret_wrote_is_found(db: Db) -> None:
    assert not AuditLog("salaries", secret="a guess").verify(db).is_sound
