"""What ``Ingest`` refuses when routes are declared, how it decodes, and ``app.write``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from stator import Design, Entity, Query, connect, find, ident, large, read, unique
from stator.errors import ConfigurationError, DesignError
from stator.pipeline import DeadRecordList, Ingest, IngestOptions, KafkaOptions, SourceRecord

from .meters import Reading, Total, add_to_total, meters


class User(Entity):
    user_id: str = ident()
    email: str = unique()


class Paper(Entity):
    paper_id: str = ident()
    text: str = large()


class Bare(Entity):
    bare_id: str = ident()
    count: int


@read()
def user(user_id: str) -> Query[User]:
    return find(User).where(User.user_id == user_id)


others = Design("others", [User, Paper, Bare], [user])


def _fold(app: Ingest, **options: Any) -> Any:
    return app.fold(Total, topic="a", by=lambda event: event, **options)(add_to_total)


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda app: app.put(User, topic="a"), "User is not in the design meters"),
        (lambda app: app.put(Reading, topic=""), "is not a topic's name"),
        (lambda app: app.put(Reading, topic="a", guard="magic"), "guard='magic' is not a guard"),
        (lambda app: app.put(Reading, topic="a", guard="version"), "do not fit together"),
        (
            lambda app: app.put(Reading, topic="a", guard="id", version=Reading.at),
            "do not fit together",
        ),
        (lambda app: app.put(Reading, topic="a", version=Total.last), "is not a field of Reading"),
        (lambda app: app.put(Reading, topic="a", decode=7), "decode=7 is not a decoder"),
        (lambda app: app.put(Reading, topic="a", unknown="keep"), "unknown='keep'"),
        (lambda app: app.put(Reading, topic="a", event=dict), "event= needs convert="),
        (lambda app: app.put(Reading, topic="a", source="a#b"), "cannot name a log"),
        (
            lambda app: (app.put(Reading, topic="a"), app.put(Reading, topic="b")),
            "Reading has a route already",
        ),
        (lambda app: (_fold(app), _fold(app)), "would share their marks"),
        (lambda app: (app.put(Total, topic="a"), _fold(app)), "Total has a route already"),
        (lambda app: app.on("a", guard="position")(print), "guard='position' is not a guard"),
        (lambda app: (app.on("a")(print), app.on("a")(repr)), "would share one position"),
    ],
)
def test_a_wrong_route_is_refused_when_it_is_declared(
    declare: Callable[[Ingest], Any], message: str
) -> None:
    with pytest.raises(DesignError, match=message):
        declare(Ingest(meters, "app"))


@pytest.mark.parametrize(
    ("entity", "message"), [(User, "unique"), (Paper, "large"), (Bare, "count has no default")]
)
def test_an_entity_that_one_guarded_write_cannot_hold_is_refused(
    entity: type[Any], message: str
) -> None:
    with connect(others, ":memory:") as db:
        db.ensure()
        app = Ingest(others, "app")
        app.fold(entity, topic="a", by=lambda event: event)(lambda event, into: None)
        with pytest.raises(DesignError, match=message):
            app.write(db, [])


def test_wrong_options_are_refused() -> None:
    with pytest.raises(DesignError, match="needs a Design"):
        Ingest("meters", "app")  # type: ignore[arg-type]
    with pytest.raises(DesignError, match="cannot name an ingest"):
        Ingest(meters, "a#b")
    for wrong in ({"start": "now"}, {"writers": 0}, {"max_errors": -1}, {"commit_seconds": 0.0}):
        with pytest.raises(ConfigurationError):
            IngestOptions(**wrong)
    with pytest.raises(ConfigurationError, match=r"must not set 'enable\.auto"):
        KafkaOptions("x", config={"enable.auto.commit": True})
    with connect(meters, ":memory:") as db:
        db.ensure()
        with pytest.raises(DesignError, match="has no routes"):
            Ingest(meters, "app").write(db, [])


@dataclass
class Measured:
    meter: str
    value: int
    at: datetime
    note: str = ""


def test_events_are_decoded_into_a_class_and_converted() -> None:
    seen: list[Measured] = []

    def reading(event: Measured) -> Reading | None:
        seen.append(event)
        return None if event.note else Reading(meter=event.meter, value=event.value, at=event.at)

    app = Ingest(meters, "app")
    app.put(
        Reading,
        topic="lines",
        decode=lambda record: dict(part.split("=") for part in record.value.decode().split(",")),
        event=Measured,
        convert=reading,
    )
    lines = [
        b"meter=m1,value=7,at=2026-11-19T10:00:00Z,more=x",
        b"meter=m2,value=8,at=2026-11-19T10:00:00Z,note=test",
        b"meter=m3,value=high,at=2026-11-19T10:00:00Z",
        b"meter=m4,value=8",
        b"nonsense",
    ]
    records = [SourceRecord("lines", 0, at, None, line) for at, line in enumerate(lines)]
    letters = DeadRecordList()
    with connect(meters, ":memory:") as db:
        db.ensure()
        progress = app.write(db, records, dead_letters=letters)
        assert db.get_one(Reading, meter="m1").value == 7
        assert db.get(Reading, meter="m2") is None
    assert seen[0] == Measured("m1", 7, datetime(2026, 11, 19, 10, tzinfo=UTC))
    assert (progress.written, progress.unrouted, progress.dead) == (1, 1, 3)
    assert [letter.record.offset for letter in letters.letters] == [2, 3, 4]
    assert "Measured.at is missing" in letters.letters[1].reason


def test_unknown_fields_can_be_refused() -> None:
    letters = DeadRecordList()
    app = Ingest(meters, "app")
    app.put(Reading, topic="readings", unknown="refuse")
    record = SourceRecord("readings", 0, 0, None, b'{"meter": "m1", "value": 1, "valeu": 2}')
    with connect(meters, ":memory:") as db:
        db.ensure()
        app.write(db, [record], dead_letters=letters)
    assert "valeu" in letters.letters[0].reason


def test_the_explanation_has_each_route_with_its_price() -> None:
    app = Ingest(meters, "app")
    app.put(Reading, topic="readings", guard="id")
    _fold(app)
    app.on("payments")(print)
    explained = app.explain()
    assert [(each.guard, each.cost.new) for each in explained.routes] == [
        ("id", 1),
        ("position", 1),
        ("transaction", 4),
    ]
    assert "payments -> print" in str(explained)
