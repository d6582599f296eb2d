"""Links exist from both ends or from neither, and their copies follow the entities."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from stator import connect
from stator.design.design import Layout
from stator.errors import (
    ConditionFailed,
    CursorRefused,
    DesignError,
    ItemNotFound,
    RequestRefused,
)
from stator.patterns import Links
from stator.tables.db import Db
from tests.patterns.crashing import Form, every_crash, every_item, in_threads
from tests.patterns.school import Course, Note, Student, school
from tests.tables.shop import Product
from tests.targets import Target

Enrolments = Links[Db, Student, Course]


def enrolments(db: Db) -> Enrolments:
    return Links(
        db,
        Student,
        Course,
        name="enrolments",
        copy_left=[Student.name, Student.nick],
        copy_right=[Course.title],
    )


def student(number: int, name: str = "Anna") -> Student:
    return Student(student_id=f"s{number}", name=name)


def course(number: int, title: str = "Algebra") -> Course:
    return Course(course_id=f"c{number}", title=title)


def fill(db: Db, students: int, courses: int) -> tuple[list[Student], list[Course]]:
    people = [student(number) for number in range(students)]
    lessons = [course(number) for number in range(courses)]
    for each in (*people, *lessons):
        db.create(each)
    return people, lessons


def rename(db: Db, who: Student, name: str) -> None:
    who.name = name
    db.put(who)


def pairs(db: Db) -> set[tuple[str, str]]:
    """All links, after a check that each exists from both ends."""
    sides: dict[str, set[tuple[str, str]]] = {"L": set(), "R": set()}
    for item in every_item(db):
        kind, _, *rest = item["PK"]["S"].split("#")
        if kind == "LINK":
            side, mine = rest
            other = item["SK"]["S"].split("#")[1]
            sides[side].add((mine, other) if side == "L" else (other, mine))
    assert sides["L"] == sides["R"]
    return sides["L"]


def copies(db: Db, links: Enrolments, courses: list[Course], who: str) -> set[Any]:
    return {
        link.copy["name"] for each in courses for link in links.of_right(each) if link.left == who
    }


@pytest.mark.parametrize("layout", ["single-table", "table-per-entity"])
def test_links_are_read_from_both_sides(target: Target, layout: Layout) -> None:
    db = target.connect(school(layout))
    links = enrolments(db)
    people, lessons = fill(db, 2, 3)
    links.link(people[0], lessons[0], grade=Decimal("1.5"), since="2026")
    links.link(people[0], lessons[2])
    links.link(people[1], lessons[0], tags=["a", {"b": None}], done=True)
    assert [(link.right, link.copy, link.attributes) for link in links.of_left("s0")] == [
        ("c0", {"title": "Algebra"}, {"grade": Decimal("1.5"), "since": "2026"}),
        ("c2", {"title": "Algebra"}, {}),
    ]
    assert [(link.left, link.copy, link.attributes) for link in links.of_right(lessons[0])] == [
        ("s0", {"name": "Anna", "nick": None}, {"grade": Decimal("1.5"), "since": "2026"}),
        ("s1", {"name": "Anna", "nick": None}, {"tags": ["a", {"b": None}], "done": True}),
    ]
    assert (links.count(left="s0"), links.count(right="c0"), links.count(right="c1")) == (2, 2, 0)
    assert links.exists("s1", "c0") and not links.exists("s1", lessons[2])
    links.link(people[0], lessons[0], grade=2)
    found = links.get("s0", "c0")
    assert found is not None and found.attributes == {"grade": 2}
    links.unlink("s0", lessons[0])
    links.unlink("s0", lessons[0])
    assert pairs(db) == {("s0", "c2"), ("s1", "c0")}


def test_only_stored_entities_are_linked_and_stored_fields_copied(target: Target) -> None:
    db = target.connect(school())
    links = enrolments(db)
    [who], [what] = fill(db, 1, 1)
    with pytest.raises(ItemNotFound):
        links.link(student(9), what)
    old = student(0, name="Another")
    with pytest.raises(ConditionFailed, match="has changed"):
        links.link(old, what)
    with pytest.raises(RequestRefused):
        links.link("s0", what)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(RequestRefused, match="declared type"):
        links.link(who, what, share=0.5)
    assert pairs(db) == set()


def test_copies_follow_their_entities(target: Target) -> None:
    db = target.connect(school())
    links = enrolments(db)
    [who], lessons = fill(db, 1, 5)
    for each in lessons:
        links.link(who, each, n=1)
    before = student(0)
    rename(db, who, "Anne")
    assert links.copies_changed(before, who) == ("name",)
    assert links.refresh(who) == 5
    assert links.refresh(left="s0") == 0
    assert copies(db, links, lessons, "s0") == {"Anne"}
    with db.update(Course, course_id="c3") as change:
        change.title = "Analysis"
    assert links.refresh(right="c3") == 1
    assert [link.copy["title"] for link in links.of_left(who)] == ["Algebra"] * 3 + [
        "Analysis",
        "Algebra",
    ]
    assert all(link.attributes == {"n": 1} for link in links.of_left(who))
    with pytest.raises(ItemNotFound):
        links.refresh(left="nobody")


def test_copies_changed_compares_without_reading() -> None:
    links = enrolments(connect(school()))
    assert links.copies_changed(student(1), student(1, "Anne")) == ("name",)
    same = student(1)
    same.rev = 7
    assert links.copies_changed(student(1), same) == ()
    assert links.copies_changed(None, same) == links.copies_changed(same, None) == ()
    assert links.copies_changed(course(1), course(1, "x")) == ("title",)
    with pytest.raises(RequestRefused):
        links.copies_changed(course(1), student(1))
    note = Note(note_id="n", text="t")
    with pytest.raises(RequestRefused):
        links.copies_changed(note, note)  # type: ignore[arg-type]  # wrong on purpose


def test_a_copy_is_never_replaced_by_an_older_one() -> None:
    db = connect(school())
    links = enrolments(db)
    [who], [what] = fill(db, 1, 1)
    links.link(who, what)
    asleep = db.run(links._stored(links._left, "s0"))
    rename(db, who, "Anne")
    links.refresh(who)
    items = db.run(links._pages(links._left, "s0").page())
    assert len(items) == 1
    raw = [item for item in every_item(db) if item["PK"]["S"].startswith("LINK#enrolments#L")]
    db.run(links._refresh_page(links._left, "s0", raw, asleep))
    assert copies(db, links, [what], "s0") == {"Anne"}


def test_a_refresh_that_dies_at_any_call_is_finished_by_the_next(
    target: Target, form: Form
) -> None:
    db = target.connect(school())
    links = enrolments(db)
    [who], lessons = fill(db, 1, 4)
    for each in lessons:
        links.link(who, each)
    rename(db, who, "0")
    for number, _ in enumerate(
        every_crash(db, lambda dying: enrolments(dying).refresh(who), form=form), 1
    ):
        assert copies(db, links, lessons, "s0") <= {"Anna", *map(str, range(number))}
        links.refresh(who)
        assert copies(db, links, lessons, "s0") == {str(number - 1)}
        rename(db, who, str(number))


def test_an_unlink_all_that_dies_at_any_call_is_finished_by_the_next(
    target: Target, form: Form
) -> None:
    db = target.connect(school())
    links = enrolments(db)
    people, lessons = fill(db, 2, 55)
    for _ in every_crash(db, lambda dying: enrolments(dying).unlink_all(people[0]), form=form):
        pairs(db)  # each link from both ends or neither
        links.unlink_all(left="s0")
        assert pairs(db) == set()
        for each in lessons[: 55 if target.kind == "memory" else 3]:
            links.link(people[0], each)
    assert pairs(db) == set()


def test_threads_rename_and_refresh(target: Target) -> None:
    """Writers that change an entity and then refresh leave no stale copy, however many they are."""
    db = target.connect(school())
    links = enrolments(db)
    [who], lessons = fill(db, 1, 6)
    for each in lessons[:3]:
        links.link(who, each)

    def renamer(name: str) -> None:
        for number in range(3):
            with db.update(Student, student_id="s0") as change:
                change.name = f"{name}{number}"
            links.refresh(left="s0")

    def linker() -> None:
        for each in lessons[3:]:
            while True:
                now = db.get(Student, student_id="s0", consistent=True)
                assert now is not None
                try:
                    links.link(now, each)
                    break
                except ConditionFailed:
                    continue

    assert in_threads(lambda: renamer("x"), lambda: renamer("y"), linker) == []
    now = db.get(Student, student_id="s0", consistent=True)
    assert now is not None
    assert copies(db, links, lessons, "s0") == {now.name}
    assert links.count(left="s0") == 6


def test_threads_link_while_the_student_is_deleted(target: Target) -> None:
    db = target.connect(school())
    links = enrolments(db)
    [who], lessons = fill(db, 1, 12)

    def linker() -> None:
        for each in lessons:
            try:
                links.link(who, each)
            except ItemNotFound:
                return

    def remover() -> None:
        db.delete(Student, student_id="s0")
        links.unlink_all(left="s0")

    assert in_threads(linker, linker, remover) == []
    assert pairs(db) == set()


def test_an_entity_can_be_linked_with_its_own_kind(target: Target) -> None:
    db = target.connect(school())
    follows = Links(
        db, Student, Student, copy_left=[Student.name], copy_right=[Student.name, Student.nick]
    )
    anna, berta = student(1, "Anna"), student(2, "Berta")
    db.create(anna)
    db.create(berta)
    follows.link(anna, berta)
    follows.link(berta, anna)
    follows.link(anna, anna)
    assert [link.right for link in follows.of_left("s1")] == ["s1", "s2"]
    assert [link.left for link in follows.of_right("s1")] == ["s1", "s2"]
    rename(db, anna, "Anne")
    assert follows.refresh(anna) == 4
    assert [link.copy["name"] for link in follows.of_left("s2")] == ["Anne"]
    assert follows.unlink_all(anna) == 3
    assert follows.count(left="s2") == follows.count(right="s2") == 0


def test_asyncio_tasks_link_and_refresh(target: Target) -> None:
    async def main() -> None:
        async with target.connect_async(school()) as db:
            links = Links(db, Student, Course, copy_left=[Student.name])
            await db.create(student(1))
            await asyncio.gather(*(db.create(course(number)) for number in range(5)))
            known = await db.get(Student, student_id="s1")
            assert known is not None
            await asyncio.gather(*(links.link(known, course(number)) for number in range(5)))
            assert [link.right async for link in links.of_left("s1")] == [
                f"c{number}" for number in range(5)
            ]
            assert await links.count(left="s1") == 5
            assert await links.unlink_all(left="s1") == 5

    asyncio.run(main())


def test_invalid_arguments_are_refused() -> None:
    db = connect(school())
    with pytest.raises(DesignError):
        Links(db, Student, Product)
    with pytest.raises(DesignError, match="not a field"):
        Links(db, Student, Course, copy_left=[Course.title])
    with pytest.raises(DesignError, match="not a field"):
        Links(db, Student, Course, copy_left=["name"])
    links = enrolments(db)
    for wrong in ({}, {"left": "s1", "right": "c1"}):
        with pytest.raises(RequestRefused, match="exactly one end"):
            links.count(**wrong)
    with pytest.raises(RequestRefused, match="neither"):
        links.refresh(Note(note_id="n", text="t"))


def test_links_are_paged_from_both_ends(target: Target) -> None:
    db = target.connect(school())
    links = enrolments(db)
    people, lessons = fill(db, 7, 3)
    for who in people:
        for lesson in lessons:
            links.link(who, lesson)
    cursor, seen, sizes = None, [], []
    while True:
        page = links.page(right="c1", limit=3, cursor=cursor)
        seen += [link.left for link in page]
        sizes.append(len(page))
        cursor = page.cursor
        if cursor is None:
            break
    assert (seen, sizes) == ([f"s{n}" for n in range(7)], [3, 3, 1])
    assert links.page(left=people[0], limit=3).cursor is None
    assert [link.right for link in links.page(left=people[0], limit=3)] == ["c0", "c1", "c2"]


def test_a_page_continues_where_the_earlier_one_ended_whatever_was_unlinked() -> None:
    db = connect(school(), cursor_key=b"secret")
    links = enrolments(db)
    people, [lesson] = fill(db, 6, 1)
    for who in people:
        links.link(who, lesson)
    first = links.page(right=lesson, limit=2)
    links.unlink("s1", "c0")
    links.unlink("s2", "c0")
    second = links.page(right=lesson, limit=2, cursor=first.cursor)
    assert [link.left for link in second] == ["s3", "s4"]
    assert first.cursor is not None
    for wrong in (
        lambda: links.page(right="c9", limit=2, cursor=first.cursor),
        lambda: links.page(left="c0", limit=2, cursor=first.cursor),
        lambda: enrolments(connect(school())).page(right=lesson, limit=2, cursor=first.cursor),
    ):
        with pytest.raises(CursorRefused):
            wrong()
    with pytest.raises(RequestRefused, match="limit=0"):
        links.page(right=lesson, limit=0)
    with pytest.raises(RequestRefused, match="exactly one end"):
        links.page(limit=2)


def test_pages_of_links_are_awaited_on_an_async_db(target: Target) -> None:
    [who], [lesson] = fill(target.connect(school()), 1, 1)

    async def main() -> None:
        db = target.connect_async(school())
        links = Links(db, Student, Course)
        await links.link(who, lesson)
        page = await links.page(left=who, limit=5)
        assert [link.right for link in page] == ["c0"]
        await db.close()

    asyncio.run(main())


def test_explain_shows_the_cost() -> None:
    text = str(enrolments(connect(school())).explain())
    assert (
        "LINK#enrolments#L#<Student>" in text
        and "link: TransactWriteItems of 4; 8 write units" in text
    )


def test_messages_of_links_show_types_and_identities_but_no_values(target: Target) -> None:
    links: Any = enrolments(target.connect(school()))
    note = Note(note_id="n1", text="Zaphod")
    wrong = {
        "Note is not an object of Student": lambda: links.link(note, course(1)),
        "tuple is not an object of Course": lambda: links.link(student(1), ("Zaphod",)),
        "Note is neither a Student nor a Course": lambda: links.refresh(note),
        "text, not int": lambda: links.link(student(1), course(1), more={1: "Zaphod"}),
    }
    for problem, call in wrong.items():
        with pytest.raises(RequestRefused) as caught:
            call()
        assert problem in caught.value.message and "Zaphod" not in str(caught.value)
    with pytest.raises(ItemNotFound, match=r"Student\(student_id='s9'\) does not exist"):
        links.refresh(student(9, "Zaphod"))


def test_attributes_of_a_link_that_contain_themselves_are_refused() -> None:
    db = connect(school())
    people, lessons = fill(db, 1, 1)
    endless: list[Any] = []
    endless.append({"again": endless})
    with pytest.raises(RequestRefused, match="contains itself"):
        enrolments(db).link(people[0], lessons[0], more=endless)
