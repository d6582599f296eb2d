"""Subscribers receive changes: the user's functions, views, sinks and maintenance jobs.

A subscriber says which records it wants and gets them in batches, in the stream's order. It returns
a failure for each item that it could not handle, with the first record that failed. The item's
earlier records, and all other items, count as handled. It may get the same records again.

Subscribers do not wait for each other: each has its own order, and its failures are set aside or
parked for it alone. All functions that an app registers for single changes are one subscriber
(``change_handlers``), because each change of an item must pass all of them before the next one.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, runtime_checkable

from stator.design.table_settings import StreamView, shows, smallest_view
from stator.errors import StreamMissing
from stator.pipeline.workers.handlers.change import (
    CHANGES,
    Change,
    Record,
    changed_attributes,
    entity_of,
)
from stator.tables.context import Context
from stator.tables.reads.items import decoded
from stator.tables.work import BlockingCall, Work


@dataclass(frozen=True, slots=True)
class HandlerFailure:
    """A failure to handle an item: the first of its records that failed, and the error.

    In a subscriber of several functions, ``handler`` is the function that failed. ``done`` names
    the functions that had handled the record before; a retry does not call them again.
    """

    record: Record
    error: BaseException
    handler: str = ""
    done: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HandlerScope:
    """The context that a subscriber gets in addition to the records.

    ``fence`` is the fencing token of the shard's lease. Call ``check`` before each record: it
    raises LeaseLost once the lease has ended, because another worker then handles the remaining
    records. ``stream`` is the stream's label, which sorts later for later streams of a table.
    ``guard`` returns a transaction action that fails once the lease is lost. ``is_retry`` is set
    for changes that were set aside or parked. ``done`` maps the id() of a record that is retried to
    the names of the functions that have handled it. ``is_lambda`` is set on AWS Lambda, which does
    not say which shard a change is from and may handle several batches of a shard at once: a
    subscriber that counts changes must recognise each one by itself.
    """

    context: Context
    group: str
    shard: str
    fence: int
    check: Callable[[], Any]
    stream: str = ""
    guard: Callable[[], dict[str, Any]] | None = None
    is_retry: bool = False
    done: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    is_lambda: bool = False


@runtime_checkable
class Subscriber(Protocol):
    """Receives the batches of a shard: a handler, a view or a sink."""

    @property
    def name(self) -> str:
        """A name that is unique in the app, and the same from run to run."""
        ...

    def wants(self, record: Record, context: Context) -> bool: ...

    def handle(self, records: Sequence[Record], scope: HandlerScope) -> Work[list[HandlerFailure]]:
        """Handle the records. Return one failure for each item that could not be handled."""
        ...


@runtime_checkable
class ClosingSubscriber(Protocol):
    """A subscriber with resources that ``close`` closes when a worker ends.

    It may receive more records after it was closed, from a worker that starts later.
    """

    def close(self) -> None: ...


@runtime_checkable
class AttendingSubscriber(Protocol):
    """A subscriber with periodic work, which it does even while no changes arrive."""

    def attend(self, scope: HandlerScope, position: str) -> Work[None]:
        """Do the periodic work. It runs before a shard's first batch, then every few seconds.

        Everything up to ``position`` has been handled.
        """
        ...


@runtime_checkable
class ExactSubscriber(Subscriber, AttendingSubscriber, Protocol):
    """A subscriber that recognises repeated changes and counts each change once, such as a view.

    The order of the changes does not matter to it. It gets every change before the other
    subscribers do, even a change to an item that is parked for it. Each of its failures concerns
    one change alone: workers park this change at once and do not retry it. It needs a stream with
    both images.
    """

    @property
    def is_exact(self) -> bool: ...

    def prepare(self, context: Context) -> None:
        """Raise an error if the subscriber cannot work with this database.

        A worker calls it before it reads anything.
        """
        ...


@runtime_checkable
class EntitySubscriber(Protocol):
    """A subscriber that gets the changes to some entities only, which the design must have."""

    @property
    def entities(self) -> tuple[type[Any], ...]: ...


@runtime_checkable
class TableSubscriber(Protocol):
    """A subscriber that names the tables whose changes it gets.

    A subscriber without ``tables`` gets the changes to the tables of the design's entities.
    """

    def tables(self, context: Context) -> Sequence[str]: ...


@runtime_checkable
class ImageSubscriber(Protocol):
    """A subscriber that says which images of an item it needs.

    For a subscriber without ``needs``, ``ensure`` creates a stream with both images, but workers
    accept any stream. Only an ``ExactSubscriber`` without ``needs`` requires both images.
    """

    def needs(self, table: str, context: Context) -> StreamView | None:
        """Return the smallest view type of the table's stream that suffices, or None if unknown."""
        ...


