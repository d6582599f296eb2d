"""A chat: rooms, members, messages with reactions, unread counters."""

from __future__ import annotations

from datetime import datetime

from stator import (
    Bundle2,
    Design,
    Entity,
    Query,
    attr,
    counter,
    creates,
    deletes,
    find,
    ident,
    per,
    read,
    share,
    soft_delete,
    together,
    ttl,
    updates,
    write,
)


class Room(Entity):
    room_id: str = ident()
    name: str
    topic: str = ""
    last_message_at: datetime


class Member(Entity):
    room_id: str = ident()
    user_id: str = ident()
    joined_at: datetime
    last_read_at: datetime
    unread: int = counter()
    muted: bool = False


class Message(Entity):
    room_id: str = ident()
    message_id: str = ident()
    sender: str
    sent_at: datetime
    text: str
    pinned: bool = False
    deleted_at: datetime | None = soft_delete()


class Typing(Entity):
    room_id: str = ident()
    user_id: str = ident()
    expires_at: datetime | None = ttl(hours=1, default=None)


@read(rps=400, returns=50)
def latest(room_id: str, count: int) -> Query[Message]:
    return (
        find(Message).where(Message.room_id == room_id).newest_first(Message.sent_at).limit(count)
    )


@read(rps=50, returns=100)
def since(room_id: str, moment: datetime) -> Query[Message]:
    return (
        find(Message)
        .where(Message.room_id == room_id, Message.sent_at > moment)
        .oldest_first(Message.sent_at)
    )


@read(rps=5)
def pinned(room_id: str) -> Query[Message]:
    return find(Message).where(Message.room_id == room_id).filter(Message.pinned == True)  # noqa: E712


@read(rps=100)
def rooms_of(user_id: str) -> Query[Member]:
    return find(Member).where(Member.user_id == user_id)


@read(rps=60)
def room_with_members(room_id: str) -> Bundle2[Room, Member]:
    return together(Room, Member).where(Room.room_id == room_id)


@read(rps=3, returns=10)
def members_named(room_id: str, prefix: str) -> Query[Member]:
    return find(Member).where(Member.room_id == room_id, attr(Member.user_id).begins_with(prefix))


@read(rps=30)
def typing(room_id: str) -> Query[Typing]:
    return find(Typing).where(Typing.room_id == room_id)


@write(rps=200)
def send() -> object:
    return creates(Message), updates(Room.last_message_at)


@write(rps=400)
def mark_read() -> object:
    return updates(Member.last_read_at, Member.unread)


@write(rps=5)
def remove() -> object:
    return deletes(Message)


@write(rps=5)
def leave() -> object:
    return deletes(Member)


chat = Design(
    "chat",
    [Room, Member, Message, Typing],
    [
        latest, since, pinned, rooms_of, room_with_members, members_named, typing, send, mark_read,
        remove, leave,
    ],
    volumes={
        Room: 200_000, Member: per(Room, 30), Message: per(Room, 3_000), Typing: per(Room, 2),
    },
    sizes={Message: 400},
    facts=[share(Message.pinned == True, 0.002)],  # noqa: E712
)  # fmt: skip
