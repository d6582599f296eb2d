"""Makes the application folder of version 1: every pattern used, workers in the middle of work."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from stator import Db, Engine, TableSettings
from stator.pipeline import Change, RebuildOptions
from stator.testing import Killed
from tests.patterns.crashing import crashing

from .academy import (
    QUICK,
    START,
    Check,
    Course,
    Essay,
    Folder,
    Reading,
    Student,
    archive,
    board,
    by_isp,
    check,
    checks_of,
    desk,
    enrolments,
    files,
    invoices,
    isp_hours,
    letters,
    monthly,
    nightly,
    opened,
    page_views,
    payments,
    reading,
    readings,
    streamed,
    student,
    summaries,
    tickets,
    trail,
)
from .clock import StoredClock
from .ledger import Item, scan

HOUR = 3600.0


def run_to_be_killed(folder: Path) -> dict[str, Any]:
    """Ends with workers that hold leases; whoever called it is to kill the process."""
    socket.gethostname = lambda: "maker"
    clock = StoredClock(START)
    stack = opened(folder, clock)
    db, engine = stack.__enter__()
    _STACKS.append(stack)
    db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
    _make_mirror(db, engine)
    cursors = _use_tables(db)
    _use_patterns(db)
    cursors |= _use_series(db)
    _interrupt_trees(db)
    _use_desk(db)
    seal = _use_summaries(folder, db, engine, clock)
    _leave_stuck(folder, db)
    tables = engine.call("ListTables", {})["TableNames"]
    return {
        "now": clock.now(),
        "items": {name: scan(engine, name) for name in tables},
        "cursors": cursors,
        "seal": seal,
    }


_STACKS: list[Any] = []
"""Keeps what is open from being closed before the kill."""


def _make_mirror(db: Db, engine: Engine) -> None:
    [table] = db.context.schema.plan.tables
    described = engine.call("DescribeTable", {"TableName": table.name})["Table"]
    names = {each["AttributeName"] for each in described["KeySchema"]}
    engine.call(
        "CreateTable",
        {
            "TableName": "mirror",
            "KeySchema": described["KeySchema"],
            "AttributeDefinitions": [
                each for each in described["AttributeDefinitions"] if each["AttributeName"] in names
            ],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )


# --- the data layer -----------------------------------------------------------------------------


def _use_tables(db: Db) -> dict[str, str]:
    """Entities with every marker, unique values, a token, and a page half read."""
    for number in range(1, 5):
        db.create(student(number))
    with db.update(Student, student_id="s2") as change:
        change.email = "moved@example.com"
    with db.transaction(token="payment-17") as tx:
        tx.create(student(17))
    db.create(Course(course_id="k1", title="Algebra"))
    db.create(Course(course_id="k2", title="Logic"))
    db.put(Essay(essay_id="short", text="as it is"))
    db.put(Essay(essay_id="packed", text="packed " * 300))
    db.put(Essay(essay_id="blob", text="".join(str(number**3) for number in range(900))))
    for number in range(6):
        db.put(check(number))
    page = db.page(checks_of("acme"), limit=2)
    assert page.cursor is not None
    return {"checks": page.cursor}


# --- pattern objects ----------------------------------------------------------------------------


def _use_patterns(db: Db) -> None:
    for amount in (1, 2, 3):
        page_views(db).add(amount)
    page_views(db).compact()
    page_views(db).add(10)
    nightly(db).release(nightly(db).acquire())
    nightly(db).acquire()
    payments(db).run("order-1", lambda: {"receipt": 1}, {"cents": 500})
    payments(db).begin("order-2")
    payments(db).seen("message-1")
    _use_outbox(db)
    for _ in range(3):
        invoices(db).next()
    invoices(db).create(lambda number: Course(course_id=f"k{number}", title="numbered"))
    tickets(db).next()
    for member, score in (("anna", 320), ("bob", 150), ("cleo", 90), ("dora", 320)):
        board(db).set_score(member, score)
    board(db).add_score("bob", 200, once="game-1")
    algebra, logic = db.get(Course, course_id="k1"), db.get(Course, course_id="k2")
    for number in (1, 2):
        one = db.get(Student, student_id=f"s{number}")
        enrolments(db).link(one, algebra, grade=number)
    enrolments(db).link(db.get(Student, student_id="s1"), logic)
    with db.update(Student, student_id="s1") as change:
        change.name = "Student One"  # the copies of it wait for a refresh


def _use_outbox(db: Db) -> None:
    """One message is delivered, one failed, one behind it waits, one is parked, one has no key."""

    def add(*bodies: str, key: str | None = None) -> None:
        box = letters(db)
        with db.transaction() as tx:
            for body in bodies:
                box.add(tx, topic="letters", body=body, key=key)

    def send(message: Any) -> None:
        if message.body in ("failed", "parked"):
            raise ValueError(f"not {message.body}")

    add("parked")
    letters(db, max_attempts=1).relay(send)
    add("delivered", "failed", "behind it", key="a")
    letters(db).relay(send)
    add("without a key")


def _use_series(db: Db) -> dict[str, str]:
    """A bucket that got more shards, roll-ups, tables of months of which one is dropped."""
    for number in range(6):
        readings(db, shards=1).add(reading(number))
    readings(db).add_many(reading(number) for number in range(6, 12))
    for number in range(3):
        streamed(db).add(reading(number))
    for month in (8, 9, 10):
        at = datetime(2026, month, 5, tzinfo=UTC)
        monthly(db).add(Reading(sensor_id="s-17", at=at, value=Decimal(month)))
    monthly(db).drop_before(date(2026, 9, 1), confirm=True)
    page = readings(db).page("s-17", limit=4)
    assert page.cursor is not None
    return {"readings": page.cursor}


def _interrupt_trees(db: Db) -> None:
    """A move and a deletion whose processes die after the first transaction."""
    tree = files(db)
    for name, parent in (
        ("home", None), ("work", None), ("photos", "home"), ("2025", "photos"), ("2026", "photos"),
        ("may", "2026"), ("old", "work"), ("older", "old"), ("oldest", "older"),
    ):  # fmt: skip
        tree.add(Folder(folder_id=name, name=name), parent)
    _die_in(db, lambda dying: files(dying).move("photos", "work"))
    _die_in(db, lambda dying: files(dying).delete("old"))


def _die_in(db: Db, work: Callable[[Db], Any]) -> None:
    """Let a process die one call later each time, until it leaves a job behind."""
    before = _jobs(db)
    calls = 0
    while _jobs(db) == before:
        try:
            work(crashing(db, calls, reply_lost=False))
        except Killed:
            calls += 1


def _jobs(db: Db) -> int:
    return _items(db, lambda item: item["SK"]["S"].startswith("JOB#"))


def _items(db: Db, wanted: Callable[[Item], bool]) -> int:
    """How many of the items that patterns and workers keep are like this."""
    return sum(map(wanted, db.call("Scan", {"TableName": "academy-stator"})["Items"]))


# --- stream workers -----------------------------------------------------------------------------


def _use_desk(db: Db) -> None:
    """Stopped in good order, with an item parked, and changes that come after."""

    def handle(change: Change[Student]) -> None:
        if change.new is not None and change.new.student_id == "s4":
            raise ValueError("not s4")

    with desk(handle).start(db, QUICK) as running:
        running.catch_up()
    for number in (5, 6):
        db.create(student(number))
    with db.update(Student, student_id="s4") as change:
        change.name = "Student Four"


def _use_summaries(folder: Path, db: Db, engine: Engine, clock: StoredClock) -> str:
    """Views built anew, shards that ended long ago and were merged, and a rebuild that died."""
    app = summaries(folder, db, lambda change: None)
    with app.start(db, QUICK) as running:
        running.catch_up()
        isp_hours().on(db).rebuild(RebuildOptions(settle_seconds=0.2, grace_seconds=8.0))
        db.put(check(0, size=100))
        db.delete(Check, check_id="c1")
        running.catch_up()
        db.run(archive(folder).merge(db.context, "summaries"))
        [table] = db.context.schema.plan.tables
        described = engine.call("DescribeTable", {"TableName": table.name})["Table"]
        engine.streams.roll(described["LatestStreamArn"])
        while _items(db, lambda item: item.get("position") == {"S": "END"}) < 4:
            time.sleep(0.05)
    clock.advance(2 * HOUR)
    with app.start(db, QUICK) as running:
        for number in range(6, 12):
            db.put(check(number, isp="acme" if number % 2 else "other"))
        running.catch_up()
        while not _items(db, lambda item: item["SK"]["S"] == "ALL#BASE"):
            time.sleep(0.05)  # the worker merges when it next looks after its views
        _die_rebuilding(db)
    return trail().seal(db).dumps()


def _die_rebuilding(db: Db) -> None:
    """A generation that nobody finishes; workers write to it all the same."""
    options = RebuildOptions(settle_seconds=0.1)
    calls = 8
    try:
        by_isp().on(crashing(db, calls, reply_lost=False)).rebuild(options)
    except Killed:
        return
    raise AssertionError("the rebuild was finished")


def _leave_stuck(folder: Path, db: Db) -> None:
    """A worker that has counted a batch and does not get to its checkpoint."""
    reached = threading.Event()

    def handle(change: Change[Check]) -> None:
        if change.new is not None and change.new.check_id == "c20":
            reached.set()
            threading.Event().wait()

    running = summaries(folder, db, handle).start(db, QUICK)
    _STACKS.append(running)
    db.put(check(20, size=1000))
    db.put(check(20, size=2000))
    reached.wait()
    time.sleep(0.2)  # what other shards have under way comes to its end
