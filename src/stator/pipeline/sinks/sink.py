"""``Sink``: what all sinks have in common. A sink of your own defines ``send``:

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypedDict, TypeVar

from stator.errors import ConfigurationError, ConnectionTrouble, LeaseLost, SinkRefused, SlowDown, TryLater
from stator.pipeline.sinks.events import Images, encoded, event_id, event_of, json_encoded
from stator.pipeline.workers.change import Change, Record
from stator.pipeline.workers.subscribers import Failure, Filter, Scope, halved, lanes, typed_all
from stator.tables.context import Context
from stator.tables.work import Outside, Work

T = TypeVar("T")
Lane = tuple[str, str]

OUTAGES = (TryLater, SlowDown, ConnectionTrouble)


class SinkOptions(TypedDict, total=False):
    """Which changes a sink gets, and how they look there.

    ``only`` is an entity or several, ``kinds`` some of INSERT, MODIFY and REMOVE, ``expired`` tells items whose time was over from those that somebody deleted.
    ``transform`` is a function from a ``Change`` to what is sent, bytes, text or something for JSON; None is not sent. Without it, an event is sent as
    events.py describes, with its images ``plain`` or as ``dynamodb`` has them.
    """

    only: type[Any] | Sequence[type[Any]]
    kinds: Sequence[str]
    expired: bool | None
    transform: Callable[[Change[Any]], Any] | None
    images: Images


@dataclass(frozen=True, slots=True)
class Message:
    """A change on its way out. ``key`` is the same for all changes of an item; ``event_id`` each time this one is sent."""

    change: Change[Any]
    key: str
    event_id: str
    body: bytes

    @property
    def record(self) -> Record:
        return self.change.record

    @property
    def lane(self) -> Lane:
        """The item, in its table: what order is kept for."""
        return self.change.record.table, self.key


@dataclass(frozen=True, slots=True)
class Refusal:
    """A message that was not delivered, and why."""

    message: Message
    error: Exception


class Sink:
    """``max_messages`` and ``max_bytes`` bound what ``send`` gets at once. ``is_json`` is for receivers that take nothing else: text from a transform
    is then sent as JSON text, and bytes are refused."""

    max_messages: int = 1000
    max_bytes: int = 8 << 20
    is_json: bool = False

    def __init__(self, name: str, options: SinkOptions | None = None) -> None:
        """``name`` is unique in the app: what is parked remembers which sinks have had it."""
        given: Any = dict(options or {})
        unknown = sorted(given.keys() - SinkOptions.__annotations__.keys())
        if unknown:
            known = ", ".join(SinkOptions.__annotations__)
            raise ConfigurationError(f"a sink takes no {unknown[0]}=", hint=f"those of every sink are {known}")
        if not name:
            raise ConfigurationError("a sink needs a name", hint="its progress is kept by it")
        self._name = name
        self._transform = given.get("transform")
        self._images: Images = given.get("images", "plain")
        self._filter = _filter(given)
        if self._images not in ("plain", "dynamodb"):
            raise ConfigurationError(f"images={self._images!r}", hint="plain or dynamodb")

    @property
    def name(self) -> str:
        return self._name

    def wants(self, record: Record, context: Context) -> bool:
        return self._filter.accepts(record, context)

    def send(self, messages: Sequence[Message]) -> Sequence[Refusal] | None:
        """Deliver them; see the module's header."""
        raise NotImplementedError

    def close(self) -> None:
        """A worker has ended. Connections may be closed; the sink may be used again, by this worker or another."""

    # -- from changes to messages

    def handle(self, records: Sequence[Record], scope: Scope) -> Work[list[Failure]]:
        changes = yield from typed_all(records, scope.context)
        messages: list[Message] = []
        failures: list[Failure] = []
        for lane in lanes(records):
            failure = self._add(lane, changes, scope.context, messages)
            if failure is not None:
                failures.append(failure)
        place = {id(record): number for number, record in enumerate(records)}
        messages.sort(key=lambda message: place[id(message.record)])
        if messages:
            failures += yield from self.deliver(messages, scope)
        return _of_one_mood(failures)

    def _add(
        self, lane: list[Record], changes: dict[int, Change[Any]], context: Context, messages: list[Message]
    ) -> Failure | None:
        """The messages of one item, up to the first change that none can be made of."""
        for record in lane:
            try:
                body = self._body(changes[id(record)], context)
            except Exception as error:  # the transform is the user's, and whatever it raises is this change's fault
                return Failure(record, error)
            if body is not None:
                messages.append(Message(changes[id(record)], record.key, event_id(record), body))
        return None

    def _body(self, change: Change[Any], context: Context) -> bytes | None:
        if self._transform is None:
            return encoded(event_of(change, context, self._images))
        made = self._transform(change)
        if made is None:
            return None
        return json_encoded(made) if self.is_json else encoded(made)

    # -- from messages to the receiver

    def deliver(self, messages: Sequence[Message], scope: Scope) -> Work[list[Failure]]:
        """In batches through ``send``, by blocking calls. A sink that speaks to DynamoDB does it its own way."""
        failures: list[Failure] = yield Outside(partial(_Delivery(self, scope.check).run, messages))
        return failures


