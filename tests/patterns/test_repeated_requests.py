"""Requests carried out twice, and conflicting transactions, do not change the result."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stator.clock import VirtualClock
from stator.patterns import Links, Outbox, UniqueAudit
from stator.tables.db import Db
from tests.patterns.crashing import conflicting, doubling
from tests.patterns.school import Course, Student, school
from tests.patterns.test_outbox import Receiver, present, write
from tests.patterns.test_tree import SHAPE, files, folder, grow, parents
from tests.patterns.test_unique_audit import delete_past, drop_guard, put_past
from tests.tables.shop import User, shop, user
from tests.targets import Target

Fault = Callable[[Db], Db]
FAULTS = pytest.mark.parametrize("fault", [doubling, conflicting], ids=["doubled", "conflicting"])


@FAULTS
def test_a_tree_is_unaffected(target: Target, fault: Fault) -> None:
    db = target.connect(shop())
    tree = files(fault(db))
    grow(tree, SHAPE)
    tree.update(folder("renamed", id="b"))
    tree.move("a", "b1")
    tree.move("a1")
    assert tree.delete("root") == 5
    assert parents(db) == {"a1": None, "x": "a1", "y": "a1", "other": None}


@FAULTS
def test_links_are_unaffected(target: Target, fault: Fault) -> None:
    db = target.connect(school())
    who = Student(student_id="s", name="Anna")
    db.create(who)
    links = Links(fault(db), Student, Course, copy_left=[Student.name])
    for number in range(3):
        course = Course(course_id=f"c{number}", title="x")
        db.create(course)
        links.link(who, course)
    who.name = "Anne"
    db.put(who)
    assert links.refresh(who) == 3
    links.unlink("s", "c1")
    assert [link.copy["name"] for link in links.of_right("c0")] == ["Anne"]
    assert links.unlink_all(who) == 2
    assert links.count(right="c0") == 0


@FAULTS
def test_guards_are_unaffected(target: Target, fault: Fault) -> None:
    db = target.connect(shop())
    for number in range(1, 5):
        db.create(user(number))
    delete_past(db, user(1))
    drop_guard(db, "u2@example.com")
    delete_past(db, user(3))
    put_past(db, User(user_id="u9", email="u3@example.com", name="x"))
    report = UniqueAudit(fault(db), User).repair()
    assert sorted(finding.kind for finding in report.repaired) == ["foreign", "missing", "orphan"]
    assert report.left == [] and UniqueAudit(db, User).audit().ok


@FAULTS
def test_an_outbox_is_unaffected(target: Target, fault: Fault) -> None:
    clock: VirtualClock = present()
    db = target.connect(shop(), clock=clock)
    faulty = fault(db)
    outbox = Outbox(faulty, "numbers", shards=2, max_attempts=2)
    write(faulty, outbox, 1, 2, 3)
    write(faulty, outbox, 4)
    receiver = Receiver(2)
    for _ in range(4):
        outbox.relay(receiver)
        clock.advance(10)
    assert receiver.bodies == [1, 3, 4]
    assert [(message.body, message.attempts) for message in outbox.parked()] == [(2, 2)]
    assert outbox.count() == 0
