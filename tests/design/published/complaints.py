"""Complaint management.

Sources: "Complaint management system schema design in DynamoDB" in the DynamoDB developer guide,
and aws-samples/aws-dynamodb-examples, schema_design/SchemaExamples/ComplainManagement/README.md.
Complaints have comments and three indexes: by customer, sparse by the person a complaint was
escalated to, and comments by agent. The published list of all escalations is a Scan of the sparse
index; it is left out here.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from stator import Entity, Query, attr, creates, find, ident, per, read, updates, write

from .model import Keys, Model, Wanted

START = datetime(2023, 5, 1, tzinfo=UTC)
Stage = Literal["waiting", "assigned", "investigating", "resolved"]


class Complaint(Entity):
    complaint_id: str = ident()
    customer_id: str
    created_at: datetime
    severity: Literal["P1", "P2", "P3"]
    state: Stage
    description: str
    escalated_to: str | None = None
    escalated_at: datetime | None = None


class Comment(Entity):
    complaint_id: str = ident()
    commented_at: datetime = ident()
    comment_id: str = ident()
    agent_id: str
    text: str


@read(rps=100)
def complaint(complaint_id: str) -> Query[Complaint]:
    return find(Complaint).where(Complaint.complaint_id == complaint_id)


@read(rps=100, returns=8)
def comments_of(complaint_id: str) -> Query[Comment]:
    return (
        find(Comment).where(Comment.complaint_id == complaint_id).oldest_first(Comment.commented_at)
    )


@read(rps=50)
def latest_comment(complaint_id: str) -> Query[Comment]:
    return (
        find(Comment)
        .where(Comment.complaint_id == complaint_id)
        .newest_first(Comment.commented_at)
        .limit(1)
    )


@read(rps=20)
def complaint_of_customer(customer_id: str, complaint_id: str) -> Query[Complaint]:
    return find(Complaint).where(
        Complaint.customer_id == customer_id, Complaint.complaint_id == complaint_id
    )


@read(rps=20, returns=4)
def complaints_of_customer(customer_id: str) -> Query[Complaint]:
    return find(Complaint).where(Complaint.customer_id == customer_id)


@read(rps=5, returns=20)
def escalated_to(agent_id: str) -> Query[Complaint]:
    return (
        find(Complaint)
        .where(Complaint.escalated_to == agent_id)
        .newest_first(Complaint.escalated_at)
    )


@read(rps=5, returns=30)
def comments_of_agent(agent_id: str, start: datetime, end: datetime) -> Query[Comment]:
    return find(Comment).where(
        Comment.agent_id == agent_id, attr(Comment.commented_at).between(start, end)
    )


@write(rps=5)
def create_complaint() -> object:
    return creates(Complaint)


@write(rps=40)
def add_comment() -> object:
    return creates(Comment), updates(Complaint.state)


@write(rps=5)
def set_severity() -> object:
    return updates(Complaint.severity)


@write(rps=1)
def escalate() -> object:
    return updates(Complaint.escalated_to, Complaint.escalated_at)


def objects(chance: random.Random) -> list[Any]:
    found: list[Any] = []
    for at in range(40):
        escalated = chance.random() < 0.3
        found.append(
            Complaint(
                complaint_id=f"Complaint{at}",
                customer_id=chance.choice(["custX", "custXY"]),
                created_at=START + timedelta(hours=at),
                severity="P1",
                state="waiting",
                description="x",
                escalated_to=chance.choice(["AgentA", "AgentB"]) if escalated else None,
                escalated_at=START + timedelta(minutes=at) if escalated else None,
            )
        )
        found += [
            Comment(
                complaint_id=f"Complaint{at}",
                commented_at=START + timedelta(hours=at, minutes=number),
                comment_id=f"comm{number}",
                agent_id=chance.choice(["AgentA", "AgentB"]),
                text="y",
            )
            for number in range(at % 4)
        ]
    return found


MODEL = Model(
    name="complaints",
    entities=(Complaint, Comment),
    patterns=(
        complaint,
        comments_of,
        latest_comment,
        complaint_of_customer,
        complaints_of_customer,
        escalated_to,
        comments_of_agent,
        create_complaint,
        add_comment,
        set_severity,
        escalate,
    ),
    volumes={Complaint: 1_000_000, Comment: per(Complaint, 8)},
    keys={
        Complaint: Keys(
            ("{complaint_id}", "metadata"),
            {
                "Customer_complaint": ("{customer_id}", "{complaint_id}"),
                "Escalations": ("{escalated_to}", "{escalated_at}"),
            },
        ),
        Comment: Keys(
            ("{complaint_id}", "comm#{commented_at}#{comment_id}"),
            {"Agents_comments": ("{agent_id}", "{commented_at}")},
        ),
    },
    plain=frozenset({"Customer_complaint", "Escalations", "Agents_comments"}),
    paths={
        "complaint": Wanted("GetItem", "table", ("complaint_id",)),
        "comments_of": Wanted("Query", "table", ("complaint_id",), ("commented_at",)),
        "latest_comment": Wanted("Query", "table", ("complaint_id",), ("commented_at",)),
        "complaint_of_customer": Wanted("Query", "table", ("complaint_id",), filtered=True),
        "complaints_of_customer": Wanted("Query", "index", ("customer_id",)),
        "escalated_to": Wanted("Query", "index", ("escalated_to",), ("escalated_at",)),
        "comments_of_agent": Wanted("Query", "index", ("agent_id",), ("commented_at",)),
    },
    objects=objects,
    calls=(
        ("complaint", {"complaint_id": "Complaint7"}),
        ("comments_of", {"complaint_id": "Complaint7"}),
        ("latest_comment", {"complaint_id": "Complaint11"}),
        ("complaint_of_customer", {"customer_id": "custX", "complaint_id": "Complaint1"}),
        ("complaint_of_customer", {"customer_id": "custXY", "complaint_id": "Complaint1"}),
        ("complaints_of_customer", {"customer_id": "custX"}),
        ("escalated_to", {"agent_id": "AgentB"}),
        (
            "comments_of_agent",
            {"agent_id": "AgentA", "start": START, "end": START + timedelta(hours=20)},
        ),
    ),
)