def tables_of(subscriber: Subscriber, context: Context) -> Sequence[str]:
    return (
        subscriber.tables(context)
        if isinstance(subscriber, TableSubscriber)
        else tuple(context.schema.tables)
    )


def subscribers_of(
    subscribers: Sequence[Subscriber], table: str, context: Context
) -> list[Subscriber]:
    """Return the subscribers that get the changes to a table."""
    return [each for each in subscribers if table in tables_of(each, context)]


def stream_views(subscribers: Sequence[Subscriber], context: Context) -> dict[str, StreamView]:
    """Return the tables that subscribers follow, each with the view type that its stream needs."""
    wanted: dict[str, list[StreamView]] = {}
    for each in subscribers:
        for table in tables_of(each, context):
            wanted.setdefault(table, []).append(
                _needs(each, table, context) or "NEW_AND_OLD_IMAGES"
            )
    return {table: smallest_view(views) for table, views in wanted.items()}


def refuse_small_stream(
    view: str, table: str, subscribers: Sequence[Subscriber], context: Context
) -> None:
    """Raise StreamMissing if a subscriber needs images that a table's stream does not show.

    ``view`` is the view type of the stream.
    """
    for each in subscribers_of(subscribers, table, context):
        needed = _needs(each, table, context)
        if needed is not None and not shows(view, needed):
            raise StreamMissing(
                f"the stream of {table} shows {view}; {each.name} needs {needed}",
                hint=f"switch the stream off and on again with StreamViewType {needed}",
            )


def _needs(subscriber: Subscriber, table: str, context: Context) -> StreamView | None:
    if isinstance(subscriber, ImageSubscriber):
        return subscriber.needs(table, context)
    is_exact = bool(exact_subscribers([subscriber]))
    return "NEW_AND_OLD_IMAGES" if is_exact else None


def exact_subscribers(subscribers: Sequence[Subscriber]) -> list[ExactSubscriber]:
    return [each for each in subscribers if isinstance(each, ExactSubscriber) and each.is_exact]


