"""Sequences never repeat a number, and leave no gap where none is allowed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from stator import connect, connect_async
from stator.errors import (
    ConfigurationError,
    ItemExists,
    OutcomeUnknown,
    RequestRefused,
    UniqueTaken,
)
from stator.patterns.sequence import Sequence
from stator.tables.db import Db
from tests.patterns.crashing import Form, crash_everywhere
from tests.patterns.faults import with_faults
from tests.tables.shop import Order, User, order, shop, user
from tests.targets import Target


def invoice(number: int) -> Order:
    return order(number)


def test_numbers_come_one_after_another(target: Target) -> None:
    db = target.connect(shop())
    numbers = Sequence(db, "invoices")
    assert numbers.current() is None
    assert [numbers.next() for _ in range(4)] == [1, 2, 3, 4]
    assert Sequence(db, "invoices").next() == 5
    assert numbers.next() == 6 and numbers.current() == 6
    other = Sequence(db, "other", start=-1)
    assert [other.next() for _ in range(3)] == [-1, 0, 1]


def test_threads_leave_no_gap(target: Target) -> None:
    db = target.connect(shop())
    given: list[list[int]] = [[] for _ in range(4)]

    def take(mine: list[int]) -> None:
        numbers = Sequence(db, "invoices")
        mine.extend(numbers.next() for _ in range(8))

    threads = [threading.Thread(target=take, args=(mine,)) for mine in given]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(number for mine in given for number in mine) == list(range(1, 33))
    assert all(mine == sorted(mine) for mine in given)


def test_items_are_numbered_without_gaps(target: Target) -> None:
    db = target.connect(shop())

    def write() -> None:
        numbers = Sequence(db, "invoices")
        for _ in range(5):
            made = numbers.create(invoice)
            assert made.made > datetime(2000, 1, 1, tzinfo=UTC)

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = db.get_many(Order, [f"o{number:03d}" for number in range(1, 17)], consistent=True)
    assert [each is not None for each in found] == [True] * 15 + [False]


def test_an_item_that_cannot_be_written_takes_no_number(target: Target) -> None:
    db = target.connect(shop())
    numbers = Sequence(db, "users")
    db.create(user(7))
    with pytest.raises(UniqueTaken):
        numbers.create(lambda number: User(user_id="new", email="u7@example.com", name="x"))
    with pytest.raises(ItemExists):
        numbers.create(lambda number: user(7))
    with pytest.raises(ZeroDivisionError):
        numbers.create(lambda number: 1 // 0)
    assert numbers.current() is None
    assert numbers.create(user).user_id == "u1"


def test_a_crash_at_any_call_leaves_no_gap(form: Form) -> None:
    db = connect(shop())

    def write(dying: Any) -> Any:
        return Sequence(dying, "invoices").create(invoice)

    def check() -> None:
        last = Sequence(db, "invoices").current() or 0
        found = db.get_many(Order, [f"o{number:03d}" for number in range(1, last + 2)])
        assert [each is not None for each in found] == [True] * last + [False]

    assert crash_everywhere(db, write, check, form=form) >= 4


def test_blocks_are_unique_and_increase(target: Target) -> None:
    db = target.connect(shop())
    shared = Sequence(db, "ids", block=7)
    given: list[list[int]] = [[] for _ in range(4)]

    def take(mine: list[int], numbers: Sequence[Db]) -> None:
        mine.extend(numbers.next() for _ in range(25))

    threads = [
        threading.Thread(
            target=take, args=(mine, shared if at < 3 else Sequence(db, "ids", block=10))
        )
        for at, mine in enumerate(given)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everything = [number for mine in given for number in mine]
    assert len(set(everything)) == 100
    assert all(mine == sorted(mine) for mine in given)
    assert max(everything) <= (shared.current() or 0) <= 77 + 30


def test_tasks_share_a_block(target: Target) -> None:
    async def main() -> None:
        async with target.connect_async(shop()) as db:
            numbers = Sequence(db, "ids", block=10)
            given = await asyncio.gather(*(numbers.next() for _ in range(35)))
            assert sorted(given) == list(range(1, 36))
            strict = Sequence(db, "strict")
            assert sorted(await asyncio.gather(*(strict.next() for _ in range(6)))) == list(
                range(1, 7)
            )

    asyncio.run(main())


def test_a_lost_reply_costs_a_block_and_nothing_else() -> None:
    db = connect(shop())
    numbers = Sequence(db, "ids", block=5)
    lost = {"left": 2}

    def after(number: int, operation: str, request: Mapping[str, Any]) -> None:
        if operation == "UpdateItem" and lost["left"]:
            lost["left"] -= 1
            raise OutcomeUnknown("lost")

    with_faults(db, after=after)
    assert [numbers.next() for _ in range(6)] == [11, 12, 13, 14, 15, 16]
    lost["left"] = 100
    others = Sequence(db, "ids", block=5)
    with pytest.raises(OutcomeUnknown):
        others.next()
    lost["left"] = 0
    assert others.next() > 16  # the next caller does not wait


def test_a_cancelled_task_does_not_block_others() -> None:
    async def main() -> None:
        db = connect_async(shop())
        numbers = Sequence(db, "ids", block=10)
        call, gate = db.runner.transport.call, asyncio.Event()

        async def slow(*args: Any, **options: Any) -> dict[str, Any]:
            await gate.wait()
            return await call(*args, **options)

        db.runner.transport.call = slow  # type: ignore[method-assign]  # replaced for the test
        first = asyncio.ensure_future(numbers.next())
        second = asyncio.ensure_future(numbers.next())
        await asyncio.sleep(0.01)
        first.cancel()
        gate.set()
        assert await asyncio.wait_for(second, 5) == 1
        await db.close()

    asyncio.run(main())


_PROGRAM = """
import sys
from stator import connect
from stator.patterns.sequence import Sequence
from tests.tables.shop import shop
keys = {"access_key_id": "test", "secret_access_key": "test", "region": "us-east-1"}
db = connect(shop(), sys.argv[1], prefix=sys.argv[2], **keys)
strict, blocks = Sequence(db, "strict"), Sequence(db, "blocks", block=4)
print(*(strict.next() for _ in range(10)), *(1000 + blocks.next() for _ in range(10)))
"""


def test_processes_get_different_numbers(target: Target) -> None:
    if target.kind in ("memory", "disk"):
        pytest.skip("an embedded engine belongs to one process")
    db = target.connect(shop())
    prefix = db.context.schema.place.table.removesuffix("shop-stator")
    command = [sys.executable, "-c", _PROGRAM, target.address, prefix]
    root = Path(__file__).parent.parent.parent
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) for _ in range(3)
    ]
    given = [
        int(word) for process in running for word in process.communicate(timeout=60)[0].split()
    ]
    assert len(given) == len(set(given)) == 60
    assert sorted(number for number in given if number < 1000) == list(range(1, 31))


def test_explain_shows_the_cost() -> None:
    db = connect(shop())
    assert "next: TransactWriteItems of 1; 2 write units" in str(Sequence(db, "n").explain())
    assert "next, 100 times: UpdateItem; 1 write unit" in str(
        Sequence(db, "n", block=100).explain()
    )
    with pytest.raises(ConfigurationError):
        Sequence(db, "n", block=0)
    with pytest.raises(RequestRefused):
        Sequence(db, "n", block=5).create(invoice)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_takes_a_block_of_its_own(servers: Any, tmp_path: Path) -> None:
    options: Any = {"access_key_id": "test", "secret_access_key": "test", "region": "us-east-1"}
    with connect(shop(), servers.address("http"), prefix=f"fork{os.getpid()}-", **options) as db:
        db.ensure()
        numbers = Sequence(db, "blocks", block=10)
        assert [numbers.next() for _ in range(3)] == [1, 2, 3]
        process = os.fork()
        if process == 0:
            try:
                (tmp_path / "child").write_text(" ".join(str(numbers.next()) for _ in range(3)))
            finally:
                os._exit(0)
        os.waitpid(process, 0)
        assert [numbers.next() for _ in range(3)] == [4, 5, 6]
        assert (tmp_path / "child").read_text() == "11 12 13"
