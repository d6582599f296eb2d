"""Small designs whose heat can be worked out by hand."""

from __future__ import annotations

from datetime import datetime

from stator import (
    Design,
    Entity,
    IndexKey,
    Query,
    TableSettings,
    creates,
    distinct,
    find,
    ident,
    largest,
    read,
    updates,
    write,
)
from stator.design.table_settings import ProvisionedCapacity
from stator.design.value_facts import Fact


class Event(Entity):
    event_id: str = ident()
    text: str = ""


class Setting(Entity):
    name: str = ident()
    value: str = ""


class Reading(Entity, key=("DEVICE#{device_id}", "AT#{at}")):
    """Its sort key rises: a device's readings arrive in order."""

    device_id: str = ident()
    at: datetime = ident()
    value: float = 0.0


class Note(Entity, key=("BOARD#{board}", "NOTE#{note_id}")):
    """Its sort keys are random."""

    board: str = ident()
    note_id: str = ident()
    text: str = ""


class Post(
    Entity,
    key={"board": "{board}", "post_id": "{post_id}"},
    index={"by_score": IndexKey({"board": "{board}", "score": "{score}"}, local=True)},
):
    """Like ``Note``; a local index orders a board's posts by their score."""

    board: str = ident()
    post_id: str = ident()
    score: int = 0


class Ticket(Entity, index={"by_queue": ("QUEUE#{queue}", "TICKET#{ticket_id}")}):
    """One queue gets most tickets, and its index key is written by hand, without shards."""

    ticket_id: str = ident()
    queue: str
    text: str = ""


def capacity(read: int, write: int) -> TableSettings:
    return TableSettings(capacity=ProvisionedCapacity(read_units=read, write_units=write))


def events(rps: float, settings: TableSettings | None = None, volume: float = 1_000_000) -> Design:
    @write(rps=rps)
    def record() -> object:
        return creates(Event)

    return Design("log", [Event], [record], volumes={Event: volume}, settings=settings)


def settings(reads: float, writes: float) -> Design:
    @read(rps=reads)
    def setting(name: str) -> Query[Setting]:
        return find(Setting).where(Setting.name == name)

    @write(rps=writes)
    def change() -> object:
        return updates(Setting.value)

    return Design("app", [Setting], [setting, change], volumes={Setting: 1})


def readings(rps: float, devices: float) -> Design:
    """Readings of so many devices."""

    @write(rps=rps)
    def measure() -> object:
        return creates(Reading)

    facts = [distinct(Reading.device_id, values=devices)]
    return Design("grid", [Reading], [measure], volumes={Reading: 1_000_000}, facts=facts)


def notes(rps: float, boards: float) -> Design:
    @write(rps=rps)
    def add() -> object:
        return creates(Note)

    facts: list[Fact] = [distinct(Note.board, values=boards)]
    return Design("wall", [Note], [add], volumes={Note: 1_000_000}, facts=facts)


def posts(rps: float) -> Design:
    """All posts are on one board, and a local index holds them, too."""

    @write(rps=rps)
    def publish() -> object:
        return creates(Post)

    @read(rps=1, returns=10, consistent=True)
    def best(board: str) -> Query[Post]:
        return find(Post).where(Post.board == board).newest_first(Post.score).limit(10)

    facts = [distinct(Post.board, values=1)]
    return Design("forum", [Post], [publish, best], volumes={Post: 100_000}, facts=facts)


def tickets(rps: float, share: float) -> Design:
    @write(rps=rps)
    def open_ticket() -> object:
        return creates(Ticket)

    @read(rps=1, returns=10)
    def of_queue(queue: str) -> Query[Ticket]:
        return find(Ticket).where(Ticket.queue == queue).limit(10)

    return Design(
        "help",
        [Ticket],
        [open_ticket, of_queue],
        volumes={Ticket: 100_000},
        facts=[largest(Ticket.queue, share)],
    )
