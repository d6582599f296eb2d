"""Volumes that contradict the rates of creations are shown with both numbers."""

from __future__ import annotations

from datetime import datetime

from stator import Design, Entity, creates, deletes, ident, ttl, write
from stator.design.cost.growth import growth_notes


class Reading(Entity):
    device: str = ident()
    at: datetime = ident()


class Session(Entity):
    session_id: str = ident()
    expires_at: datetime = ttl()


@write(rps=200)
def measure() -> object:
    return creates(Reading)


@write(rps=200)
def forget() -> object:
    return deletes(Reading)


@write(rps=200)
def log_in() -> object:
    return creates(Session)


def test_a_volume_that_is_full_within_a_month_is_noted() -> None:
    design = Design("fleet", [Reading], [measure], volumes={Reading: 40_000})
    assert growth_notes(design) == (
        "measure() creates 525,600,000 Reading items a month; volumes says 40,000 (no ttl)",
    )


def test_a_guessed_volume_is_called_a_guess() -> None:
    [note] = growth_notes(Design("fleet", [Reading], writes={Reading: 200}))
    assert note.startswith("writes= creates 525,600,000 Reading items a month; without volumes")


def test_items_that_expire_or_are_deleted_do_not_accumulate() -> None:
    volumes: dict[type[Entity], int] = {Reading: 40_000, Session: 40_000}
    design = Design("fleet", [Reading, Session], [measure, forget, log_in], volumes=volumes)
    assert growth_notes(design) == ()


def test_a_volume_of_more_than_a_month_is_not_noted() -> None:
    design = Design("fleet", [Reading], [measure], volumes={Reading: 600_000_000})
    assert growth_notes(design) == ()
