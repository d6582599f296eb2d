"""A write reports success only where it is proven, whatever was lost on the way.

Each write loses its first answer, and the client sends it again. In between, another writer makes
the same change, a different one, or none. The first attempt arrived or it did not: the caller must
not take one for the other.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from stator import Design, Entity, connect, connect_async, ident, unique, version, write_token
from stator.engine import Engine
from stator.errors import (
    ConditionFailed,
    DesignError,
    ItemExists,
    ItemNotFound,
    OutcomeUnknown,
    ReplyLost,
    RequestRefused,
    StatorError,
    UniqueTaken,
    UpdateRefused,
    VersionConflict,
)
from stator.tables.db import Db
from tests.targets import Target

from .lossy import LostAnswer, lossy, lossy_async


class Seat(Entity):
    seat_id: str = ident()
    guest: str = ""
    count: int = 0


class Account(Entity):
    number: str = ident()
    balance: int = 0
    rev: int = version()


class Job(Entity):
    job_id: str = ident()
    state: str = "open"
    tries: int = 0
    rev: int = version()
    proof: str = write_token()


class Member(Entity):
    member_id: str = ident()
    email: str = unique()


DESIGN = Design("outcomes", [Seat, Account, Job, Member])


@pytest.fixture
def db(target: Target) -> Db:
    return target.connect(DESIGN)


def nothing() -> None:
    """No other writer acts."""


# -- an equal item proves nothing


@pytest.mark.parametrize("arrived", [True, False])
def test_a_seat_is_taken_by_one_guest(db: Db, arrived: bool) -> None:
    def other() -> None:
        if not arrived:
            db.create(Seat(seat_id="1A", guest="Kim"))

    mine = lossy(db, LostAnswer(arrived=arrived, meanwhile=other))
    with pytest.raises(OutcomeUnknown) as unknown:
        mine.create(Seat(seat_id="1A", guest="Kim"))
    assert isinstance(unknown.value.__cause__, ItemExists)
    assert "Seat(seat_id='1A')" in str(unknown.value)


@pytest.mark.parametrize("arrived", [True, False])
def test_increments_under_a_version_are_all_counted(db: Db, arrived: bool) -> None:
    db.create(Account(number="a"))
    mine = db.get(Account, number="a", consistent=True)
    theirs = db.get(Account, number="a", consistent=True)
    assert mine is not None and theirs is not None
    mine.balance += 1
    theirs.balance += 1

    def other() -> None:
        if not arrived:
            db.put(theirs)

    with pytest.raises(OutcomeUnknown) as unknown:
        lossy(db, LostAnswer(arrived=arrived, meanwhile=other)).put(mine)
    assert isinstance(unknown.value.__cause__, VersionConflict)
    assert mine.rev == 1  # not taken for written


@pytest.mark.parametrize("arrived", [True, False])
def test_a_job_is_deleted_by_one_worker(db: Db, arrived: bool) -> None:
    db.create(Seat(seat_id="j"))

    def other() -> None:
        if not arrived:
            db.delete(Seat, seat_id="j", must_exist=True)

    with pytest.raises(OutcomeUnknown) as unknown:
        lossy(db, LostAnswer(arrived=arrived, meanwhile=other)).delete(
            Seat, seat_id="j", must_exist=True
        )
    assert isinstance(unknown.value.__cause__, ItemNotFound)


def test_a_conditional_update_that_meets_its_own_change_is_unknown(db: Db) -> None:
    db.create(Seat(seat_id="s", guest="A"))
    with (
        pytest.raises(OutcomeUnknown) as unknown,
        lossy(db, LostAnswer(arrived=True)).update(Seat, seat_id="s", when=Seat.guest == "A") as s,
    ):
        s.guest = "B"
    assert isinstance(unknown.value.__cause__, ConditionFailed)


def test_writes_that_may_be_repeated_are(db: Db) -> None:
    lossy(db, LostAnswer(arrived=True)).put(Seat(seat_id="s", guest="A"))
    with lossy(db, LostAnswer(arrived=True)).update(Seat, seat_id="s") as s:
        s.guest = "B"
    assert db.get(Seat, seat_id="s", consistent=True) == Seat(seat_id="s", guest="B")
    lossy(db, LostAnswer(arrived=True)).delete(Seat, seat_id="s")
    assert db.get(Seat, seat_id="s", consistent=True) is None


def test_a_refusal_without_a_lost_answer_is_definite(db: Db) -> None:
    db.create(Seat(seat_id="s"))
    with pytest.raises(ItemExists):
        db.create(Seat(seat_id="s"))


WRITES: dict[str, Callable[[Db], Any]] = {
    "create": lambda db: db.create(Seat(seat_id="n")),
    "put": lambda db: db.put(Seat(seat_id="n")),
    "upsert": lambda db: db.upsert(Seat(seat_id="n")),
    "delete": lambda db: db.delete(Seat, seat_id="n"),
    "guarded": lambda db: db.create(Member(member_id="n", email="e")),
    "once": lambda db: db.create(Seat(seat_id="n"), once=True),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("arrived", [True, False])
def test_a_client_that_gives_up_after_a_loss_leaves_the_outcome_unknown(
    name: str, arrived: bool
) -> None:
    with connect(DESIGN) as db, pytest.raises(OutcomeUnknown) as unknown:
        WRITES[name](lossy(db, LostAnswer(arrived=arrived, repeats=False)))
    assert isinstance(unknown.value.__cause__, ReplyLost)


# -- once= proves the outcome


@pytest.mark.parametrize("arrived", [True, False])
def test_once_proves_a_create(db: Db, arrived: bool) -> None:
    made = lossy(db, LostAnswer(arrived=arrived)).create(Seat(seat_id="1A", guest="Kim"), once=True)
    assert made == db.get(Seat, seat_id="1A", consistent=True)


def test_once_proves_that_another_was_first(db: Db) -> None:
    other = Seat(seat_id="1A", guest="Kim")
    mine = lossy(db, LostAnswer(arrived=False, meanwhile=lambda: void(db.create(other))))
    with pytest.raises(ItemExists):
        mine.create(Seat(seat_id="1A", guest="Kim"), once=True)


@pytest.mark.parametrize("arrived", [True, False])
def test_once_proves_every_kind_of_write(db: Db, arrived: bool) -> None:
    def once() -> Db:
        return lossy(db, LostAnswer(arrived=arrived))

    db.create(Account(number="a"))
    account = db.get(Account, number="a", consistent=True)
    assert account is not None
    account.balance = 5
    once().put(account, once=True)
    assert account.rev == 2
    with once().update(Account, number="a", once=True) as a:
        a.balance += 1
    with once().update(account := stored(db, "a"), once=True) as a:
        a.balance += 1
    assert (account.balance, account.rev) == (7, 4)
    upserted = once().upsert(account, once=True)
    assert upserted.rev == 5
    once().delete(Account, number="a", must_exist=True, once=True)
    assert db.get(Account, number="a", consistent=True) is None


@pytest.mark.parametrize("arrived", [True, False])
def test_a_guarded_write_is_a_transaction_and_proven(db: Db, arrived: bool) -> None:
    lossy(db, LostAnswer(arrived=arrived)).create(Member(member_id="m", email="e"))
    with pytest.raises(UniqueTaken):
        lossy(db, LostAnswer(arrived=False)).create(Member(member_id="n", email="e"))


def test_once_cannot_return_what_a_transaction_does_not(db: Db) -> None:
    with pytest.raises(RequestRefused, match="cannot return"):
        db.delete(Seat, seat_id="s", returns="old", once=True)


# -- a write token proves what is still there


def test_a_write_token_proves_a_create(db: Db) -> None:
    job = lossy(db, LostAnswer(arrived=True)).create(Job(job_id="j"))
    found = db.get(Job, job_id="j", consistent=True)
    assert found == job and len(job.proof) == 16 and job.rev == 1


def test_a_write_token_proves_an_update_that_counts(db: Db) -> None:
    db.create(Job(job_id="j"))
    with lossy(db, LostAnswer(arrived=True)).update(Job, job_id="j") as j:
        j.tries += 1
    job = db.get(Job, job_id="j", consistent=True)
    assert job is not None and job.tries == 1
    with lossy(db, LostAnswer(arrived=True)).update(job) as j:
        j.tries += 1
    assert job.tries == 2 and job == db.get(Job, job_id="j", consistent=True)


@pytest.mark.parametrize("arrived", [True, False])
def test_the_token_of_another_write_proves_nothing(db: Db, arrived: bool) -> None:
    db.create(Job(job_id="j"))
    job = db.get(Job, job_id="j", consistent=True)
    assert job is not None

    def other() -> None:
        with db.update(Job, job_id="j") as j:
            j.state = "done"

    with (
        pytest.raises(OutcomeUnknown),
        lossy(db, LostAnswer(arrived=arrived, meanwhile=other)).update(job) as j,
    ):
        j.state = "done"


def test_a_delete_leaves_no_token(db: Db) -> None:
    db.create(Job(job_id="j"))
    with pytest.raises(OutcomeUnknown):
        lossy(db, LostAnswer(arrived=True)).delete(Job, job_id="j", must_exist=True)


def test_the_replaced_item_is_lost_with_the_answer(db: Db) -> None:
    job = db.create(Job(job_id="j"))
    with pytest.raises(OutcomeUnknown, match="has happened"):
        lossy(db, LostAnswer(arrived=True)).put(job, returns="old")


def test_a_write_token_belongs_to_stator(db: Db) -> None:
    db.create(Job(job_id="j"))
    with pytest.raises(UpdateRefused, match="set by Stator"), db.update(Job, job_id="j") as j:
        j.proof = "mine"

    class Wrong(Entity):
        wrong_id: str = ident()
        proof: int = write_token()

    with pytest.raises(DesignError, match="must be a str"):
        connect(Design("wrong", [Wrong]))


def test_batches_set_write_tokens(db: Db) -> None:
    db.write_many([Job(job_id=f"j{n}") for n in range(3)])
    found = [db.get(Job, job_id=f"j{n}", consistent=True) for n in range(3)]
    assert len({job.proof for job in found if job is not None} - {""}) == 3


# -- awaited, and by chance


def test_the_same_awaited() -> None:
    async def main() -> None:
        async with connect_async(DESIGN) as db:
            with pytest.raises(OutcomeUnknown):
                await lossy_async(db, LostAnswer(arrived=True)).create(Seat(seat_id="s"))
            await lossy_async(db, LostAnswer(arrived=True)).create(Seat(seat_id="t"), once=True)
            job = await lossy_async(db, LostAnswer(arrived=True)).create(Job(job_id="j"))
            assert job.rev == 1

    asyncio.run(main())


@pytest.mark.parametrize("seed", range(200))
def test_acknowledged_writes_have_happened_once(seed: int) -> None:
    """Writers in turns, each possibly losing an answer to the other: what is reported adds up."""
    chance = random.Random(seed)
    with Engine.open() as engine:
        db = connect(DESIGN, engine)
        db.create(Job(job_id="j"))
        db.create(Account(number="a"))
        told = {"created": 0, "deleted": 0, "counted": 0, "unknown": 0, "balance": 0, "put": 0}

        def act(depth: int) -> None:
            loss = LostAnswer(
                arrived=chance.random() < 0.5,
                meanwhile=lambda: act(depth - 1) if depth else nothing(),
                repeats=chance.random() < 0.7,
            )
            one = lossy(db, loss) if chance.random() < 0.6 else db
            once = chance.random() < 0.3
            kind = chance.choice(["created", "deleted", "counted", "balance", "put"])
            try:
                if kind == "created":
                    one.create(Seat(seat_id="s"), once=once)
                elif kind == "deleted":
                    one.delete(Seat, seat_id="s", must_exist=True, once=once)
                elif kind == "counted":
                    with one.update(Job, job_id="j", once=once) as job:
                        job.tries += 1
                elif kind == "balance":
                    with one.update(Account, number="a", once=once) as a:
                        a.balance += 1
                else:
                    account = stored(db, "a")
                    account.balance += 1
                    one.put(account, once=once)
                told[kind] += 1
            except OutcomeUnknown:
                told["unknown"] += 1
            except ConditionFailed:
                pass

        for _ in range(8):
            act(2)
        balance, job = stored(db, "a").balance, db.get(Job, job_id="j", consistent=True)
        assert job is not None
        assert told["balance"] + told["put"] <= balance
        assert balance <= told["balance"] + told["put"] + told["unknown"]
        assert told["counted"] <= job.tries <= told["counted"] + told["unknown"]
        assert abs(told["created"] - told["deleted"]) <= 1 + told["unknown"]


def stored(db: Db, number: str) -> Account:
    found = db.get(Account, number=number, consistent=True)
    assert found is not None
    return found


def void(_: object) -> None:
    """Turn a function's result into None."""


def test_every_error_of_a_write_is_one_of_ours(db: Db) -> None:
    assert issubclass(OutcomeUnknown, StatorError)
    assert not OutcomeUnknown.retryable
