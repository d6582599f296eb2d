"""A support desk, for what the language learned last: two orders, absent fields, list arguments."""

from datetime import datetime
from typing import Literal

from stator import (
    Bundle2,
    Design,
    Entity,
    Only,
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
    unique,
    updates,
    write,
)


class Agent(Entity):
    agent_id: str = ident()
    email: str = unique()
    name: str


class Ticket(Entity):
    ticket_id: str = ident()
    queue: str
    priority: int  # 1 is the most urgent
    status: Literal["open", "waiting", "closed"]
    assignee: str | None = None
    customer_id: str
    opened_at: datetime
    subject: str
    body: str


class Reply(Entity):
    ticket_id: str = ident()
    reply_id: str = ident()  # a ULID
    author: str
    text: str


class Tag(Entity):
    ticket_id: str = ident()
    tag: str = ident()
    opened_at: datetime


@read(rps=100)
def ticket(ticket_id: str) -> Query[Ticket]:
    return find(Ticket).where(Ticket.ticket_id == ticket_id)


@read(rps=80, returns=6)
def ticket_with_replies(ticket_id: str) -> Bundle2[Ticket, Reply]:
    return together(Ticket, Reply).where(Ticket.ticket_id == ticket_id)


@read(rps=60, returns=25)
def open_by_priority(queue: str) -> Only[tuple[str, int, datetime, str]]:
    return (
        find(Ticket)
        .where(Ticket.queue == queue, Ticket.status == "open")
        .order_by(Ticket.priority, Ticket.opened_at)
        .limit(25)
        .only(Ticket.ticket_id, Ticket.priority, Ticket.opened_at, Ticket.subject)
    )


@read(rps=10, returns=25)
def open_in_queues(queues: list[str]) -> Only[tuple[str, int, datetime, str]]:
    return (
        find(Ticket)
        .where(attr(Ticket.queue).is_in(queues), Ticket.status == "open")
        .order_by(Ticket.priority, Ticket.opened_at)
        .limit(25)
        .only(Ticket.ticket_id, Ticket.priority, Ticket.opened_at, Ticket.subject)
    )


@read(rps=30, returns=10)
def unassigned(queue: str) -> Query[Ticket]:
    return (
        find(Ticket)
        .where(Ticket.queue == queue, attr(Ticket.assignee).not_exists())
        .oldest_first(Ticket.opened_at)
        .limit(10)
    )


@read(rps=40, returns=20)
def tickets_of_agent(assignee: str) -> Only[tuple[str, str, datetime]]:
    return (
        find(Ticket)
        .where(Ticket.assignee == assignee)
        .newest_first(Ticket.opened_at)
        .limit(20)
        .only(Ticket.ticket_id, Ticket.subject, Ticket.opened_at)
    )


@read(rps=20, returns=5)
def tickets_of_customer(customer_id: str) -> Only[tuple[str, str, datetime]]:
    return (
        find(Ticket)
        .where(Ticket.customer_id == customer_id)
        .newest_first(Ticket.opened_at)
        .only(Ticket.ticket_id, Ticket.subject, Ticket.opened_at)
    )


@read(rps=3, returns=30)
def tickets_with_tag(tag: str) -> Query[Tag]:
    return find(Tag).where(Tag.tag == tag).newest_first(Tag.opened_at).limit(30)


@read(rps=30, returns=3)
def tags_of(ticket_id: str) -> Query[Tag]:
    return find(Tag).where(Tag.ticket_id == ticket_id)


@read(rps=50, returns=8)
def agents(agent_ids: list[str]) -> Query[Agent]:
    return find(Agent).where(attr(Agent.agent_id).is_in(agent_ids))


@write(rps=8)
def open_ticket() -> object:
    return creates(Ticket), creates(Tag, times=3)


@write(rps=8)
def assign() -> object:
    return updates(Ticket.assignee)


@write(rps=20)
def change_status() -> object:
    return updates(Ticket.status)


@write(rps=2)
def change_priority() -> object:
    return updates(Ticket.priority)


@write(rps=30)
def reply() -> object:
    return creates(Reply)


design = Design(
    "support_desk",
    [Agent, Ticket, Reply, Tag],
    [
        ticket,
        ticket_with_replies,
        open_by_priority,
        open_in_queues,
        unassigned,
        tickets_of_agent,
        tickets_of_customer,
        tickets_with_tag,
        tags_of,
        agents,
        open_ticket,
        assign,
        change_status,
        change_priority,
        reply,
    ],
    facts=[
        distinct(Ticket.queue, values=200),
        distinct(Ticket.priority, values=5),
        distinct(Ticket.assignee, values=4_000),
        distinct(Ticket.customer_id, values=4_000_000),
        distinct(Tag.tag, values=3_000),
        share(Ticket.status == "open", 0.002),
        share(attr(Ticket.assignee).not_exists(), 0.0005),
    ],
    volumes={Agent: 4_000, Ticket: 20_000_000, Reply: per(Ticket, 5), Tag: per(Ticket, 3)},
    sizes={Agent: 300, Ticket: 3_000, Reply: 900, Tag: 110},
)

EXPECTED = {
    "max_indexes": 4,
    "entities": {
        "Agent": {"partition": ["agent_id"], "sort": []},
        "Ticket": {"partition": ["ticket_id"], "sort": []},
        "Reply": {"partition": ["ticket_id"], "sort": ["reply_id"]},
        "Tag": {"partition": ["ticket_id"], "sort": ["tag"]},
    },
    "patterns": {
        "ticket": {"by": "base"},
        "ticket_with_replies": {"by": "base"},
        "open_by_priority": {
            "by": "index",
            "partition": ["queue", "status"],
            "sort": ["priority", "opened_at"],
            "sparse": "status",
            "projection": "INCLUDE",
            "or": [
                {
                    "by": "index",
                    "partition": ["queue"],
                    "sort": ["priority", "opened_at"],
                    "sparse": "status",
                }
            ],
        },
        "open_in_queues": {
            "by": "legs",
            "on": "index",
            "partition": ["queue", "status"],
            "sort": ["priority", "opened_at"],
            "sparse": "status",
            "projection": "INCLUDE",
            "shares_with": "open_by_priority",
            "or": [
                {
                    "by": "legs",
                    "on": "index",
                    "partition": ["queue"],
                    "sort": ["priority", "opened_at"],
                    "sparse": "status",
                }
            ],
        },
        "unassigned": {
            "by": "index",
            "partition": ["queue"],
            "sort": ["opened_at"],
            "sparse": "assignee absent",
        },
        "tickets_of_agent": {
            "by": "index",
            "partition": ["assignee"],
            "sort": ["opened_at"],
            "projection": "INCLUDE",
        },
        "tickets_of_customer": {
            "by": "index",
            "partition": ["customer_id"],
            "sort": ["opened_at"],
            "projection": "INCLUDE",
        },
        "tickets_with_tag": {"by": "index", "partition": ["tag"], "sort": ["opened_at"]},
        "tags_of": {"by": "base"},
        "agents": {"by": "legs", "on": "base", "partition": ["agent_id"], "sort": []},
    },
    "no_index_has": [],
}
WHY = {
    "unassigned": "An index on the absence of a field: the key is written while there is no "
    "assignee "
    "and removed with the first one. 0.05 % of the tickets are in it.",
    "open_in_queues": "One query for each queue of the same index, merged by priority and "
    "time: never "
    "an index of its own.",
    "agents": "All keys are known: BatchGetItem, not queries.",
    "open_by_priority": "Two fields in the sort key; numbers must sort as numbers.",
}
