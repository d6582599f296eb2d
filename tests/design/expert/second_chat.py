"""A chat: workspaces, channels, messages, threads, mentions. The second expert's."""

# ruff: noqa: E711, E712 - a comparison makes a condition

from datetime import datetime
from typing import Literal

from stator import (
    Count,
    Design,
    Entity,
    Only,
    Query,
    counter,
    created,
    creates,
    deletes,
    distinct,
    find,
    ident,
    largest,
    per,
    read,
    share,
    ttl,
    unique,
    updates,
    write,
)


class Workspace(Entity):
    workspace_id: str = ident()
    slug: str = unique()
    name: str
    plan: Literal["free", "pro", "enterprise"]


class Member(Entity):
    workspace_id: str = ident()
    user_id: str = ident()
    display_name: str
    email: str
    status: str
    avatar: str


class Channel(Entity):
    workspace_id: str = ident()
    channel_id: str = ident()
    name: str
    topic: str
    private: bool = False
    last_seq: int = counter()
    members: int = counter()


class Membership(Entity):
    user_id: str = ident()
    channel_id: str = ident()
    joined_at: datetime = created()
    last_read: int = 0
    muted: bool = False
    role: Literal["member", "admin"] = "member"


class Message(Entity):
    channel_id: str = ident()
    message_id: str = ident()  # a ULID
    author_id: str
    sent_at: datetime
    text: str
    thread_of: str | None = None
    reactions: dict[str, int]


class Mention(Entity):
    user_id: str = ident()
    message_id: str = ident()
    channel_id: str
    at: datetime
    seen: bool = False
    expires: datetime | None = ttl(days=30, default=None)


@read(rps=300)
def workspace_by_slug(slug: str) -> Query[Workspace]:
    return find(Workspace).where(Workspace.slug == slug)


@read(rps=600)
def member(workspace_id: str, user_id: str) -> Query[Member]:
    return find(Member).where(Member.workspace_id == workspace_id, Member.user_id == user_id)


@read(rps=40, returns=50)
def member_list(workspace_id: str) -> Only[tuple[str, str, str]]:
    people = (
        find(Member)
        .where(Member.workspace_id == workspace_id)
        .order_by(Member.display_name)
        .limit(50)
    )
    return people.only(Member.user_id, Member.display_name, Member.status)


@read(rps=60, returns=24)
def public_channels(workspace_id: str) -> Only[tuple[str, str, str]]:
    found = find(Channel).where(Channel.workspace_id == workspace_id, Channel.private == False)
    return (
        found.order_by(Channel.name).limit(50).only(Channel.channel_id, Channel.name, Channel.topic)
    )


@read(rps=2500)
def channel(workspace_id: str, channel_id: str) -> Query[Channel]:
    return find(Channel).where(
        Channel.workspace_id == workspace_id, Channel.channel_id == channel_id
    )


@read(rps=2000, returns=20)
def my_channels(user_id: str) -> Query[Membership]:
    return find(Membership).where(Membership.user_id == user_id)


@read(rps=1500, returns=30)
def who_to_notify(channel_id: str) -> Only[tuple[str]]:
    return (
        find(Membership)
        .where(Membership.channel_id == channel_id, Membership.muted == False)
        .only(Membership.user_id)
    )


@read(rps=4000, returns=50)
def history(channel_id: str) -> Query[Message]:
    return (
        find(Message)
        .where(Message.channel_id == channel_id)
        .order_by(Message.message_id, descending=True)
        .limit(50)
    )


@read(rps=800, returns=20)
def since(channel_id: str, last: str) -> Query[Message]:
    return (
        find(Message)
        .where(Message.channel_id == channel_id, Message.message_id > last)
        .order_by(Message.message_id)
    )


@read(rps=300, returns=6)
def thread(channel_id: str, thread_of: str) -> Query[Message]:
    return (
        find(Message)
        .where(Message.channel_id == channel_id, Message.thread_of == thread_of)
        .order_by(Message.message_id)
    )


@read(rps=900, returns=3)
def unseen_mentions(user_id: str) -> Query[Mention]:
    return (
        find(Mention)
        .where(Mention.user_id == user_id, Mention.seen == False)
        .newest_first(Mention.at)
        .limit(20)
    )