def lanes(records: Iterable[Record]) -> list[list[Record]]:
    """Return the records grouped by item. The records of an item keep their order."""
    found: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        found.setdefault((record.table, record.key), []).append(record)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Selects the changes that a function gets.

    ``kinds`` is some of INSERT, MODIFY and REMOVE. ``changed`` are attributes, one of which must
    have changed. ``expired`` selects deletions by the service (True), or all other changes (False).
    An empty or None field selects everything.
    """

    kinds: frozenset[str] = frozenset()
    entities: tuple[type[Any], ...] = ()
    changed: frozenset[str] = frozenset()
    expired: bool | None = None

    def accepts(self, record: Record, context: Context) -> bool:
        if self.kinds and record.kind not in self.kinds:
            return False
        if (
            self.expired is not None
            and (record.kind == "REMOVE" and record.by_service) != self.expired
        ):
            return False
        of = None
        if self.entities:
            of = entity_of(record, context)
            if of is None or of.cls not in self.entities:
                return False
        return not self.changed or bool(self.changed & changed_attributes(record, of))

    def needs(self, view: StreamView, table: str, context: Context) -> StreamView:
        """Return the view type that a table's stream must have for a function that needs ``view``.

        The filter itself may need more than ``view``. It needs both images if it selects by changed
        attributes, or if it selects entities that cannot be told apart by their keys alone.
        """
        mine = [of for of in map(context.schema.of, self.entities) if of.table.name == table]
        if self.entities and not mine:
            return "KEYS_ONLY"
        keys = context.schema.table_keys(table) if mine else None
        if keys is not None and not all(keys.is_certain(of) for of in mine):
            return "NEW_AND_OLD_IMAGES"
        return "NEW_AND_OLD_IMAGES" if self.changed else view


@dataclass(slots=True)
class EachBatch:
    """The subscriber that calls a function with lists of changes (``@app.on.batch``).

    If the function raises, calls it with each half of the list and so on, to find the changes at
    fault.
    """

    name: str
    function: Callable[[list[Any]], Any]
    filter: ChangeFilter
    view: StreamView = "NEW_AND_OLD_IMAGES"

    def needs(self, table: str, context: Context) -> StreamView | None:
        return self.filter.needs(self.view, table, context)

    def wants(self, record: Record, context: Context) -> bool:
        return self.filter.accepts(record, context)

    def handle(self, records: Sequence[Record], scope: HandlerScope) -> Work[list[HandlerFailure]]:
        changes = yield from typed_all(records, scope.context)
        send = partial(self._send, changes=changes, check=scope.check)
        failures: list[HandlerFailure] = yield BlockingCall(partial(halved, lanes(records), send))
        return failures

    def _send(
        self, records: list[Record], changes: dict[int, Change[Any]], check: Callable[[], Any]
    ) -> Exception | None:
        check()
        try:
            finished(self.function([changes[id(record)] for record in records]))
        except Exception as error:  # user code: whatever it raises, the batch failed
            return error
        return None


def halved(
    groups: list[list[Record]], send: Callable[[list[Record]], Exception | None]
) -> list[HandlerFailure]:
    """Send a batch. If that fails, send its halves and so on, to find the changes that fail.

    A batch is split between items until only one item is left; then its changes are sent one by
    one. ``send`` gets records in the stream's order and returns the error, or None. Returns a
    failure for each item that failed.
    """
    error = send(
        sorted(
            (record for group in groups for record in group),
            key=lambda each: int(each.sequence or 0),
        )
    )
    if error is None:
        return []
    if len(groups) > 1:
        middle = len(groups) // 2
        return halved(groups[:middle], send) + halved(groups[middle:], send)
    for record in groups[0]:
        failure = send([record]) if len(groups[0]) > 1 else error
        if failure is not None:
            return [HandlerFailure(record, failure)]
    return []


def typed_all(records: Sequence[Record], context: Context) -> Work[dict[int, Change[Any]]]:
    """Return each record as the ``Change`` that handlers see, by the id() of the record.

    Blobs, the large values stored outside the table, are fetched.
    """
    changes: dict[int, Change[Any]] = {}
    for record in records:
        of = entity_of(record, context)
        entities: dict[str, Any] = {}
        if of is not None and of.large:
            for name, item in (("old", record.old), ("new", record.new)):
                if item is not None:
                    [entities[name]] = yield from decoded(context, of, [dict(item)])
        keys = None if of is None else context.schema.table_keys(record.table)
        changes[id(record)] = CHANGES[record.kind](record, of, entities, keys)
    return changes


def finished(result: Any) -> None:
    """Await the result of a user's function, if the function is async.

    ``result`` is what the function returned. If it cannot be awaited, return at once. All async
    functions run in one event loop, in a thread of its own.
    """
    if inspect.isawaitable(result):
        asyncio.run_coroutine_threadsafe(_awaited(result), _loop()).result()


async def _awaited(result: Awaitable[Any]) -> None:
    await result


_loops: list[asyncio.AbstractEventLoop] = []
_loops_lock = threading.Lock()


def _loop() -> asyncio.AbstractEventLoop:
    with _loops_lock:
        if not _loops:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="stator-handlers", daemon=True).start()
            _loops.append(loop)
        return _loops[0]
