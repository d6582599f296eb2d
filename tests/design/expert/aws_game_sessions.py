"""Published: the multiplayer game of AWS's hands-on lab."""

from datetime import datetime

from stator import (
    Bundle2,
    Design,
    Entity,
    Query,
    attr,
    creates,
    distinct,
    find,
    ident,
    per,
    read,
    share,
    together,
    updates,
    write,
)

SOURCE = (
    "AWS hands-on 'modelling game player data'. From memory; confidence high. A game and its "
    "players "
    "share a partition; an inverted index finds the games of a user; a sparse index by map "
    "and time of "
    "opening finds open games."
)


class User(Entity):
    username: str = ident()
    name: str
    email: str


class Game(Entity):
    game_id: str = ident()
    map_name: str
    creator: str
    people: int
    created_at: datetime
    open_since: datetime | None = None  # removed when the game starts


class Seat(Entity):
    game_id: str = ident()
    username: str = ident()
    place: int | None = None


@read(rps=200)
def user(username: str) -> Query[User]:
    return find(User).where(User.username == username)


@read(rps=150, returns=51)
def game_with_players(game_id: str) -> Bundle2[Game, Seat]:
    return together(Game, Seat).where(Game.game_id == game_id)


@read(rps=100, returns=20)
def open_games_on(map_name: str) -> Query[Game]:
    return (
        find(Game)
        .where(Game.map_name == map_name, attr(Game.open_since).exists())
        .oldest_first(Game.open_since)
        .limit(20)
    )


@read(rps=50, returns=30)
def games_of(username: str) -> Query[Seat]:
    return find(Seat).where(Seat.username == username)


@write(rps=5)
def open_game() -> object:
    return creates(Game)


@write(rps=200)
def join() -> object:
    return creates(Seat), updates(Game.people)


@write(rps=5)
def begin() -> object:
    return updates(Game.open_since)


design = Design(
    "aws_game_sessions",
    [User, Game, Seat],
    [user, game_with_players, open_games_on, games_of, open_game, join, begin],
    facts=[
        distinct(Game.map_name, values=30),
        share(attr(Game.open_since).exists(), 0.0002),
    ],
    volumes={User: 2_000_000, Game: 4_000_000, Seat: per(Game, 40)},
    sizes={User: 400, Game: 300, Seat: 120},
)

EXPECTED = {
    "max_indexes": 2,
    "published_indexes": 2,
    "entities": {
        "User": {"partition": ["username"], "sort": []},
        "Game": {"partition": ["game_id"], "sort": []},
        "Seat": {"partition": ["game_id"], "sort": ["username"]},
    },
    "patterns": {
        "user": {"by": "base"},
        "game_with_players": {"by": "base"},
        "open_games_on": {
            "by": "index",
            "partition": ["map_name"],
            "sort": ["open_since"],
            "sparse": True,
        },
        "games_of": {
            "by": "index",
            "partition": ["username"],
            "sort": ["game_id"],
            "or": [{"by": "index", "partition": ["username"], "sort": []}],
        },
    },
}
WHY = {
    "open_games_on": "One overloaded index could hold both this and games_of; the lab makes two.",
}
