"""Leaderboards have exact scores, ordered like a sorted list."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator import connect
from stator.clock import VirtualClock
from stator.errors import (
    ConfigurationError,
    CursorRefused,
    OutcomeUnknown,
    ReplyLost,
    RequestRefused,
)
from stator.patterns.leaderboard.leaderboard import Leaderboard
from stator.tables.db import Db
from tests.patterns.crashing import Form, crash_everywhere, finished
from tests.patterns.faults import with_faults
from tests.tables.shop import shop
from tests.targets import Target


def names(board: Leaderboard[Db], n: int = 100) -> list[tuple[str, int]]:
    found = board.top(n, consistent=True)
    assert [standing.rank for standing in found] == list(range(1, len(found) + 1))
    return [(standing.member, int(standing.score)) for standing in found]


@pytest.mark.parametrize("histogram", [None, 10])
def test_the_highest_score_comes_first_and_of_equals_the_earliest(
    target: Target, histogram: int | None
) -> None:
    clock = VirtualClock()
    board = Leaderboard(
        target.connect(shop(), clock=clock), "weekly", shards=3, histogram=histogram
    )
    assert (
        board.top() == []
        and board.count() == 0
        and board.rank("anna") is None
        and board.around("anna") == []
    )
    for member, score in [
        ("anna", 50),
        ("bob", 70),
        ("cleo", 50),
        ("dan", -5),
        ("eve", 120),
        ("fay", 0),
    ]:
        clock.advance(1)
        board.set_score(member, score)
    assert names(board) == [
        ("eve", 120),
        ("bob", 70),
        ("anna", 50),
        ("cleo", 50),
        ("fay", 0),
        ("dan", -5),
    ]
    clock.advance(1)
    board.add_score("anna", 1)
    board.add_score("anna", -1)  # the old score again, but later than cleo's
    board.set_score("cleo", 50)  # no change, and no new time
    assert names(board, 4) == [("eve", 120), ("bob", 70), ("cleo", 50), ("anna", 50)]
    assert [board.rank(member, consistent=True) for member in ("eve", "cleo", "anna", "dan")] == [
        1,
        3,
        4,
        6,
    ]
    assert [(each.member, each.rank) for each in board.around("cleo", 1)] == [
        ("bob", 2),
        ("cleo", 3),
        ("anna", 4),
    ]
    assert [(each.member, each.rank) for each in board.around("eve", 2)] == [
        ("eve", 1),
        ("bob", 2),
        ("cleo", 3),
    ]
    assert board.count() == 6
    assert board.remove("bob") and not board.remove("bob")
    assert (
        board.rank("anna", consistent=True) == 3
        and board.get("bob") is None
        and board.count(consistent=True) == 5
    )
    standing = board.get("eve")
    assert standing is not None and (standing.score, standing.rank) == (Decimal(120), None)
    assert standing.since == datetime.fromtimestamp(clock.now() - 2, UTC)


def test_threads_add_scores_and_every_point_counts(target: Target) -> None:
    board = Leaderboard(target.connect(shop()), "weekly", shards=2, histogram=5)
    members = ("anna", "bob", "cleo")

    def play(amount: int) -> None:
        for _ in range(4):
            for member in members:
                board.add_score(member, amount)

    threads = [threading.Thread(target=play, args=(amount,)) for amount in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(names(board)) == [(member, 24) for member in members]
    assert board.count(consistent=True) == 3
    assert sorted(board.rank(member, consistent=True) or 0 for member in members) == [1, 2, 3]


def test_asyncio_tasks_add_scores_exactly(target: Target) -> None:
    async def main() -> None:
        async with target.connect_async(shop()) as db:
            board = Leaderboard(db, "weekly", shards=4)
            await asyncio.gather(
                *(board.add_score(f"m{number % 4}", number) for number in range(12))
            )
            found = await board.top(2)
            assert [(each.member, each.score) for each in found] == [
                ("m3", Decimal(21)),
                ("m2", Decimal(18)),
            ]
            assert await board.rank("m0") == 4

    asyncio.run(main())


def test_the_number_of_shards_can_be_raised(target: Target) -> None:
    db = target.connect(shop())
    narrow = Leaderboard(db, "weekly", shards=1, histogram=10)
    for number in range(10):
        narrow.set_score(f"m{number}", number)
    wide = Leaderboard(db, "weekly", shards=5, histogram=10)
    for number in range(5, 15):
        wide.add_score(f"m{number}", 100)
    expected = [("m14", 100)]
    for board in (wide, narrow, Leaderboard(db, "weekly", shards=2, histogram=10)):
        found = names(board)
        assert len(found) == 15 == board.count(consistent=True)
        assert found[:5] == [(f"m{number}", 100 + number) for number in range(9, 4, -1)]
        assert sorted(found[5:10])[-1:] == expected
        assert board.rank("m4", consistent=True) == 11 and board.rank("m0", consistent=True) == 15


def test_a_crash_at_any_call_leaves_the_board_consistent(form: Form) -> None:
    db = connect(shop())
    number = 0

    def work(dying: Any) -> Iterator[Any]:
        board = Leaderboard(dying, f"b{number}", shards=2, histogram=10)
        yield board.add_score("anna", 15, once="first")
        yield board.add_score("anna", 8, once="second")
        yield board.set_score("bob", 20)
        yield board.remove("bob")

    def again() -> None:
        nonlocal number
        finished(work(db))
        board = Leaderboard(db, f"b{number}", shards=2, histogram=10)
        assert names(board) == [("anna", 23)]
        assert board.count() == 1 and board.rank("anna") == 1
        number += 1

    assert crash_everywhere(db, work, again, form=form) >= 16


def test_an_addition_with_once_counts_once_although_replies_are_lost() -> None:
    db = connect(shop())
    board = Leaderboard(db, "weekly")

    def after(number: int, operation: str, request: Mapping[str, Any]) -> None:
        if operation == "TransactWriteItems" and number % 2:
            raise ReplyLost("no answer")

    with_faults(db, after=after)
    for number in range(20):
        for _ in range(5):
            try:
                board.add_score("anna", number, once=f"game-{number}")
            except OutcomeUnknown:
                continue
            break
    assert names(board) == [("anna", 190)]


def test_an_estimated_rank_is_close() -> None:
    board = Leaderboard(connect(shop()), "weekly", histogram=10)
    for number in range(100):
        board.set_score(f"m{number}", number)
    for number in (0, 37, 99):
        estimate = board.rank(f"m{number}", exact=False)
        assert estimate is not None and abs(estimate - (100 - number)) <= 5
    assert "estimated from the histogram alone" in str(board.explain())


def test_invalid_arguments_are_refused() -> None:
    db = connect(shop())
    board = Leaderboard(db, "weekly")
    with pytest.raises(RequestRefused, match="histogram"):
        board.rank("anna", exact=False)
    for score in (float("nan"), float("inf"), Decimal("1." + "1" * 40)):
        with pytest.raises(RequestRefused):
            board.set_score("anna", score)
    board.set_score("anna", Decimal("1e30"))
    with pytest.raises(RequestRefused):
        board.add_score("anna", Decimal("1e-20"))  # the sum has too many digits
    for options in ({"shards": 0}, {"histogram": 0}, {"shards": 101}):
        with pytest.raises(ConfigurationError):
            Leaderboard(db, "weekly", **options)
    other = Leaderboard(db, "weekly", histogram=10)
    for refused in (lambda: other.set_score("bob", 1), other.top):
        with pytest.raises(ConfigurationError, match="created with histogram=None"):
            refused()
    with pytest.raises(RequestRefused):
        board.top(0)
    assert "exact; counts all better entries" in str(board.explain())


_steps = st.lists(
    st.tuples(
        st.sampled_from("abcdef"),
        st.sampled_from(["set", "add", "remove"]),
        st.one_of(st.integers(-30, 30), st.decimals(-30, 30, places=1)),
    ),
    max_size=30,
)


@settings(max_examples=60)
@given(_steps, st.sampled_from([None, 7, Decimal("0.5")]), st.integers(1, 3))
def test_a_board_behaves_like_a_sorted_list(
    steps: list[tuple[str, str, int | Decimal]], histogram: int | Decimal | None, shards: int
) -> None:
    clock = VirtualClock()
    board = Leaderboard(connect(shop(), clock=clock), "weekly", shards=shards, histogram=histogram)
    model: dict[str, tuple[Decimal, int]] = {}
    for at, (member, action, amount) in enumerate(steps):
        clock.advance(1)
        if action == "remove":
            assert board.remove(member) == (model.pop(member, None) is not None)
            continue
        old = model.get(member, (None, 0))
        new = Decimal(amount) + (old[0] or 0 if action == "add" else 0)
        (board.set_score if action == "set" else board.add_score)(member, amount)
        if new != old[0]:
            model[member] = (new, at)
    order = sorted(model, key=lambda member: (-model[member][0], model[member][1]))
    found = board.top(10)
    assert [(each.member, each.score) for each in found] == [
        (member, model[member][0]) for member in order
    ]
    assert board.count() == len(order)
    for rank, member in enumerate(order, 1):
        assert board.rank(member) == rank
        near = board.around(member, 2)
        assert [(each.member, each.rank) for each in near] == list(
            zip(order[max(0, rank - 3) : rank + 2], range(max(1, rank - 2), rank + 3))
        )


def paged(board: Leaderboard[Db], limit: int, **options: Any) -> list[Any]:
    found: list[Any] = []
    cursor = None
    while True:
        page = board.page(limit=limit, cursor=cursor, consistent=True, **options)
        found += page.items
        cursor = page.cursor
        if cursor is None:
            return found
        assert len(page) == limit


@pytest.mark.parametrize(("shards", "histogram"), [(1, None), (3, None), (3, 10)])
def test_pages_show_every_member_with_its_rank(
    target: Target, shards: int, histogram: int | None
) -> None:
    db = target.connect(shop())
    board = Leaderboard(db, "paged", shards=shards, histogram=histogram)
    assert board.page(limit=3).items == []
    for number in range(10):
        board.set_score(f"m{number}", number * 7 % 5)
    whole = board.top(10, consistent=True)
    for limit in (1, 3, 5, 10, 20):
        assert paged(board, limit) == whole
        assert paged(board, limit, exact=False) == whole


def test_ranks_of_later_pages_count_what_has_changed_since() -> None:
    db = connect(shop(), clock=VirtualClock())
    board = Leaderboard(db, "b", shards=2)
    for number in range(6):
        board.set_score(f"m{number}", 60 - 10 * number)
    first = board.page(limit=2)
    board.set_score("new", 1000)  # in front of everything that was shown
    board.set_score("m2", 0)  # from the next page to the last
    second = board.page(limit=2, cursor=first.cursor)
    assert [(each.member, each.rank) for each in second] == [("m3", 4), ("m4", 5)]
    assert [each.rank for each in second] == [board.rank(each.member) for each in second]
    continued = board.page(limit=2, cursor=first.cursor, exact=False)
    assert [(each.member, each.rank) for each in continued] == [("m3", 3), ("m4", 4)]
    rest = board.page(limit=9, cursor=second.cursor)
    assert [(each.member, each.rank) for each in rest] == [("m5", 6), ("m2", 7)]
    with pytest.raises(CursorRefused):
        Leaderboard(db, "other").page(limit=2, cursor=first.cursor)
    with pytest.raises(RequestRefused, match="limit=0"):
        board.page(limit=0)


def test_pages_of_a_board_are_awaited_on_an_async_db(target: Target) -> None:
    async def main() -> None:
        db = target.connect_async(shop())
        board = Leaderboard(db, "a")
        for number in range(3):
            await board.set_score(f"m{number}", number)
        page = await board.page(limit=2)
        rest = await board.page(limit=2, cursor=page.cursor)
        assert [(each.member, each.rank) for each in (*page, *rest)] == [
            ("m2", 1),
            ("m1", 2),
            ("m0", 3),
        ]
        await db.close()

    asyncio.run(main())


def test_a_score_that_no_bucket_holds_is_refused(target: Target) -> None:
    board = Leaderboard(target.connect(shop()), "weekly", histogram=10)
    with pytest.raises(RequestRefused, match="too large for histogram=10") as caught:
        board.set_score("m", 1e308)
    assert caught.value.hint
    assert board.count() == 0
