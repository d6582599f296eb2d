"""Sessions: valid only while neither expired nor revoked, whatever DynamoDB still holds."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sessions import (
    RESET_LIFE,
    SESSION_LIFE,
    PasswordReset,
    Session,
    User,
    accounts,
    hashed,
    log_in,
    log_out,
    log_out_everywhere,
    renew,
    request_reset,
    reset_password,
    session_of,
    sessions_on_devices,
)

from stator import Db, Engine, connect
from stator.clock import VirtualClock
from tests.targets import Target


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def db(clock: VirtualClock) -> Iterator[Db]:
    with Engine.open(clock=clock) as engine, connect(accounts, engine, clock=clock) as db:
        db.put(User(user_id="anna", password_hash="1"))
        yield db


def test_an_expired_session_is_invalid_while_it_is_still_stored(
    db: Db, clock: VirtualClock
) -> None:
    token = log_in(db, "anna", "phone")
    clock.advance(SESSION_LIFE.total_seconds() - 1)
    assert session_of(db, token) is not None
    clock.advance(2)
    stored = db.get(Session, token_hash=hashed(token), include_expired=True)
    assert stored is not None
    assert session_of(db, token) is None
    assert sessions_on_devices(db, "anna") == []


def test_an_expired_session_cannot_be_renewed_and_a_valid_one_can(
    db: Db, clock: VirtualClock
) -> None:
    kept, lost = log_in(db, "anna", "phone"), log_in(db, "anna", "laptop")
    clock.advance(SESSION_LIFE.total_seconds() - 1)
    assert renew(db, kept)
    clock.advance(2)
    assert not renew(db, lost)
    assert not renew(db, "a token of nobody")
    assert session_of(db, kept) is not None
    assert session_of(db, lost) is None


def test_a_log_out_ends_one_session_and_a_revocation_all(target: Target) -> None:
    db = target.connect(accounts)
    for user in ("anna", "ben"):
        db.put(User(user_id=user, password_hash="1"))
    phone, laptop, of_ben = (
        log_in(db, "anna", "phone"),
        log_in(db, "anna", "laptop"),
        log_in(db, "ben", "phone"),
    )
    log_out(db, laptop)
    assert [each is None for each in (session_of(db, phone), session_of(db, laptop))] == [
        False,
        True,
    ]
    log_out_everywhere(db, "anna")
    assert session_of(db, phone) is None
    assert sessions_on_devices(db, "anna") == []
    assert session_of(db, of_ben) is not None
    assert session_of(db, log_in(db, "anna", "phone")) is not None


def test_no_token_is_stored(db: Db) -> None:
    tokens = [log_in(db, "anna", "phone"), request_reset(db, "anna")]
    stored = str(db.call("Scan", {"TableName": "accounts"}))
    assert not any(token in stored for token in tokens)
    assert all(hashed(token) in stored for token in tokens)


def test_a_reset_token_works_once_even_when_it_is_used_at_once(db: Db) -> None:
    phone, token = log_in(db, "anna", "phone"), request_reset(db, "anna")
    with ThreadPoolExecutor(8) as threads:
        passwords = [f"new {number}" for number in range(8)]
        worked = list(threads.map(lambda each: reset_password(db, token, each), passwords))
    assert sum(worked) == 1
    user = db.get_one(User, user_id="anna")
    assert (user.password_hash, user.epoch) == (passwords[worked.index(True)], 1)
    assert session_of(db, phone) is None


def test_a_reset_token_that_expired_changes_nothing(db: Db, clock: VirtualClock) -> None:
    token = request_reset(db, "anna")
    clock.advance(RESET_LIFE.total_seconds() + 1)
    assert not reset_password(db, token, "new")
    assert db.get_one(User, user_id="anna").password_hash == "1"
    assert db.get(PasswordReset, token_hash=hashed(token), include_expired=True) is not None
