"""``Sink``: a receiver that is spoken to by blocking calls. A sink of your own defines ``send``:

    class PrinterSink(Sink):
        max_messages = 50

        def send(self, messages):
            printer.print([message.body for message in messages])

It gets messages in the stream's order, from several threads at once, and returns when all of them are delivered. It raises ``TryLater`` when what it needs is
away; anything else that it raises is taken for the fault of one of the messages, which is then looked for by sending halves. Where the receiver tells
which messages it refuses, ``send`` gives them back as ``Refusal`` instead. It must not deliver a later message of an item whose earlier one it did not.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from stator.errors import LeaseLost, SinkRefused
from stator.pipeline.sinks.change_sink import OUTAGES, ChangeSink, Lane, Message, lane_of
from stator.pipeline.workers.handlers.change import Record
from stator.pipeline.workers.handlers.subscribers import HandlerFailure, HandlerScope, halved, lanes
from stator.tables.work import BlockingCall, Work

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A message that was not delivered, and why."""

    message: Message
    error: Exception


class Sink(ChangeSink):
    """``max_messages`` and ``max_bytes`` bound what ``send`` gets at once."""

    max_messages: int = 1000
    max_bytes: int = 8 << 20

    @abstractmethod
    def send(self, messages: Sequence[Message]) -> Sequence[Refusal] | None:
        """Deliver them; see the module's header."""

    def deliver(
        self, messages: Sequence[Message], scope: HandlerScope
    ) -> Work[list[HandlerFailure]]:
        """In batches through ``send``."""
        failures: list[HandlerFailure] = yield BlockingCall(
            partial(_Delivery(self, scope.check).run, messages)
        )
        return failures


class _Delivery:
    """One batch of a worker's, in batches of the sink's. A key that fails in one is left out of the next."""

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
                        f"the message has {size:,} bytes; {self._sink.name} takes {limit:,}"
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
        if self._outage is not None:  # found out once; the other halves need not wait for it too
            return self._outage
        try:
            refusals = self._sink.send([left[id(record)] for record in records])
        except LeaseLost:
            raise
        except OUTAGES as error:
            self._outage = error
            return error
        except (
            Exception
        ) as error:  # of whatever library the sink uses: one of the messages is at fault
            return error
        for refusal in refusals or ():
            if len(records) == 1:  # one by one: the next of this item must not follow
                return refusal.error
            self._fail(HandlerFailure(refusal.message.record, refusal.error))
        return None

    def _fail(self, failure: HandlerFailure) -> None:
        """The first of an item is what counts."""
        known = self._failed.get(lane_of(failure.record))
        if known is None or int(failure.record.sequence or 0) < int(known.record.sequence or 0):
            self._failed[lane_of(failure.record)] = failure


def batches(
    messages: Sequence[Message], max_messages: int, max_bytes: int
) -> Iterator[list[Message]]:
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
    """Something made at its first use, once, by whichever thread comes first: clients and producers."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: list[T] = []
        self._lock = threading.Lock()

    def get(self) -> T:
        with self._lock:
            if not self._made:
                self._made.append(self._make())
            return self._made[0]

    def take(self) -> T | None:
        """What was made, if anything was; the next use makes it anew."""
        with self._lock:
            return self._made.pop() if self._made else None

    def take_if(self, made: T) -> bool:
        """The same, if it is this one still."""
        with self._lock:
            if self._made and self._made[0] is made:
                self._made.clear()
                return True
            return False
