"""Sorts in memory and orders of mixed directions: the order, and what is refused."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from stator import Design, Entity, Query, connect, descending, distinct, find, ident, read
from stator.errors import RequestRefused
from stator.tables.db import Db
from tests.targets import Target


class Task(Entity):
    board: str = ident()
    task_id: str = ident()
    title: str
    rank: int
    due: int | None = None
    done: bool = False


@read(rps=5)
def by_rank(board: str) -> Query[Task]:
    return find(Task).where(Task.board == board).order_by(descending(Task.rank), Task.title)


@read(rps=5)
def by_due(board: str) -> Query[Task]:
    return find(Task).where(Task.board == board).newest_first(Task.due)


@read(rps=5)
def open_first(board: str) -> Query[Task]:
    return find(Task).where(Task.board == board).order_by(Task.done, descending(Task.title))


@read(rps=5)
def titles(board: str) -> Any:
    mine = find(Task).where(Task.board == board).order_by(descending(Task.title))
    return mine.only(Task.title)


@read(rps=500, returns=20)
def urgent(done: bool, limit: int) -> Query[Task]:
    of = find(Task).where(Task.done == done)
    return of.order_by(descending(Task.rank), Task.title).limit(limit)


DESIGN = Design(
    "board",
    [Task],
    [by_rank, by_due, open_first, titles],
    volumes={Task: 100_000},
    facts=[distinct(Task.board, values=2_000)],
)
MIXED = Design("board", [Task], [urgent], volumes={Task: 5_000_000})


def tasks(count: int) -> list[Task]:
    chance = random.Random(count)
    return [
        Task(
            board="b",
            task_id=f"t{at:04d}",
            title=chance.choice("abcdefgh") * chance.randrange(1, 4) + f"{at:04d}",
            rank=chance.randrange(-3, 12),
            due=chance.choice([None, 1, 2, 30, 400]),
            done=chance.random() < 0.5,
        )
        for at in range(count)
    ]


def stored(target: Target, design: Design, made: list[Task]) -> Db:
    db = target.connect(design)
    assert db.write_many(made).ok
    return db


def shown(found: Any) -> list[tuple[int, str]]:
    return [(each.rank, each.title) for each in found]


@pytest.mark.parametrize("count", [0, 1, 40])
def test_a_sort_in_memory_has_the_order_of_the_pattern(target: Target, count: int) -> None:
    made = tasks(count)
    db = stored(target, DESIGN, made)
    assert all(db.context.schema.pattern(name).in_memory for name in ("by_rank", "by_due"))
    wanted = sorted(made, key=lambda each: (-each.rank, each.title))
    assert shown(db.fetch(by_rank("b"))) == shown(wanted)
    assert shown(db.all(by_rank("b"))) == shown(wanted)
    dues = [each.due for each in db.fetch(by_due("b"))]
    assert dues == sorted((each.due for each in made if each.due is not None), reverse=True)
    opened = sorted(sorted(made, key=lambda each: each.title, reverse=True), key=lambda t: t.done)
    assert shown(db.fetch(open_first("b"))) == shown(opened)
    assert db.all(titles("b")) == sorted(((each.title,) for each in made), reverse=True)
    assert db.count(by_rank("b")) == count


def test_far_more_items_than_planned_are_still_sorted() -> None:
    with connect(DESIGN, ":memory:") as db:
        db.ensure()
        made = tasks(6_000)
        for each in made:
            each.title += "x" * 400  # several pages of 1 MB
        assert db.write_many(made).ok
        wanted = sorted(made, key=lambda each: (-each.rank, each.title))
        assert shown(db.fetch(by_rank("b"))) == shown(wanted)


def test_a_part_of_a_sort_in_memory_is_refused(target: Target) -> None:
    db = stored(target, DESIGN, tasks(3))
    calls: list[Any] = [
        lambda: db.page(by_rank("b"), limit=2),
        lambda: db.all(by_rank("b"), limit=2),
        lambda: list(db.fetch(by_rank("b"), limit=2)),
        lambda: db.first(by_rank("b")),
        lambda: db.delete_where(by_rank("b"), limit=2),
    ]
    for call in calls:
        with pytest.raises(RequestRefused, match="planned to be sorted in memory") as refused:
            call()
        assert "@read(paged=True)" in str(refused.value.hint)
    assert db.count(by_rank("b")) == 3, "nothing was deleted"
    db.delete_where(by_rank("b"))
    assert db.count(by_rank("b")) == 0


def test_mixed_directions_come_in_order_in_pages_and_backward(target: Target) -> None:
    made = tasks(60)
    db = stored(target, MIXED, made)
    assert not db.context.schema.pattern("urgent").in_memory
    wanted = shown(sorted((t for t in made if t.done), key=lambda each: (-each.rank, each.title)))
    assert shown(db.fetch(urgent(True, 100))) == wanted
    assert shown(db.fetch(urgent(True, 7))) == wanted[:7]
    pages, cursor, last = [], None, None
    while True:
        page = db.page(urgent(True, 100), limit=8, cursor=cursor)
        pages.append(shown(page.items))
        last, cursor = page, page.cursor
        if cursor is None:
            break
    assert [each for page in pages for each in page] == wanted
    assert last.previous is not None
    assert shown(db.page(urgent(True, 100), limit=8, cursor=last.previous)) == pages[-2]


def test_shards_of_mixed_directions_are_merged_in_order() -> None:
    design = Design("board", [Task], [urgent], volumes={Task: 5_000_000}, writes={Task: 9_000})
    with connect(design, ":memory:") as db:
        db.ensure()
        assert db.context.schema.pattern("urgent").steps[0].shards > 1
        made = tasks(60)
        assert db.write_many(made).ok
        wanted = sorted((t for t in made if t.done), key=lambda each: (-each.rank, each.title))
        assert shown(db.fetch(urgent(True, 25))) == shown(wanted)[:25]


def test_asyncio_sorts_the_same_way(target: Target) -> None:
    made = tasks(20)

    async def main() -> None:
        async with target.connect_async(DESIGN) as db:
            assert (await db.write_many(made)).ok
            wanted = sorted(made, key=lambda each: (-each.rank, each.title))
            assert shown([each async for each in db.fetch(by_rank("b"))]) == shown(wanted)
            with pytest.raises(RequestRefused, match="sorted in memory"):
                await db.page(by_rank("b"), limit=2)

    asyncio.run(main())
