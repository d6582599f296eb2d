"""Runs work (``tables.work``) with blocking calls.

The parts of a ``Gather`` run in threads if that is faster with the given transport.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any, TypeVar

from stator.clock import Clock
from stator.errors import DbClosed, ServiceError, StatorError
from stator.model.seconds import check_seconds
from stator.tables.gather_threads import Abandoned, Gathering, GatherThreads
from stator.tables.observers import MEASURED, WRITES, CallRecord, Observer, table_of, units_of
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
from stator.throttle_reason import ThrottleReason, throttle_reasons
from stator.transport import CallOptions, Transport

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
        if deadline_seconds is not None:
            check_seconds("connect()", deadline_seconds=deadline_seconds)
        self.transport = transport
        self.clock = clock
        self.observers = tuple(observers)
        self.threads = threads
        self.deadline_seconds = deadline_seconds
        self._pool = GatherThreads(threads)
        self._connection = ConnectionState()

    def within(self, seconds: float) -> Runner:
        """Return a runner with a deadline for each call. Both runners share their threads."""
        made = Runner(
            self.transport,
            self.clock,
            observers=self.observers,
            threads=self.threads,
            deadline_seconds=seconds,
        )
        made._pool = self._pool
        made._connection = self._connection
        return made

    @property
    def is_closed(self) -> bool:
        return self._connection.is_closed

    def close(self) -> None:
        """Close the transport. Calls that other threads are making fail soon."""
        self._connection.is_closed = True
        self.transport.close()  # first: it ends the calls that the threads wait for
        self._pool.close()

    def run(self, work: Work[T], gathering: Gathering | None = None) -> T:
        """Run work and return its result.

        If the work is a part of ``gathering``, it ends before its next effect once the gathering is
        abandoned.
        """
        try:
            effect = next(work)
            while True:
                if gathering is not None and gathering.is_abandoned:
                    work.close()
                    raise Abandoned
                try:
                    answer = self._do(effect)
                except StatorError as error:
                    effect = work.throw(error)
                else:
                    effect = work.send(answer)
        except StopIteration as done:
            result: T = done.value
            return result

    def iterate(self, pages: Pages[T]) -> Iterator[T]:
        """Iterate over pages. Each page is read when its first item is requested."""
        while not pages.is_done:
            yield from self.run(pages.page())

    def _do(self, effect: Any) -> Any:
        if self._connection.is_closed:
            raise DbClosed
        if type(effect) is Call:
            return self._call(effect)
        if type(effect) is Gather:
            return self._gather(effect)
        if type(effect) is Pause:
            return self.clock.sleep(effect.seconds)
        if type(effect) is not BlockingCall:
            raise not_an_effect(effect)
        return effect.function()

    def _call(self, call: Call) -> dict[str, Any]:
        try:
            return self._observed(call)
        except ServiceError as error:
            call.describe(error)
            raise

    def _observed(self, call: Call) -> dict[str, Any]:
        if not self.observers:
            return self.transport.call(
                call.operation, call.request, **call.options(self.deadline_seconds)
            )
        observed = Observed(call, self.observers)
        try:
            reply = self.transport.call(
                call.operation, call.request, **observed.options(self.deadline_seconds)
            )
        except BaseException as error:
            observed.done(None, error)
            raise
        observed.done(reply, None)
        return reply

    def _gather(self, effect: Gather) -> list[Any]:
        if (
            len(effect.parts) < 2
            or self.threads < 2
            or not self.transport.parallel
            or self._pool.is_inside()
        ):
            return [self._part(part, None) for part in effect.parts]
        return self._pool.map(self._part, effect.parts)

    def _part(self, part: Call | Generator[Any, Any, Any], gathering: Gathering | None) -> Any:
        try:
            return self._call(part) if isinstance(part, Call) else self.run(part, gathering)
        except StatorError as error:
            return error


class Observed:
    """Measures a call and passes its record to the observers when it is done.

    Creating it adds ``ReturnConsumedCapacity`` to the call's request, for operations that have it.
    """

    def __init__(self, call: Call, observers: Sequence[Observer]) -> None:
        self.call = call
        self.observers = observers
        if call.operation in MEASURED:
            by_index = any(getattr(observer, "by_index", False) for observer in observers)
            call.request["ReturnConsumedCapacity"] = "INDEXES" if by_index else "TOTAL"
        self.started = time.time()
        self._from = time.perf_counter()
        self._attempts = 1
        self._throttles: tuple[ThrottleReason, ...] = ()

    def options(self, deadline_seconds: float | None) -> CallOptions:
        """Return the options of the call, with ``on_retry``: each retry enters the record."""
        options = self.call.options(deadline_seconds)
        options["on_retry"] = self._retried
        return options

    def _retried(self, error: BaseException) -> None:
        self._attempts += 1
        self._throttles += throttle_reasons(error)

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
            self._attempts,
            self._throttles + throttle_reasons(error),
            call.request,
            reply or {},
        )
        for observer in self.observers:
            observer(record)
