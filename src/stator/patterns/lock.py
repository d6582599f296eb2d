"""Locks that expire: a lease on a name, with a fencing token.

    PK  LOCK#nightly-report   SK  LEASE   owner  3f2a...   fence  17   until  1763251200.25

Acquiring the lock is one conditional update: it succeeds if the lock is free or its lease has
ended, and increments ``fence`` (``coordination.lease`` explains why). A holder that was suspended
for longer than its lease wakes up and still believes it has the lock. So pass ``lease.fence`` to
the resource that the lock protects, and let that resource refuse a fence lower than the highest it
has seen.

The holder renews the lease while it works. ``lease.check()`` raises LeaseLost once a renewal has
been refused or the lease has ended. Every acquisition has an owner token of its own, so threads of
one process exclude each other as processes do.

Times come from the callers' clocks. A lease is taken over only ``drift_seconds`` after its end.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from stator.backoff import Backoff
from stator.clock import Clock, SystemClock
from stator.coordination.lease import LeaseHold, LeaseItem, both
from stator.coordination.stored_format import StoredFormat
from stator.errors import ConfigurationError, LeaseLost, LockBusy, StatorError
from stator.model.seconds import check_seconds
from stator.model.values import Item
from stator.patterns.explanation import OperationCost, PatternExplanation
from stator.tables.argument_rules import checks_arguments
from stator.tables.db import AsyncDb, Db
from stator.tables.operation import D, OnDb, check_block, operation
from stator.tables.work import Call, Pause, Work

log = logging.getLogger("stator.patterns")

_FORMAT = StoredFormat("lock")
_DRIFT_SECONDS: Final = 1.0
_BACKOFF = Backoff(base_seconds=0.05, cap_seconds=1.0, floor_seconds=0.01)
_HINT = "stop working: another process may hold the lock now"


@dataclass(slots=True)
class LockLease:
    """The lease of a process that has acquired a lock.

    ``fence`` is higher than in every earlier lease of this lock. ``until`` is when the lease ends,
    in seconds since the epoch. ``is_lost`` is set once a renewal has been refused.
    """

    name: str
    owner: str
    fence: int
    until: float
    is_lost: bool = False
    clock: Clock = field(default_factory=SystemClock, repr=False, compare=False)

    def check(self) -> None:
        """Raise LeaseLost if a renewal was refused or, by the local clock, the lease has ended."""
        if self.is_lost or self.clock.now() >= self.until:
            raise LeaseLost(f"the lease on lock {self.name} was lost", hint=_HINT)

    @property
    def hold(self) -> LeaseHold:
        return LeaseHold(self.owner, self.fence, self.until)


@checks_arguments("Lock")
class Lock(OnDb[D]):
    """A lock that expires.

    Use ``with Lock(db, "nightly-report").held() as lease: ...``, or ``async with``. The clocks of
    processes may differ by ``drift_seconds``. ``owner`` is text that shows others who holds the
    lock.
    """

    def __init__(
        self,
        db: D,
        name: str,
        *,
        lease_seconds: float = 30.0,
        drift_seconds: float = _DRIFT_SECONDS,
        owner: str | None = None,
    ) -> None:
        super().__init__(db)
        check_seconds(f"lock {name}", lease_seconds=lease_seconds)
        check_seconds(f"lock {name}", or_zero=True, drift_seconds=drift_seconds)
        # A lease below the default drift is fine: it only stays taken a little after a crash.
        if drift_seconds > max(lease_seconds, _DRIFT_SECONDS):
            raise ConfigurationError(
                f"lock {name}: drift_seconds={drift_seconds} is longer than"
                f" lease_seconds={lease_seconds}",
                hint="use a longer lease, or a drift far below the lease",
            )
        self.name = name
        self.lease_seconds = lease_seconds
        self.drift_seconds = drift_seconds
        self.owner = owner
        self._place = self.context.schema.place
        key = self._place.key(f"LOCK#{name}", "LEASE")
        self._item = LeaseItem(self._place.table, key, f"lock {name}")

    @operation
    def acquire(self, *, wait_seconds: float = 0.0) -> Work[LockLease]:
        """Take the lock.

        Raises LockBusy if another process still holds it after ``wait_seconds``.
        """
        check_seconds(f"lock {self.name}", or_zero=True, wait_seconds=wait_seconds)
        timer = self.context.timer(_BACKOFF, wait_seconds)
        token = self.context.token()
        owner = f"{self.owner} {token}" if self.owner else token
        while True:
            now = self.context.now()
            free = both(self._item.attributes.free(now - self.drift_seconds), _FORMAT.readable)
            until = now + self.lease_seconds
            taken = yield from self._item.take(owner, until, free, sets=_FORMAT.attributes())
            _FORMAT.check(taken.item, self.name)
            if taken.is_mine:
                return self._lease(taken.item)
            if timer.is_over:
                raise self._busy(taken.item)
            yield Pause(timer.next_delay())

    def _lease(self, item: Item) -> LockLease:
        hold = self._item.attributes.read(item)
        clock = self.context.clock
        return LockLease(self.name, hold.owner or "", hold.fence, hold.until, clock=clock)

    def _busy(self, item: Item) -> LockBusy:
        hold = self._item.attributes.read(item)
        if hold.owner is None:
            return LockBusy(self.name, "another process", self.context.now())
        return LockBusy(self.name, hold.owner, hold.until)

    @operation
    def renew(self, lease: LockLease) -> Work[None]:
        """Extend a lease so that it ends ``lease_seconds`` from now.

        Raises LeaseLost if the lease was released, or if another process has taken the lock.
        """
        until = self.context.now() + self.lease_seconds
        if (yield from self._item.renew(lease.hold, until)) is None:
            lease.is_lost = True
            raise LeaseLost(
                f"lock {self.name} is not held by this lease: it was released, or another process "
                "took the lock after the lease had ended",
                hint=_HINT,
            )
        lease.until = until

    @operation
    def release(self, lease: LockLease) -> Work[bool]:
        """Release the lock. The fence number stays stored, because it must never decrease.

        Returns False if another process has already taken the lock.
        """
        return (yield from self._item.release(lease.hold))

    @operation
    def holder(self) -> Work[LockLease | None]:
        """Return the lease that is held now, or None if the lock is free or its lease has ended."""
        request = {"TableName": self._place.table, "Key": self._item.key, "ConsistentRead": True}
        item: Item = (yield Call("GetItem", request, self._item.label)).get("Item", {})
        _FORMAT.check(item, self.name)
        hold = self._item.attributes.read(item)
        if hold.owner is None or hold.until < self.context.now():
            return None
        return self._lease(item)

    def held(self, *, wait_seconds: float = 0.0) -> HeldLock[D]:
        """Hold the lock for a ``with`` block.

        Acquire it, renew it in the background every ``lease_seconds / 3`` seconds, and release it
        at the end.
        """
        check_seconds(f"lock {self.name}", or_zero=True, wait_seconds=wait_seconds)
        return HeldLock(self, wait_seconds)

    def explain(self) -> PatternExplanation:
        """Return the keys of the lock's item, and the units and cost of each operation."""
        place, attributes = self._place, "owner, until, fence"
        renewals = f"every {self.lease_seconds / 3:g} seconds while held"
        return PatternExplanation(
            f"lock {self.name} in {place.table}",
            (f"{place.partition} LOCK#{self.name}  {place.sort} LEASE  {attributes}",),
            (
                OperationCost("acquire", "UpdateItem for each attempt", 0, 1),
                OperationCost("renew", "UpdateItem", 0, 1, renewals),
                OperationCost("release", "UpdateItem", 0, 1),
            ),
            ("the resource must check the fence: a holder may wake up after its lease has ended",),
        )


