"""Published: AWS's chat samples (rooms, messages, web socket connections)."""

from datetime import datetime

from stator import (
    Design,
    Entity,
    Only,
    Query,
    creates,
    deletes,
    find,
    ident,
    per,
    read,
    ttl,
    write,
)

SOURCE = (
    "AWS chat samples (web socket connections keyed by connection id; messages of a room by "
    "time; rooms "
    "of a user). From memory; confidence high on connections, middling on the rest: several "
    "samples "
    "differ in names."
)


class Connection(Entity):
    connection_id: str = ident()
    room_id: str
    user_id: str
    expires: datetime | None = ttl(hours=3, default=None)


class Room(Entity):
    room_id: str = ident()
    title: str
    created_at: datetime


class Membership(Entity):
    room_id: str = ident()
    user_id: str = ident()
    joined_at: datetime


class Message(Entity):
    room_id: str = ident()
    sent_at: datetime = ident()
    message_id: str = ident()
    user_id: str
    text: str


@read(rps=400)
def connection(connection_id: str) -> Query[Connection]:
    return find(Connection).where(Connection.connection_id == connection_id)


@read(rps=400, returns=6)
def connections_in(room_id: str) -> Only[tuple[str]]:
    return find(Connection).where(Connection.room_id == room_id).only(Connection.connection_id)


@read(rps=100)
def room(room_id: str) -> Query[Room]:
    return find(Room).where(Room.room_id == room_id)


@read(rps=30, returns=20)
def members_of(room_id: str) -> Query[Membership]:
    return find(Membership).where(Membership.room_id == room_id)


@read(rps=60, returns=10)
def rooms_of(user_id: str) -> Query[Membership]:
    return find(Membership).where(Membership.user_id == user_id).newest_first(Membership.joined_at)


@read(rps=300, returns=50)
def messages_since(room_id: str, since: datetime) -> Query[Message]:
    return (
        find(Message)
        .where(Message.room_id == room_id, Message.sent_at >= since)
        .newest_first(Message.sent_at)
        .limit(50)
    )


@write(rps=400)
def say() -> object:
    return creates(Message)


@write(rps=50)
def come() -> object:
    return creates(Connection)


@write(rps=50)
def go() -> object:
    return deletes(Connection)


@write(rps=2)
def join() -> object:
    return creates(Membership)


design = Design(
    "aws_chat",
    [Connection, Room, Membership, Message],
    [
        connection,
        connections_in,
        room,
        members_of,
        rooms_of,
        messages_since,
        say,
        come,
        go,
        join,
    ],
    volumes={
        Connection: 300_000,
        Room: 50_000,
        Membership: per(Room, 20),
        Message: per(Room, 3_000),
    },
    sizes={Connection: 150, Room: 200, Membership: 120, Message: 350},
)

EXPECTED = {
    "max_indexes": 1,
    "entities": {
        "Connection": {"partition": ["connection_id"], "sort": []},
        "Room": {"partition": ["room_id"], "sort": []},
        "Membership": {"partition": ["room_id"], "sort": ["user_id"]},
        "Message": {"partition": ["room_id"], "sort": ["sent_at", "message_id"]},
    },
    "patterns": {
        "connection": {"by": "base"},
        "connections_in": {"by": "index", "partition": ["room_id"], "sort": []},
        "room": {"by": "base"},
        "members_of": {"by": "base"},
        "rooms_of": {"by": "index", "partition": ["user_id"], "sort": ["joined_at"]},
        "messages_since": {"by": "base"},
    },
    "no_index_on": ["Message"],
}
WHY = {
    "Message": "Two messages of the same microsecond need the id after the time.",
    "connections_in": "The disconnect event knows only the connection, so its id is the base key.",
}
