"""``app.relay(outbox, to=...)``: delivers messages of an Outbox as soon as they are written.

A change in the stream only wakes the relay, which then reads the waiting messages from the table.
The change therefore counts as handled even if a delivery fails, and the app sets nothing aside and
parks nothing. Every few seconds the relay reads all shards of the outbox. It retries, by the
outbox's own rules, messages that could not be delivered. It also finds messages that a crash left
behind, or that are older than the app.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import orjson

from stator.design.table_settings import StreamView
from stator.errors import ConfigurationError, LeaseLost, StatorError
from stator.model.values import Item
from stator.patterns.outbox.items import OutboxMessage
from stator.patterns.outbox.outbox import Outbox
from stator.pipeline.maintenance.pattern_factory import PatternFactory
from stator.pipeline.sinks.change_sink import Message
from stator.pipeline.sinks.events import time_text
from stator.pipeline.sinks.sink import Sink
from stator.pipeline.workers.handlers.change import Change, Record
from stator.pipeline.workers.handlers.subscribers import HandlerFailure, HandlerScope, finished
from stator.tables.context import Context
from stator.tables.work import Work

log = logging.getLogger("stator.workers")

AnyOutbox = Outbox[Any]
Receiver = Callable[[OutboxMessage], Any] | Sink
_LOOK_SECONDS: Final = 5.0


class OutboxRelay:
    """The subscriber that delivers the messages of an outbox to a function or a sink."""

    def __init__(
        self, outbox: AnyOutbox | Callable[[Any], AnyOutbox], to: Receiver, name: str | None
    ) -> None:
        if not isinstance(to, Sink) and not callable(to):
            raise ConfigurationError(
                f"to={to!r} cannot receive messages",
                hint="pass a function that takes a message, or a sink",
            )
        self._outbox: PatternFactory[AnyOutbox] = PatternFactory(outbox, Outbox, "outbox")
        self._to = to
        self.name = self._outbox.name(name)
        self._lock = threading.Lock()
        self._look_at = 0.0

    def tables(self, context: Context) -> Sequence[str]:
        return (context.schema.place.table,)

    def needs(self, table: str, context: Context) -> StreamView | None:
        return "KEYS_ONLY"

    def wants(self, record: Record, context: Context) -> bool:
        return (
            record.kind == "INSERT"
            and self._outbox.of(context).shard_of_item(record.keys) is not None
        )

    def handle(self, records: Sequence[Record], scope: HandlerScope) -> Work[list[HandlerFailure]]:
        outbox = self._outbox.of(scope.context)
        found = {outbox.shard_of_item(record.keys) for record in records}
        yield from self._relay(outbox, scope, sorted(shard for shard in found if shard is not None))
        return []

    def attend(self, scope: HandlerScope, position: str) -> Work[None]:
        now = scope.context.now()
        with self._lock:
            is_due, self._look_at = now >= self._look_at, max(self._look_at, now)
            if is_due:
                self._look_at = now + _LOOK_SECONDS
        if is_due:
            yield from self._relay(self._outbox.of(scope.context), scope, None)

    def _relay(
        self, outbox: AnyOutbox, scope: HandlerScope, shards: list[int] | None
    ) -> Work[None]:
        scope.check()
        try:
            result = yield from outbox.relaying(partial(self._send, outbox.name), shards=shards)
        except LeaseLost:
            raise
        except StatorError as error:
            log.warning(
                "%s could not relay; it tries again in %g seconds: %s",
                self.name,
                _LOOK_SECONDS,
                error,
            )
            return
        if result.busy:  # another relay is at work, and may have read past the new message
            with self._lock:
                self._look_at = min(self._look_at, scope.context.now() + 1.0)

    def _send(self, outbox: str, message: OutboxMessage) -> None:
        if not isinstance(self._to, Sink):
            finished(self._to(message))
            return
        refusals = self._to.send([_for_sink(outbox, message)])
        if refusals:
            raise refusals[0].error

    def close(self) -> None:
        if isinstance(self._to, Sink):
            self._to.close()


def _for_sink(outbox: str, message: OutboxMessage) -> Message:
    """Return an outbox message in the form that sinks accept.

    Sinks send changes. So the message is presented as an insert into a table that has the outbox's
    name.
    """
    content = {"id": message.id, "topic": message.topic, "key": message.key, "body": message.body}
    keys: Item = {"id": {"S": message.id}}
    item: Item = {**keys, "topic": {"S": message.topic}}
    moment = message.position.partition("#")[0]
    record = Record(
        outbox, "INSERT", keys, None, item, moment, message.id, message.added, False, "", {}
    )
    body = orjson.dumps({**content, "time": time_text(message.added)})
    return Message(Change(record, None), message.key or message.id, message.id, body)
