"""Random faults, concurrent writers, retrying callers: nothing is lost or counted twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from stator import connect
from stator.errors import (
    ConnectionTrouble,
    SlowDown,
    TransactionConflict,
)
from stator.patterns.leaderboard.leaderboard import Leaderboard
from stator.patterns.sequence import Sequence
from stator.tables.db import Db
from stator.testing import Faults
from tests.patterns.faults import disturb, with_faults
from tests.patterns.meters import reading
from tests.patterns.test_rollups import check, series
from tests.tables.shop import Order, order, shop

PASSING = (ConnectionTrouble, SlowDown, TransactionConflict)


def with_random_faults(db: Db, seed: int) -> None:
    """One call in seven is throttled, unreachable, sent twice, or loses its reply."""
    disturb(
        db,
        Faults(seed=seed, throttled=0.04, lost_request=0.04, duplicated=0.03, lost_answer=0.04),
    )


def until_answered(work: Callable[[], Any]) -> Any:
    for _ in range(200):
        try:
            return work()
        except PASSING:
            continue
    raise AssertionError("no answer after 200 attempts")


def side_by_side(*works: Callable[[], None]) -> None:
    troubles: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            troubles.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if troubles:
        raise troubles[0]


@pytest.mark.parametrize("seed", range(6))
def test_a_series_with_roll_ups_loses_nothing_and_counts_once(seed: int) -> None:
    """Each writer writes all its readings twice, one by one and in batches, as the bucket grows."""
    db = connect(shop())
    with_random_faults(db, seed)
    added = [
        [reading(minutes + writer / 10, minutes * 7 % 13 - 4) for minutes in range(15)]
        for writer in range(3)
    ]
    # One object, like in one process: another takes a minute to learn of a growth.
    readings = series(db, bucket="day", shards="adaptive")

    def write(writer: int) -> None:
        for each in added[writer][:8]:
            until_answered(partial(readings.add, each))
        left = added[writer]
        while left:
            result = until_answered(partial(readings.add_many, left, on_error="collect"))
            assert all(isinstance(failure.error, PASSING) for failure in result.failures)
            left = [failure.change for failure in result.failures]

    side_by_side(*(lambda writer=writer: write(writer) for writer in range(3)))
    with_faults(db)
    everything = [each for group in added for each in group]
    check(series(db, bucket="day"), everything)
    assert list(readings.range("s1", newest_first=False)) == sorted(
        everything, key=lambda each: each.at
    )


@pytest.mark.parametrize("seed", range(6))
def test_a_plain_series_loses_nothing(seed: int) -> None:
    db = connect(shop())
    with_random_faults(db, seed)
    added = [reading(minutes, minutes) for minutes in range(80)]
    readings = series(db, rollups=(), shards="adaptive")

    def write(part: int) -> None:
        for each in added[part::3][:5]:
            until_answered(partial(readings.add, each))
        left = added[part::3]
        while left:
            result = until_answered(partial(readings.add_many, left, on_error="collect"))
            left = [failure.change for failure in result.failures]

    side_by_side(*(lambda part=part: write(part) for part in range(3)))
    with_faults(db)
    assert list(series(db).range("s1", newest_first=False)) == added
    assert readings.count("s1") == 80


@pytest.mark.parametrize("seed", range(4))
def test_a_leaderboard_counts_every_point_once(seed: int) -> None:
    db = connect(shop())
    with_random_faults(db, seed)
    board = Leaderboard(db, "weekly", shards=2, histogram=10)

    def play(player: int) -> None:
        for game in range(12):
            until_answered(partial(board.add_score, f"m{game % 3}", game, once=f"{player}/{game}"))

    side_by_side(*(lambda player=player: play(player) for player in range(3)))
    with_faults(db)
    assert sorted((each.member, int(each.score)) for each in board.top()) == [
        ("m0", 54),
        ("m1", 66),
        ("m2", 78),
    ]
    assert board.count() == 3 and [board.rank(f"m{number}") for number in (2, 1, 0)] == [1, 2, 3]


@pytest.mark.parametrize("seed", range(4))
def test_a_sequence_numbers_items_without_gaps(seed: int) -> None:
    """A writer without a reply cannot know the outcome; numbers and invoices still agree."""
    db = connect(shop())
    with_random_faults(db, seed)

    def write() -> None:
        numbers = Sequence(db, "invoices")
        for _ in range(10):
            until_answered(lambda: numbers.create(order))

    side_by_side(write, write, write)
    with_faults(db)
    last = Sequence(db, "invoices").current()
    assert last is not None and last >= 30
    found = db.get_many(Order, [f"o{number:03d}" for number in range(1, last + 2)])
    assert [each is not None for each in found] == [True] * last + [False]
