"""Runs work (``tables.work``) on an event loop: its calls are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Sequence
from typing import Any, TypeVar

from stator.clock import Clock, pause
from stator.errors import DbClosed, ServiceError, StatorError
from stator.model.seconds import check_seconds
from stator.tables.observers import Observer
from stator.tables.runner import Observed
from stator.tables.work import (
    BlockingCall,
    Call,
    ConnectionState,
    Gather,
    Pages,
    Pause,
    Work,
    not_an_effect,
)
from stator.transport import AsyncTransport

T = TypeVar("T")


class AsyncRunner:
    def __init__(
        self,
        transport: AsyncTransport,
        clock: Clock,
        *,
        observers: Sequence[Observer] = (),
        deadline_seconds: float | None = None,
    ) -> None:
        if deadline_seconds is not None:
            check_seconds("connect()", deadline_seconds=deadline_seconds)
        self.transport = transport
        self.clock = clock
        self.observers = tuple(observers)
        self.deadline_seconds = deadline_seconds
        self._connection = ConnectionState()

    def within(self, seconds: float) -> AsyncRunner:
        made = AsyncRunner(
            self.transport, self.clock, observers=self.observers, deadline_seconds=seconds
        )
        made._connection = self._connection
        return made

    @property
    def is_closed(self) -> bool:
        return self._connection.is_closed

    async def close(self) -> None:
        self._connection.is_closed = True
        self._connection.loop = asyncio.get_running_loop()
        await self.transport.close()

    def _reopen_in_another_loop(self) -> None:
        """Reopen a closed connection if a different event loop is running now.

        Raises DbClosed in the event loop that closed the connection.
        """
        if self._connection.loop is asyncio.get_running_loop():
            raise DbClosed
        self._connection.is_closed = False

    async def run(self, work: Work[T]) -> T:
        try:
            effect = next(work)
            while True:
                try:
                    answer = await self._do(effect)
                except StatorError as error:
                    effect = work.throw(error)
                else:
                    effect = work.send(answer)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            work.close()

    async def iterate(self, pages: Pages[T]) -> AsyncIterator[T]:
        """Iterate over pages. Each page is read when its first item is requested."""
        while not pages.is_done:
            for each in await self.run(pages.page()):
                yield each

    async def _do(self, effect: Any) -> Any:
        if self._connection.is_closed:
            self._reopen_in_another_loop()
        if type(effect) is Call:
            return await self._call(effect)
        if type(effect) is Gather:
            return await self._gather(effect)
        if type(effect) is Pause:
            return await pause(self.clock, effect.seconds)
        if type(effect) is not BlockingCall:
            raise not_an_effect(effect)
        return await asyncio.to_thread(effect.function)

    async def _call(self, call: Call) -> dict[str, Any]:
        try:
            return await self._observed(call)
        except ServiceError as error:
            call.describe(error)
            raise

    async def _observed(self, call: Call) -> dict[str, Any]:
        if not self.observers:
            return await self.transport.call(
                call.operation, call.request, **call.options(self.deadline_seconds)
            )
        observed = Observed(call, self.observers)
        try:
            reply = await self.transport.call(
                call.operation, call.request, **observed.options(self.deadline_seconds)
            )
        except BaseException as error:
            observed.done(None, error)
            raise
        observed.done(reply, None)
        return reply

    async def _gather(self, effect: Gather) -> list[Any]:
        """Run the parts concurrently and return their results in the same order.

        If a part raises a StatorError, that error takes the place of its result. Any other error,
        or a cancellation, cancels the remaining parts and is raised.
        """
        tasks = [asyncio.ensure_future(self._part(part)) for part in effect.parts]
        try:
            return await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise

    async def _part(self, part: Call | Generator[Any, Any, Any]) -> Any:
        try:
            return await self._call(part) if isinstance(part, Call) else await self.run(part)
        except StatorError as error:
            return error
