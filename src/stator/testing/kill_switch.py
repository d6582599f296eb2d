"""Kill points: a program is killed at its first call, at its second, and so on, until it finishes.

A program that is killed makes no further call. Its last call was either never sent, or carried out
without the program learning of it. Both are tried at every call. After each kill, the test can
inspect what is stored, or let another process take over.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from stator.tables.db import AsyncDb, Db
from stator.testing.faults import Fault, InterceptedCall, faulty
from stator.transport import AsyncTransport, Transport


class Killed(BaseException):
    """Raised in a program to kill it.

    It is not an ``Exception``, so that no handler of the program catches it.
    """


@dataclass(frozen=True, slots=True)
class KillPoint:
    """The call at which the program is killed, and whether that call is carried out first.

    ``call`` is the number of the call, from 1.
    """

    call: int
    carried_out: bool


class KillSwitch:
    """Kills the program at a kill point: ``faulty(db, switch.before, switch.after)``.

    Once killed, the program makes no further call, not even in its ``finally`` blocks.
    """

    def __init__(self, point: KillPoint) -> None:
        self.point = point
        self.is_dead = False

    def before(self, call: InterceptedCall) -> Fault | None:
        """Raise Killed if the program is dead, or dies before this call is sent."""
        if self.is_dead or (call.number >= self.point.call and not self.point.carried_out):
            self.is_dead = True
            raise Killed(str(self.point))
        return None

    def after(self, call: InterceptedCall, reply: dict[str, Any]) -> None:
        """Raise Killed if the program dies after this call was carried out."""
        if call.number >= self.point.call:
            self.is_dead = True
            raise Killed(str(self.point))


def _points() -> Iterator[KillPoint]:
    for call in count(1):
        yield KillPoint(call, carried_out=False)
        yield KillPoint(call, carried_out=True)


def kill_points(
    target: Db | AsyncDb | Transport | AsyncTransport, work: Callable[[Any], Any]
) -> Iterator[KillPoint]:
    """Run ``work`` repeatedly: kill it at its first call, then at its second, until a run finishes.

    Each call is tried twice: first it is not carried out, then it is. After each kill, yields the
    kill point. The loop can then use the target as usual, to inspect what is stored::

        for point in kill_points(db, work):
            check(db)

    ``work`` receives the target. If ``work`` is asynchronous, each run gets an event loop of its
    own.
    """
    for point in _points():
        switch = KillSwitch(point)
        with faulty(target, switch.before, switch.after) as transport:
            given = target if isinstance(target, (Db, AsyncDb)) else transport
            try:
                result = work(given)
                if inspect.isawaitable(result):
                    asyncio.run(_awaited(result))
            except Killed:
                pass
            else:
                return
        yield point


async def kill_points_async(
    target: AsyncDb | AsyncTransport, work: Callable[[Any], Awaitable[Any]]
) -> AsyncIterator[KillPoint]:
    """Do what ``kill_points`` does, inside a running event loop."""
    for point in _points():
        switch = KillSwitch(point)
        with faulty(target, switch.before, switch.after) as transport:
            try:
                await work(target if isinstance(target, AsyncDb) else transport)
            except Killed:
                pass
            else:
                return
        yield point


async def _awaited(result: Awaitable[Any]) -> Any:
    return await result
