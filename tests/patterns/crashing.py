"""A process that crashes: its connection works for a number of calls and then no more.

The work of a process is written once, for a ``Db`` and for an ``AsyncDb``. It creates its pattern
objects on the database it receives and returns the results of their operations or, if there are
several, yields each. Awaitables are awaited here.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, Literal

from stator.tables.async_runner import AsyncRunner
from stator.tables.db import AsyncDb, Db
from stator.tables.runner import Runner
from stator.tables.writes.transactions import Transaction
from stator.testing import (
    Fault,
    FaultyTransport,
    InterceptedCall,
    Killed,
    KillPoint,
    KillSwitch,
)
from stator.transport import Transport

Form = Literal["sync", "async"]


class Awaited:
    """A blocking transport for asyncio.

    Other tasks get their turn before and after a call, so that concurrent calls interleave.
    """

    def __init__(self, inner: Transport) -> None:
        self.inner = inner

    async def call(self, operation: str, request: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        reply = self.inner.call(operation, request, **more)
        await asyncio.sleep(0)
        return reply

    async def close(self) -> None: ...


def crashing(db: Db, calls: int, *, reply_lost: bool, form: Form = "sync") -> Any:
    """A ``Db`` or ``AsyncDb`` on the same tables whose connection works for ``calls`` calls.

    With ``reply_lost`` the next call is carried out too, but its reply is lost.
    """
    switch = KillSwitch(KillPoint(calls + 1, carried_out=reply_lost))
    transport = FaultyTransport(db.runner.transport, switch.before, switch.after)
    if form == "async":
        return AsyncDb(db.context, AsyncRunner(Awaited(transport), db.context.clock))
    return Db(db.context, Runner(transport, db.context.clock, threads=1))


def finished(doing: Any) -> Any:
    """The result of an operation, awaited if necessary; of several, the last result."""
    if inspect.isgenerator(doing):
        doing = _one_after_the_other(doing)
    if not inspect.isawaitable(doing):
        return doing

    async def wait() -> Any:
        return await doing

    return asyncio.run(wait())


async def _one_after_the_other(doing: Generator[Any, Any, Any]) -> Any:
    result = None
    try:
        result = next(doing)
        while True:
            if inspect.isawaitable(result):
                result = await result
            result = doing.send(result)
    except StopIteration:
        return result


def transacted(db: Any, fill: Callable[[Transaction], Any]) -> Any:
    """A transaction of a ``Db`` or an ``AsyncDb``."""

    async def run() -> None:
        async with db.transaction() as tx:
            fill(tx)

    if isinstance(db, AsyncDb):
        return run()
    with db.transaction() as tx:
        fill(tx)
    return None


def every_crash(
    db: Db, work: Callable[[Any], Any], step: int = 1, *, form: Form = "sync"
) -> Iterator[Db | AsyncDb]:
    """Run ``work`` repeatedly, each time crashing one call later, before and after that call.

    It ends when ``work`` finishes. Between runs the caller restores the tables.
    """
    calls = 0
    while True:
        for reply_lost in (False, True):
            dying = crashing(db, calls, reply_lost=reply_lost, form=form)
            try:
                finished(work(dying))
            except Killed:
                yield dying
            else:
                return
        calls += step


def crash_everywhere(
    db: Db, work: Callable[[Any], Any], then: Callable[[], None], *, form: Form
) -> int:
    """Run ``then`` after each crash and after ``work`` has finished; returns the crash count."""
    crashes = 0
    for _ in every_crash(db, work, form=form):
        crashes += 1
        then()
    then()
    return crashes


def every_item(db: Db) -> list[dict[str, Any]]:
    """All items of the table that holds the items of patterns."""
    found: list[dict[str, Any]] = []
    request: dict[str, Any] = {"TableName": db.context.schema.place.table, "ConsistentRead": True}
    while True:
        reply = db.call("Scan", request)
        found += reply["Items"]
        if "LastEvaluatedKey" not in reply:
            return found
        request["ExclusiveStartKey"] = reply["LastEvaluatedKey"]


def in_threads(*works: Callable[[], Any]) -> list[BaseException]:
    """Run all at once; returns the errors they raised."""
    raised: list[BaseException] = []

    def run(work: Callable[[], Any]) -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def doubling(db: Db) -> Db:
    """A ``Db`` whose calls are all carried out twice, as after a lost reply."""
    return _disturbed(db, lambda call: Fault("duplicated"))


def conflicting(db: Db) -> Db:
    """A ``Db`` of whose transactions every second is cancelled with a conflict."""
    transactions = 0

    def cancel(call: InterceptedCall) -> Fault | None:
        nonlocal transactions
        if not call.operation.startswith("Transact"):
            return None
        transactions += 1
        return Fault("conflict") if transactions % 2 else None

    return _disturbed(db, cancel)


def _disturbed(db: Db, before: Callable[[InterceptedCall], Fault | None]) -> Db:
    transport = FaultyTransport(db.runner.transport, before)
    return Db(db.context, Runner(transport, db.context.clock, threads=1))
