"""Locks that expire: a lease on a name, with a fencing token.

    PK  LOCK#nightly-report    SK  LEASE    owner  3f2a...    fence  17    until  1763251200.25

Taking the lease is one conditional update: it succeeds when nobody has it or the last holder's time is over, and counts ``fence`` up. The fence
is what makes a lease safe: a holder that was stopped for longer than its lease wakes up and still believes it has the lock, so whatever the lock
protects should be told the fence and refuse one that is lower than the highest it has seen. The holder renews the lease while it works;
``lease.check()`` raises when that failed, or when the lease's time is over. Each acquisition has an owner's token of its own: the threads of a
process exclude each other as processes do.

Times are the callers' own. A lease is taken over only when the time it was given, plus ``drift_seconds`` for clocks that differ, has passed.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from stator.backoff import Backoff
from stator.clock import Clock, SystemClock
from stator.errors import ConditionFailed, LeaseLost, LockBusy
from stator.model.values import Item
from stator.patterns.explanation import OperationCost, PatternExplanation
from stator.tables.db import AsyncDb, Db
from stator.tables.operation import D, OnDb, operation
from stator.tables.work import Call, Pause, Work
from stator.tables.writes.expressions import Expressions

_BACKOFF = Backoff(base_seconds=0.05, cap_seconds=1.0, floor_seconds=0.01)

log = logging.getLogger("stator.patterns")


@dataclass(slots=True)
class Lease:
    """``fence`` is higher than that of every lease before it. ``is_lost`` is set when renewing it failed."""

    name: str
    owner: str
    fence: int
    until: float
    is_lost: bool = False
    clock: Clock = field(default_factory=SystemClock, repr=False, compare=False)

    def check(self) -> None:
        """Raise LeaseLost if it is, or if its time is over."""
        if self.is_lost or self.clock.now() >= self.until:
            raise LeaseLost(
                f"the lease on {self.name} was lost", hint="stop: another may be at the same work"
            )


class Lock(OnDb[D]):
    """``with Lock(db, "nightly-report").held() as lease: ...``, or ``async with``."""

    def __init__(
        self,
        db: D,
        name: str,
        *,
        lease_seconds: float = 30.0,
        drift_seconds: float = 1.0,
        owner: str | None = None,
    ) -> None:
        super().__init__(db)
        self.name = name
        self.lease_seconds = lease_seconds
        self.drift_seconds = drift_seconds
        self.owner = owner
        self._place = self.context.schema.place
        self._key = self._place.key(f"LOCK#{name}", "LEASE")

    @operation
    def acquire(self, *, wait_seconds: float = 0.0) -> Work[Lease]:
        """Take the lease; LockBusy if another has it and goes on having it for ``wait_seconds``."""
        timer = self.context.timer(_BACKOFF, wait_seconds)
        token = self.context.token()
        owner = f"{self.owner} {token}" if self.owner else token
        while True:
            try:
                return (yield from self._take(owner))
            except ConditionFailed as busy:
                if busy.after_unknown and busy.item and busy.item.get("owner") == {"S": owner}:
                    return self._lease(busy.item)
                if timer.is_over:
                    raise self._busy(busy.item) from None
            yield Pause(timer.next_delay())

    def _take(self, me: str) -> Work[Lease]:
        now = self.context.now()
        until = now + self.lease_seconds
        written = Expressions()
        owner, ends, fence = (written.name(name) for name in ("owner", "until", "fence"))
        zero, one = written.value({"N": "0"}), written.value({"N": "1"})
        request = {
            "TableName": self._place.table,
            "Key": self._key,
            "UpdateExpression": f"SET {owner} = {written.value({'S': me})}, {ends} = {written.value(_seconds(until))}, "
            f"{fence} = if_not_exists({fence}, {zero}) + {one}",
            "ConditionExpression": f"attribute_not_exists({owner}) OR {ends} < {written.value(_seconds(now - self.drift_seconds))}",
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        reply = yield Call("UpdateItem", written.into(request), f"lock {self.name}")
        return self._lease(reply["Attributes"])

    def _lease(self, item: Item) -> Lease:
        return Lease(
            self.name,
            item["owner"]["S"],
            int(item["fence"]["N"]),
            float(item["until"]["N"]),
            clock=self.context.clock,
        )

    def _busy(self, item: Item | None) -> LockBusy:
        if not item or "owner" not in item:
            return LockBusy(self.name, "somebody", self.context.now())
        return LockBusy(self.name, item["owner"]["S"], float(item["until"]["N"]))

    @operation
    def renew(self, lease: Lease) -> Work[None]:
        """Put the end of a lease off. LeaseLost if it is another's by now."""
        until = self.context.now() + self.lease_seconds
        written = Expressions()
        request = {
            "TableName": self._place.table,
            "Key": self._key,
            "UpdateExpression": f"SET {written.name('until')} = {written.value(_seconds(until))}",
            "ConditionExpression": self._still(lease, written),
        }
        try:
            yield Call("UpdateItem", written.into(request), f"renew {self.name}")
        except ConditionFailed:
            lease.is_lost = True
            raise LeaseLost(
                f"the lease on {self.name} is another's",
                hint="stop: another may be at the same work",
            ) from None
        lease.until = until

    @operation
    def release(self, lease: Lease) -> Work[bool]:
        """Give it back; the fence stays, so that it never goes down. False if it was another's already."""
        written = Expressions()
        request = {
            "TableName": self._place.table,
            "Key": self._key,
            "UpdateExpression": f"REMOVE {written.name('owner')}, {written.name('until')}",
            "ConditionExpression": self._still(lease, written),
        }
        try:
            yield Call("UpdateItem", written.into(request), f"release {self.name}")
        except ConditionFailed as failed:
            return failed.after_unknown
        return True

    @operation
    def holder(self) -> Work[Lease | None]:
        """Who has it now, if anybody."""
        request = {"TableName": self._place.table, "Key": self._key, "ConsistentRead": True}
        item = (yield Call("GetItem", request, f"lock {self.name}")).get("Item", {})
        if "owner" not in item or float(item["until"]["N"]) < self.context.now():
            return None
        return self._lease(item)

    def _still(self, lease: Lease, written: Expressions) -> str:
        owner, fence = written.value({"S": lease.owner}), written.value({"N": str(lease.fence)})
        return f"{written.name('owner')} = {owner} AND {written.name('fence')} = {fence}"

    def held(self, *, wait_seconds: float = 0.0) -> Holding[D]:
        """Acquire, renew in the background every third of the lease, and release at the end."""
        return Holding(self, wait_seconds)

    def explain(self) -> PatternExplanation:
        return PatternExplanation(
            f"lock {self.name} in {self._place.table}",
            (
                f"{self._place.partition} LOCK#{self.name}  {self._place.sort} LEASE  owner, until, fence",
            ),
            (
                OperationCost("acquire", "UpdateItem for each attempt", 0, 1),
                OperationCost(
                    "renew",
                    "UpdateItem",
                    0,
                    1,
                    f"every {self.lease_seconds / 3:g} seconds while held",
                ),
                OperationCost("release", "UpdateItem", 0, 1),
            ),
            (
                "whatever it protects should check the fence: a holder that was stopped may wake up after its lease",
            ),
        )


