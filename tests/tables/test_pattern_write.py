"""Deletes and updates of everything a pattern finds, on every target."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from stator import (
    Design,
    Entity,
    Query,
    connect,
    find,
    ident,
    large,
    read,
    soft_delete,
    unique,
    updated,
    version,
)
from stator.clock import VirtualClock
from stator.errors import CursorRefused, RequestRefused, Throttled, UpdateRefused
from stator.patterns.unique_audit import UniqueAudit
from stator.tables.db import Db
from stator.tables.writes.pattern_write import PatternWriteResult
from stator.testing import Fault, InterceptedCall, faulty
from tests.targets import Target

from .shop import (
    T0,
    Order,
    Session,
    Status,
    User,
    count_in_status,
    order,
    orders_in_status,
    orders_of_user,
    profile,
    shop,
    user,
)


class Member(Entity):
    member_id: str = ident()
    email: str = unique()
    club: str
    points: int = 0
    rev: int = version()


class Task(Entity):
    task_id: str = ident()
    queue: str
    rank: int
    runs: int = 0
    seen: datetime = updated()


@read(rps=10, returns=50)
def members_of(club: str) -> Query[Member]:
    return find(Member).where(Member.club == club)


@read(rps=10, returns=50)
def member_by_id(member_id: str) -> Query[Member]:
    return find(Member).where(Member.member_id == member_id)


@read(rps=10, returns=50)
def tasks_by_rank(queue: str) -> Query[Task]:
    return find(Task).where(Task.queue == queue).order_by(Task.rank)


@read(rps=10, returns=50, paged=True)
def stale_tasks(queue: str) -> Query[Task]:
    return find(Task).where(Task.queue == queue).oldest_first(Task.seen)


@read(rps=10, returns=50)
def busy_tasks(queue: str, least: int) -> Query[Task]:
    return find(Task).where(Task.queue == queue).filter(Task.runs >= least)


@read(rps=10)
def task_by_id(task_id: str) -> Query[Task]:
    return find(Task).where(Task.task_id == task_id)


CLUB = Design(
    "club",
    [Member, Task],
    [members_of, member_by_id, tasks_by_rank, stale_tasks, busy_tasks, task_by_id],
)


def member(number: int, club: str = "chess", **more: Any) -> Member:
    return Member(member_id=f"m{number}", email=f"m{number}@example.com", club=club, **more)


def task(number: int, **more: Any) -> Task:
    given: dict[str, Any] = {"task_id": f"t{number:03d}", "queue": "q", "rank": number}
    return Task(**(given | more))


def run_once_more(task: Task) -> None:
    task.runs += 1


# -- deletes


def test_everything_the_pattern_finds_is_deleted_and_nothing_else(target: Target) -> None:
    db = target.connect(shop())
    db.write_many(order(n, user=1 + n % 2) for n in range(60))
    result = db.delete_where(orders_of_user("u1"))
    assert (result.found, result.written, result.skipped, result.ok) == (30, 30, 0, True)
    assert result.cursor is None
    assert list(db.fetch(orders_of_user("u1"))) == []
    assert db.count(orders_of_user("u2")) == 30
    assert db.delete_where(orders_of_user("u1")).found == 0


def test_the_async_twin_deletes_and_updates(target: Target) -> None:
    async def main() -> None:
        db = target.connect_async(shop())
        await db.write_many(order(n) for n in range(40))

        def ship(each: Order) -> None:
            each.status = Status.SHIPPED

        preview = await db.update_where(orders_of_user("u1"), ship, dry_run=True)
        assert preview.count == 40
        updated = await db.update_where(orders_of_user("u1"), ship)
        assert updated.written == 40
        assert await db.count(count_in_status(Status.SHIPPED)) == 40
        deleted = await db.delete_where(orders_of_user("u1"))
        assert deleted.written == 40
        await db.close()

    asyncio.run(main())


def test_unique_values_of_deleted_items_are_free_again(target: Target) -> None:
    db = target.connect(CLUB)
    for n in range(5):
        db.create(member(n))
    assert db.delete_where(members_of("chess")).written == 5
    db.create(Member(member_id="new", email="m3@example.com", club="chess"))
    assert UniqueAudit(db, Member).audit().ok


def test_the_entities_of_a_bundle_are_deleted_together(target: Target) -> None:
    db = target.connect(shop())
    for n in (1, 2):
        db.create(user(n))
        db.put(Session(session_id=f"s{n}", user_id=f"u{n}"))
    assert db.delete_where(profile("u1")).written == 2
    assert db.get(User, user_id="u1") is None
    assert [type(each).__name__ for each in db.fetch(profile("u2"))] == ["Session", "User"]


def test_blobs_of_deleted_items_are_deleted_or_kept(tmp_path: Path) -> None:
    class Paper(Entity):
        paper_id: str = ident()
        shelf: str
        text: str = large(compress=None, offload_over_bytes=2000)

    @read()
    def on_shelf(shelf: str) -> Query[Paper]:
        return find(Paper).where(Paper.shelf == shelf)

    @read()
    def paper(paper_id: str) -> Query[Paper]:
        return find(Paper).where(Paper.paper_id == paper_id)

    blobs = tmp_path / "blobs"
    db = connect(Design("papers", [Paper], [on_shelf, paper]), blobs=blobs)
    for shelf in ("a", "b", "c"):
        for n in range(3):
            db.create(Paper(paper_id=f"{shelf}{n}", shelf=shelf, text=shelf * 5000))

    def files() -> list[bool]:
        return [
            "kept" in path.relative_to(blobs).parts for path in blobs.rglob("*") if path.is_file()
        ]

    assert db.delete_where(on_shelf("a")).written == 3
    assert files() == [False] * 6
    assert db.delete_where(on_shelf("b"), keep_blobs=True).written == 3
    assert sorted(files()) == [False] * 3 + [True] * 3

    def rewrite(each: Paper) -> None:
        each.text = "new" * 3000

    assert db.update_where(on_shelf("c"), rewrite).written == 3
    assert sorted(files()) == [False] * 3 + [True] * 3
    assert {each.text for each in db.fetch(on_shelf("c"))} == {"new" * 3000}


# -- what other writers do meanwhile


class Meddler:
    """Acts as another writer between the read of a window and its writes."""

    def __init__(self, db: Db, when: str, act: Any) -> None:
        self._call = db.runner.transport.call
        self._when, self._act = when, act
        db.runner.transport.call = self  # type: ignore[method-assign]

    def __call__(self, operation: str, request: Any, **more: Any) -> Any:
        reply = self._call(operation, request, **more)
        if operation == self._when and self._act is not None:
            act, self._act = self._act, None
            act()
        return reply


def test_items_that_changed_after_they_were_read_are_skipped_and_counted(target: Target) -> None:
    db, other = target.connect(CLUB), target.connect(CLUB)
    for n in range(6):
        db.create(member(n))
        db.put(task(n))

    def meddle() -> None:
        with other.update(Member, member_id="m1") as each:
            each.points = 5
        other.delete(Member, member_id="m2")

    Meddler(db, "Query", meddle)
    result = db.delete_where(members_of("chess"))
    assert (result.found, result.written, result.changed, result.gone) == (6, 4, 1, 1)
    assert [each.member_id for each in other.fetch(members_of("chess"))] == ["m1"]


def test_an_item_that_no_longer_matches_is_skipped_without_a_version(target: Target) -> None:
    db, other = target.connect(CLUB), target.connect(CLUB)
    db.write_many(task(n, runs=3) for n in range(6))

    gone = other.first(task_by_id("t004"))
    assert gone is not None

    def meddle() -> None:
        other.put(task(1, runs=1))  # no longer meets the filter
        other.put(task(2, runs=9))  # changed, and still meets it
        other.put(task(3, runs=3, queue="other"))
        other.delete(gone)

    Meddler(db, "Query", meddle)
    result = db.delete_where(busy_tasks("q", 2))
    assert (result.written, result.changed + result.gone) == (3, 3)
    assert other.first(task_by_id("t001")) is not None
    assert other.first(task_by_id("t002")) is None
    assert other.first(task_by_id("t003")) is not None


def test_throttled_writes_are_retried() -> None:
    db = connect(shop(), clock=VirtualClock())
    db.write_many(order(n) for n in range(20))
    call, left = db.runner.transport.call, [10]

    def throttle(operation: str, request: Any, **more: Any) -> Any:
        if operation == "DeleteItem" and left[0]:
            left[0] -= 1
            raise Throttled("slow down")
        return call(operation, request, **more)

    db.runner.transport.call = throttle  # type: ignore[method-assign]
    result = db.delete_where(orders_of_user("u1"))
    assert (result.written, result.failures) == (20, [])


def test_failures_name_the_items_and_end_the_run_at_their_limit(target: Target) -> None:
    db = target.connect(CLUB)
    for n in range(5):
        db.create(member(n))
    db.create(member(9, club="go"))

    def same_address(each: Member) -> None:
        each.email = "m9@example.com"

    result = db.update_where(members_of("chess"), same_address)
    assert (result.found, result.written, len(result.failures)) == (5, 0, 5)
    assert {each.identity["member_id"] for each in result.failures} == {f"m{n}" for n in range(5)}
    assert result.cursor is None
    stopped = db.update_where(members_of("chess"), same_address, max_failures=2)
    assert stopped.cursor is not None
    db.delete(Member, member_id="m9")
    again = db.update_where(members_of("chess"), same_address, cursor=stopped.cursor)
    assert (again.found, again.written, len(again.failures)) == (5, 1, 4)


# -- dry runs


def test_a_dry_run_counts_and_prices_and_writes_nothing(target: Target) -> None:
    db = target.connect(shop(), measure=True)
    db.write_many(order(n, note="x" * 3000) for n in range(30))
    preview = db.delete_where(orders_of_user("u1"), dry_run=True)
    assert (preview.count, len(preview.sample)) == (30, 10)
    assert preview.sample[0] == {"order_id": "o029"}
    assert db.count(orders_of_user("u1")) == 30
    assert preview.read_units > 0
    assert preview.dollars > 0
    assert db.meter is not None
    db.delete_where(orders_of_user("u1"))
    assert db.meter.by_label["delete Order"].write_units == preview.write_units


def test_the_units_of_updates_and_guards_are_right() -> None:
    db = connect(CLUB, measure=True)
    for n in range(5):
        db.create(member(n))
    db.write_many(task(n) for n in range(10))

    def move(each: Task) -> None:
        each.rank = 1000

    def join(each: Member) -> None:
        each.club = "go"

    assert db.meter is not None
    for label, preview, run in (
        (
            "update Task",
            lambda: db.update_where(tasks_by_rank("q"), move, dry_run=True),
            lambda: db.update_where(tasks_by_rank("q"), move),
        ),
        (
            "update Member",
            lambda: db.update_where(members_of("chess"), join, dry_run=True),
            lambda: db.update_where(members_of("chess"), join),
        ),
        (
            "delete Member",
            lambda: db.delete_where(members_of("go"), dry_run=True),
            lambda: db.delete_where(members_of("go")),
        ),
    ):
        expected = preview().write_units
        assert run().written
        assert db.meter.by_label[label].write_units == expected, label


# -- continuing


def test_a_limit_ends_the_call_and_its_cursor_continues(target: Target) -> None:
    db = target.connect(CLUB)
    db.write_many(task(n) for n in range(250))
    result, calls = db.update_where(busy_tasks("q", 0), run_once_more, limit=60), 1
    while result.cursor is not None:
        result = db.update_where(busy_tasks("q", 0), run_once_more, limit=60, cursor=result.cursor)
        calls += 1
    assert calls == 5
    assert {each.runs for each in db.fetch(tasks_by_rank("q"))} == {1}


class Killed(BaseException):
    pass


def test_a_killed_run_is_continued_and_nothing_is_left_out(target: Target) -> None:
    db = target.connect(CLUB)
    db.write_many(task(n) for n in range(300))
    progress: list[PatternWriteResult] = []

    def die_later(result: PatternWriteResult) -> None:
        progress.append(replace(result))
        if len(progress) == 2:
            raise Killed

    with pytest.raises(Killed):
        db.delete_where(tasks_by_rank("q"), on_progress=die_later)
    assert [each.found for each in progress] == [100, 200]
    rest = db.delete_where(tasks_by_rank("q"), cursor=progress[0].cursor)
    assert rest.written == 100
    assert db.first(tasks_by_rank("q")) is None


def test_a_cursor_belongs_to_its_pattern_its_arguments_and_its_operation() -> None:
    db = connect(CLUB)
    db.write_many(task(n) for n in range(20))
    cursor = db.delete_where(tasks_by_rank("q"), limit=5).cursor
    with pytest.raises(CursorRefused):
        db.delete_where(tasks_by_rank("other"), cursor=cursor)
    with pytest.raises(CursorRefused):
        db.update_where(tasks_by_rank("q"), run_once_more, cursor=cursor)
    assert db.delete_where(tasks_by_rank("q"), cursor=cursor).written == 15


# -- items that move


def test_an_update_that_ends_the_match_reaches_every_item(target: Target) -> None:
    db = target.connect(shop())
    db.write_many(order(n) for n in range(150))

    def ship(each: Order) -> None:
        each.status = Status.SHIPPED

    pending = orders_in_status(Status.PENDING, T0)
    assert db.update_where(pending, ship, limit=70).cursor is not None
    assert db.update_where(pending, ship).written == 80
    assert db.count(count_in_status(Status.PENDING)) == 0
    assert db.count(count_in_status(Status.SHIPPED)) == 150


@pytest.mark.parametrize("rank", [-1, 120, 1000])
def test_items_that_move_within_the_pattern_are_updated_once(target: Target, rank: int) -> None:
    db = target.connect(CLUB)
    db.write_many(task(n) for n in range(250))

    def move(each: Task) -> None:
        each.rank = rank
        each.runs += 1

    result = db.update_where(tasks_by_rank("q"), move)
    assert result.written == 250
    assert {(each.rank, each.runs) for each in db.fetch(tasks_by_rank("q"))} == {(rank, 1)}
    with pytest.raises(RequestRefused, match="twice"):
        db.update_where(tasks_by_rank("q"), move, limit=10)


@pytest.mark.parametrize("limit", [None, 40])
def test_a_run_over_a_time_that_every_write_sets_ends(target: Target, limit: int | None) -> None:
    db = target.connect(CLUB)
    db.write_many(task(n) for n in range(250))
    cursor, calls = None, 0
    while True:
        result = db.update_where(stale_tasks("q"), run_once_more, cursor=cursor, limit=limit)
        cursor, calls = result.cursor, calls + 1
        if cursor is None:
            break
        assert calls < 20
    assert {each.runs for each in db.fetch(stale_tasks("q"))} == {1}


def test_the_pattern_limit_is_kept(target: Target) -> None:
    @read(rps=10, returns=5)
    def next_tasks(queue: str) -> Query[Task]:
        return find(Task).where(Task.queue == queue).oldest_first(Task.seen).limit(5)

    db = target.connect(Design("club2", [Task], [next_tasks, task_by_id, stale_tasks]))
    db.write_many(task(n) for n in range(20))
    assert db.update_where(next_tasks("q"), run_once_more).written == 5
    assert sorted(each.runs for each in db.fetch(stale_tasks("q"))) == [0] * 15 + [1] * 5


# -- wrong uses


def test_wrong_uses_are_refused_before_anything_is_written() -> None:
    db = connect(CLUB)
    db.write_many(task(n) for n in range(3))

    def nothing(each: Task) -> None:
        pass

    def rename(each: Task) -> None:
        each.task_id = "new"

    with pytest.raises(RequestRefused, match="changes nothing"):
        db.update_where(tasks_by_rank("q"), nothing)
    with pytest.raises(UpdateRefused, match="part of the item's key"):
        db.update_where(tasks_by_rank("q"), rename)
    with pytest.raises(RequestRefused, match="declared pattern"):
        db.delete_where(find(Task))
    with pytest.raises(RequestRefused, match="declared pattern"):
        db.update_where(find(Task), run_once_more)
    with pytest.raises(RequestRefused, match="parallel=0"):
        db.delete_where(tasks_by_rank("q"), parallel=0)
    with pytest.raises(RequestRefused, match="limit=0"):
        db.delete_where(tasks_by_rank("q"), limit=0)
    with pytest.raises(RequestRefused, match="one entity"):
        connect(shop()).update_where(profile("u1"), run_once_more)  # type: ignore[call-overload]
    with pytest.raises(RequestRefused, match="counts items"):
        connect(shop()).delete_where(count_in_status(Status.PENDING))  # type: ignore[call-overload]
    assert db.count(busy_tasks("q", 0)) == 3


class Ticket(Entity):
    ticket_id: str = ident()
    queue: str


class Shelved(Entity):
    shelved_id: str = ident()
    queue: str
    deleted_at: datetime | None = soft_delete()


@read()
def tickets(queue: str) -> Query[Ticket]:
    return find(Ticket).where(Ticket.queue == queue)


@read()
def shelved(queue: str) -> Query[Shelved]:
    return find(Shelved).where(Shelved.queue == queue)


LOST = [
    Fault("duplicated"),
    Fault("lost answer"),
    Fault("server error", carried_out=True),
]


@pytest.mark.parametrize("fault", LOST)
def test_a_delete_whose_answer_was_lost_counts_as_written(fault: Fault) -> None:
    db = connect(
        Design("lost", [Ticket, Shelved, Member], [tickets, shelved, members_of, member_by_id]),
        clock=VirtualClock(),
    )
    found: dict[Any, list[Any]] = {
        tickets("q"): [Ticket(ticket_id=str(at), queue="q") for at in range(3)],
        shelved("q"): [Shelved(shelved_id=str(at), queue="q") for at in range(3)],
        members_of("chess"): [member(at) for at in range(3)],
    }
    for query, entities in found.items():
        db.write_many(entities)
        lost: set[str] = set()

        def decide(call: InterceptedCall, lost: set[str] = lost) -> Fault | None:
            if call.operation in ("GetItem", "Query", "BatchGetItem"):
                return None
            text = str(call.request.get("Key") or call.request["TransactItems"][0])
            return None if text in lost else lost.add(text) or fault  # type: ignore[func-returns-value]

        with faulty(db, decide):
            result = db.delete_where(query)
        assert (result.found, result.written, result.skipped, result.ok) == (3, 3, 0, True)
        assert len(lost) >= 3
        assert db.all(query) == []
