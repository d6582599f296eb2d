"""Published: game scores with a leaderboard index, and player profiles."""

from datetime import datetime

from stator import (
    Bundle2,
    Design,
    Entity,
    Only,
    Query,
    creates,
    distinct,
    find,
    ident,
    per,
    read,
    together,
    updates,
    write,
)

SOURCE = (
    "AWS developer guide, GameScores (user, game title; index by game title then top score), "
    "and the "
    "gaming profile example (a player's profile, inventory and purchases in the player's "
    "partition). "
    "From memory; confidence high on GameScores, middling on the profile."
)


class Player(Entity):
    player_id: str = ident()
    name: str
    level: int
    settings: dict[str, str]


class Item(Entity):
    player_id: str = ident()
    item_id: str = ident()
    kind: str
    amount: int


class Score(Entity):
    player_id: str = ident()
    game_title: str = ident()
    top_score: int
    wins: int
    losses: int
    achieved_at: datetime


class Purchase(Entity):
    player_id: str = ident()
    purchase_id: str = ident()  # a ULID
    sku: str
    cents: int


@read(rps=800)
def player(player_id: str) -> Query[Player]:
    return find(Player).where(Player.player_id == player_id)


@read(rps=200, returns=40)
def player_with_items(player_id: str) -> Bundle2[Player, Item]:
    return together(Player, Item).where(Player.player_id == player_id)


@read(rps=300)
def score(player_id: str, game_title: str) -> Query[Score]:
    return find(Score).where(Score.player_id == player_id, Score.game_title == game_title)


@read(rps=50, returns=8)
def scores_of(player_id: str) -> Query[Score]:
    return find(Score).where(Score.player_id == player_id)


@read(rps=100, returns=10)
def leaders(game_title: str) -> Only[tuple[str, int]]:
    return (
        find(Score)
        .where(Score.game_title == game_title)
        .order_by(Score.top_score, descending=True)
        .limit(10)
        .only(Score.player_id, Score.top_score)
    )


@read(rps=10, returns=4)
def purchases_of(player_id: str) -> Query[Purchase]:
    return (
        find(Purchase)
        .where(Purchase.player_id == player_id)
        .newest_first(Purchase.purchase_id)
        .limit(20)
    )


@write(rps=400)
def play() -> object:
    return updates(Score.wins, Score.losses)


@write(rps=40)
def beat_own_score() -> object:
    return updates(Score.top_score, Score.achieved_at)


@write(rps=100)
def collect() -> object:
    return creates(Item)


@write(rps=5)
def buy() -> object:
    return creates(Purchase), creates(Item)


design = Design(
    "aws_game_scores",
    [Player, Item, Score, Purchase],
    [
        player,
        player_with_items,
        score,
        scores_of,
        leaders,
        purchases_of,
        play,
        beat_own_score,
        collect,
        buy,
    ],
    facts=[
        distinct(Score.game_title, values=200),
    ],
    volumes={
        Player: 3_000_000,
        Item: per(Player, 40),
        Score: per(Player, 8),
        Purchase: per(Player, 4),
    },
    sizes={Player: 1_200, Item: 140, Score: 160, Purchase: 150},
)

EXPECTED = {
    "max_indexes": 1,
    "entities": {
        "Player": {"partition": ["player_id"], "sort": []},
        "Item": {"partition": ["player_id"], "sort": ["item_id"]},
        "Score": {"partition": ["player_id"], "sort": ["game_title"]},
        "Purchase": {"partition": ["player_id"], "sort": ["purchase_id"]},
    },
    "patterns": {
        "player": {"by": "base"},
        "player_with_items": {"by": "base"},
        "score": {"by": "base"},
        "scores_of": {"by": "base"},
        "leaders": {
            "by": "index",
            "partition": ["game_title"],
            "sort": ["top_score"],
            "projection": "KEYS_ONLY",
            "projection_or": ["INCLUDE"],
        },
        "purchases_of": {"by": "base"},
    },
    "no_index_has": ["wins", "losses"],
}
WHY = {
    "leaders": "Key attributes are all that the board shows. An index with wins and losses "
    "would be "
    "written at every game, not only when a score is beaten.",
}
