"""An application of version 0.1, killed while it worked, goes on with all that it had stored."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from stator import Db, Engine
from stator.clock import VirtualClock
from stator.errors import IdempotentParameterMismatch, PayloadDiffers, UniqueTaken
from stator.patterns import BlobAudit, UniqueAudit
from stator.pipeline import RebuildOptions
from stator.pipeline.sinks.audit_chain import Seal
from stator.pipeline.sinks.parquet import read_changes
from stator.pipeline.workers.handlers.parked_retry import ParkedRetry

from .academy import (
    EIGHT,
    QUICK,
    Check,
    Course,
    Essay,
    Folder,
    Reading,
    Student,
    board,
    by_isp,
    check,
    checks_of,
    desk,
    enrolments,
    files,
    invoices,
    isp_hours,
    isp_sums,
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
from .packing import expected, unpack

LATER = 200.0
"""Seconds after the kill: longer than every lease that the dead process held."""
HOUR = timedelta(hours=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return unpack("application", tmp_path)


@pytest.fixture
def clock() -> StoredClock:
    return StoredClock(expected("application")["now"] + LATER)


@pytest.fixture
def opening(folder: Path, clock: StoredClock) -> Iterator[tuple[Db, Engine]]:
    with opened(folder, clock) as found:
        yield found


@pytest.fixture
def db(opening: tuple[Db, Engine]) -> Db:
    return opening[0]


def test_every_item_is_as_it_was_recorded(folder: Path) -> None:
    """But for leases of the workers that were alive, which renewed them up to the kill."""
    recorded = expected("application")

    def settled(items: list[Item]) -> list[Item]:
        return [item for item in items if item.get("PK") != {"S": "WORK#summaries"}]

    with opened(folder, VirtualClock(recorded["now"])) as (_, engine):
        tables = engine.call("ListTables", {})["TableNames"]
        assert tables == list(recorded["items"])
        for name in tables:
            assert settled(scan(engine, name)) == settled(recorded["items"][name]), name


# --- the data layer -----------------------------------------------------------------------------


def test_entities_are_decoded_and_their_versions_go_on(db: Db) -> None:
    one = db.get(Student, student_id="s1")
    assert one is not None and (one.name, one.rev) == ("Student One", 2)
    one.name = "Student Uno"
    db.put(one)
    assert one.rev == 3
    algebra = db.get(Course, course_id="k1")
    assert algebra is not None and EIGHT <= algebra.made == algebra.changed < EIGHT + HOUR
    assert db.get(Check, check_id="c20") == check(20, size=2000)
    assert db.get(Check, check_id="c1") is None


def test_unique_values_stay_taken_and_freed_ones_free(db: Db) -> None:
    assert UniqueAudit(db, Student).audit().ok
    for taken in ("s1@example.com", "moved@example.com"):
        with pytest.raises(UniqueTaken):
            db.create(student(90, email=taken))
    db.create(student(90, email="s2@example.com"))
    db.delete(Student, student_id="s2")
    db.create(student(91, email="moved@example.com"))
    assert UniqueAudit(db, Student).audit().ok


def test_a_transaction_with_a_stored_token_is_not_carried_out_again(db: Db) -> None:
    db.delete(Student, student_id="s17")
    with db.transaction(token="payment-17") as tx:
        tx.create(student(17))
    assert db.get(Student, student_id="s17") is None
    with pytest.raises(IdempotentParameterMismatch), db.transaction(token="payment-17") as tx:
        tx.create(student(18))


def test_large_values_are_unpacked(db: Db, folder: Path) -> None:
    texts = {
        "short": "as it is",
        "packed": "packed " * 300,
        "blob": "".join(str(number**3) for number in range(900)),
    }
    for name, text in texts.items():
        essay = db.get(Essay, essay_id=name)
        assert essay is not None and essay.text == text
    assert [path for path in (folder / "blobs").rglob("*") if path.is_file()]
    assert BlobAudit(db, Essay).unnamed(older_than_seconds=-1e9) == []
    db.delete(Essay, essay_id="blob")
    assert not [path for path in (folder / "blobs").rglob("*") if path.is_file()]


def test_cursors_lead_on(db: Db) -> None:
    cursors = expected("application")["cursors"]
    page = db.page(checks_of("acme"), limit=20, cursor=cursors["checks"])
    assert [each.check_id for each in page.items] == [
        "c2",
        "c3",
        "c4",
        "c5",
        "c7",
        "c9",
        "c11",
        "c20",
    ]
    more = readings(db).page("s-17", limit=20, cursor=cursors["readings"])
    assert [int(each.value) for each in more.items] == [7, 6, 5, 4, 3, 2, 1, 0]


# --- pattern objects ----------------------------------------------------------------------------


def test_a_counter_counts_on(db: Db) -> None:
    assert page_views(db).value() == 16
    page_views(db).add(5)
    assert page_views(db).compact() == 15
    assert page_views(db).value() == 21


def test_a_lock_whose_holder_died_is_taken_with_a_higher_fence(db: Db) -> None:
    assert nightly(db).holder() is None
    assert nightly(db).acquire().fence == 3


def test_what_was_done_once_is_answered_from_the_record(db: Db) -> None:
    def fail() -> Any:
        raise AssertionError("it was carried out again")

    assert payments(db).run("order-1", fail, {"cents": 500}) == {"receipt": 1}
    with pytest.raises(PayloadDiffers):
        payments(db).run("order-1", fail, {"cents": 501})
    assert payments(db).seen("message-1")
    assert not payments(db).seen("message-2")


def test_what_a_dead_process_had_begun_is_taken_over(db: Db) -> None:
    assert payments(db).run("order-2", lambda: 7) == 7
    assert payments(db).run("order-2", lambda: 8) == 7


def test_messages_are_delivered_in_order_and_once(db: Db) -> None:
    got: list[tuple[Any, int]] = []

    def send(message: Any) -> None:
        got.append((message.body, message.attempts))

    assert letters(db).count() == 3
    assert letters(db).relay(send).sent == 3
    assert sorted(got) == [("behind it", 0), ("failed", 1), ("without a key", 0)]
    assert got.index(("failed", 1)) < got.index(("behind it", 0))
    box = letters(db)
    with db.transaction() as tx:
        box.add(tx, topic="letters", body="next", key="a")
    [parked] = letters(db).parked()
    assert (parked.body, parked.error) == ("parked", "ValueError: not parked")
    assert letters(db).retry(parked)
    got.clear()
    assert letters(db).relay(send).sent == 2
    assert sorted(got) == [("next", 0), ("parked", 0)]
    assert letters(db).relay(send).attempted == 0


def test_sequences_go_on_behind_the_last_number(db: Db) -> None:
    assert invoices(db).current() == 1003
    assert invoices(db).next() == 1004
    made = invoices(db).create(lambda n: Course(course_id=f"k{n}", title="numbered"))
    assert made.course_id == "k1005"
    assert tickets(db).next() == 11


def test_a_leaderboard_keeps_its_order(db: Db) -> None:
    def shown(n: int = 10) -> list[tuple[str, int]]:
        return [(each.member, int(each.score)) for each in board(db).top(n)]

    assert shown() == [("bob", 350), ("anna", 320), ("dora", 320), ("cleo", 90)]
    board(db).add_score("bob", 200, once="game-1")  # was carried out before
    assert [board(db).rank(member) for member in ("bob", "dora", "cleo")] == [1, 3, 4]
    board(db).add_score("cleo", 300)
    board(db).set_score("eve", 10)
    assert board(db).remove("anna")
    assert shown() == [("cleo", 390), ("bob", 350), ("dora", 320), ("eve", 10)]
    assert [board(db).rank(member) for member in ("cleo", "dora", "eve")] == [1, 3, 4]


def test_a_tree_is_right_before_and_after_its_jobs_are_finished(db: Db) -> None:
    tree = files(db)

    def shown() -> list[tuple[int, str]]:
        return [(node.level, node.entity.name) for node in tree.descendants()]

    def path(folder: str) -> str:
        return "/".join(node.entity.name for node in tree.path(folder))

    left = [
        (1, "home"), (1, "work"), (2, "photos"), (3, "2025"), (3, "2026"), (4, "may"),
    ]  # fmt: skip
    assert shown() == left
    assert path("may") == "work/photos/2026/may"
    assert tree.resume() == 2
    assert tree.resume() == 0
    assert shown() == left
    assert path("may") == "work/photos/2026/may"
    assert all(tree.get(gone) is None for gone in ("old", "older", "oldest"))
    tree.add(Folder(folder_id="june", name="june"), "2026")
    tree.move("2026", "home")
    assert path("june") == "home/2026/june"
    assert tree.delete("work") == 3
    assert tree.count() == 4


def test_links_are_found_from_both_ends_and_refreshed(db: Db) -> None:
    links = enrolments(db)
    assert [(link.right, link.copy["title"]) for link in links.of_left("s1")] == [
        ("k1", "Algebra"),
        ("k2", "Logic"),
    ]
    assert [(link.left, link.copy["name"], link.attributes) for link in links.of_right("k1")] == [
        ("s1", "Student 1", {"grade": 1}),
        ("s2", "Student 2", {"grade": 2}),
    ]
    assert links.refresh(left="s1") == 2
    assert [link.copy["name"] for link in links.of_right("k2")] == ["Student One"]
    student, course = db.get(Student, student_id="s3"), db.get(Course, course_id="k2")
    assert student is not None and course is not None
    links.link(student, course, grade=3)
    links.unlink("s1", "k2")
    assert [link.left for link in links.of_right("k2")] == ["s3"]
    assert links.unlink_all(left="s2") == 1
    assert links.count(right="k1") == 1


# --- series -------------------------------------------------------------------------------------


def test_a_series_is_read_over_all_the_shards_it_ever_had(db: Db) -> None:
    series = readings(db)
    found = list(series.range("s-17", EIGHT, EIGHT + 4 * HOUR, newest_first=False))
    assert found == [reading(number) for number in range(12)]
    assert [int(each.value) for each in series.latest("s-17", 2)] == [11, 10]
    series.add(reading(3))  # the same again, under another number of shards
    series.add(reading(12))
    assert readings(db, shards=6).count("s-17") == 13


def test_roll_ups_of_a_series_go_on(db: Db) -> None:
    hours = readings(db).rollup("hour", of=Reading.value)

    def shown() -> list[tuple[int | Decimal, ...]]:
        found = hours.range("s-17", EIGHT, EIGHT + 4 * HOUR)
        return [(each.count, each.sum, each.min, each.last) for each in found]

    assert shown() == [(4, 6, 0, 3), (4, 22, 4, 7), (4, 38, 8, 11)]
    readings(db).add(reading(12))
    readings(db).replace(reading(0, 50))
    readings(db).remove(reading(4))
    assert shown() == [(4, 56, 1, 3), (3, 18, 5, 7), (4, 38, 8, 11), (1, 12, 12, 12)]
    [day, *_] = (
        readings(db)
        .rollup("day", of=Reading.value)
        .range("s-17", EIGHT - 20 * HOUR, EIGHT + 20 * HOUR)
    )
    assert (day.count, day.sum, day.max) == (12, Decimal(124), Decimal(50))
    assert hours.rebuild("s-17", EIGHT, EIGHT + 4 * HOUR) == 0


def test_tables_of_a_series_are_known_and_added_to(db: Db) -> None:
    series = monthly(db)
    assert [name[-7:] for name in series.tables()] == ["2026-09", "2026-10"]
    series.add(reading(0, 5))
    assert [int(each.value) for each in series.range("s-17", newest_first=False)] == [9, 10, 5]


# --- stream workers -----------------------------------------------------------------------------


def test_a_stopped_worker_goes_on_from_its_checkpoint(db: Db) -> None:
    """Nothing is repeated, nothing is lost, and a parked item stays parked with its new change."""
    told: list[tuple[str, str]] = []
    app = desk(lambda change: told.append((change.kind, change.new.student_id)))
    with app.start(db, QUICK) as running:
        running.catch_up()
    assert sorted(told) == [("INSERT", "s5"), ("INSERT", "s6")]
    retrying = ParkedRetry(db.context, app)
    [parked] = db.run(retrying.parking.keys())
    assert "s4" in parked.key
    assert (parked.count, parked.handler, parked.error) == (2, "handled", "ValueError: not s4")
    told.clear()
    retried = db.run(retrying.retry(parked.mark))
    assert retried is not None and (retried.error, retried.handled) == (None, 2)
    assert told == [("INSERT", "s4"), ("MODIFY", "s4")]
    told.clear()
    db.create(student(7))
    db.delete(Student, student_id="s3")
    with desk(lambda change: told.append((change.kind, "any"))).start(db, QUICK) as running:
        running.catch_up()
    assert sorted(told) == [("INSERT", "any"), ("REMOVE", "any")]


def hours_shown(db: Db) -> dict[str, list[Any]]:
    """Everything the view tells, by group."""
    return {
        isp: [
            (
                (row.at - EIGHT) // HOUR,
                row.checks,
                row.total,
                row.latency,
                row.spread.count,
                row.worst,
                [each.check_id for each in row.slowest],
                row.newest.check_id,
            )
            for row in isp_hours().on(db).all(isp=isp)
        ]
        for isp in ("acme", "other")
    }


STORED_HOURS = {
    "acme": [
        (0, 5, 114, 12.8, 5, 15.0, ["c5", "c4"], "c5"),
        (1, 3, 27, 19.0, 3, 21.0, ["c11", "c9"], "c11"),
        (3, 1, 2000, 30.0, 1, 30.0, ["c20"], "c20"),
    ],
    "other": [(1, 3, 24, 18.0, 3, 20.0, ["c10", "c8"], "c10")],
}


def sums_shown(db: Db) -> dict[str, tuple[int, int]]:
    rows = {isp: isp_sums().on(db).get(isp=isp) for isp in ("acme", "other")}
    return {isp: (row.checks, row.total) for isp, row in rows.items() if row is not None}


def copies_shown(db: Db) -> list[str]:
    return [row.check_id for row in by_isp().on(db).find(isp="acme")]


def test_views_tell_what_they_told(db: Db) -> None:
    assert hours_shown(db) == STORED_HOURS
    assert sums_shown(db) == {"acme": (9, 2141), "other": (3, 24)}
    assert copies_shown(db) == ["c0", "c2", "c3", "c4", "c5", "c7", "c9", "c11", "c20"]
    assert isp_hours().on(db).groups() == [{"isp": "acme"}, {"isp": "other"}]


def test_a_batch_without_a_checkpoint_is_handled_again_and_counted_once(
    db: Db, folder: Path
) -> None:
    """The dead worker had counted the changes of c20 and not got to its checkpoint."""
    told: list[tuple[str, str]] = []
    app = summaries(folder, db, lambda change: told.append((change.kind, change.new.check_id)))
    with app.start(db, QUICK) as running:
        running.catch_up()
    assert told == [("INSERT", "c20"), ("MODIFY", "c20")]
    assert hours_shown(db) == STORED_HOURS
    assert sums_shown(db) == {"acme": (9, 2141), "other": (3, 24)}
    assert trail().verify(db).problems == []


def test_views_and_sinks_go_on_with_new_changes(
    db: Db, opening: tuple[Db, Engine], folder: Path
) -> None:
    seal = Seal.loads(expected("application")["seal"])
    with summaries(folder, db, lambda change: None).start(db, QUICK) as running:
        db.put(check(0, size=1))  # was 100
        db.delete(Check, check_id="c5")
        db.put(check(11, isp="other"))
        streamed(db).add(reading(3))
        streamed(db).remove(reading(0))
        running.catch_up()
    assert hours_shown(db) == {
        "acme": [
            (0, 4, 10, 12.25, 4, 14.0, ["c4", "c3"], "c4"),
            (1, 2, 16, 18.0, 2, 19.0, ["c9", "c7"], "c9"),
            (3, 1, 2000, 30.0, 1, 30.0, ["c20"], "c20"),
        ],
        "other": [(1, 4, 35, 18.75, 4, 21.0, ["c11", "c10"], "c11")],
    }
    assert sums_shown(db) == {"acme": (7, 2026), "other": (4, 35)}
    assert copies_shown(db) == ["c0", "c2", "c3", "c4", "c7", "c9", "c20"]
    [hour] = streamed(db).rollup("hour", of=Reading.value).range("s-17", EIGHT, EIGHT + HOUR)
    assert (hour.count, hour.sum) == (3, Decimal(6))
    assert (hour.min, hour.max) == (Decimal(1), Decimal(3))
    assert trail().verify(db, since=seal).problems == []
    kinds = [entry.kind for entry in trail().history(db, Check, check_id="c0")]
    assert kinds == ["INSERT", "MODIFY", "MODIFY"]
    archived = [row["_id"] for row in read_changes(folder / "archive")]
    assert len(archived) == len(set(archived)) == 19  # sixteen before the kill, and three
    check_mirror(opening[1], db)


def check_mirror(engine: Engine, db: Db) -> None:
    """The table that a sink fills has the checks, and tombstones of those deleted."""
    mirrored = {item["PK"]["S"]: item for item in scan(engine, "mirror")}
    deleted = {key for key, item in mirrored.items() if "_deleted" in item}
    assert deleted == {"CHECK#c1", "CHECK#c5"}
    stored = {f"CHECK#{each.check_id}" for each in db.scan(Check, allow=True)}
    assert mirrored.keys() - deleted == stored


def test_a_rebuild_whose_builder_died_is_begun_anew(db: Db, folder: Path) -> None:
    options = RebuildOptions(settle_seconds=0.1, grace_seconds=0.1)
    with summaries(folder, db, lambda change: None).start(db, QUICK) as running:
        running.catch_up()
        rebuilt = by_isp().on(db).rebuild(options)
        assert (rebuilt.generation, rebuilt.unreadable) == (3, 0)
        db.put(check(30, latency_ms=1.0))
        running.catch_up()
    assert copies_shown(db) == ["c30", "c0", "c2", "c3", "c4", "c5", "c7", "c9", "c11", "c20"]
