"""``ChangeSink``: the base of all sinks. It turns the changes of a batch into messages.

``deliver`` sends the messages. Sinks that make blocking calls derive from ``Sink`` (``sink``) and
define ``send``. Sinks that write to DynamoDB define ``deliver`` itself, as work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from stator.design.table_settings import StreamView
from stator.errors import ConfigurationError, ConnectionTrouble, SinkRefused, SlowDown, TryLater
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
    """Which changes a sink receives, and in what form it sends them.

    ``only`` is one entity or several; ``kinds`` is some of INSERT, MODIFY and REMOVE. With
    ``expired=True``, the sink gets only deletions of expired items by DynamoDB; with False, only
    all other changes.

    ``transform`` is a function from a ``Change`` to the content to send: bytes, text, or a value
    for JSON; None sends nothing. Without ``transform``, the sink sends an event (``events``).
    ``images`` is the form of the items in it: ``plain`` JSON, or ``dynamodb`` for DynamoDB JSON.
    """

    only: type[Any] | Sequence[type[Any]]
    kinds: Sequence[str]
    expired: bool | None
    transform: Callable[[Change[Any]], Any] | None
    images: Images


@dataclass(frozen=True, slots=True)
class Message:
    """A change in the form in which a sink sends it.

    ``key`` is the same for all changes to an item. ``event_id`` is the same each time the change is
    sent.
    """

    change: Change[Any]
    key: str
    event_id: str
    body: bytes

    @property
    def record(self) -> Record:
        """The stream record of the change, as DynamoDB sent it."""
        return self.change.record

    @property
    def lane(self) -> Lane:
        """The table and key of the item that changed. Messages of one item keep their order."""
        return self.change.record.table, self.key


class ChangeSink(ABC):
    """The base of all sinks.

    ``is_json`` is True for receivers that accept only JSON. Text from a transform is then sent as a
    JSON string, and bytes are refused.
    """

    is_json: bool = False
    # The view type that the sink needs. None: events have the images that the stream shows.
    view: StreamView | None = None

    def __init__(self, name: str, options: SinkOptions | None = None) -> None:
        """Create a sink. ``name`` must be unique in the app and the same from run to run.

        Items that are set aside or parked for the sink are stored under its name.
        """
        given: Any = dict(options or {})
        unknown = sorted(given.keys() - SinkOptions.__annotations__.keys())
        if unknown:
            known = ", ".join(SinkOptions.__annotations__)
            raise ConfigurationError(
                f"sink {name!r} has no option {unknown[0]}=",
                hint=f"the options of all sinks are {known}",
            )
        if not name:
            raise ConfigurationError(
                f"a {type(self).__name__} needs a name",
                hint="pass a name that stays the same from run to run: progress is stored under it",
            )
        self._name = name
        self._transform = given.get("transform")
        self._images: Images = given.get("images", "plain")
        self._filter = _filter(name, given)
        if self._transform is not None and not callable(self._transform):
            raise ConfigurationError(
                f"sink {name!r}: transform={self._transform!r} is not a function",
                hint="pass a function from a Change to the content to send",
            )
        if self._images not in ("plain", "dynamodb"):
            raise ConfigurationError(
                f"images={self._images!r} is not supported",
                hint='use images="plain" or images="dynamodb"',
            )

    @property
    def entities(self) -> tuple[type[Any], ...]:
        """The entities of ``only=``; empty if the sink gets the changes to all entities."""
        return self._filter.entities

    @property
    def name(self) -> str:
        """The name under which the sink's parked items and progress are stored."""
        return self._name

    def needs(self, table: str, context: Context) -> StreamView | None:
        """Return the view type that a table's stream must have for this sink, or None for any."""
        return self.view

    def wants(self, record: Record, context: Context) -> bool:
        """Return whether the sink's options (``SinkOptions``) select this change."""
        return self._filter.accepts(record, context)

    @abstractmethod
    def deliver(
        self, messages: Sequence[Message], scope: HandlerScope
    ) -> Work[list[HandlerFailure]]:
        """Deliver messages, which are in the order of the stream.

        Returns one failure for each item that was not delivered, with its first failed change.
        """

    def close(self) -> None:  # noqa: B027 - most sinks have nothing to close
        """Close connections when a worker ends. A worker may use the sink again afterwards."""

    # -- changes to messages

    def handle(self, records: Sequence[Record], scope: HandlerScope) -> Work[list[HandlerFailure]]:
        """Turn the changes of a batch into messages and deliver them. Workers call this.

        Returns one failure for each item that was not delivered, with its first failed change.
        """
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
        first: dict[Lane, HandlerFailure] = {}
        for failure in failures:
            keep_first(first, failure)
        return list(first.values())

    def _add(
        self,
        lane: list[Record],
        changes: dict[int, Change[Any]],
        context: Context,
        messages: list[Message],
    ) -> HandlerFailure | None:
        """Turn the changes of one item into messages, and append these to ``messages``.

        Stops at the first change that cannot become a message. Returns the failure of that change,
        or None.
        """
        for record in lane:
            try:
                body = self._body(changes[id(record)], context)
            except Exception as error:  # from the user's transform: the fault of this change
                return HandlerFailure(record, error)
            if body is not None:
                messages.append(Message(changes[id(record)], record.key, event_id(record), body))
        return None

    def _transformed(self, change: Change[Any]) -> Mapping[Any, Any] | None:
        """Return the result of the sink's transform, which must be a dictionary or None.

        None sends nothing. Raises SinkRefused for any other result.
        """
        assert self._transform is not None
        found = self._transform(change)
        if found is None or isinstance(found, Mapping):
            return found
        raise SinkRefused(
            f"the transform of sink {self.name!r} returned a {type(found).__name__}, not a"
            " dictionary",
            hint="return a dictionary, or None to send nothing",
        )

    def _body(self, change: Change[Any], context: Context) -> bytes | None:
        if self._transform is None:
            return encoded(event_of(change, context, self._images))
        body = self._transform(change)
        if body is None:
            return None
        return json_encoded(body) if self.is_json else encoded(body)


