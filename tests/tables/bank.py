"""Accounts, members with unique values that expire, and notes with times: for tests of writes."""

from __future__ import annotations

from datetime import datetime

from stator import (
    Design,
    Entity,
    Query,
    created,
    find,
    ident,
    read,
    ttl,
    unique,
    updated,
    updates,
    version,
    write,
)


class Account(Entity):
    number: str = ident()
    balance: int = 0
    limit: int = 0
    state: str = "open"
    moves: list[str] | None = None


class Member(Entity):
    member_id: str = ident()
    email: str | None = unique(default=None)
    score: int = 0
    expires: datetime | None = ttl(hours=1, default=None)
    rev: int = version()


class Note(Entity):
    note_id: str = ident()
    topic: str
    text: str = ""
    written: datetime = created()
    changed: datetime = updated()


@read(rps=50)
def accounts_in(state: str) -> Query[Account]:
    return find(Account).where(Account.state == state)


@read(rps=500)
def account(number: str) -> Query[Account]:
    return find(Account).where(Account.number == number)


@write(rps=5)
def close_account() -> object:
    return updates(Account.state, Account.balance)


@read(rps=50)
def member(member_id: str) -> Query[Member]:
    return find(Member).where(Member.member_id == member_id)


@read(rps=50)
def newest_notes(topic: str) -> Query[Note]:
    return find(Note).where(Note.topic == topic).newest_first(Note.written)


@read(rps=50)
def three_notes(topic: str) -> Query[Note]:
    return find(Note).where(Note.topic == topic).newest_first(Note.written).limit(3)


DESIGN = Design(
    "corners",
    [Account, Member, Note],
    [accounts_in, account, close_account, member, newest_notes, three_notes],
)
