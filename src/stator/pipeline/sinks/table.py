"""``TableSink``: changes into another table, of the same account or any other place, each with effect once.

The target's item is the source's, or what a ``transform`` makes of it, and carries the stream's sequence number of the change it comes from:

    PK  ORDER#o1   …the item…   _sequence  "000…1000…42"                      padded to 40 digits, so that text compares as numbers do
    PK  ORDER#o2                _sequence  "000…1000…57"   _deleted  true      a tombstone, with a time to live of 48 hours

Everything is written on condition that the target has no number, or a lower one. So a change that comes again, or late, from a worker that lost its shard and does not
know, changes nothing; and of several changes of an item in one batch only the last is written. Tombstones are what keeps a late change from bringing a deleted
item back; readers of the target leave out items with ``_deleted``. They expire by the attribute that the target's time to live is set to, and stay where it has none.

One item of the source is one of the target: a transform must make the target's key of what identifies the source's item, and gives a dictionary with it for a REMOVE as
well. Where it gives None, the target stays as it is. An item of the target that has no ``_sequence``, such as one that `stator copy` brought, is overwritten by the
first change. Numbers are compared within one stream: a stream that is turned off and on again is a new one.
"""

from __future__ import annotations

import logging
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
    ConditionFailed,
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
from stator.tables.work import BlockingCall, Call, Gather, Work
from stator.tables.writes.expressions import Expressions
from stator.transport import Transport

log = logging.getLogger("stator.sinks")

SEQUENCE: Final = "_sequence"
DELETED: Final = "_deleted"
TOMBSTONE_SECONDS: Final = 48 * 3600
_LABEL: Final = "table sink"
# Not about the item: the table is away, being made, or not for us.
_WAITED_FOR: Final = (
    AccessDenied, CredentialsMissing, InternalServerError, LimitExceeded, ResourceInUse, ResourceNotFound,
    TransactionConflict, UnrecognizedClient,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Target:
    """``ttl`` is the attribute its items expire by, if they do."""

    table: str
    keys: tuple[str, ...]
    ttl: str | None


class TableSink(ChangeSink):
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
        """``to`` is where the target is: an address, which is opened as ``connection`` says, a transport or an open ``Db``. ``table`` is its name, or a name for each of the source's tables; by default
        the source's own."""
        super().__init__(name, options)
        if "images" in options:
            raise ConfigurationError(
                "a TableSink writes items, not events", hint="leave images= out"
            )
        if threads < 1:
            raise ConfigurationError(f"threads={threads}", hint="at least 1")
        if connection is not None and not isinstance(to, str):
            raise ConfigurationError(
                "connection= is for an address", hint="what is given is open already"
            )
        self._to = Address.parse(to) if isinstance(to, str) else to
        if isinstance(self._to, Address) and self._to.kind == "memory":
            raise ConfigurationError(
                "a target in memory is gone with the worker", hint="a folder, http:// or aws://"
            )
        self._connection: TransportOptions = connection or {}
        self._table = table
        self._threads = threads
        self._runner = LazyResource[Runner](self._opened)
        self._targets: dict[str, _Target] = {}

    def _opened(self) -> Runner:
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

    # -- what is written

    def _body(self, change: Change[Any], context: Context) -> bytes | None:
        if self._transform is None:
            return orjson.dumps(change.record.image)
        made = self._transform(change)
        if made is None:
            return None
        if not isinstance(made, Mapping):
            raise SinkRefused(
                f"{type(made).__name__} is no item",
                hint="a transform for a table gives a dictionary",
            )
        return orjson.dumps({str(name): encode_plain(value) for name, value in made.items()})

    def deliver(
        self, messages: Sequence[Message], scope: HandlerScope
    ) -> Work[list[HandlerFailure]]:
        last: dict[Lane, Message] = {message.lane: message for message in messages}
        scope.check()
        failures: list[HandlerFailure] = yield BlockingCall(
            partial(self._written, list(last.values()), scope.context.now())
        )
        return failures

    def _written(self, messages: Sequence[Message], now: float) -> list[HandlerFailure]:
        try:
            runner = self._runner.get()
            calls = [self._put(message, self._target(message, runner), now) for message in messages]
            results = runner.run(_all(calls))
        except StatorError as error:  # of opening the target and looking at it: no item's fault
            away = TryLater(f"the target cannot be reached: {error}", hint=error.hint)
            return [HandlerFailure(message.record, away) for message in messages]
        return [
            HandlerFailure(message.record, _reason(result))
            for message, result in zip(messages, results)
            if isinstance(result, StatorError) and not isinstance(result, ConditionFailed)
        ]

    def _put(self, message: Message, target: _Target, now: float) -> Call | SinkRefused:
        record = message.record
        item: Item = orjson.loads(message.body)
        missing = [name for name in target.keys if name not in item]
        if missing:
            return SinkRefused(f"the item has no {missing[0]}, which is a key of {target.table}")
        if record.kind == "REMOVE":
            item = {name: item[name] for name in target.keys}
            item[DELETED] = {"BOOL": True}
            if target.ttl is not None:
                item[target.ttl] = {"N": str(int(now) + TOMBSTONE_SECONDS)}
        sequence = {"S": sequence_text(record.sequence)}
        item[SEQUENCE] = sequence
        written = Expressions()
        own = written.name(SEQUENCE)
        condition = f"attribute_not_exists({own}) OR {own} < {written.value(sequence)}"
        request = {"TableName": target.table, "Item": item, "ConditionExpression": condition}
        return Call("PutItem", written.into(request), _LABEL)

    # -- the target

    def _target(self, message: Message, runner: Runner) -> _Target:
        source = message.record.table
        if source not in self._targets:
            self._targets[source] = runner.run(self._looked_at(source))
        return self._targets[source]

    def _looked_at(self, source: str) -> Work[_Target]:
        name = (
            self._table.get(source) if isinstance(self._table, Mapping) else (self._table or source)
        )
        if name is None:
            raise TryLater(f"{self.name} has no table for {source}", hint="name one in table=")
        described = (yield Call("DescribeTable", {"TableName": name}, _LABEL))["Table"]
        expiry = (yield Call("DescribeTimeToLive", {"TableName": name}, _LABEL))[
            "TimeToLiveDescription"
        ]
        is_on = expiry["TimeToLiveStatus"] in ("ENABLED", "ENABLING")
        if not is_on:
            log.warning(
                "%s has no time to live: the tombstones of %s will stay there", name, self.name
            )
        keys = tuple(each["AttributeName"] for each in described["KeySchema"])
        return _Target(name, keys, expiry["AttributeName"] if is_on else None)


def _all(parts: Sequence[Call | SinkRefused]) -> Work[list[Any]]:
    """The calls side by side; what is no call stands in its place."""
    calls = [part for part in parts if isinstance(part, Call)]
    results = iter((yield Gather(calls)) if calls else ())
    return [next(results) if isinstance(part, Call) else part for part in parts]


def _reason(error: StatorError) -> StatorError:
    if isinstance(error, OUTAGES) or not isinstance(error, _WAITED_FOR):
        return error
    return TryLater(f"the target cannot be written: {error}")