def _seconds(moment: float) -> dict[str, str]:
    return {"N": repr(moment)}


class Holding(OnDb[D]):
    """A lease for the length of a block."""

    def __init__(self, lock: Lock[D], wait_seconds: float) -> None:
        super().__init__(lock.db)
        self._lock = lock
        self._wait = wait_seconds
        self._exits: list[Any] = []

    def __enter__(self: Holding[Db]) -> Lease:
        manager = _held(self._lock, self._wait)
        self._exits.append(manager)
        return manager.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._exits.pop().__exit__(*error)

    async def __aenter__(self: Holding[AsyncDb]) -> Lease:
        manager = _held_async(self._lock, self._wait)
        self._exits.append(manager)
        return await manager.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        await self._exits.pop().__aexit__(*error)


@contextmanager
def _held(lock: Lock[Db], wait_seconds: float) -> Iterator[Lease]:
    lease = lock.acquire(wait_seconds=wait_seconds)
    done = threading.Event()

    def renew() -> None:
        while not done.wait(lock.lease_seconds / 3):
            try:
                lock.renew(lease)
            except LeaseLost:
                return
            except Exception:  # whatever it is, such as credentials that cannot be refreshed: the lease's end decides
                log.exception("the lease on %s could not be renewed", lock.name)

    keeper = threading.Thread(target=renew, name=f"lease on {lock.name}", daemon=True)
    keeper.start()
    try:
        yield lease
    finally:
        done.set()
        keeper.join()
        lock.release(lease)


@asynccontextmanager
async def _held_async(lock: Lock[AsyncDb], wait_seconds: float) -> AsyncIterator[Lease]:
    lease = await lock.acquire(wait_seconds=wait_seconds)

    async def renew() -> None:
        while not lease.is_lost:
            await asyncio.sleep(lock.lease_seconds / 3)
            try:
                await lock.renew(lease)
            except LeaseLost:
                return
            except Exception:  # whatever it is, such as credentials that cannot be refreshed: the lease's end decides
                log.exception("the lease on %s could not be renewed", lock.name)

    keeper = asyncio.create_task(renew())
    try:
        yield lease
    finally:
        keeper.cancel()
        await asyncio.gather(keeper, return_exceptions=True)
        await lock.release(lease)
