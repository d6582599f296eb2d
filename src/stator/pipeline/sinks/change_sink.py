"""``ChangeSink``: what all sinks have in common. It takes the changes of a batch, makes messages of them, and leaves the delivery to ``deliver``.

Sinks that speak to a receiver by blocking calls are a ``Sink`` (sink.py), and define ``send``. Those that speak to DynamoDB define ``deliver`` itself, as work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from stator.errors import ConfigurationError, ConnectionTrouble, SlowDown, TryLater
from stator.pipeline.sinks.events import Images, encoded, event_id, event_of, json_encoded
from stator.pipeline.workers.handlers.change import Change, Record
from stator.pipeline.workers.handlers.subscribers import (
    ChangeFilter,
    HandlerFailure,
    HandlerScope,
    lanes,
    typed_all,
)
from stator.tables.context import Context
from stator.tables.work import Work

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


class ChangeSink(ABC):
    """``is_json`` is for receivers that take nothing else: text from a transform is then sent as JSON text, and bytes are refused."""

    is_json: bool = False

    def __init__(self, name: str, options: SinkOptions | None = None) -> None:
        """``name`` is unique in the app: what is parked remembers which sinks have had it."""
        given: Any = dict(options or {})
        unknown = sorted(given.keys() - SinkOptions.__annotations__.keys())
        if unknown:
            known = ", ".join(SinkOptions.__annotations__)
            raise ConfigurationError(
                f"a sink takes no {unknown[0]}=", hint=f"those of every sink are {known}"
            )
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

    @abstractmethod
    def deliver(
        self, messages: Sequence[Message], scope: HandlerScope
    ) -> Work[list[HandlerFailure]]:
        """Deliver them, which are in the stream's order; one failure for each item that was not, with its first change at fault."""

    def close(self) -> None:  # noqa: B027 - most sinks have nothing to close
        """A worker has ended. Connections may be closed; the sink may be used again, by this worker or another."""

    # -- from changes to messages

    def handle(self, records: Sequence[Record], scope: HandlerScope) -> Work[list[HandlerFailure]]:
        changes = yield from typed_all(records, scope.context)
        messages: list[Message] = []
        failures: list[HandlerFailure] = []
        for lane in lanes(records):
            failure = self._add(lane, changes, scope.context, messages)
            if failure is not None:
                failures.append(failure)
        place = {id(record): number for number, record in enumerate(records)}
        messages.sort(key=lambda message: place[id(message.record)])
        if messages:
            failures += yield from self.deliver(messages, scope)
        return _first_of_each(failures)

    def _add(
        self,
        lane: list[Record],
        changes: dict[int, Change[Any]],
        context: Context,
        messages: list[Message],
    ) -> HandlerFailure | None:
        """The messages of one item, up to the first change that none can be made of."""
        for record in lane:
            try:
                body = self._body(changes[id(record)], context)
            except Exception as error:  # the transform is the user's, and whatever it raises is this change's fault
                return HandlerFailure(record, error)
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


def lane_of(record: Record) -> Lane:
    return record.table, record.key


def _first_of_each(failures: list[HandlerFailure]) -> list[HandlerFailure]:
    first: dict[Lane, HandlerFailure] = {}
    for failure in failures:
        known = first.get(lane_of(failure.record))
        if known is None or int(failure.record.sequence or 0) < int(known.record.sequence or 0):
            first[lane_of(failure.record)] = failure
    return list(first.values())


def _filter(given: dict[str, Any]) -> ChangeFilter:
    only = given.get("only", ())
    entities = (only,) if isinstance(only, type) else tuple(only)
    kinds = frozenset(given.get("kinds", ()))
    if not kinds <= {"INSERT", "MODIFY", "REMOVE"}:
        raise ConfigurationError(f"kinds={sorted(kinds)}", hint="some of INSERT, MODIFY and REMOVE")
    return ChangeFilter(kinds, entities, expired=given.get("expired"))
