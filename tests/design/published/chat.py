"""Chat rooms.

Source: aws-samples/aws-dynamodb-examples, schema_design/SchemaExamples/ChatSystem/README.md.
Comments are stored under the user who wrote them, and an index finds them by room and time.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from stator import Entity, Query, attr, creates, deletes, find, ident, read, write

from .model import Difference, Keys, Model, Wanted, base_of, indexes_of

START = datetime(2023, 4, 1, 14, tzinfo=UTC)


class Room(Entity):
    room_id: str = ident()
    created_by: str


class Membership(Entity):
    user_id: str = ident()
    room_id: str = ident()


class Comment(Entity):
    user_id: str = ident()
    created_at: datetime = ident()
    room_id: str
    comment: str


@read(rps=20)
def room(room_id: str) -> Query[Room]:
    return find(Room).where(Room.room_id == room_id)


@read(rps=20)
def has_joined(user_id: str, room_id: str) -> Query[Membership]:
    return find(Membership).where(Membership.user_id == user_id, Membership.room_id == room_id)


@read(rps=10, returns=200)
def all_comments(room_id: str) -> Query[Comment]:
    return find(Comment).where(Comment.room_id == room_id).oldest_first(Comment.created_at)


@read(rps=200, returns=10)
def latest_comments(room_id: str) -> Query[Comment]:
    return (
        find(Comment).where(Comment.room_id == room_id).newest_first(Comment.created_at).limit(10)
    )


@read(rps=100, returns=5)
def comments_after(room_id: str, position: datetime) -> Query[Comment]:
    return find(Comment).where(Comment.room_id == room_id, Comment.created_at > position)


@read(rps=20, returns=20)
def comments_between(room_id: str, start: datetime, end: datetime) -> Query[Comment]:
    return find(Comment).where(
        Comment.room_id == room_id, attr(Comment.created_at).between(start, end)
    )


@write(rps=1)
def create_room() -> object:
    return creates(Room)


@write(rps=1)
def delete_room() -> object:
    return deletes(Room)


@write(rps=10)
def join_room() -> object:
    return creates(Membership)


@write(rps=10)
def leave_room() -> object:
    return deletes(Membership)


@write(rps=100)
def add_comment() -> object:
    return creates(Comment)


def objects(chance: random.Random) -> list[Any]:
    rooms, users = ["Art", "Music", "Music 2"], ["UserA", "UserB", "UserC"]
    found: list[Any] = [Room(room_id=each, created_by="UserA") for each in rooms]
    found += [
        Membership(user_id=user, room_id=each) for user in users for each in chance.sample(rooms, 2)
    ]
    for at in range(80):
        when = START + timedelta(seconds=at)
        found.append(
            Comment(
                user_id=chance.choice(users),
                created_at=when,
                room_id=chance.choice(rooms),
                comment="hi",
            )
        )
    return found


MODEL = Model(
    name="chat",
    entities=(Room, Membership, Comment),
    patterns=(
        room,
        has_joined,
        all_comments,
        latest_comments,
        comments_after,
        comments_between,
        create_room,
        delete_room,
        join_room,
        leave_room,
        add_comment,
    ),
    volumes={Room: 50_000, Membership: 500_000, Comment: 10_000_000},
    keys={
        Room: Keys(("Room:{room_id}", "meta")),
        Membership: Keys(("User:{user_id}", "Join:{room_id}")),
        Comment: Keys(("User:{user_id}", "{created_at}"), {"GSI": ("{room_id}", "{created_at}")}),
    },
    plain=frozenset({"GSI"}),
    paths={
        "room": Wanted("GetItem", "table", ("room_id",)),
        "has_joined": Wanted("GetItem", "table", ("user_id", "room_id")),
        "all_comments": Wanted("Query", "index", ("room_id",), ("created_at",)),
        "latest_comments": Wanted("Query", "index", ("room_id",), ("created_at",)),
        "comments_after": Wanted("Query", "index", ("room_id",), ("created_at",)),
        "comments_between": Wanted("Query", "index", ("room_id",), ("created_at",)),
    },
    objects=objects,
    calls=(
        ("room", {"room_id": "Art"}),
        ("has_joined", {"user_id": "UserA", "room_id": "Music"}),
        ("all_comments", {"room_id": "Music"}),
        ("latest_comments", {"room_id": "Music"}),
        ("comments_after", {"room_id": "Art", "position": START + timedelta(seconds=40)}),
        (
            "comments_between",
            {
                "room_id": "Music 2",
                "start": START + timedelta(seconds=10),
                "end": START + timedelta(seconds=60),
            },
        ),
    ),
    differences={
        "Comment": Difference(
            "No pattern reads the comments of a user, so each comment gets a partition of its own.",
            lambda ours, theirs: (
                base_of(ours, "Comment") == (("user_id", "created_at"), ())
                and len(indexes_of(ours)) == len(indexes_of(theirs))
            ),
        ),
        "Membership": Difference(
            "Every pattern names user and room, so the two are the partition.",
            lambda ours, theirs: base_of(ours, "Membership") == (("user_id", "room_id"), ()),
        ),
    },
)