@checks_arguments("HeldLock")
class HeldLock(OnDb[D]):
    """A context manager that holds a lock during a ``with`` block; ``Lock.held`` returns it."""

    def __init__(self, lock: Lock[D], wait_seconds: float) -> None:
        super().__init__(lock.db)
        self._lock = lock
        self._wait = wait_seconds
        self._exits: list[Any] = []

    def __enter__(self: HeldLock[Db]) -> LockLease:
        check_block(self.db, "lock.held()", is_awaited=False)
        manager = _held(self._lock, self._wait)
        self._exits.append(manager)
        return manager.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._exits.pop().__exit__(*error)

    async def __aenter__(self: HeldLock[AsyncDb]) -> LockLease:
        check_block(self.db, "lock.held()", is_awaited=True)
        manager = _held_async(self._lock, self._wait)
        self._exits.append(manager)
        return await manager.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        await self._exits.pop().__aexit__(*error)


@contextmanager
def _held(lock: Lock[Db], wait_seconds: float) -> Iterator[LockLease]:
    lease = lock.acquire(wait_seconds=wait_seconds)
    done = threading.Event()

    def renew() -> None:
        while not done.wait(lock.lease_seconds / 3):
            try:
                lock.renew(lease)
            except LeaseLost:
                return
            except Exception as error:  # such as expired credentials: the end of the lease decides
                _log_failed_renewal(lock.name, error)

    renewer = threading.Thread(target=renew, name=f"lease on {lock.name}", daemon=True)
    renewer.start()
    try:
        yield lease
    finally:
        done.set()
        renewer.join()
        lock.release(lease)


def _log_failed_renewal(name: str, error: Exception) -> None:
    """Log a failed renewal. Unexpected errors, which are defects, are logged with a traceback."""
    log.error(
        "the lease on lock %s was not renewed; retrying: %s: %s",
        name,
        type(error).__name__,
        error,
        exc_info=None if isinstance(error, StatorError) else error,
    )


@asynccontextmanager
async def _held_async(lock: Lock[AsyncDb], wait_seconds: float) -> AsyncIterator[LockLease]:
    lease = await lock.acquire(wait_seconds=wait_seconds)

    async def renew() -> None:
        while not lease.is_lost:
            await asyncio.sleep(lock.lease_seconds / 3)
            try:
                await lock.renew(lease)
            except LeaseLost:
                return
            except Exception as error:  # such as expired credentials: the end of the lease decides
                _log_failed_renewal(lock.name, error)

    renewer = asyncio.create_task(renew())
    try:
        yield lease
    finally:
        renewer.cancel()
        await asyncio.gather(renewer, return_exceptions=True)
        await lock.release(lease)
