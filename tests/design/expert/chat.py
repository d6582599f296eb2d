"""A work chat: workspaces, channels, members, messages, read markers, direct messages."""

from datetime import datetime

from stator import (
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
    unique,
    updates,
    write,
)


class Workspace(Entity):
    workspace_id: str = ident()
    domain: str = unique()
    name: str


class Person(Entity):
    workspace_id: str = ident()
    user_id: str = ident()
    email: str
    name: str


class Channel(Entity):
    workspace_id: str = ident()
    channel_id: str = ident()
    name: str
    topic: str = ""


class Member(Entity):
    workspace_id: str = ident()
    channel_id: str = ident()
    user_id: str = ident()
    joined_at: datetime


class Message(Entity):
    channel_id: str = ident()
    message_id: str = ident()  # a ULID: sorts by time
    author: str
    text: str
    thread_id: str | None = None  # only replies have one: one message in ten
    pinned_at: datetime | None = None  # five messages in a thousand


class ReadMarker(Entity):
    user_id: str = ident()
    channel_id: str = ident()
    last_read: str


class DirectThread(Entity):
    user_id: str = ident()  # each of the two has an item
    pair_id: str = ident()
    other_user: str
    last_at: datetime
    preview: str


class DirectMessage(Entity):
    pair_id: str = ident()
    message_id: str = ident()
    sender: str
    text: str


@read(rps=20)
def workspace_by_domain(domain: str) -> Query[Workspace]:
    return find(Workspace).where(Workspace.domain == domain)


@read(rps=30)
def person_by_email(workspace_id: str, email: str) -> Query[Person]:
    return find(Person).where(Person.workspace_id == workspace_id, Person.email == email)


@read(rps=800)
def person(workspace_id: str, user_id: str) -> Query[Person]:
    return find(Person).where(Person.workspace_id == workspace_id, Person.user_id == user_id)


@read(rps=60, returns=80)
def channels_of_workspace(workspace_id: str) -> Query[Channel]:
    return find(Channel).where(Channel.workspace_id == workspace_id)


@read(rps=500)
def channel(workspace_id: str, channel_id: str) -> Query[Channel]:
    return find(Channel).where(
        Channel.workspace_id == workspace_id, Channel.channel_id == channel_id
    )


@read(rps=100, returns=25)
def members_of(workspace_id: str, channel_id: str) -> Query[Member]:
    return find(Member).where(Member.workspace_id == workspace_id, Member.channel_id == channel_id)


@read(rps=3_000, consistent=True)
def is_member(workspace_id: str, channel_id: str, user_id: str) -> Query[Member]:
    return find(Member).where(
        Member.workspace_id == workspace_id,
        Member.channel_id == channel_id,
        Member.user_id == user_id,
    )


@read(rps=400, returns=33)
def channels_of_user(workspace_id: str, user_id: str) -> Query[Member]:
    return find(Member).where(Member.workspace_id == workspace_id, Member.user_id == user_id)


@read(rps=2_500, returns=50)
def history(channel_id: str, before: str) -> Query[Message]:
    return (
        find(Message)
        .where(Message.channel_id == channel_id, Message.message_id < before)
        .newest_first(Message.message_id)
        .limit(50)
    )


@read(rps=100)
def message(channel_id: str, message_id: str) -> Query[Message]:
    return find(Message).where(Message.channel_id == channel_id, Message.message_id == message_id)


@read(rps=300, returns=8)
def replies(thread_id: str) -> Query[Message]:
    return find(Message).where(Message.thread_id == thread_id).oldest_first(Message.message_id)


@read(rps=150, returns=4)
def pinned(channel_id: str) -> Query[Message]:
    return (
        find(Message)
        .where(Message.channel_id == channel_id, attr(Message.pinned_at).exists())
        .newest_first(Message.pinned_at)
    )


@read(rps=700, returns=33)
def markers_of_user(user_id: str) -> Query[ReadMarker]:
    return find(ReadMarker).where(ReadMarker.user_id == user_id)


@read(rps=500, returns=15)
def inbox(user_id: str) -> Query[DirectThread]:
    return (
        find(DirectThread)
        .where(DirectThread.user_id == user_id)
        .newest_first(DirectThread.last_at)
        .limit(30)
    )


@read(rps=900, returns=40)
def direct_history(pair_id: str) -> Query[DirectMessage]:
    return (
        find(DirectMessage)
        .where(DirectMessage.pair_id == pair_id)
        .newest_first(DirectMessage.message_id)
        .limit(40)
    )


@write(rps=1_800)
def post() -> object:
    return creates(Message)


@write(rps=2)
def pin() -> object:
    return updates(Message.pinned_at)


