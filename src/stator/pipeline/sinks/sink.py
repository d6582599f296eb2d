"""``Sink``: the base of sinks that make blocking calls. A sink of your own defines ``send``:

    class PrinterSink(Sink):
        max_messages = 50

        def send(self, messages):
            printer.print([message.body for message in messages])

``send`` receives messages in the order of the stream, from several threads at once, and returns
when all are delivered. It raises ``TryLater`` during an outage. Any other error counts as the fault
of one message, which the sink then finds by sending halves. If the receiver says which messages it
refuses, ``send`` returns a ``Refusal`` for each instead. ``send`` must not deliver a message of an
item if an earlier message of that item was not delivered.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from stator.errors import LeaseLost, SinkRefused
from stator.pipeline.sinks.change_sink import (
    OUTAGES,
    ChangeSink,
    Lane,
    Message,
    keep_first,
    lane_of,
)
from stator.pipeline.workers.handlers.change import Record
from stator.pipeline.workers.handlers.subscribers import HandlerFailure, HandlerScope, halved, lanes
from stator.tables.work import BlockingCall, Work

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A message that was not delivered, and the error that says why."""

    message: Message
    error: Exception


class Sink(ChangeSink):
    """The base of sinks that send with blocking calls. A subclass defines ``send``.

    ``max_messages`` and ``max_bytes`` limit the messages in one call of ``send``.
    """

    max_messages: int = 1000
    max_bytes: int = 8 << 20

    @abstractmethod
    def send(self, messages: Sequence[Message]) -> Sequence[Refusal] | None:
        """Deliver messages, which are in the order of the stream.

        Return None if all were delivered, otherwise a Refusal for each that was not. Raise TryLater
        during an outage. Any other error counts as the fault of one message, which the sink finds
        by sending halves.
        """

    def deliver(
        self, messages: Sequence[Message], scope: HandlerScope
    ) -> Work[list[HandlerFailure]]:
        """Deliver the messages by calling ``send`` with one batch after another."""
        failures: list[HandlerFailure] = yield BlockingCall(
            partial(_Delivery(self, scope.check).run, messages)
        )
        return failures


class _Delivery:
    """Divides the messages of a worker's batch among calls of ``send``.

    After a failure, later messages of the same item are left out.
    """

    def __init__(self, sink: Sink, check: Callable[[], Any]) -> None:
        self._sink = sink
        self._check = check
        self._failed: dict[Lane, HandlerFailure] = {}
        self._outage: Exception | None = None

    def run(self, messages: Sequence[Message]) -> list[HandlerFailure]:
        fitting = [message for message in messages if self._fits(message)]
        for batch in batches(fitting, self._sink.max_messages, self._sink.max_bytes):
            left = {
                id(message.record): message
                for message in batch
                if self._is_before_failure(message.record)
            }
            if left:
                groups = lanes(message.record for message in left.values())
                for failure in halved(groups, partial(self._attempt, left)):
                    self._fail(failure)
        return list(self._failed.values())

    def _fits(self, message: Message) -> bool:
        if not self._is_before_failure(message.record):
            return False
        size = len(message.body)
        if size > self._sink.max_bytes:
            limit = self._sink.max_bytes
            self._fail(
                HandlerFailure(
                    message.record,
                    SinkRefused(
                        f"the message has {size:,} bytes; {self._sink.name} accepts {limit:,}"
                    ),
                )
            )
            return False
        return True

    def _is_before_failure(self, record: Record) -> bool:
        failure = self._failed.get(lane_of(record))
        return failure is None or int(record.sequence or 0) < int(failure.record.sequence or 0)

    def _attempt(self, left: dict[int, Message], records: list[Record]) -> Exception | None:
        self._check()
        if self._outage is not None:  # known already; the other halves need not wait for it, too
            return self._outage
        try:
            refusals = self._sink.send([left[id(record)] for record in records])
        except LeaseLost:
            raise
        except OUTAGES as error:
            self._outage = error
            return error
        except Exception as error:  # from the sink's library: one of the messages is at fault
            return error
        for refusal in refusals or ():
            if len(records) == 1:  # sent alone: later messages of this item must not follow
                return refusal.error
            self._fail(HandlerFailure(refusal.message.record, refusal.error))
        return None

    def _fail(self, failure: HandlerFailure) -> None:
        keep_first(self._failed, failure)


def batches(
    messages: Sequence[Message], max_messages: int, max_bytes: int
) -> Iterator[list[Message]]:
    """Split messages into batches of at most ``max_messages`` messages and ``max_bytes`` bytes."""
    batch: list[Message] = []
    size = 0
    for message in messages:
        if batch and (len(batch) >= max_messages or size + len(message.body) > max_bytes):
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += len(message.body)
    if batch:
        yield batch


class LazyResource(Generic[T]):
    """A client or producer that is created when a thread first needs it. All threads share it."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._created: list[T] = []
        self._lock = threading.Lock()

    def get(self) -> T:
        with self._lock:
            if not self._created:
                self._created.append(self._make())
            return self._created[0]

    def take(self) -> T | None:
        """Remove and return the resource, if there is one. The next ``get`` creates another."""
        with self._lock:
            return self._created.pop() if self._created else None

    def discard(self, resource: T) -> bool:
        """Forget ``resource`` if it is still the current one. The next ``get`` creates another.

        Returns whether ``resource`` was the current one.
        """
        with self._lock:
            if self._created and self._created[0] is resource:
                self._created.clear()
                return True
            return False
