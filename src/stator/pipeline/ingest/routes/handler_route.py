"""Handlers: each record calls a function with a transaction.

The transaction also moves the lane's position, an item in the design's own table:

    PK  INGEST#payments#orders#3    SK  POSITION    next  1842

on condition that the position is not yet past the record. If a record arrives again, the position
is already past it, and the whole transaction is refused. Handlers of a partition run one after the
other, in the order of the records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from stator.errors import (
    ConditionFailed,
    ConnectionTrouble,
    ServiceError,
    SlowDown,
    StatorError,
    TransactionFailed,
)
from stator.model.values import Item
from stator.pipeline.ingest.event_window import EventRun
from stator.pipeline.ingest.routes.guards import HandlerGuard, offset_value
from stator.pipeline.ingest.routes.route import FATAL, RouteOptions, RunOutcome
from stator.pipeline.ingest.source_record import PendingEvent, SourceRecord
from stator.pipeline.ingest.values.decoders import class_reader
from stator.tables.context import Context
from stator.tables.work import BlockingCall, Work
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.statements import Statement
from stator.tables.writes.transactions import Transaction


@dataclass(frozen=True, slots=True)
class HandlerRoute:
    """Each record calls a function with a transaction, which is sent when the function returns."""

    function: Callable[[Any, Any], Any]
    options: RouteOptions
    guard: HandlerGuard
    event: type[Any] | None = None

    @property
    def name(self) -> str:
        return self.function.__name__

    def bind(self, context: Context, app: str) -> BoundHandler:
        return BoundHandler(self, context, app)


class BoundHandler:
    """A handler bound to its tables.

    ``HandlerWriter`` runs it, because a handler has no guarded write.
    """

    def __init__(self, route: HandlerRoute, context: Context, app: str) -> None:
        self.route = route
        self.options = route.options
        self.app = app
        self._reader = class_reader(route.event, route.options.unknown)

    def event(self, record: SourceRecord, value: Any) -> tuple[Any, Any] | None:
        if value is None:
            return None
        event = self._reader(value)
        if self.options.when is not None and not self.options.when(event):
            return None
        return ("handler",), event


class AlreadyIngested(ConditionFailed):
    """The lane's position is past the record: the record has been handled."""

    code = "StatorAlreadyIngested"


class HandlerWriter:
    """Runs handlers and sends their transactions."""

    def __init__(self, context: Context, max_attempts: int) -> None:
        self._context = context
        self._max_attempts = max_attempts

    def write(self, route: BoundHandler, run: EventRun) -> Work[RunOutcome]:
        """Handle the events of a lane in their order, up to the first one to be retried."""
        result = RunOutcome()
        for at, event in enumerate(run.events):
            attempts = run.attempts if at == 0 else 0
            try:
                yield from self._handle(route, event)
                result.applied += 1
            except AlreadyIngested:
                result.stale += 1
            except FATAL:
                raise
            except Exception as error:  # of the user's function, or of the service
                if not _is_outage(error) and attempts + 1 >= self._max_attempts:
                    result.dead.append((event, f"{type(error).__name__}: {error}"))
                    continue
                result.left = run.events[at:]
                result.error = _as_stator_error(error)
                return result
        return result

    def _handle(self, route: BoundHandler, event: PendingEvent) -> Work[None]:
        transaction = Transaction(self._context)
        failed = yield BlockingCall(partial(_called, route, event, transaction))
        if failed is not None:
            raise failed
        if transaction.is_empty:
            return
        if route.route.guard == "transaction":
            transaction.include(lambda: self._position(route, event))
        try:
            yield from transaction.commit()
        except TransactionFailed as refused:
            for _, _, error in refused.failures:
                if isinstance(error, AlreadyIngested):
                    raise error from None
            raise

    def _position(self, route: BoundHandler, event: PendingEvent) -> Work[list[Statement]]:
        place, record = self._context.schema.place, event.record
        name = f"INGEST#{route.app}#{route.options.source}#{record.partition}"
        written = Expressions()
        following = written.name("next")
        request = {
            "TableName": place.table,
            "Key": place.key(name, "POSITION"),
            "UpdateExpression": (
                f"SET {following} = {written.value(offset_value(record.offset + 1))}"
            ),
            "ConditionExpression": (
                f"attribute_not_exists({following})"
                f" OR {following} <= {written.value(offset_value(record.offset))}"
            ),
        }
        yield from ()  # it needs no call
        return [Statement("Update", written.into(request), f"position {record}", _already_ingested)]


def _called(route: BoundHandler, event: PendingEvent, transaction: Transaction) -> Exception | None:
    """Call the user's function.

    Return the error that it raises, because runners pass on only errors of Stator.
    """
    try:
        route.route.function(event.content, transaction)
    except Exception as error:
        return error
    return None


def _already_ingested(item: Item | None) -> ConditionFailed:
    return AlreadyIngested(item=item)


def _is_outage(error: Exception) -> bool:
    """Whether an error is a temporary one of the service, which does not count as an attempt."""
    causes: list[BaseException | None] = [error]
    if isinstance(error, TransactionFailed):
        causes += [each for _, _, each in error.failures]
    return any(
        isinstance(each, (ConnectionTrouble, SlowDown))
        or (isinstance(each, ServiceError) and each.retryable)
        for each in causes
    )


def _as_stator_error(error: Exception) -> StatorError:
    if isinstance(error, StatorError):
        return error
    return StatorError(f"{type(error).__name__}: {error}")