@write(rps=2_000)
def mark_read() -> object:
    return updates(ReadMarker.last_read)


@write(rps=700)
def send_direct() -> object:
    return (
        creates(DirectMessage),
        updates(DirectThread.last_at, DirectThread.preview, times=2),
    )


@write(rps=15)
def join() -> object:
    return creates(Member)


design = Design(
    "chat",
    [Workspace, Person, Channel, Member, Message, ReadMarker, DirectThread, DirectMessage],
    [
        workspace_by_domain,
        person_by_email,
        person,
        channels_of_workspace,
        channel,
        members_of,
        is_member,
        channels_of_user,
        history,
        message,
        replies,
        pinned,
        markers_of_user,
        inbox,
        direct_history,
        post,
        pin,
        mark_read,
        send_direct,
        join,
    ],
    facts=[
        share(attr(Message.thread_id).exists(), 0.1),
        share(attr(Message.pinned_at).exists(), 0.005),
        distinct(Message.thread_id, values=30_000_000),
    ],
    volumes={
        Workspace: 40_000,
        Person: per(Workspace, 60),
        Channel: per(Workspace, 80),
        Member: per(Channel, 25),
        Message: per(Channel, 800),
        ReadMarker: per(Person, 33),
        DirectThread: per(Person, 15),
        DirectMessage: 900_000_000,
    },
    sizes={
        Workspace: 300,
        Person: 350,
        Channel: 300,
        Member: 180,
        Message: 450,
        ReadMarker: 140,
        DirectThread: 320,
        DirectMessage: 380,
    },
)

EXPECTED = {
    "max_indexes": 2,
    "entities": {
        "Workspace": {"partition": ["workspace_id"], "sort": []},
        "Person": {
            "partition": ["workspace_id", "user_id"],
            "sort": [],
            "or": [{"partition": ["workspace_id"], "sort": ["user_id"]}],
        },
        "Channel": {"partition": ["workspace_id"], "sort": ["channel_id"]},
        "Member": {
            "partition": ["workspace_id", "channel_id"],
            "sort": ["user_id"],
            "or": [{"partition": ["workspace_id", "user_id"], "sort": ["channel_id"]}],
        },
        "Message": {"partition": ["channel_id"], "sort": ["message_id"]},
        "ReadMarker": {"partition": ["user_id"], "sort": ["channel_id"]},
        "DirectThread": {
            "partition": ["user_id", "pair_id"],
            "sort": [],
            "or": [{"partition": ["user_id"], "sort": ["pair_id"]}],
        },
        "DirectMessage": {"partition": ["pair_id"], "sort": ["message_id"]},
    },
    "patterns": {
        "workspace_by_domain": {
            "by": "guard",
            "or": [{"by": "index", "partition": ["domain"], "sort": []}],
        },
        "person_by_email": {"by": "index", "partition": ["workspace_id", "email"], "sort": []},
        "person": {"by": "base"},
        "channels_of_workspace": {"by": "base"},
        "channel": {"by": "base"},
        "members_of": {
            "by": "base",
            "or": [{"by": "index", "partition": ["workspace_id", "channel_id"], "sort": []}],
        },
        "is_member": {"by": "base"},
        "channels_of_user": {
            "by": "index",
            "partition": ["workspace_id", "user_id"],
            "sort": [],
            "or": [{"by": "base"}],
        },
        "history": {"by": "base"},
        "message": {"by": "base"},
        "replies": {
            "by": "index",
            "partition": ["thread_id"],
            "sort": ["message_id"],
            "sparse": True,
        },
        "pinned": {
            "by": "index",
            "partition": ["channel_id"],
            "sort": ["pinned_at"],
            "sparse": True,
        },
        "markers_of_user": {"by": "base"},
        "inbox": {"by": "index", "partition": ["user_id"], "sort": ["last_at"]},
        "direct_history": {"by": "base"},
    },
}
WHY = {
    "Member": "Either side may be the base and the other the index. The side that is read "
    "more often "
    "(channels_of_user, 400/s x 33) may win on the base: both cost the same here.",
    "DirectThread": "The inbox is ordered by a changing time, so it needs an index anyway; "
    "the item "
    "itself is then best alone in its partition.",
    "inbox": "Every direct message moves two entries (delete and insert in the index). 1,400 "
    "moves a "
    "second are the price of an inbox in order; at 15 threads a person, sorting in the client "
    "is the "
    "other defensible choice.",
    "pinned": "Filtering 800 messages for four would be absurd; sparse costs nothing for the rest.",
    "Message": "The busiest channel takes a few messages a second: no bucket and no shard.",
}
