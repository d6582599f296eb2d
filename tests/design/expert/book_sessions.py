"""Published: the session store of The DynamoDB Book."""

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
    read,
    ttl,
    write,
)

SOURCE = (
    "The DynamoDB Book, session store chapter. From memory; confidence high. The token is the "
    "whole key; "
    "sessions expire by TTL; an index by user name with keys only finds the tokens to delete."
)


class Session(Entity):
    token: str = ident()
    username: str
    created_at: datetime
    user_agent: str
    expires: datetime | None = ttl(days=7, default=None)


@read(rps=3_000)
def session(token: str) -> Query[Session]:
    return find(Session).where(Session.token == token)


@read(rps=1, returns=3)
def tokens_of(username: str) -> Only[tuple[str]]:
    return find(Session).where(Session.username == username).only(Session.token)


@write(rps=50)
def sign_in() -> object:
    return creates(Session)


@write(rps=3)
def sign_out_everywhere() -> object:
    return deletes(Session, times=3)


design = Design(
    "book_sessions",
    [Session],
    [session, tokens_of, sign_in, sign_out_everywhere],
    volumes={Session: 20_000_000},
    sizes={Session: 700},
)

EXPECTED = {
    "max_indexes": 1,
    "entities": {"Session": {"partition": ["token"], "sort": []}},
    "patterns": {
        "session": {"by": "base"},
        "tokens_of": {
            "by": "index",
            "partition": ["username"],
            "sort": [],
            "projection": "KEYS_ONLY",
            "projection_or": ["INCLUDE"],
        },
    },
}
WHY = {"tokens_of": "Only tokens are needed, so nothing else is copied."}
