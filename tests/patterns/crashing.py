"""A process that dies: its connection works for so many calls and then no more."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from stator.errors import ServiceError, TransactionCanceled
from stator.tables.db import Db
from stator.tables.runner import Runner
from stator.transport import Transport


class Crash(Exception):
    """No error of Stator's: nothing catches it."""


class Crashing:
    """Carries out ``calls`` calls. The next is not sent, or, with ``reply_lost``, carried out without a reply; so is none after it."""

    parallel = False

    def __init__(self, inner: Transport, calls: int, *, reply_lost: bool) -> None:
        self.inner = inner
        self.left = calls
        self.reply_lost = reply_lost
        self.is_dead = False

    def call(self, operation: str, request: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        if self.is_dead:
            raise Crash
        if self.left == 0:
            self.is_dead = True
            if self.reply_lost:
                self.inner.call(operation, request, **more)
            raise Crash
        self.left -= 1
        return self.inner.call(operation, request, **more)

    def close(self) -> None: ...


def crashing(db: Db, calls: int, *, reply_lost: bool) -> Db:
    """The same tables, through a connection that dies."""
    transport = Crashing(db.runner.transport, calls, reply_lost=reply_lost)
    return Db(db.context, Runner(transport, db.context.clock, threads=1))


def every_crash(db: Db, work: Callable[[Db], Any], step: int = 1) -> Iterator[Db]:
    """Run ``work`` again and again, each time dying one call later, before and after the call; ends when it gets through. Between
    the runs the caller puts the tables back."""
    calls = 0
    while True:
        for reply_lost in (False, True):
            dying = crashing(db, calls, reply_lost=reply_lost)
            try:
                work(dying)
            except Crash:
                yield dying
            else:
                return
        calls += step


def every_item(db: Db) -> list[dict[str, Any]]:
    """All items of the table where patterns keep theirs."""
    found: list[dict[str, Any]] = []
    request: dict[str, Any] = {"TableName": db.context.schema.place.table, "ConsistentRead": True}
    while True:
        reply = db.call("Scan", request)
        found += reply["Items"]
        if "LastEvaluatedKey" not in reply:
            return found
        request["ExclusiveStartKey"] = reply["LastEvaluatedKey"]


def in_threads(*works: Callable[[], Any]) -> list[BaseException]:
    """Run all at once; gives what they raised."""
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


class Doubling:
    """Every call is carried out twice, as when an answer is lost and the client sends the request again."""

    parallel = False

    def __init__(self, inner: Transport) -> None:
        self.inner = inner

    def call(self, operation: str, request: Mapping[str, Any], *, idempotent: bool = True, **more: Any) -> Any:
        first = self.inner.call(operation, request, idempotent=idempotent, **more)
        if not idempotent:
            return first
        try:
            return self.inner.call(operation, request, idempotent=idempotent, **more)
        except ServiceError as error:
            error.after_unknown = True
            raise

    def close(self) -> None: ...


def doubling(db: Db) -> Db:
    return Db(db.context, Runner(Doubling(db.runner.transport), db.context.clock, threads=1))


class Conflicting:
    """Every second transaction is refused, because another has one of its items."""

    parallel = False

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.count = 0

    def call(self, operation: str, request: Mapping[str, Any], **more: Any) -> Any:
        if operation.startswith("Transact"):
            self.count += 1
            if self.count % 2:
                codes = ["None"] * len(request["TransactItems"])
                codes[-1] = "TransactionConflict"
                raise TransactionCanceled(reasons=[{"Code": code} for code in codes])
        return self.inner.call(operation, request, **more)

    def close(self) -> None: ...


def conflicting(db: Db) -> Db:
    return Db(db.context, Runner(Conflicting(db.runner.transport), db.context.clock, threads=1))