def lane_of(record: Record) -> Lane:
    return record.table, record.key


def keep_first(failures: dict[Lane, HandlerFailure], failure: HandlerFailure) -> None:
    """Record ``failure`` in ``failures`` as the failure of its item.

    If an earlier change to the item has failed, that failure stays.
    """
    lane = lane_of(failure.record)
    known = failures.get(lane)
    if known is None or int(failure.record.sequence or 0) < int(known.record.sequence or 0):
        failures[lane] = failure


def _filter(name: str, given: dict[str, Any]) -> ChangeFilter:
    only, named = given.get("only", ()), given.get("kinds", ())
    entities = tuple(only) if isinstance(only, (list, tuple, set, frozenset)) else (only,)
    for entity in entities:
        if not isinstance(entity, type):
            raise ConfigurationError(
                f"sink {name!r}: only={only!r} is not an entity class",
                hint="pass the class, or several: only=[Order, Customer]",
            )
    if not isinstance(named, (list, tuple, set, frozenset)):
        raise ConfigurationError(
            f"sink {name!r}: kinds={named!r} is not a list",
            hint='pass a list, such as kinds=["INSERT"]',
        )
    expired = given.get("expired")
    if expired is not None and not isinstance(expired, bool):
        raise ConfigurationError(
            f"sink {name!r}: expired={expired!r} is not a flag", hint="use True, False or None"
        )
    kinds = frozenset(named)
    if not kinds <= {"INSERT", "MODIFY", "REMOVE"}:
        raise ConfigurationError(
            f"kinds={sorted(map(str, kinds))} has an unknown kind of change",
            hint="use some of INSERT, MODIFY and REMOVE",
        )
    return ChangeFilter(kinds, entities, expired=expired)