@read(rps=1200)
def unseen_count(user_id: str) -> Count[Mention]:
    return find(Mention).where(Mention.user_id == user_id, Mention.seen == False).count()


@write(rps=1500)
def post() -> object:
    return creates(Message)


@write(rps=1500)
def bump() -> object:
    return updates(Channel.last_seq)


@write(rps=400)
def react() -> object:
    return updates(Message.reactions)


@write(rps=3000)
def mark_read() -> object:
    return updates(Membership.last_read)


@write(rps=10)
def join() -> object:
    return creates(Membership), updates(Channel.members)


@write(rps=3)
def leave() -> object:
    return deletes(Membership), updates(Channel.members)


@write(rps=200)
def mention() -> object:
    return creates(Mention)


@write(rps=180)
def see() -> object:
    return updates(Mention.seen, before=Mention.seen == False, after=Mention.seen == True)


@write(rps=150)
def set_status() -> object:
    return updates(Member.status)


design = Design(
    "chat",
    [Workspace, Member, Channel, Membership, Message, Mention],
    [
        workspace_by_slug,
        member,
        member_list,
        public_channels,
        channel,
        my_channels,
        who_to_notify,
        history,
        since,
        thread,
        unseen_mentions,
        unseen_count,
        post,
        bump,
        react,
        mark_read,
        join,
        leave,
        mention,
        see,
        set_status,
    ],
    volumes={
        Workspace: 100_000,
        Member: per(Workspace, 60),
        Channel: per(Workspace, 40),
        Membership: per(Member, 20),
        Message: 5_000_000_000,
        Mention: 500_000_000,
    },
    sizes={Workspace: 400, Member: 350, Channel: 500, Membership: 180, Message: 700, Mention: 200},
    facts=[
        distinct(Message.channel_id, values=4_000_000),
        distinct(Membership.channel_id, values=4_000_000),
        distinct(Membership.user_id, values=6_000_000),
        distinct(Mention.user_id, values=5_000_000),
        share(Message.thread_of == None, 0.75),
        share(Mention.seen == False, 0.03),
        distinct(Message.thread_of, values=200_000_000),
        distinct(Message.channel_id, Message.thread_of, values=200_000_000),
        share(Channel.private == True, 0.4),
        share(Membership.muted == True, 0.2),
        largest(Message.channel_id, 0.0005),
    ],
)

EXPECTED = {
    "no_index_has": ["last_read"],
    "entities": {
        "Workspace": {"partition": ["workspace_id"], "sort": []},
        "Member": {"partition": ["workspace_id"], "sort": ["user_id"]},
        "Channel": {"partition": ["workspace_id", "channel_id"], "sort": []},
        "Message": {"partition": ["channel_id"], "sort": ["message_id"]},
        "Membership": {"partition": ["user_id"], "sort": ["channel_id"]},
        "Mention": {"partition": ["user_id"], "sort": ["message_id"]},
    },
    "patterns": {
        "workspace_by_slug": {"by": "guard"},
        "member": {"by": "base"},
        "public_channels": {
            "by": "index",
            "partition": ["private", "workspace_id"],
            "sort": ["name"],
            "projection": "INCLUDE",
        },
        "channel": {"by": "base"},
        "my_channels": {"by": "base"},
        "who_to_notify": {
            "by": "index",
            "partition": ["channel_id"],
            "sort": [],
            "projection": "INCLUDE",
            "projection_or": ["KEYS_ONLY"],
            "or": [{"by": "index", "partition": ["channel_id", "muted"], "sort": []}],
        },
        "history": {"by": "base"},
        "since": {"by": "base"},
        "thread": {
            "by": "index",
            "partition": ["thread_of"],
            "sort": ["message_id"],
            "projection": "ALL",
            "projection_or": ["INCLUDE"],
        },
        "unseen_mentions": {"by": "index", "partition": ["seen", "user_id"], "sort": ["at"]},
        "unseen_count": {"by": "index", "partition": ["seen", "user_id"], "sort": ["at"]},
    },
}
WHY = {
    "who_to_notify": ("The index must not copy what a member has read: 3,000 writes a second. "),
}
