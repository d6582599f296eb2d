"""``TableSink``: writes changes to another table, at any address. Each change takes effect once.

The target's item is the source's item, or the result of a ``transform``. It carries the stream's
sequence number of the change it comes from:

    PK  ORDER#o1   ...the item...   _sequence  "000...42"                     padded to 40 digits
    PK  ORDER#o2                    _sequence  "000...57"   _deleted  true    a tombstone, for 48 h

Every write is guarded (``tables.writes.guarded``): it succeeds only if the target's item has no
sequence number, or a lower one. New items are written 25 in a request. An item that exists is
replaced by a request of its own, because it may have attributes that the new one lacks.

A change that arrives again therefore has no effect. Nor has a change that arrives late, from a
worker that has lost its shard without noticing. Of several changes to an item in one batch, only
the last is written. A tombstone prevents a late change from restoring a deleted item. Reads of the
data layer leave tombstones out. Other readers of the target must ignore items with ``_deleted``,
and ``db.count`` includes them. Tombstones expire through the target's own time-to-live attribute;
without one they stay.

Each item of the source becomes one item of the target. A transform must build the target's key from
the identity of the source's item, and must return a dictionary with that key for a REMOVE as well.
If it returns None, the target is unchanged. An item of the target without ``_sequence``, such as
one written by ``stator copy``, is overwritten by the first change. Sequence numbers can be compared
only within one stream. Disabling a stream and enabling it again starts a new one.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Unpack

import orjson

from stator.addresses import Address, TransportOptions, open_transport
from stator.clock import SystemClock
from stator.coordination.position import sequence_text
from stator.errors import (
    AccessDenied,
    ConfigurationError,
    CredentialsMissing,
    InternalServerError,
    LimitExceeded,
    ResourceInUse,
    ResourceNotFound,
    SinkRefused,
    StatorError,
    TransactionConflict,
    TryLater,
    UnrecognizedClient,
)
from stator.model.values import Item
from stator.patterns.plain_values import encode_plain
from stator.pipeline.sinks.change_sink import OUTAGES, ChangeSink, Lane, Message, SinkOptions
from stator.pipeline.sinks.sink import LazyResource
from stator.pipeline.workers.handlers.change import Change
from stator.pipeline.workers.handlers.subscribers import HandlerFailure, HandlerScope
from stator.tables.context import Context
from stator.tables.db import Db
from stator.tables.runner import Runner
from stator.tables.schema.entity_map import SEQUENCE, TOMBSTONE
from stator.tables.work import BlockingCall, Call, Work
from stator.tables.writes.guarded.guard_condition import GuardCondition
from stator.tables.writes.guarded.guarded_write import AppliedProof, GuardedPut
from stator.tables.writes.guarded.outcomes import Applied, Outcome, Stale, Unknown
from stator.tables.writes.guarded.writer import GuardedWriter
from stator.transport import Transport

log = logging.getLogger("stator.sinks")

TOMBSTONE_SECONDS: Final = 48 * 3600
_LABEL: Final = "table sink"
# Attempts to write a batch; then the worker waits and delivers it again.
_ATTEMPTS: Final = 5
# Not the fault of the item: the table is missing, being created, or not accessible.
_WAITED_FOR: Final = (
    AccessDenied,
    CredentialsMissing,
    InternalServerError,
    LimitExceeded,
    ResourceInUse,
    ResourceNotFound,
    TransactionConflict,
    UnrecognizedClient,
)


@dataclass(frozen=True, slots=True)
class _Target:
    """A target table of a TableSink. ``ttl`` is its time-to-live attribute, if it has one."""

    table: str
    keys: tuple[str, ...]
    ttl: str | None


class TableSink(ChangeSink):
    """Writes changes to another table. Each change takes effect once."""

    view = "NEW_IMAGE"

    def __init__(
        self,
        name: str,
        to: Db | Transport | str,
        table: str | Mapping[str, str] | None = None,
        *,
        connection: TransportOptions | None = None,
        threads: int = 16,
        **options: Unpack[SinkOptions],
    ) -> None:
        """Create the sink. ``to`` is the target: an address, a transport or an open ``Db``.

        An address is opened with the options in ``connection``. ``table`` is the name of the target
        table, or a mapping from source tables to target tables. By default it is the source's name.
        ``threads`` is how many writes to the target are in flight at once.
        """
        super().__init__(name, options)
        if "images" in options:
            raise ConfigurationError(
                f"sink {name!r} takes no images=: it writes whole items, not events",
                hint="leave out images=; use transform= to change items",
            )
        if threads < 1:
            raise ConfigurationError(
                f"threads={threads} must be greater than 0", hint="use at least 1"
            )
        if connection is not None and not isinstance(to, str):
            raise ConfigurationError(
                f"sink {name!r} cannot use connection=: to= is a {type(to).__name__}, not an"
                " address",
                hint="pass an address as to=, or leave out connection=",
            )
        is_transport = callable(getattr(to, "call", None))
        if isinstance(to, type) or not (isinstance(to, (str, Db)) or is_transport):
            shown = f"the class {to.__name__}" if isinstance(to, type) else type(to).__name__
            raise ConfigurationError(
                f"sink {name!r} cannot write to {shown}",
                hint="pass an address, an open Db, or a transport, such as Engine.open()",
            )
        self._to = Address.parse(to) if isinstance(to, str) else to
        if isinstance(self._to, Address) and self._to.kind == "memory":
            raise ConfigurationError(
                f"sink {name!r} has the target {to!r}: its items are lost when the worker exits",
                hint="use a folder, http:// or aws:// address",
            )
        self._connection: TransportOptions = connection or {}
        self._table = table
        self._threads = threads
        self._runner = LazyResource[Runner](self._open)
        self._guarded = GuardedWriter(random.SystemRandom(), label=_LABEL)
        self._targets: dict[str, _Target] = {}

    def _open(self) -> Runner:
        if isinstance(self._to, Db):
            return self._to.runner
        given = self._to
        transport = (
            open_transport(given, None, self._connection) if isinstance(given, Address) else given
        )
        return Runner(transport, SystemClock(), threads=self._threads)

    def close(self) -> None:
        runner = self._runner.take()
        if runner is not None and isinstance(self._to, Address):
            runner.close()

    # -- writes

    def _body(self, change: Change[Any], context: Context) -> bytes | None:
        if self._transform is None:
            return orjson.dumps(change.record.image)
        item = self._transformed(change)
        if item is None:
            return None
        return orjson.dumps({str(name): encode_plain(value) for name, value in item.items()})

    def deliver(
        self, messages: Sequence[Message], scope: HandlerScope
    ) -> Work[list[HandlerFailure]]:
        last: dict[Lane, Message] = {message.lane: message for message in messages}
        scope.check()
        failures: list[HandlerFailure] = yield BlockingCall(
            partial(self._write, list(last.values()), scope.context.now())
        )
        return failures

    def _write(self, messages: Sequence[Message], now: float) -> list[HandlerFailure]:
        try:
            runner = self._runner.get()
            puts = [self._put(message, self._target(message, runner), now) for message in messages]
            writes = [put for put in puts if isinstance(put, GuardedPut)]
            outcomes = iter(runner.run(self._guarded.settle(writes, attempts=_ATTEMPTS)).outcomes)
        except StatorError as error:  # from opening or describing the target: no item is at fault
            away = TryLater(f"the target cannot be reached: {error}", hint=error.hint)
            return [HandlerFailure(message.record, away) for message in messages]
        reasons = [_reason(next(outcomes)) if isinstance(put, GuardedPut) else put for put in puts]
        return [
            HandlerFailure(message.record, reason)
            for message, reason in zip(messages, reasons)
            if reason is not None
        ]

    def _put(self, message: Message, target: _Target, now: float) -> GuardedPut | SinkRefused:
        record = message.record
        item: Item = orjson.loads(message.body)
        missing = [name for name in target.keys if name not in item]
        if missing:
            return SinkRefused(f"the item has no {missing[0]!r}, a key attribute of {target.table}")
        if record.kind == "REMOVE":
            item = {name: item[name] for name in target.keys}
            item[TOMBSTONE] = {"BOOL": True}
            if target.ttl is not None:
                item[target.ttl] = {"N": str(int(now) + TOMBSTONE_SECONDS)}
        sequence = {"S": sequence_text(record.sequence)}
        item[SEQUENCE] = sequence
        return GuardedPut(
            target.table,
            target.keys,
            item,
            GuardCondition.newer(SEQUENCE, sequence),
            # The changes of an item arrive in order, so a higher number includes this change.
            proof=AppliedProof(SEQUENCE, sequence, reached=True),
            size_bytes=len(message.body),
            expects_item=record.kind != "INSERT",
        )

    # -- the target

    def _target(self, message: Message, runner: Runner) -> _Target:
        source = message.record.table
        if source not in self._targets:
            self._targets[source] = runner.run(self._describe(source))
        return self._targets[source]

    def _describe(self, source: str) -> Work[_Target]:
        name = (
            self._table.get(source) if isinstance(self._table, Mapping) else (self._table or source)
        )
        if name is None:
            raise TryLater(
                f"sink {self.name!r} has no target table for {source}",
                hint=f"add an entry for {source} to the mapping table=",
            )
        described = (yield Call("DescribeTable", {"TableName": name}, _LABEL))["Table"]
        expiry = (yield Call("DescribeTimeToLive", {"TableName": name}, _LABEL))[
            "TimeToLiveDescription"
        ]
        is_on = expiry["TimeToLiveStatus"] in ("ENABLED", "ENABLING")
        if not is_on:
            log.warning(
                "%s has no time to live: tombstones of sink %s will stay there", name, self.name
            )
        keys = tuple(each["AttributeName"] for each in described["KeySchema"])
        return _Target(name, keys, expiry["AttributeName"] if is_on else None)


def _reason(outcome: Outcome) -> StatorError | None:
    """Return the error that kept a change from being written, or None.

    None means that the change was written, or that the target already has this change or a later
    one.
    """
    if isinstance(outcome, (Applied, Stale)):
        return None
    error = outcome.error
    if isinstance(outcome, Unknown):
        return TryLater(f"the target did not answer: {error}")
    if isinstance(error, OUTAGES) or not isinstance(error, _WAITED_FOR):
        return error
    return TryLater(f"the target cannot be written: {error}")
