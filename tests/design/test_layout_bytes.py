"""Sizes with keys, and what an update does to a sparse index."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Any

import pytest

from stator.design.design import Design
from stator.design.entities.conditions import attr
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Query, find
from stator.design.patterns.write_pattern import creates, updates, write
from stator.design.value_facts import share
from stator.verification import verify


class State(Enum):
    OPEN = "open"
    CLOSED = "closed"


class Step(Enum):
    NEW = "new"
    PAID = "paid"
    SENT = "sent"


class Ticket(Entity):
    ticket_id: str = ident()
    queue: str
    state: State
    step: Step
    due_at: datetime | None = None
    text: str


@read(rps=5, returns=20)
def open_tickets(queue: str) -> Query[Ticket]:
    return find(Ticket).where(Ticket.queue == queue, Ticket.state == State.OPEN)


@read(rps=5, returns=20)
def new_tickets(queue: str) -> Query[Ticket]:
    return find(Ticket).where(Ticket.queue == queue, Ticket.step == Step.NEW)


@read(rps=5, returns=20)
def due(queue: str) -> Query[Ticket]:
    return find(Ticket).where(Ticket.queue == queue, attr(Ticket.due_at).exists())


@write(rps=5)
def change_state() -> object:
    return updates(Ticket.state)


@write(rps=5)
def change_step() -> object:
    return updates(Ticket.step)


@write(rps=5)
def set_due() -> object:
    return updates(Ticket.due_at)


@write(rps=5)
def move() -> object:
    return updates(Ticket.queue)


@write(rps=5)
def file() -> object:
    return creates(Ticket)


def tickets(*patterns: Any, size: int = 400, **options: Any) -> Design:
    return Design(
        "desk",
        [Ticket],
        patterns,
        facts=[
            share(Ticket.state == State.OPEN, 0.01),
            share(Ticket.step == Step.NEW, 0.01),
            share(attr(Ticket.due_at).exists(), 0.01),
        ],
        volumes={Ticket: 100_000},
        sizes={Ticket: size},
        **options,
    )


@pytest.mark.parametrize(
    ("reading", "change", "units"),
    [
        (open_tickets, change_state, 1.0),  # of two values, each change enters or leaves
        (new_tickets, change_step, 0.01 + 0.99 / 2),  # of three, half of the others enter
        (due, set_due, 1.0 + 0.01**2),  # an absent value becomes a present one
        (open_tickets, move, 0.01 * 2),  # an entry that moves is deleted and inserted
    ],
)
def test_a_change_of_the_field_of_a_sparse_index_is_a_transition(
    reading: Any, change: Any, units: float
) -> None:
    design = tickets(reading, change)
    found = design.plan().pattern(change.name).units_per_call
    assert found == pytest.approx(1.0 + units, rel=1e-3)
    measured = verify(design, most_items=2_000).row(change.name).measured_units
    assert found == pytest.approx(measured, rel=0.25)


@pytest.mark.parametrize("layout", ["single-table", "table-per-entity"])
def test_items_and_entries_have_the_bytes_of_their_keys(layout: Any) -> None:
    design = tickets(open_tickets, file, size=400, layout=layout)
    [base, entry] = sorted(design.plan().stored, key=lambda each: each.index or "")
    if layout == "single-table":
        # PK TICKET# and 24 bytes, SK TICKET; GSI1PK STATE#open#QUEUE# and 24, GSI1SK TICKET#...
        assert 400 + 33 + 8 < base.item_bytes < 400 + 33 + 8 + 5
        assert entry.item_bytes > base.item_bytes
    else:
        assert base.item_bytes < 402


def test_keys_that_pass_a_kilobyte_cost_a_write_unit() -> None:
    design = tickets(file, size=1_000)
    assert design.plan().pattern("file").units_per_call == 2
    alone = tickets(file, size=1_000, layout="table-per-entity")
    assert alone.plan().pattern("file").units_per_call == 1


def test_returns_says_how_many_have_the_value_of_an_enum() -> None:
    @read(rps=1, returns=50)
    def in_step(step: Step) -> Query[Ticket]:
        return find(Ticket).where(Ticket.step == step)

    design = Design(
        "desk", [Ticket], [in_step], volumes={Ticket: 100_000}, sizes={Ticket: 400}
    )  # fmt: skip
    row = verify(design, most_items=2_000).row("in_step")
    assert row.ok
    assert row.estimated_units < 10