class _Delivery:
    """One batch of a worker's, in batches of the sink's. A key that fails in one is left out of the next."""

    def __init__(self, sink: Sink, check: Callable[[], Any]) -> None:
        self._sink = sink
        self._check = check
        self._failed: dict[Lane, Failure] = {}
        self._outage: Exception | None = None

    def run(self, messages: Sequence[Message]) -> list[Failure]:
        fitting = [message for message in messages if self._fits(message)]
        for batch in batches(fitting, self._sink.max_messages, self._sink.max_bytes):
            left = {id(message.record): message for message in batch if self._is_before_failure(message.record)}
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
                Failure(
                    message.record, SinkRefused(f"the message has {size:,} bytes; {self._sink.name} takes {limit:,}")
                )
            )
            return False
        return True

    def _is_before_failure(self, record: Record) -> bool:
        failure = self._failed.get(_lane(record))
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
        except Exception as error:  # of whatever library the sink uses: one of the messages is at fault
            return error
        for refusal in refusals or ():
            if len(records) == 1:  # one by one: the next of this item must not follow
                return refusal.error
            self._fail(Failure(refusal.message.record, refusal.error))
        return None

    def _fail(self, failure: Failure) -> None:
        """The first of an item is what counts."""
        known = self._failed.get(_lane(failure.record))
        if known is None or int(failure.record.sequence or 0) < int(known.record.sequence or 0):
            self._failed[_lane(failure.record)] = failure


def batches(messages: Sequence[Message], max_messages: int, max_bytes: int) -> Iterator[list[Message]]:
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


def _lane(record: Record) -> Lane:
    return record.table, record.key


def _of_one_mood(failures: list[Failure]) -> list[Failure]:
    """One failure for each key, and where something is away, all of them for that reason: a round that is partly an outage would count as an
    attempt for those that only wait."""
    first: dict[Lane, Failure] = {}
    for failure in failures:
        known = first.get(_lane(failure.record))
        if known is None or int(failure.record.sequence or 0) < int(known.record.sequence or 0):
            first[_lane(failure.record)] = failure
    found = list(first.values())
    away = next((failure.error for failure in found if isinstance(failure.error, OUTAGES)), None)
    if away is None:
        return found
    return [each if isinstance(each.error, OUTAGES) else Failure(each.record, TryLater(str(away))) for each in found]


def _filter(given: dict[str, Any]) -> Filter:
    only = given.get("only", ())
    entities = (only,) if isinstance(only, type) else tuple(only)
    kinds = frozenset(given.get("kinds", ()))
    if not kinds <= {"INSERT", "MODIFY", "REMOVE"}:
        raise ConfigurationError(f"kinds={sorted(kinds)}", hint="some of INSERT, MODIFY and REMOVE")
    return Filter(kinds, entities, expired=given.get("expired"))


class Made(Generic[T]):
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
