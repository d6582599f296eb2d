"""Sample calls return as many items as declared, and updates find items as the plan assumes."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import pytest

from stator.design.design import Design
from stator.design.entities.conditions import attr
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Query, find
from stator.design.patterns.write_pattern import creates, updates, write
from stator.design.value_facts import distinct, share
from stator.verification import verify


class Patient(Entity):
    clinic_id: str = ident()
    patient_id: str = ident()
    last_name: str


class Visit(Entity):
    visit_id: str = ident()
    doctor_id: str
    at: datetime
    state: Literal["booked", "done", "cancelled"] = "booked"


class Stay(Entity):
    stay_id: str = ident()
    plate: str
    left_at: datetime | None = None


@pytest.mark.parametrize("returned", [1, 2, 3, 7, 10, 25, 50, 99, 100, 250, 300, 1_000])
def test_a_prefix_matches_exactly_the_declared_number_of_items(returned: int) -> None:
    @read(rps=20, returns=returned)
    def named(clinic_id: str, start: str) -> Query[Patient]:
        own = find(Patient).where(Patient.clinic_id == clinic_id)
        return own.where(attr(Patient.last_name).begins_with(start)).order_by(Patient.last_name)

    design = Design(
        "clinic",
        [Patient],
        [named],
        volumes={Patient: 4_800_000},
        sizes={Patient: 700},
        facts=[distinct(Patient.clinic_id, values=400), distinct(Patient.last_name, values=9_000)],
    )
    row = verify(design, most_items=5_000).row("named")
    assert row.items_returned == returned
    assert row.ok


@pytest.mark.parametrize("dropped", [0.05, 0.08, 0.3, 0.5])
@pytest.mark.parametrize("kind", ["between", "since", "until"])
def test_a_small_range_has_the_declared_part_of_items_that_a_filter_drops(
    dropped: float, kind: str
) -> None:
    def visits(doctor_id: str, when: Any) -> Query[Visit]:
        own = find(Visit).where(Visit.doctor_id == doctor_id, when)
        return own.filter(Visit.state != "cancelled").oldest_first(Visit.at)

    @read(rps=60, returns=20)
    def between(doctor_id: str, start: datetime, end: datetime) -> Query[Visit]:
        return visits(doctor_id, attr(Visit.at).between(start, end))

    @read(rps=60, returns=20)
    def since(doctor_id: str, start: datetime) -> Query[Visit]:
        return visits(doctor_id, Visit.at >= start)

    @read(rps=60, returns=20)
    def until(doctor_id: str, end: datetime) -> Query[Visit]:
        return visits(doctor_id, Visit.at < end)

    patterns: dict[str, Any] = {"between": between, "since": since, "until": until}
    of_doctor = patterns[kind]
    design = Design(
        "clinic",
        [Visit],
        [of_doctor],
        volumes={Visit: 1_000_000},
        sizes={Visit: 500},
        facts=[
            distinct(Visit.doctor_id, values=500),
            share(Visit.state == "cancelled", dropped),
        ],
    )
    row = verify(design, most_items=6_000).row(kind)
    assert row.items_returned == 20
    assert row.items_read == pytest.approx(20 / (1 - dropped), abs=0.6)


def stays(part: float, created: float, left: float, *, by: str) -> Design:
    @read(rps=90)
    def open_of(plate: str) -> Query[Stay]:
        own = find(Stay).where(Stay.plate == plate)
        if by == "absence":
            return own.where(attr(Stay.left_at).not_exists())
        return own.newest_first(Stay.left_at).limit(5)

    @write(rps=created)
    def enter() -> object:
        return creates(Stay)

    @write(rps=left)
    def leave() -> object:
        return updates(Stay.left_at)

    return Design(
        "stays",
        [Stay],
        [open_of, enter, leave],
        volumes={Stay: 50_000_000},
        sizes={Stay: 300},
        facts=[
            distinct(Stay.plate, values=10_000),
            share(attr(Stay.left_at).not_exists(), part),
        ],
    )


@pytest.mark.parametrize("by", ["absence", "presence"])
@pytest.mark.parametrize("part", [0.5, 0.1, 0.0015])
@pytest.mark.parametrize(("created", "left"), [(90, 90), (50, 150), (90, 40)])
def test_an_update_sets_what_new_items_lack(
    part: float, created: float, left: float, by: str
) -> None:
    design = stays(part, created, left, by=by)
    assert design.plan().tables[0].indexes
    row = verify(design, most_items=5_000).row("leave")
    assert row.ok, (row.estimated_units, row.measured_units)


def test_a_row_shows_the_guesses_of_the_plan() -> None:
    design = stays(0.0015, 90, 90, by="absence")
    planned = design.plan().pattern("leave").guesses
    assert any("before=" in each for each in planned)
    assert verify(design, most_items=2_000).row("leave").guesses[: len(planned)] == planned
