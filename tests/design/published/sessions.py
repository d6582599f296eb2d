"""Sessions and their child sessions.

Source: aws-samples/aws-dynamodb-examples, schema_design/SchemaExamples/SessionManagement/README.md.
The index is the inverted key of the table: by customer or child session, then by session.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from stator import Entity, Query, creates, deletes, find, ident, per, read, write

from .model import Difference, Keys, Model, Wanted, index_shapes

START = datetime(2026, 3, 1, tzinfo=UTC)


class Session(Entity):
    session_id: str = ident()
    customer_id: str
    logged_in_at: datetime
    access_token: str
    state: str


class ChildSession(Entity):
    child_session_id: str = ident()
    session_id: str
    access_token: str


@read(rps=1_000)
def session(session_id: str) -> Query[Session]:
    return find(Session).where(Session.session_id == session_id)


@read(rps=100, returns=2)
def child_sessions(session_id: str) -> Query[ChildSession]:
    return find(ChildSession).where(ChildSession.session_id == session_id)


@read(rps=100)
def by_child_session(child_session_id: str) -> Query[ChildSession]:
    return find(ChildSession).where(ChildSession.child_session_id == child_session_id)


@read(rps=50)
def last_login(customer_id: str) -> Query[Session]:
    return (
        find(Session)
        .where(Session.customer_id == customer_id)
        .newest_first(Session.logged_in_at)
        .limit(1)
    )


@read(rps=50)
def session_of_customer(customer_id: str, session_id: str) -> Query[Session]:
    return find(Session).where(Session.customer_id == customer_id, Session.session_id == session_id)


@read(rps=50, returns=3)
def sessions_of_customer(customer_id: str) -> Query[Session]:
    return find(Session).where(Session.customer_id == customer_id)


@write(rps=100)
def create_session() -> object:
    return creates(Session)


@write(rps=100)
def expire_session() -> object:
    return deletes(Session)


@write(rps=50)
def create_child() -> object:
    return creates(ChildSession)


def objects(chance: random.Random) -> list[Any]:
    found: list[Any] = []
    for at in range(30):
        found.append(
            Session(
                session_id=f"s{at}",
                customer_id=chance.choice(["ABC", "ABD", "A"]),
                logged_in_at=START + timedelta(minutes=at * 17 % 41),
                access_token="t",
                state="open",
            )
        )
        found += [
            ChildSession(
                child_session_id=f"child{at}-{number}", session_id=f"s{at}", access_token="t"
            )
            for number in range(at % 3)
        ]
    return found


MODEL = Model(
    name="sessions",
    entities=(Session, ChildSession),
    patterns=(
        session,
        child_sessions,
        by_child_session,
        last_login,
        session_of_customer,
        sessions_of_customer,
        create_session,
        expire_session,
        create_child,
    ),
    volumes={Session: 1_000_000, ChildSession: per(Session, 0.5)},
    keys={
        Session: Keys(
            ("suuid#{session_id}", "c#{customer_id}"),
            {"GSI": ("c#{customer_id}", "suuid#{session_id}")},
        ),
        ChildSession: Keys(
            ("suuid#{session_id}", "child#suuid#{child_session_id}"),
            {"GSI": ("child#suuid#{child_session_id}", "suuid#{session_id}")},
        ),
    },
    plain=frozenset({"GSI"}),
    paths={
        "session": Wanted("GetItem", "table", ("session_id",)),
        "child_sessions": Wanted("Query", "index", ("session_id",)),
        "by_child_session": Wanted("GetItem", "table", ("child_session_id",)),
        "last_login": Wanted("Query", "index", ("customer_id",), ("logged_in_at",)),
        "session_of_customer": Wanted("Query", "table", ("session_id",), filtered=True),
        "sessions_of_customer": Wanted("Query", "index", ("customer_id",)),
    },
    objects=objects,
    instead={"last_login": ()},
    calls=(
        ("session", {"session_id": "s7"}),
        ("child_sessions", {"session_id": "s5"}),
        ("by_child_session", {"child_session_id": "child5-1"}),
        ("last_login", {"customer_id": "ABC"}),
        ("session_of_customer", {"customer_id": "A", "session_id": "s3"}),
        ("sessions_of_customer", {"customer_id": "ABD"}),
    ),
    differences={
        "Session": Difference(
            "The session id alone identifies a session; with the customer in the sort key, a "
            "reader who has only the id needs a Query. The last login of a customer is found by "
            "its time; the published index is sorted by session id, so it returns any of them.",
            lambda ours, theirs: (
                ours.pattern("session").operation == "GetItem"
                and theirs.pattern("session").operation == "Query"
                and [sort[:1] for _, sort in index_shapes(ours, Session)] == [("logged_in_at",)]
                and [sort[:1] for _, sort in index_shapes(theirs, Session)] == [("session_id",)]
            ),
        ),
        "ChildSession": Difference(
            "Table and index change places: a child session is read by its own id with a "
            "GetItem, and listed by its session in the index. The number of entries is the "
            "same, but the key follows from the identity.",
            lambda ours, theirs: (
                ours.pattern("by_child_session").operation == "GetItem"
                and theirs.pattern("by_child_session").operation == "Query"
                and ours.pattern("child_sessions").units_per_call
                == theirs.pattern("child_sessions").units_per_call
            ),
        ),
    },
)
