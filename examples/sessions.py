"""Sessions and one-time tokens: expiry that is checked, renewal, log-out on every device.

The patterns: the session of a token, on every request; the sessions of a user, for a page that
lists the devices; and a password-reset token, which works once.

- DynamoDB may delete an expired item days late. Reads through the data layer hide it from the
  second in which it expires. Writes do not look at the expiry time, so each of them states it as
  a condition.
- Only the hash of a token is stored. Somebody who reads the table cannot log in with it.
- A user has an *epoch*, and a session is valid while it has the user's epoch. So one write ends
  every session, also one that is being created at the same moment.

python examples/sessions.py [ADDRESS]
"""

from __future__ import annotations

import hashlib
import secrets
import sys
from datetime import UTC, datetime, timedelta

from stator import (
    Db,
    Design,
    Entity,
    Query,
    connect,
    created,
    creates,
    find,
    ident,
    per,
    read,
    ttl,
    updates,
    write,
)
from stator.errors import ConditionFailed, ItemNotFound, TransactionFailed

SESSION_LIFE = timedelta(hours=8)
RESET_LIFE = timedelta(minutes=15)


class User(Entity):
    user_id: str = ident()
    password_hash: str
    epoch: int = 0


class Session(Entity):
    token_hash: str = ident()
    user_id: str
    device: str
    epoch: int
    started_at: datetime = created()
    expires_at: datetime = ttl()


class PasswordReset(Entity):
    token_hash: str = ident()
    user_id: str
    expires_at: datetime = ttl()


@read(rps=2_000, consistent=True)
def session_by_token(token_hash: str) -> Query[Session]:
    return find(Session).where(Session.token_hash == token_hash)


@read(rps=2_000, consistent=True)
def user_by_id(user_id: str) -> Query[User]:
    return find(User).where(User.user_id == user_id)


@read(rps=5, returns=3)
def sessions_of_user(user_id: str) -> Query[Session]:
    return find(Session).where(Session.user_id == user_id).newest_first(Session.started_at)


@write(rps=20)
def start_session() -> object:
    return creates(Session)


@write(rps=50)
def renew_session() -> object:
    return updates(Session.expires_at)


accounts = Design(
    "accounts",
    [User, Session, PasswordReset],
    [session_by_token, user_by_id, sessions_of_user, start_session, renew_session],
    volumes={User: 200_000, Session: per(User, 3), PasswordReset: 500},
)


def hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def now(db: Db) -> datetime:
    return datetime.fromtimestamp(db.context.now(), UTC)


def log_in(db: Db, user_id: str, device: str) -> str:
    """Start a session and return its token."""
    user = db.get_one(User, user_id=user_id, consistent=True)
    token = secrets.token_urlsafe(32)
    db.create(
        Session(
            token_hash=hashed(token),
            user_id=user_id,
            device=device,
            epoch=user.epoch,
            expires_at=now(db) + SESSION_LIFE,
        )
    )
    return token


def session_of(db: Db, token: str) -> Session | None:
    """Return the valid session of a token: stored, not expired, and not revoked."""
    session = db.first(session_by_token(hashed(token)))
    if session is None:
        return None
    user = db.first(user_by_id(session.user_id))
    return session if user is not None and user.epoch == session.epoch else None


def sessions_on_devices(db: Db, user_id: str) -> list[Session]:
    user = db.get_one(User, user_id=user_id)
    return [each for each in db.fetch(sessions_of_user(user_id)) if each.epoch == user.epoch]


def renew(db: Db, token: str) -> bool:
    """Extend a session that has not expired. One that has stays expired."""
    try:
        with db.update(
            Session, token_hash=hashed(token), when=Session.expires_at > now(db)
        ) as session:
            session.expires_at = now(db) + SESSION_LIFE
    except (ConditionFailed, ItemNotFound):
        return False
    return True


def log_out(db: Db, token: str) -> None:
    db.delete(Session, token_hash=hashed(token))


def log_out_everywhere(db: Db, user_id: str) -> None:
    with db.update(User, user_id=user_id) as user:
        user.epoch += 1


def request_reset(db: Db, user_id: str) -> str:
    token = secrets.token_urlsafe(32)
    db.create(
        PasswordReset(token_hash=hashed(token), user_id=user_id, expires_at=now(db) + RESET_LIFE)
    )
    return token


def reset_password(db: Db, token: str, password_hash: str) -> bool:
    """Set a new password and end all sessions. The token is deleted with it, so it works once."""
    reset = db.get(PasswordReset, token_hash=hashed(token), consistent=True)
    if reset is None:
        return False
    try:
        with db.transaction() as tx:
            tx.delete(reset, must_exist=True, when=PasswordReset.expires_at > now(db))
            with tx.update(User, user_id=reset.user_id) as user:
                user.password_hash = password_hash
                user.epoch += 1
    except TransactionFailed as failed:
        if not any(isinstance(error, ConditionFailed) for _, _, error in failed.failures):
            raise
        return False
    return True


def main(address: str | None = None) -> None:
    with connect(accounts, address) as db:
        db.ensure()
        db.put(User(user_id="anna", password_hash="hash 1"))
        phone, laptop = log_in(db, "anna", "phone"), log_in(db, "anna", "laptop")
        print("devices:", [each.device for each in sessions_on_devices(db, "anna")])
        print("renewed:", renew(db, phone))

        log_out(db, laptop)
        print("after a log-out: phone", bool(session_of(db, phone)), end=", ")
        print("laptop", bool(session_of(db, laptop)))

        token = request_reset(db, "anna")
        print("password reset:", reset_password(db, token, "hash 2"))
        print("again, with the same token:", reset_password(db, token, "hash 3"))
        print("phone after the reset:", bool(session_of(db, phone)))


if __name__ == "__main__":
    main(*sys.argv[1:2])
