"""A design with students and courses, for the tests of links."""

from __future__ import annotations

from datetime import datetime

from stator import Design, Entity, Query, find, ident, read, updated, version
from stator.design.design import Layout


class Student(Entity):
    student_id: str = ident()
    name: str
    nick: str | None = None
    rev: int = version()


class Course(Entity):
    course_id: str = ident()
    title: str
    room: int = 0
    changed: datetime = updated()


class Note(Entity):
    note_id: str = ident()
    text: str


@read(rps=10)
def student_by_id(student_id: str) -> Query[Student]:
    return find(Student).where(Student.student_id == student_id)


@read(rps=10)
def course_by_id(course_id: str) -> Query[Course]:
    return find(Course).where(Course.course_id == course_id)


@read(rps=10)
def note_by_id(note_id: str) -> Query[Note]:
    return find(Note).where(Note.note_id == note_id)


def school(layout: Layout = "single-table") -> Design:
    return Design(
        "school",
        [Student, Course, Note],
        [student_by_id, course_by_id, note_by_id],
        volumes={Student: 1000, Course: 100, Note: 100},
        layout=layout,
    )
