"""A leaderboard for each week: scores that count once, ranks, neighbours, and pages.

The patterns: the best players of a week; a player's rank; the players around a player; all players
page by page.

A game that is reported twice counts once, because the report carries the id of the game. Scores
are exact, however many games end at the same moment. Each week is a board of its own, so a new
week starts empty and the old ones stay.

python examples/leaderboard.py [ADDRESS]
"""

from __future__ import annotations

import sys
from datetime import date

from stator import Db, Design, Entity, Query, connect, find, ident, read
from stator.patterns import Leaderboard


class Player(Entity):
    player_id: str = ident()
    name: str


@read(rps=100)
def player(player_id: str) -> Query[Player]:
    return find(Player).where(Player.player_id == player_id)


game = Design("game", [Player], [player], volumes={Player: 500_000})


def board_of(db: Db, day: date) -> Leaderboard[Db]:
    """Return the board of the week in which a day lies."""
    year, week, _ = day.isocalendar()
    return Leaderboard(db, f"{year}-week-{week:02d}", shards=4, histogram=100)


def report(db: Db, game_id: str, player_id: str, points: int, day: date) -> None:
    """Add the points of a game. A repeated report of the same game adds nothing."""
    board_of(db, day).add_score(player_id, points, once=game_id)


def main(address: str | None = None) -> None:
    with connect(game, address) as db:
        db.ensure()
        players = [("u1", "Anna"), ("u2", "Ben"), ("u3", "Cleo"), ("u4", "Dora")]
        db.write_many(Player(player_id=player_id, name=name) for player_id, name in players)
        monday = date(2026, 11, 16)
        for number, (player_id, points) in enumerate(
            [("u1", 320), ("u2", 150), ("u3", 90), ("u2", 200), ("u4", 40)]
        ):
            report(db, f"game-{number}", player_id, points, monday)
        report(db, "game-3", "u2", 200, monday)  # sent again: its answer was lost

        board = board_of(db, monday)
        best = board.top(3)
        names = [each.name for each in db.get_many(Player, [one.member for one in best]) if each]
        for standing, name in zip(best, names):
            print(f"{standing.rank}. {name} {standing.score}")
        print("rank of u3:", board.rank("u3"), "of", board.count())
        print("around u3:", [each.member for each in board.around("u3", 1)])
        page = board.page(limit=3)
        following = board.page(limit=3, cursor=page.cursor)
        print("second page:", [(each.rank, each.member) for each in following])
        print("players in the next week:", board_of(db, date(2026, 11, 23)).count())


if __name__ == "__main__":
    main(*sys.argv[1:2])
