"""The leaderboard: exact scores, games that count once, and a board for each week."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta

from leaderboard import board_of, game, report

from stator import connect
from tests.targets import Target

MONDAY = date(2026, 11, 16)


def test_a_game_that_is_reported_again_counts_once(target: Target) -> None:
    db = target.connect(game)
    for _ in range(3):
        report(db, "g1", "anna", 200, MONDAY)
        report(db, "g2", "ben", 150, MONDAY)
    report(db, "g3", "ben", 150, MONDAY)
    best = board_of(db, MONDAY).top(2)
    assert [(each.rank, each.member, int(each.score)) for each in best] == [
        (1, "ben", 300),
        (2, "anna", 200),
    ]


def test_games_that_end_at_once_are_all_counted() -> None:
    with connect(game) as db, ThreadPoolExecutor(8) as threads:
        games = [(f"g{number}", f"u{number % 4}", number) for number in range(48)]

        def end(ended: tuple[str, str, int]) -> None:
            game_id, player_id, points = ended
            report(db, game_id, player_id, points, MONDAY)

        list(threads.map(end, games * 2))
        board = board_of(db, MONDAY)
        expected = {f"u{at}": sum(range(at, 48, 4)) for at in range(4)}
        assert {each.member: each.score for each in board.top(9)} == expected
        assert [board.rank(f"u{at}") for at in range(4)] == [4, 3, 2, 1]


def test_a_week_ends_on_sunday_and_keeps_its_scores() -> None:
    with connect(game) as db:
        report(db, "g1", "anna", 100, MONDAY)
        report(db, "g2", "anna", 10, MONDAY + timedelta(days=6))
        report(db, "g3", "ben", 5, MONDAY + timedelta(days=7))
        this, following = board_of(db, MONDAY), board_of(db, MONDAY + timedelta(days=7))
        assert [(each.member, int(each.score)) for each in this.top()] == [("anna", 110)]
        assert [(each.member, int(each.score)) for each in following.top()] == [("ben", 5)]
        assert board_of(db, date(2027, 1, 1)).name == "2026-week-53"
