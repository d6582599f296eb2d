"""``returns="old"`` gives the item from before the write, or says that it does not know it.

The client sends a write again whose answer was lost. The second answer shows the state after the
first attempt, which the same write may have made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from stator import Design, Entity, connect_async, ident, version, write_token
from stator.errors import OutcomeUnknown, ReplyLost, RequestRefused
from stator.testing import Fault, InterceptedCall, faulty
from tests.targets import Target


class Job(Entity):
    job_id: str = ident()
    state: str = "new"


class Stamped(Entity):
    stamped_id: str = ident()
    state: str = "new"
    token: str = write_token()


class Counted(Entity):
    counted_id: str = ident()
    state: str = "new"
    rev: int = version()


DESIGN = Design("old", [Job, Stamped, Counted])


def resend_writes(call: InterceptedCall) -> Fault | None:
    is_write = call.operation in ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems")
    return Fault("duplicated") if is_write else None


def lose_writes(call: InterceptedCall) -> Fault | None:
    is_write = call.operation in ("PutItem", "UpdateItem", "DeleteItem")
    return Fault("lost answer") if is_write else None


def _update(db: Any, entity: type[Any], **identity: str) -> Any:
    update = db.update(entity, returns="old", **identity)
    with update as changed:
        changed.state = "done"
    return update.result


WRITES: dict[str, Callable[[Any], Any]] = {
    "delete": lambda db: db.delete(Job, job_id="1", returns="old"),
    "put": lambda db: db.put(Job(job_id="1", state="done"), returns="old"),
    "patch": lambda db: db.patch(Job, {"state": "done"}, job_id="1", returns="old"),
    "update": lambda db: _update(db, Job, job_id="1"),
    "delete, with a token": lambda db: db.delete(Stamped, stamped_id="1", returns="old"),
    "put, with a token": lambda db: db.put(Stamped(stamped_id="1", state="d"), returns="old"),
    "call": lambda db: db.call(
        "DeleteItem",
        db.dry_run().delete(Job, job_id="1").request | {"ReturnValues": "ALL_OLD"},
    ),
}


@pytest.mark.parametrize("fault", [resend_writes, lose_writes])
@pytest.mark.parametrize("name", WRITES)
def test_an_old_item_that_may_be_our_own_is_unknown(name: str, fault: Any, target: Target) -> None:
    if name == "call" and fault is resend_writes:
        pytest.skip("a raw call that returns the old item is not sent again")
    db = target.connect(DESIGN)
    db.create(Job(job_id="1"))
    db.create(Stamped(stamped_id="1"))
    with faulty(db, fault), pytest.raises((OutcomeUnknown, ReplyLost)) as seen:
        WRITES[name](db)
    assert seen.value.sent
    if fault is resend_writes:
        assert "has happened" in str(seen.value)


@pytest.mark.parametrize("name", ["delete", "put", "patch"])
def test_the_same_awaited(name: str) -> None:
    async def main() -> None:
        async with connect_async(DESIGN) as db:
            await db.create(Job(job_id="1"))
            with faulty(db, resend_writes), pytest.raises(OutcomeUnknown, match="has happened"):
                await WRITES[name](db)

    asyncio.run(main())


def test_the_new_item_of_a_write_that_was_sent_again_is_known(target: Target) -> None:
    db = target.connect(DESIGN)
    db.create(Job(job_id="1"))
    with faulty(db, resend_writes):
        patched = db.patch(Job, {"state": "done"}, job_id="1", returns="new")
        assert db.upsert(Job(job_id="1", state="over")).state == "over"
    assert patched == Job(job_id="1", state="done")


def test_an_old_item_with_proof_is_read_first(target: Target) -> None:
    db = target.connect(DESIGN)
    db.create(Counted(counted_id="1"))
    with pytest.raises(RequestRefused, match="transaction cannot return the old item") as refused:
        db.delete(Counted, counted_id="1", returns="old", once=True)
    assert "get_one(consistent=True)" in str(refused.value.hint)
    popped = db.get_one(Counted, counted_id="1", consistent=True)
    with faulty(db, resend_writes):
        db.delete(popped, once=True)
    assert popped.state == "new"
    assert db.get(Counted, counted_id="1") is None
