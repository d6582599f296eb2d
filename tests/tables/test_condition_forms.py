"""Conditions of every form, wherever a condition can stand: DynamoDB accepts what is written.

DynamoDB refuses an expression with a second pair of parentheses around the same thing, so a lone
condition that becomes an OR or a NOT must not get parentheses twice.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from stator import (
    Bundle2,
    Design,
    Entity,
    Query,
    attr,
    find,
    ident,
    read,
    soft_delete,
    together,
    ttl,
)
from stator.design.patterns.pattern import Pattern
from stator.errors import ConditionFailed
from stator.tables.db import Db
from tests.targets import Target


class Board(Entity):
    team: str = ident()


class Note(Entity):
    team: str = ident()
    note_id: str = ident()
    state: str = "open"
    stars: int = 0
    grade: int | None = 5
    label: Any = None
    deleted_at: datetime | None = soft_delete()
    expires_at: datetime | None = ttl(days=900, default=None)


Form = tuple[Callable[[], Any], Callable[[Note], bool]]
FORMS: dict[str, Form] = {
    "equal": (lambda: Note.state == "open", lambda n: n.state == "open"),
    "not": (lambda: ~(Note.state == "done"), lambda n: n.state != "done"),
    "not_not": (lambda: ~~(Note.state == "done"), lambda n: n.state == "done"),
    "or": (
        lambda: (Note.state == "done") | (Note.stars > 3),
        lambda n: n.state == "done" or n.stars > 3,
    ),
    "not_or": (
        lambda: ~((Note.state == "done") | (Note.stars > 3)),
        lambda n: not (n.state == "done" or n.stars > 3),
    ),
    "and_in_or": (
        lambda: ((Note.state == "open") & (Note.stars == 0)) | (Note.stars == 9),
        lambda n: (n.state == "open" and n.stars == 0) or n.stars == 9,
    ),
    "between": (lambda: attr(Note.stars).between(1, 9), lambda n: 1 <= n.stars <= 9),
    "none": (lambda: Note.grade == None, lambda n: n.grade is None),  # noqa: E711
    "some": (lambda: Note.grade != None, lambda n: n.grade is not None),  # noqa: E711
    "exists": (lambda: attr(Note.grade).exists(), lambda n: n.grade is not None),
    "absent": (lambda: attr(Note.grade).not_exists(), lambda n: n.grade is None),
    "any_none": (lambda: Note.label == None, lambda n: n.label is None),  # noqa: E711
    "any_some": (lambda: ~(Note.label == None), lambda n: n.label is not None),  # noqa: E711
}  # fmt: skip


def declared(name: str, form: Form, *, is_alone: bool) -> Pattern[..., Any]:
    def of_team(team: str) -> Query[Note]:
        return find(Note).where(Note.team == team).filter(form[0]())

    def anywhere() -> Query[Note]:
        return find(Note).filter(form[0]())

    made: Any = anywhere if is_alone else of_team
    made.__name__ = f"{name}_{'alone' if is_alone else 'of_team'}"
    return read(rps=1, allow_scan=is_alone)(made)


OF_TEAM = {name: declared(name, form, is_alone=False) for name, form in FORMS.items()}
ALONE = {name: declared(name, form, is_alone=True) for name, form in FORMS.items()}


@read(rps=9)
def whole(team: str) -> Bundle2[Board, Note]:
    return together(Board, Note).where(Note.team == team, ~(Note.state == "done"))


DESIGN = Design("forms", [Board, Note], [*OF_TEAM.values(), *ALONE.values(), whole])
PLAN = DESIGN.plan()


@pytest.fixture
def db(target: Target) -> Db:
    db = target.connect(DESIGN, plan=PLAN)
    db.write_many([
        Note(team="t", note_id="1"),
        Note(team="t", note_id="2", state="done", stars=9, grade=None, label=1),
        Note(team="t", note_id="3", state="done", stars=2, label="x"),
        Note(team="t", note_id="4", stars=5, grade=7),
        Note(team="t", note_id="6"),
        Board(team="t"),
    ])  # fmt: skip
    of = db.context.schema.of(Note)
    old = of.item(Note(team="t", note_id="5"))
    for name in ("state", "stars", "grade", "label"):  # an item from before these fields
        del old[name]
    db.call("PutItem", {"TableName": of.table.name, "Item": old})
    db.delete(Note, team="t", note_id="6")
    return db


def test_reads_and_counts_agree_with_the_items(db: Db) -> None:
    notes = list(db.scan(Note, allow=True))
    assert {each.note_id for each in notes} == {"1", "2", "3", "4", "5"}
    for name, (_, holds) in FORMS.items():
        expected = {each.note_id for each in notes if holds(each)}
        for query in (OF_TEAM[name]("t"), ALONE[name]()):
            assert {each.note_id for each in db.all(query)} == expected, query
            assert db.count(query) == len(expected), query
            assert db.delete_where(query, dry_run=True).count == len(expected), query
    board, rest = db.grouped(whole("t"))
    assert len(board) == 1
    assert {each.note_id for each in rest} == {"1", "4", "5"}


def test_writes_by_pattern_and_conditions_agree_with_the_items(db: Db) -> None:
    for name, (condition, holds) in FORMS.items():
        notes = list(db.scan(Note, allow=True))
        expected = sum(map(holds, notes))
        for query in (OF_TEAM[name]("t"), ALONE[name]()):
            result = db.update_where(query, lambda note: setattr(note, "expires_at", None))
            result.raise_for_failures()
            assert (result.written, result.skipped) == (expected, 0), query
        for note in notes:
            try:
                db.patch(Note, {"expires_at": None}, team="t", note_id=note.note_id,
                         when=condition())  # fmt: skip
            except ConditionFailed:
                assert not holds(note), name
            else:
                assert holds(note), name
    assert db.delete_where(ALONE["not"]()).written == 3
