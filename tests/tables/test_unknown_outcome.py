"""A write that may have been applied is not reported as throttled, by no kind of write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stator import Design, Entity, connect, connect_async, ident
from stator.errors import (
    BatchFailed,
    OutcomeUnknown,
    StatorError,
    Throttled,
    ThroughputExceeded,
)
from stator.patterns import Lock, Once, Series
from stator.testing import Fault, InterceptedCall, faulty
from tests.targets import Target

AT = datetime(2026, 11, 16, tzinfo=UTC)


class Record(Entity):
    record_id: str = ident()


class Reading(Entity):
    sensor: str = ident()
    at: datetime = ident()


DESIGN = Design("lost", [Record])
READS = ("GetItem", "BatchGetItem", "Query", "TransactGetItems")


def lose_then_throttle(call: InterceptedCall) -> Fault | None:
    """The first attempt is applied and its answer lost; every repeat is throttled."""
    if call.operation in READS:
        return None
    error = Throttled("slow down")
    error.after_unknown = True
    return Fault("lost answer", error=error)


WRITES: dict[str, Callable[[Any], Any]] = {
    "put": lambda db: db.put(Record(record_id="r")),
    "write_many": lambda db: db.write_many([Record(record_id="r"), Record(record_id="s")]),
    "delete_many": lambda db: db.delete_many(Record, ["r"]),
    "seen": lambda db: Once(db, "messages").seen("m"),
    "run": lambda db: Once(db, "payments").run("p", lambda: 1),
    "acquire": lambda db: Lock(db, "lock").acquire(),
    "add": lambda db: series(db).add(Reading(sensor="s", at=AT)),
    "add_many": lambda db: series(db).add_many([Reading(sensor="s", at=AT)]),
}


def series(db: Any) -> Any:
    """Each test first adds a reading, which opens the bucket of the next one."""
    return Series(db, Reading, by="sensor", at="at", name="readings")


@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_may_have_happened_is_unknown(name: str) -> None:
    with connect(DESIGN) as db:
        series(db).add(Reading(sensor="s", at=AT + timedelta(seconds=1)))
        with faulty(db, lose_then_throttle), pytest.raises(StatorError) as seen:
            WRITES[name](db)
    _check(seen.value)


@pytest.mark.parametrize("name", [name for name in WRITES if name != "run"])
def test_the_same_awaited(name: str) -> None:
    async def main() -> None:
        async with connect_async(DESIGN) as db:
            await series(db).add(Reading(sensor="s", at=AT + timedelta(seconds=1)))
            with faulty(db, lose_then_throttle), pytest.raises(StatorError) as seen:
                await WRITES[name](db)
            _check(seen.value)

    asyncio.run(main())


def _check(error: StatorError) -> None:
    if isinstance(error, BatchFailed):
        assert all(isinstance(each.error, OutcomeUnknown) for each in error.failures)
        assert "may not have been written" in str(error)
    else:
        assert isinstance(error, OutcomeUnknown)


def test_a_write_that_was_only_throttled_is_throttled() -> None:
    def throttle(call: InterceptedCall) -> Fault | None:
        return Fault("throttled") if call.operation == "PutItem" else None

    with connect(DESIGN) as db, faulty(db, throttle), pytest.raises(ThroughputExceeded):
        db.put(Record(record_id="r"))


def test_a_failed_batch_shows_no_values(target: Target) -> None:
    class Person(Entity):
        person_id: str = ident()
        email: str = ""

    db = target.connect(Design("people", [Person]))
    with pytest.raises(BatchFailed) as seen:
        db.write_many([Person(person_id="p" * 3000, email="anna@example.org")])
    assert "anna@example.org" not in str(seen.value)
