"""Published: AWS's complaint management schema."""

from datetime import datetime
from typing import Literal

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
    "AWS developer guide, complaint management. From memory; confidence high. A complaint and its "
    "communications share the complaint's partition; index by customer then complaint; sparse "
    "index by "
    "whom it was escalated to, then time; index by agent for agents' escalations."
)


class Complaint(Entity):
    complaint_id: str = ident()
    customer_id: str
    agent_id: str
    severity: Literal["P1", "P2", "P3"]
    state: Literal["waiting", "assigned", "investigating", "resolved"]
    created_at: datetime
    text: str
    escalated: Literal["yes"] | None = None  # 2 % of the complaints
    escalated_at: datetime | None = None


class Communication(Entity):
    complaint_id: str = ident()
    comm_id: str = ident()  # a ULID
    author: str
    text: str


@read(rps=30)
def complaint(complaint_id: str) -> Query[Complaint]:
    return find(Complaint).where(Complaint.complaint_id == complaint_id)


@read(rps=30, returns=9)
def complaint_with_communications(complaint_id: str) -> Bundle2[Complaint, Communication]:
    return together(Complaint, Communication).where(Complaint.complaint_id == complaint_id)


@read(rps=10, returns=8)
def communications_of(complaint_id: str) -> Query[Communication]:
    return (
        find(Communication)
        .where(Communication.complaint_id == complaint_id)
        .oldest_first(Communication.comm_id)
    )


@read(rps=10, returns=4)
def complaints_of(customer_id: str) -> Query[Complaint]:
    return find(Complaint).where(Complaint.customer_id == customer_id)


@read(rps=2, returns=1)
def complaint_of_customer(customer_id: str, complaint_id: str) -> Query[Complaint]:
    return find(Complaint).where(
        Complaint.customer_id == customer_id, Complaint.complaint_id == complaint_id
    )


@read(rps=1, returns=50)
def newest_escalations() -> Query[Complaint]:
    return (
        find(Complaint)
        .where(Complaint.escalated == "yes")
        .newest_first(Complaint.escalated_at)
        .limit(50)
    )


@read(rps=3, returns=10)
def escalations_of_agent(agent_id: str) -> Query[Complaint]:
    return (
        find(Complaint)
        .where(Complaint.agent_id == agent_id, attr(Complaint.escalated_at).exists())
        .newest_first(Complaint.escalated_at)
    )


@write(rps=3)
def complain() -> object:
    return creates(Complaint)


@write(rps=6)
def change_state() -> object:
    return updates(Complaint.state, Complaint.severity)


@write(rps=20)
def communicate() -> object:
    return creates(Communication)


@write(rps=0.1)
def escalate() -> object:
    return updates(Complaint.escalated, Complaint.escalated_at)


design = Design(
    "aws_complaints",
    [Complaint, Communication],
    [
        complaint,
        complaint_with_communications,
        communications_of,
        complaints_of,
        complaint_of_customer,
        newest_escalations,
        escalations_of_agent,
        complain,
        change_state,
        communicate,
        escalate,
    ],
    facts=[
        share(attr(Complaint.escalated_at).exists(), 0.02),
        share(attr(Complaint.escalated).exists(), 0.02),
        distinct(Complaint.customer_id, values=750_000),
        distinct(Complaint.agent_id, values=3_000),
    ],
    volumes={Complaint: 3_000_000, Communication: per(Complaint, 8)},
    sizes={Complaint: 1_200, Communication: 700},
)

EXPECTED = {
    "max_indexes": 3,
    "published_indexes": 3,
    "entities": {
        "Complaint": {"partition": ["complaint_id"], "sort": []},
        "Communication": {"partition": ["complaint_id"], "sort": ["comm_id"]},
    },
    "patterns": {
        "complaint": {"by": "base"},
        "complaint_with_communications": {"by": "base"},
        "communications_of": {"by": "base"},
        "complaints_of": {
            "by": "index",
            "partition": ["customer_id"],
            "sort": [],
            "or": [{"by": "index", "partition": ["customer_id"], "sort": ["complaint_id"]}],
        },
        "complaint_of_customer": {
            "by": "base",
            "or": [{"by": "index", "partition": ["customer_id"], "sort": ["complaint_id"]}],
        },
        "newest_escalations": {
            "by": "index",
            "partition": ["escalated"],
            "sort": ["escalated_at"],
            "sparse": True,
        },
        "escalations_of_agent": {
            "by": "index",
            "partition": ["agent_id"],
            "sort": ["escalated_at"],
            "sparse": True,
        },
    },
}
WHY = {
    "complaint_of_customer": "The whole identity is given: a GetItem plus a check of the "
    "customer is "
    "cheaper than the index that AWS uses.",
    "newest_escalations": "One value, but one new entry every ten seconds: an unsharded "
    "sparse index.",
}
