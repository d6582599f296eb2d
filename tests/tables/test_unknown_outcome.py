"""A write that may have been applied is not reported as throttled, by no kind of write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from stator import Design, Entity, connect, connect_async, ident, soft_delete, unique
from stator.clock import VirtualClock
from stator.errors import (
    AccessDenied,
    BatchFailed,
    OutcomeUnknown,
    PartlyDone,
    StatorError,
    Throttled,
    ThroughputExceeded,
)
from stator.patterns import Lock, Once, Series
from stator.testing import Fault, InterceptedCall, faulty
from stator.transport import ResentReply
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


def carry_out_then_fail(call: InterceptedCall) -> Fault | None:
    """Every attempt is applied and answered with a fault of the service."""
    return None if call.operation in READS else Fault("server error", carried_out=True)


def lose_then_refuse(call: InterceptedCall) -> Fault | None:
    """The first attempt is applied and its answer lost; a repeat meets a refusal for good.

    A batch is then cut in halves, whose refusals say nothing about the first attempt.
    """
    if call.operation in READS or _opens_a_bucket(call):
        return None
    error = AccessDenied("not any more")
    error.after_unknown = not _LOST
    _LOST.append(call.number)
    return Fault("lost answer" if error.after_unknown else "throttled", error=error)


_LOST: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_lost() -> None:
    _LOST.clear()


def _opens_a_bucket(call: InterceptedCall) -> bool:
    return call.operation == "UpdateItem" and "_history" in str(call.request)


WRITES: dict[str, Callable[[Any], Any]] = {
    "put": lambda db: db.put(Record(record_id="r")),
    "write_many": lambda db: db.write_many([Record(record_id="r"), Record(record_id="s")]),
    "delete_many": lambda db: db.delete_many(Record, ["r"]),
    "seen": lambda db: Once(db, "messages").seen("m"),
    "run": lambda db: Once(db, "payments").run("p", lambda: 1),
    "acquire": lambda db: Lock(db, "lock").acquire(),
    "release": lambda db: None,
    "add": lambda db: series(db).add(Reading(sensor="s", at=AT)),
    "add_many": lambda db: series(db).add_many([Reading(sensor="s", at=AT)]),
}


def series(db: Any) -> Any:
    """Each test first adds a reading, which opens the bucket of the next one."""
    return Series(db, Reading, by="sensor", at="at", name="readings")


FAULTS = [lose_then_throttle, carry_out_then_fail, lose_then_refuse]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_may_have_happened_is_unknown(name: str, fault: Any) -> None:
    with connect(DESIGN) as db:
        series(db).add(Reading(sensor="s", at=AT + timedelta(seconds=1)))
        lease = Lock(db, "held").acquire()
        with faulty(db, fault), pytest.raises(StatorError) as seen:
            WRITES[name](db) if name != "release" else Lock(db, "held").release(lease)
    _check(seen.value)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", [name for name in WRITES if name not in ("run", "release")])
def test_the_same_awaited(name: str, fault: Any) -> None:
    async def main() -> None:
        async with connect_async(DESIGN) as db:
            await series(db).add(Reading(sensor="s", at=AT + timedelta(seconds=1)))
            with faulty(db, fault), pytest.raises(StatorError) as seen:
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


def test_an_item_left_out_after_a_lost_answer_is_unknown() -> None:
    """The lost first attempt may have written what later answers leave unprocessed."""

    def leave(call: InterceptedCall, reply: dict[str, Any]) -> dict[str, Any]:
        left = {"UnprocessedItems": orjson.loads(orjson.dumps(call.request["RequestItems"]))}
        return ResentReply(left) if call.number == 1 else left

    db = connect(DESIGN, clock=VirtualClock())
    with faulty(db, after=leave), pytest.raises(BatchFailed) as seen:
        db.write_many([Record(record_id="r"), Record(record_id="s")])
    _check(seen.value)


class Note(Entity):
    note_id: str = ident()
    text: str = ""
    address: str | None = unique(default=None)
    deleted_at: datetime | None = soft_delete()


def _update(db: Any, **more: Any) -> None:
    with db.update(Note, note_id="n", **more) as note:
        note.text = "new"


READ_AFTERWARDS: dict[str, Callable[[Any], Any]] = {
    "restore": lambda db: db.restore(Note, note_id="n"),
    "upsert": lambda db: db.upsert(Note(note_id="n", text="new", address="a")),
    "upsert once": lambda db: db.upsert(Note(note_id="n", text="new"), once=True),
    "update once": lambda db: _update(db, returns="new", once=True),
    "patch once": lambda db: db.patch(Note, {"text": "new"}, note_id="n", returns="new", once=True),
}


def after_the_write(fault: Fault) -> Callable[[InterceptedCall], Fault | None]:
    writes: list[int] = []

    def decide(call: InterceptedCall) -> Fault | None:
        if call.operation not in READS:
            writes.append(call.number)
            return None
        return fault if writes else None

    return decide


AFTERWARDS = [Fault("throttled"), Fault("server error"), Fault("lost request")]


@pytest.mark.parametrize("fault", AFTERWARDS)
@pytest.mark.parametrize("name", READ_AFTERWARDS)
def test_a_read_that_fails_after_its_write_says_that_the_write_is_stored(
    name: str, fault: Fault
) -> None:
    with connect(Design("notes", [Note])) as db:
        db.create(Note(note_id="n"))
        if name == "restore":
            db.delete(Note, note_id="n")
        with faulty(db, after_the_write(fault)), pytest.raises(PartlyDone, match="stored") as seen:
            READ_AFTERWARDS[name](db)
        assert seen.value.sent
        assert "do not send the write again" in str(seen.value.hint)
        assert db.get_one(Note, note_id="n").text == ("" if name == "restore" else "new")


@pytest.mark.parametrize("name", ["restore", "upsert", "upsert once", "patch once"])
def test_the_same_after_an_awaited_write(name: str) -> None:
    async def main() -> None:
        async with connect_async(Design("notes", [Note])) as db:
            await db.create(Note(note_id="n"))
            if name == "restore":
                await db.delete(Note, note_id="n")
            fault = after_the_write(Fault("throttled"))
            with faulty(db, fault), pytest.raises(PartlyDone):
                await READ_AFTERWARDS[name](db)

    asyncio.run(main())


def test_a_failed_batch_shows_no_values(target: Target) -> None:
    class Person(Entity):
        person_id: str = ident()
        email: str = ""

    db = target.connect(Design("people", [Person]))
    with pytest.raises(BatchFailed) as seen:
        db.write_many([Person(person_id="p" * 3000, email="anna@example.org")])
    assert "anna@example.org" not in str(seen.value)
