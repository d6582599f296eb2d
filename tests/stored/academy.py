"""The application of the fixture: a design, every pattern object, two apps of stream workers.

The script that makes the fixture and the tests that go on with it declare the same things here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from stator import (
    Db,
    Design,
    Engine,
    Entity,
    Query,
    connect,
    created,
    find,
    ident,
    large,
    read,
    ttl,
    unique,
    updated,
    version,
)
from stator.clock import Clock
from stator.patterns import (
    Counter,
    Leaderboard,
    Links,
    Lock,
    Once,
    Outbox,
    Rollup,
    Sequence,
    Series,
    Tree,
)
from stator.pipeline import (
    AuditLog,
    ParquetSink,
    Projection,
    StreamApp,
    TableSink,
    View,
    WorkerOptions,
    avg,
    count,
    latest,
    maximum,
    percentiles,
    sum_of,
    top,
)

START = 1_791_489_600.0
"""Thursday, 8 October 2026, 20:00 UTC."""
EIGHT = datetime.fromtimestamp(START, UTC)
QUICK = WorkerOptions(
    start="oldest",
    idle_seconds=0.02,
    retry_seconds=0.01,
    longest_retry_seconds=0.02,
    max_attempts=2,
)


# --- the design ---------------------------------------------------------------------------------


class Student(Entity):
    student_id: str = ident()
    email: str = unique()
    name: str
    rev: int = version()


class Course(Entity):
    course_id: str = ident()
    title: str
    made: datetime = created()
    changed: datetime = updated()


class Essay(Entity):
    essay_id: str = ident()
    text: str = large(compress="gzip", offload_over_bytes=500)
    expires: datetime | None = ttl(days=30, default=None)


class Check(Entity):
    check_id: str = ident()
    isp: str
    at: datetime
    latency_ms: float
    size: int = 0
    ok: bool = True


class Reading(Entity):
    sensor_id: str = ident()
    at: datetime = ident()
    value: Decimal


class Folder(Entity):
    folder_id: str = ident()
    name: str


@read(rps=10)
def student_by_id(student_id: str) -> Query[Student]:
    return find(Student).where(Student.student_id == student_id)


@read(rps=10)
def course_by_id(course_id: str) -> Query[Course]:
    return find(Course).where(Course.course_id == course_id)


@read(rps=10)
def essay_by_id(essay_id: str) -> Query[Essay]:
    return find(Essay).where(Essay.essay_id == essay_id)


@read(rps=10)
def check_by_id(check_id: str) -> Query[Check]:
    return find(Check).where(Check.check_id == check_id)


@read(rps=10)
def checks_of(isp: str) -> Query[Check]:
    return find(Check).where(Check.isp == isp).order_by(Check.at)


academy = Design(
    "academy",
    [Student, Course, Essay, Check],
    [student_by_id, course_by_id, essay_by_id, check_by_id, checks_of],
)


@contextmanager
def opened(folder: Path, clock: Clock) -> Iterator[tuple[Db, Engine]]:
    """The application on ``folder/data``, with its large values in ``folder/blobs``."""
    with (
        Engine.open(str(folder / "data"), clock=clock) as engine,
        connect(academy, engine, clock=clock, blobs=folder / "blobs") as db,
    ):
        yield db, engine


def student(number: int, **more: Any) -> Student:
    given: dict[str, Any] = {
        "student_id": f"s{number}",
        "email": f"s{number}@example.com",
        "name": f"Student {number}",
    }
    return Student(**(given | more))


def check(number: int, isp: str = "acme", **more: Any) -> Check:
    at = EIGHT + timedelta(minutes=10 * number)
    given: dict[str, Any] = {
        "check_id": f"c{number}",
        "isp": isp,
        "at": at,
        "latency_ms": 10.0 + number,
        "size": number,
    }
    return Check(**(given | more))


def reading(number: int, value: int | None = None) -> Reading:
    at = EIGHT + timedelta(minutes=15 * number)
    return Reading(sensor_id="s-17", at=at, value=Decimal(number if value is None else value))


# --- pattern objects ----------------------------------------------------------------------------


def page_views(db: Db) -> Counter[Db]:
    return Counter(db, "page-views", shards=4)


def nightly(db: Db) -> Lock[Db]:
    return Lock(db, "nightly", lease_seconds=30)


def payments(db: Db) -> Once[Db]:
    return Once(db, "payments", running_seconds=60)


def letters(db: Db, max_attempts: int = 3) -> Outbox[Db]:
    return Outbox(db, "letters", shards=2, max_attempts=max_attempts, retry_seconds=10)


def invoices(db: Db) -> Sequence[Db]:
    return Sequence(db, "invoices", start=1000)


def tickets(db: Db) -> Sequence[Db]:
    return Sequence(db, "tickets", block=10)


def board(db: Db) -> Leaderboard[Db]:
    return Leaderboard(db, "week-41", shards=2, histogram=100)


def files(db: Db) -> Tree[Db, Folder]:
    return Tree(db, Folder, name="files", order=Folder.name, unique_siblings=True)


def enrolments(db: Db) -> Links[Db, Student, Course]:
    return Links(db, Student, Course, copy_left=[Student.name], copy_right=[Course.title])


def readings(db: Db, shards: int = 3) -> Series[Db, Reading]:
    """Roll-ups are kept with each write."""
    return Series(
        db,
        Reading,
        by=Reading.sensor_id,
        at=Reading.at,
        bucket="day",
        shards=shards,
        keep=timedelta(days=90),
        rollups=[Rollup("hour", of=Reading.value), Rollup("day", of=Reading.value)],
    )


def streamed(db: Db) -> Series[Db, Reading]:
    """Roll-ups are kept by a worker."""
    return Series(
        db,
        Reading,
        by=Reading.sensor_id,
        at=Reading.at,
        name="streamed",
        rollups=[Rollup("hour", of=Reading.value)],
        rollups_from="stream",
    )


def monthly(db: Db) -> Series[Db, Reading]:
    return Series(db, Reading, by="sensor_id", at="at", table_per="month", name="raw")


# --- stream workers -----------------------------------------------------------------------------


def isp_hours() -> View:
    return View(
        "isp_hours",
        of=Check,
        by=[Check.isp],
        bucket=(Check.at, "hour"),
        where=Check.ok == True,  # noqa: E712 - it builds a condition
        checks=count(),
        total=sum_of(Check.size),
        latency=avg(Check.latency_ms),
        spread=percentiles(Check.latency_ms),
        worst=maximum(Check.latency_ms),
        slowest=top(2, by=Check.latency_ms),
        newest=latest(by=Check.at, fields=[Check.check_id]),
    )


def isp_sums() -> View:
    return View("isp_sums", of=Check, by=Check.isp, checks=count(), total=sum_of(Check.size))


def by_isp() -> Projection:
    return Projection(
        "by_isp", of=Check, key=Check.isp, sort=Check.latency_ms, fields=[Check.check_id]
    )


def trail() -> AuditLog:
    return AuditLog("trail", only=Check, secret="known to the tests")


def archive(folder: Path) -> ParquetSink:
    return ParquetSink("archive", folder / "archive", only=Check)


def desk(handle: Any) -> StreamApp:
    """An app with one handler, for students."""
    app = StreamApp(academy, "desk")
    app.on.any(Student, name="handled")(handle)
    return app


def summaries(folder: Path, db: Db, handle: Any) -> StreamApp:
    """An app with views, sinks, roll-ups of the stream, and a handler for checks."""
    app = StreamApp(academy, "summaries")
    for subscriber in (isp_hours(), isp_sums(), by_isp(), trail(), archive(folder)):
        app.add(subscriber)
    app.add(TableSink("mirror", db, "mirror", only=Check))
    app.roll_up(streamed, name="streamed")
    app.on.any(Check, name="watched")(handle)
    return app
