"""Player profiles of a game.

Sources: "Gaming profile schema design in DynamoDB" in the DynamoDB developer guide, and
aws-samples/aws-dynamodb-examples, schema_design/SchemaExamples (game player profiles). All data of
a player is one item collection, without an index. The published profile has six kinds of items.
``together`` takes four, so equipment is read separately here.
"""

from __future__ import annotations

import random
from typing import Any, Literal

from stator import Bundle4, Entity, Query, creates, find, ident, per, read, together, updates, write

from .model import Keys, Model, Wanted


class Player(Entity):
    player_id: str = ident()
    nickname: str
    level: int
    currency: int


class FriendList(Entity):
    player_id: str = ident()
    friends: list[str]


class GameItem(Entity):
    player_id: str = ident()
    item_id: str = ident()
    item_type: Literal["Weapon", "Potion", "Food"]
    item_count: int


class Task(Entity):
    player_id: str = ident()
    task_id: str = ident()
    status: str
    reward: int


class Equipment(Entity):
    player_id: str = ident()
    equipment_id: str = ident()
    name: str


@read(rps=100)
def friends_of(player_id: str) -> Query[FriendList]:
    return find(FriendList).where(FriendList.player_id == player_id)


@read(rps=200, returns=40)
def whole_profile(player_id: str) -> Bundle4[Player, FriendList, GameItem, Task]:
    return together(Player, FriendList, GameItem, Task).where(Player.player_id == player_id)


@read(rps=200, returns=30)
def items_of(player_id: str) -> Query[GameItem]:
    return find(GameItem).where(GameItem.player_id == player_id)


@read(rps=50, returns=10)
def items_of_type(player_id: str, item_type: str) -> Query[GameItem]:
    return find(GameItem).where(GameItem.player_id == player_id, GameItem.item_type == item_type)


@read(rps=50, returns=6)
def equipment_of(player_id: str) -> Query[Equipment]:
    return find(Equipment).where(Equipment.player_id == player_id)


@write(rps=100)
def spend() -> object:
    return updates(Player.currency)


@write(rps=100)
def use_item() -> object:
    return updates(GameItem.item_count)


@write(rps=5)
def join() -> object:
    return creates(Player), creates(FriendList)


@write(rps=20)
def find_item() -> object:
    return creates(GameItem)


def objects(chance: random.Random) -> list[Any]:
    found: list[Any] = []
    for player in ("player001", "player002", "player01"):
        found.append(Player(player_id=player, nickname=player, level=3, currency=10))
        found.append(FriendList(player_id=player, friends=["player002"]))
        found += [
            Task(player_id=player, task_id=f"{at:03}", status="open", reward=at) for at in range(4)
        ]
        found += [
            Equipment(player_id=player, equipment_id=f"{at:03}", name="shield") for at in range(3)
        ]
        for at in range(12):
            kind: Any = chance.choice(["Weapon", "Potion", "Food"])
            found.append(
                GameItem(player_id=player, item_id=f"{at:03}", item_type=kind, item_count=at)
            )
    return found


MODEL = Model(
    name="gaming",
    entities=(Player, FriendList, GameItem, Task, Equipment),
    patterns=(
        friends_of,
        whole_profile,
        items_of,
        items_of_type,
        equipment_of,
        spend,
        use_item,
        join,
        find_item,
    ),
    volumes={
        Player: 1_000_000,
        FriendList: per(Player, 1),
        GameItem: per(Player, 30),
        Task: per(Player, 8),
        Equipment: per(Player, 6),
    },
    keys={
        Player: Keys(("{player_id}", "#METADATA#{player_id}")),
        FriendList: Keys(("{player_id}", "FRIENDS#{player_id}")),
        GameItem: Keys(("{player_id}", "ITEMS#{item_id}")),
        Task: Keys(("{player_id}", "TASK#{task_id}")),
        Equipment: Keys(("{player_id}", "EQUIPMENTS#{equipment_id}")),
    },
    paths={
        "friends_of": Wanted("GetItem", "table", ("player_id",)),
        "whole_profile": Wanted("Query", "table", ("player_id",)),
        "items_of": Wanted("Query", "table", ("player_id",)),
        "items_of_type": Wanted("Query", "table", ("player_id",), filtered=True),
        "equipment_of": Wanted("Query", "table", ("player_id",)),
    },
    objects=objects,
    calls=(
        ("friends_of", {"player_id": "player001"}),
        ("whole_profile", {"player_id": "player002"}),
        ("items_of", {"player_id": "player01"}),
        ("items_of_type", {"player_id": "player001", "item_type": "Weapon"}),
        ("equipment_of", {"player_id": "player002"}),
    ),
)
