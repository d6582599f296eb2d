"""A closed Db, a closed engine and a forked process: each use is refused with an error of ours."""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stator import connect, connect_async
from stator.engine import Engine
from stator.errors import DbClosed, StorageClosed, StorageForked
from stator.patterns import Counter, Lock, Once
from tests.targets import Target

from .shop import Order, User, order, orders_of_user, shop, user


def calls(db: Any) -> dict[str, Callable[[], Any]]:
    return {
        "get": lambda: db.get(User, user_id="u1"),
        "get_many": lambda: db.get_many(User, [{"user_id": "u1"}]),
        "put": lambda: db.put(order(1)),
        "create": lambda: db.create(user(7)),
        "delete": lambda: db.delete(Order, order_id="o1"),
        "page": lambda: db.page(orders_of_user("u1"), limit=1),
        "count": lambda: db.count(orders_of_user("u1")),
        "write_many": lambda: db.write_many([order(1)]),
        "ensure": lambda: db.ensure(),
        "call": lambda: db.call("ListTables", {}),
        "within": lambda: db.within(5).get(User, user_id="u1"),
        "once": lambda: Once(db, "jobs").run("k", lambda: 1),
        "lock": lambda: Lock(db, "l").acquire(),
        "counter": lambda: Counter(db, "views").add(1),
    }


def test_a_closed_db_says_so(target: Target) -> None:
    db = target.connect(shop())
    db.write_many(order(number) for number in range(30))
    pages = db.fetch(orders_of_user("u1"))
    scanned = db.scan(Order, allow=True)
    short = db.within(5)
    next(iter(pages))
    update, transaction = db.update(Order, order_id="o1"), db.transaction()
    db.close()
    db.close()  # closing twice is fine
    for name, call in calls(db).items():
        with pytest.raises(DbClosed, match="closed"):
            call()
            pytest.fail(name)
    with pytest.raises(DbClosed), update as recorded:
        recorded.user_id = "u2"
    with pytest.raises(DbClosed), transaction as tx:
        tx.put(order(1))
    for late in (scanned, db.fetch(orders_of_user("u1"))):
        with pytest.raises(DbClosed):
            list(late)
    with pytest.raises(DbClosed):
        short.get(User, user_id="u1")


def test_a_closed_async_db_says_so(target: Target) -> None:
    async def main() -> None:
        db = target.connect_async(shop())
        await db.get(User, user_id="u1")
        await db.close()
        await db.close()
        for name, call in calls(db).items():
            with pytest.raises(DbClosed, match="closed"):
                await call()
                pytest.fail(name)
        with pytest.raises(DbClosed):
            async with db.update(Order, order_id="o1") as recorded:
                recorded.user_id = "u2"
        with pytest.raises(DbClosed):
            async with db.transaction() as tx:
                tx.put(order(1))
        with pytest.raises(DbClosed):
            [each async for each in db.fetch(orders_of_user("u1"))]

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_a_closed_engine_says_so(kind: str, tmp_path: Path) -> None:
    engine = Engine.open(None if kind == "memory" else tmp_path / "data")
    db, other = connect(shop(), engine), connect_async(shop(), engine)
    engine.close()
    with pytest.raises(StorageClosed):
        engine.call("ListTables", {})
    with pytest.raises(StorageClosed):
        db.get(User, user_id="u1")
    with pytest.raises(StorageClosed):
        asyncio.run(other.get(User, user_id="u1"))


def in_a_fork(check: Callable[[], None]) -> int:
    """Run a check in a forked process, and return its exit code: 0 if nothing was raised."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            check()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_folder_opened_before_a_fork_is_refused_in_the_child(tmp_path: Path) -> None:
    engine = Engine.open(tmp_path / "engine")
    db = connect(shop(), str(tmp_path / "folder"))
    db.put(order(1))

    def check() -> None:
        for call in (
            lambda: db.put(order(2)),
            lambda: db.get(Order, order_id="o1"),
            lambda: list(db.fetch(orders_of_user("u1"))),
            lambda: engine.call("ListTables", {}),
        ):
            with pytest.raises(StorageForked, match="forked"):
                call()
        db.close()  # leaves the parent's files alone
        engine.close()

    with engine.lock:  # as another thread might hold it at the moment of the fork
        assert in_a_fork(check) == 0
    db.put(order(3))
    assert len(list(db.fetch(orders_of_user("u1")))) == 2
    db.close()
    engine.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_db_in_memory_opened_before_a_fork_is_refused_in_the_child() -> None:
    db = connect(shop())
    db.put(order(1))

    def check() -> None:
        for call in (lambda: db.put(order(2)), lambda: db.get(Order, order_id="o1")):
            with pytest.raises(StorageForked, match="the engine in memory was opened before"):
                call()
        db.close()
        with connect(shop()) as own:
            own.put(order(3))

    assert in_a_fork(check) == 0
    db.put(order(2))
    assert len(list(db.fetch(orders_of_user("u1")))) == 2
