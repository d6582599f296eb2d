"""Carries work out with blocking calls. Parts of a ``Gather`` run in threads when the transport gains by it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from stator.clock import Clock
from stator.errors import StatorError
from stator.tables.observers import MEASURED, WRITES, CallRecord, Observer, table_of, units_of
from stator.tables.work import BlockingCall, Call, Gather, Pages, Pause, Work
from stator.transport import Transport

T = TypeVar("T")


class Runner:
    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        *,
        observers: Sequence[Observer] = (),
        threads: int = 16,
        deadline_seconds: float | None = None,
    ) -> None:
        self.transport = transport
        self.clock = clock
        self.observers = tuple(observers)
        self.threads = threads
        self.deadline_seconds = deadline_seconds
        self._pool = _Pool(threads)

    def within(self, seconds: float) -> Runner:
        """The same with a deadline for each call."""
        made = Runner(
            self.transport,
            self.clock,
            observers=self.observers,
            threads=self.threads,
            deadline_seconds=seconds,
        )
        made._pool = self._pool
        return made

    def close(self) -> None:
        self._pool.close()
        self.transport.close()

    def run(self, work: Work[T]) -> T:
        try:
            wish = next(work)
            while True:
                try:
                    answer = self._do(wish)
                except StatorError as error:
                    wish = work.throw(error)
                else:
                    wish = work.send(answer)
        except StopIteration as done:
            result: T = done.value
            return result

    def iterate(self, pages: Pages[T]) -> Iterator[T]:
        """Read pages one by one, each when its first item is asked for."""
        while not pages.is_done:
            yield from self.run(pages.page())

    def _do(self, wish: Any) -> Any:
        if type(wish) is Call:
            return self._call(wish)
        if type(wish) is Gather:
            return self._gather(wish)
        if type(wish) is Pause:
            return self.clock.sleep(wish.seconds)
        assert type(wish) is BlockingCall
        return wish.function()

    def _call(self, call: Call) -> dict[str, Any]:
        if not self.observers:
            return self.transport.call(
                call.operation,
                call.request,
                idempotent=call.idempotent,
                deadline_seconds=self.deadline_seconds,
            )
        observed = Observed(call, self.observers)
        try:
            reply = self.transport.call(
                call.operation,
                call.request,
                idempotent=call.idempotent,
                deadline_seconds=self.deadline_seconds,
            )
        except BaseException as error:
            observed.done(None, error)
            raise
        observed.done(reply, None)
        return reply

    def _gather(self, wish: Gather) -> list[Any]:
        if (
            len(wish.parts) < 2
            or self.threads < 2
            or not self.transport.parallel
            or self._pool.is_inside()
        ):
            return [self._part(part) for part in wish.parts]
        return self._pool.map(self._part, wish.parts)

    def _part(self, part: Call | Generator[Any, Any, Any]) -> Any:
        try:
            return self._call(part) if isinstance(part, Call) else self.run(part)
        except StatorError as error:
            return error


class Observed:
    """A call on its way to becoming a record."""

    def __init__(self, call: Call, observers: Sequence[Observer]) -> None:
        self.call = call
        self.observers = observers
        if call.operation in MEASURED:
            call.request["ReturnConsumedCapacity"] = "TOTAL"
        self.started = time.time()
        self._from = time.perf_counter()

    def done(self, reply: dict[str, Any] | None, error: BaseException | None) -> None:
        call = self.call
        units = units_of(reply) if reply is not None else 0.0
        is_write = call.operation in WRITES
        record = CallRecord(
            call.operation,
            call.label,
            table_of(call.request),
            self.started,
            time.perf_counter() - self._from,
            0.0 if is_write else units,
            units if is_write else 0.0,
            error,
        )
        for observer in self.observers:
            observer(record)


class _Pool:
    """Threads, made when first needed. Work that gathers inside a thread goes on in it: waiting for others could wait for ever."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._made: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._here = threading.local()
        self._process = os.getpid()

    def is_inside(self) -> bool:
        return getattr(self._here, "inside", False)

    def map(self, function: Any, parts: Sequence[Any]) -> list[Any]:
        with self._lock:
            if (
                self._made is None or self._process != os.getpid()
            ):  # a fork has its parent's pool, and none of its threads
                self._process = os.getpid()
                self._made = ThreadPoolExecutor(self._threads, "stator", initializer=self._enter)
        return list(self._made.map(function, parts))

    def _enter(self) -> None:
        self._here.inside = True

    def close(self) -> None:
        if self._made is not None and self._process == os.getpid():
            self._made.shutdown(wait=True)
