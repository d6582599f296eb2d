"""Batches: everything that fits is written, and the rest is named with its reason."""

from __future__ import annotations

from batch import Event, events, events_of, log

from stator import Delete
from stator.errors import ValidationFailed
from tests.targets import Target


def test_one_bad_event_fails_alone(target: Target) -> None:
    db = target.connect(log)
    result = db.write_many(events(), on_error="collect")
    assert (result.written, result.requests >= 40) == (999, True)
    [failure] = result.failures
    assert failure.change.number == 500
    assert isinstance(failure.error, ValidationFailed)
    stored = [event.number for each in range(7) for event in db.fetch(events_of(f"d{each}"))]
    assert sorted(stored) == [number for number in range(1000) if number != 500]


def test_the_last_of_several_changes_to_an_event_wins(target: Target) -> None:
    db = target.connect(log)
    changes: list[Event | Delete] = [
        Event(device="d", number=0, text="first"),
        Delete(Event, device="d", number=0),
        Event(device="d", number=0, text="last"),
    ]
    assert db.write_many(changes).written == 3
    assert [event.text for event in db.fetch(events_of("d"))] == ["last"]
