"""Games that players join, from "Modeling Game Player Data with Amazon DynamoDB".

This is an AWS tutorial; amazon-dynamodb-labs.com has the same as game-player-data. A sparse index
holds the open games by map, and an inverted index leads from a player to the games played. The
tutorial lists the open games of all maps with a Scan of the sparse index; that pattern is left out
here.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from stator import Bundle2, Entity, Query, creates, find, ident, per, read, together, updates, write

from .model import Difference, Keys, Model, Wanted, indexes_of

START = datetime(2019, 4, 1, tzinfo=UTC)


class Player(Entity):
    username: str = ident()
    name: str
    games_won: int = 0


class Game(Entity):
    game_id: str = ident()
    map_name: str
    creator: str
    people: int = 0
    open_since: datetime | None = None


class Participation(Entity):
    game_id: str = ident()
    username: str = ident()
    place: int = 0


@read(rps=100)
def player(username: str) -> Query[Player]:
    return find(Player).where(Player.username == username)


@read(rps=100)
def game(game_id: str) -> Query[Game]:
    return find(Game).where(Game.game_id == game_id)


@read(rps=100, returns=51)
def game_with_players(game_id: str) -> Bundle2[Game, Participation]:
    return together(Game, Participation).where(Game.game_id == game_id)


@read(rps=50, returns=10)
def open_games(map_name: str, since: datetime) -> Query[Game]:
    recent = Game.open_since >= since  # type: ignore[operator]  # a closed game has no such time
    return find(Game).where(Game.map_name == map_name, recent).newest_first(Game.open_since)


@read(rps=20, returns=30)
def games_of(username: str) -> Query[Participation]:
    return find(Participation).where(Participation.username == username)


@write(rps=2)
def create_game() -> object:
    return creates(Game)


@write(rps=100)
def join_game() -> object:
    return creates(Participation), updates(Game.people)


@write(rps=2)
def start_game() -> object:
    return updates(Game.open_since)


@write(rps=100)
def finish() -> object:
    return updates(Participation.place)


def objects(chance: random.Random) -> list[Any]:
    players = [f"player{at}" for at in range(6)]
    found: list[Any] = [Player(username=each, name=each) for each in players]
    for at in range(30):
        opened = START + timedelta(minutes=at) if at % 3 == 0 else None
        where = chance.choice(["Dirty Desert", "Green Grasslands"])
        found.append(
            Game(
                game_id=f"g{at}", map_name=where, creator=chance.choice(players), open_since=opened
            )
        )
        found += [
            Participation(game_id=f"g{at}", username=each) for each in chance.sample(players, 3)
        ]
    return found


MODEL = Model(
    name="battle-royale",
    entities=(Player, Game, Participation),
    patterns=(
        player,
        game,
        game_with_players,
        open_games,
        games_of,
        create_game,
        join_game,
        start_game,
        finish,
    ),
    volumes={Player: 1_000_000, Game: 1_000_000, Participation: per(Game, 50)},
    keys={
        Player: Keys(("USER#{username}", "#METADATA#{username}")),
        Game: Keys(
            ("GAME#{game_id}", "#METADATA#{game_id}"),
            {"OpenGamesIndex": ("{map_name}", "{open_since}")},
        ),
        Participation: Keys(
            ("GAME#{game_id}", "USER#{username}"),
            {"InvertedIndex": ("USER#{username}", "GAME#{game_id}")},
        ),
    },
    plain=frozenset({"OpenGamesIndex", "InvertedIndex"}),
    paths={
        "player": Wanted("GetItem", "table", ("username",)),
        "game": Wanted("GetItem", "table", ("game_id",)),
        "game_with_players": Wanted("Query", "table", ("game_id",)),
        "open_games": Wanted("Query", "index", ("map_name",), ("open_since",)),
        "games_of": Wanted("Query", "index", ("username",)),
    },
    objects=objects,
    calls=(
        ("player", {"username": "player2"}),
        ("game", {"game_id": "g3"}),
        ("game_with_players", {"game_id": "g1"}),
        ("open_games", {"map_name": "Dirty Desert", "since": START}),
        ("games_of", {"username": "player1"}),
    ),
    differences={
        "indexes": Difference(
            "Open games and the games of a player are different entities, so one index with "
            "generic keys holds both.",
            lambda ours, theirs: (
                [set(each.entities) for each in indexes_of(ours)] == [{"Game", "Participation"}]
            ),
        ),
    },
)
