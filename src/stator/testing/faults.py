"""Faults between a program and DynamoDB, chosen at random from a seed.

A ``FaultyTransport`` stands in front of another transport: the embedded engine or an HTTP client.
Before each call a function decides which fault happens, if any. ``Faults`` is such a function: its
choice depends only on its seed and on the call, so the same program meets the same faults again.

    lost request    Unreachable: the request never arrived, nothing happened
    lost answer     ReplyLost: the request was carried out, but the caller cannot know
    duplicated      the client sent the request again after a lost answer: it is carried out twice,
                    and the caller gets the second answer, marked as the client marks it
                    (``ResentReply``, ``after_unknown``)
    late            the request or its answer takes some seconds, on the clock
    throttled       ThroughputExceeded, nothing happened
    server error    InternalServerError, before or after the request was carried out
    conflict        a transaction is cancelled with TransactionConflict
    unprocessed     part of a batch is not carried out, and the answer says which part

A fault is what a program sees after the client has used up its own retries. So a lost answer does
not show what happens to a write that the client itself sends again: only ``duplicated`` does. Like
the client, a FaultyTransport repeats no call that is not idempotent. For such a call, a lost answer
and a server error raise OutcomeUnknown, and ``duplicated`` does nothing.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import random
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NoReturn, Unpack, get_args, overload

import orjson

from stator.clock import Clock, SystemClock, pause
from stator.errors import (
    ConfigurationError,
    ConnectionTrouble,
    InternalServerError,
    OutcomeUnknown,
    ReplyLost,
    ServiceError,
    StatorError,
    ThroughputExceeded,
    TransactionCanceled,
    Unreachable,
)
from stator.model.service import model_of
from stator.tables.db import AsyncDb, Db
from stator.transport import AsyncTransport, CallOptions, ResentReply, Transport

FaultKind = Literal[
    "lost request",
    "lost answer",
    "duplicated",
    "late",
    "throttled",
    "server error",
    "conflict",
    "unprocessed",
]
_TRANSACTIONS: Final = frozenset({"TransactWriteItems", "TransactGetItems", "ExecuteTransaction"})
_BATCHES: Final = {"BatchWriteItem": "UnprocessedItems", "BatchGetItem": "UnprocessedKeys"}
DATA_OPERATIONS: Final = frozenset(
    {
        *("GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "Scan"),
        *("ExecuteStatement", "BatchExecuteStatement"),
        *("DescribeStream", "GetShardIterator", "GetRecords"),
        *_TRANSACTIONS,
        *_BATCHES,
    }
)
"""The operations that ``Faults`` disturbs by default: items and streams, but not tables."""


_RATES: Final = (
    *("lost_request", "lost_answer", "duplicated", "late", "throttled", "server_error"),
    *("conflict", "unprocessed"),
)
_RARE_RATES: Final = ("conflict", "unprocessed")
"""Faults that only transactions or only batches can meet, so no call can meet both."""
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class InterceptedCall:
    """A call on its way to DynamoDB.

    ``number`` is 1 for the first call of a transport, 2 for the second, and so on.
    """

    number: int
    operation: str
    request: Mapping[str, Any]
    idempotent: bool = True


@dataclass(frozen=True, slots=True)
class Fault:
    """The fault that one call meets.

    ``error`` is raised in place of the usual error of this kind of fault. ``carried_out`` says
    whether the request is carried out before a server error or a delay. ``seconds`` is the delay of
    a late call. ``processed`` is the share of a batch that is carried out.
    """

    kind: FaultKind
    error: StatorError | None = None
    carried_out: bool = False
    seconds: float = 0.0
    processed: float = 0.5

    def __post_init__(self) -> None:
        if self.kind not in get_args(FaultKind):
            raise ConfigurationError(
                f"there is no fault of kind {self.kind!r}",
                hint=f"choose one of {', '.join(map(repr, get_args(FaultKind)))}",
            )
        _check_share("processed", self.processed)
        _check_seconds("seconds", self.seconds)


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """A fault that happened: the call's number, its operation, and the kind of fault."""

    call: int
    operation: str
    kind: FaultKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Chooses the fault of each call from a seed and from the rate of each kind of fault.

    A rate is the share of calls, from 0 to 1, that meet the fault. A call meets at most one fault,
    so the rates of all faults that it can meet must not add up to more than 1; other rates raise
    ConfigurationError. A fault happens only to calls that can meet it: ``conflict`` to
    transactions, ``unprocessed`` to batches, ``duplicated`` to idempotent calls. Only calls of the
    given ``operations`` meet faults. A late call takes up to ``late_seconds``.
    """

    seed: int = 0
    lost_request: float = 0.0
    lost_answer: float = 0.0
    duplicated: float = 0.0
    late: float = 0.0
    throttled: float = 0.0
    server_error: float = 0.0
    conflict: float = 0.0
    unprocessed: float = 0.0
    late_seconds: float = 10.0
    operations: frozenset[str] = DATA_OPERATIONS

    def __post_init__(self) -> None:
        for name in _RATES:
            _check_share(name, getattr(self, name))
        _check_seconds("late_seconds", self.late_seconds)
        _check_operations(self.operations)
        # No call is both a transaction and a batch.
        shared = sum(getattr(self, name) for name in _RATES if name not in _RARE_RATES)
        rare = max(_RARE_RATES, key=lambda name: float(getattr(self, name)))
        total = shared + getattr(self, rare)
        if total > 1 + _ROUNDING:
            raise ConfigurationError(
                f"the rates of the faults add up to {total:g}, and a call meets at most one fault",
                hint=f"lower some of them, so that {rare} and the kinds that any call can meet "
                "add up to 1 at most",
            )

    @classmethod
    def mixed(cls, seed: int, rate: float = 0.2) -> Faults:
        """Return faults of every kind, so that about ``rate`` of the calls meet a fault.

        Transactions and batches meet a fault about twice as often, because ``conflict`` or
        ``unprocessed`` is added to the other kinds. With a rate of 0.5 or more, they always meet
        one, except calls that are not idempotent.
        """
        _check_share("rate", rate)
        each, rare = rate / 6, min(rate, 1 - rate)
        return cls(
            seed=seed,
            lost_request=each,
            lost_answer=each,
            duplicated=each,
            late=each,
            throttled=each,
            server_error=each,
            conflict=rare,
            unprocessed=rare,
        )

    def __call__(self, call: InterceptedCall) -> Fault | None:
        """Return the fault that this call meets, or None if it meets no fault.

        The choice depends only on the seed, the call's number and the kind of call.
        """
        if call.operation not in self.operations:
            return None
        chance = random.Random(f"{self.seed}/{call.number}")  # noqa: S311 - it must repeat itself
        left = chance.random()
        for kind, rate in self._rates(call):
            left -= rate
            if left < 0:
                return Fault(
                    kind,
                    carried_out=chance.random() < 0.5,
                    seconds=chance.random() * self.late_seconds,
                    processed=chance.random(),
                )
        return None

    def _rates(self, call: InterceptedCall) -> Iterator[tuple[FaultKind, float]]:
        yield "lost request", self.lost_request
        yield "lost answer", self.lost_answer
        yield "late", self.late
        yield "throttled", self.throttled
        yield "server error", self.server_error
        if call.idempotent:
            yield "duplicated", self.duplicated
        if call.operation in _TRANSACTIONS:
            yield "conflict", self.conflict
        if call.operation in _BATCHES:
            yield "unprocessed", self.unprocessed


def _check_share(name: str, share: Any) -> None:
    if not _is_number(share) or not 0 <= share <= 1:
        raise ConfigurationError(
            f"{name} is {share!r}, but must be a number from 0 to 1",
            hint=f"write {name}=0.1 for one in ten",
        )


def _check_seconds(name: str, seconds: Any) -> None:
    if not _is_number(seconds) or not 0 <= seconds < math.inf:
        raise ConfigurationError(
            f"{name} is {seconds!r}, but must be a number of seconds, 0 or more",
            hint=f"write {name}=10 for ten seconds",
        )


def _check_operations(operations: Any) -> None:
    if not isinstance(operations, (set, frozenset)):
        raise ConfigurationError(
            f"operations is {operations!r}, but must be a set of names",
            hint='write operations=frozenset({"PutItem"})',
        )
    for name in operations - DATA_OPERATIONS:
        if not isinstance(name, str) or name not in model_of(name).operations:
            raise ConfigurationError(
                f"DynamoDB has no operation {name!r}",
                hint="write its name as in the API, for example PutItem",
            )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


Before = Callable[[InterceptedCall], Fault | None]
"""Decides the fault of a call. It may also raise: then the request is not sent."""
After = Callable[[InterceptedCall, dict[str, Any]], dict[str, Any] | None]
"""Sees a call and its reply. It may raise, or return another reply."""


@dataclass(frozen=True, slots=True)
class _Send:
    request: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Wait:
    seconds: float


_Steps = Generator[_Send | _Wait, Any, dict[str, Any]]


@dataclass(slots=True)
class _Injector:
    """Turns a call into steps that include its fault: send this request, wait this long.

    ``before`` decides the fault of the call. The injector performs no I/O itself.
    """

    before: Before | None
    after: After | None
    calls: int = 0
    injected: list[InjectedFault] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def steps(self, operation: str, request: Mapping[str, Any], idempotent: bool) -> _Steps:
        with self.lock:
            self.calls += 1
            call = InterceptedCall(self.calls, operation, request, idempotent)
        fault = None if self.before is None else self.before(call)
        if fault is None:
            reply = yield _Send(request)
        else:
            with self.lock:
                self.injected.append(InjectedFault(call.number, operation, fault.kind))
            reply = yield from _disturbed(call, fault)
        changed = None if self.after is None else self.after(call, reply)
        return reply if changed is None else changed


def _disturbed(call: InterceptedCall, fault: Fault) -> _Steps:
    """Yield the steps of a call with a fault, and return its reply or raise the fault's error."""
    match fault.kind:
        case "lost request":
            raise fault.error or Unreachable("the request was lost")
        case "throttled":
            raise fault.error or ThroughputExceeded
        case "conflict":
            raise fault.error or _conflict(call.request)
        case "lost answer":
            yield _Send(call.request)
            _fail_unknown(call, fault.error or ReplyLost("the answer was lost"))
        case "server error":
            if fault.carried_out:
                yield _Send(call.request)
            _fail_unknown(call, fault.error or InternalServerError())
        case "duplicated":
            return (yield from _sent_twice(call))
        case "late":
            if not fault.carried_out:
                yield _Wait(fault.seconds)
            reply: dict[str, Any] = yield _Send(call.request)
            if fault.carried_out:
                yield _Wait(fault.seconds)
            return reply
        case "unprocessed":
            return (yield from _sent_in_part(call, fault.processed))
    raise AssertionError(fault.kind)


def _fail_unknown(call: InterceptedCall, error: StatorError) -> NoReturn:
    """Raise an error for a call that may have been carried out, as the client does.

    If the call is not idempotent, an error of the service or the connection becomes OutcomeUnknown.
    """
    if call.idempotent or not isinstance(error, (ServiceError, ConnectionTrouble)):
        raise error
    raise OutcomeUnknown(f"the write may or may not have happened: {error.message}") from error


def _sent_twice(call: InterceptedCall) -> _Steps:
    if not call.idempotent:
        only: dict[str, Any] = yield _Send(call.request)
        return only
    with contextlib.suppress(ServiceError):
        yield _Send(call.request)  # this answer is lost, a refusal like any other
    try:
        second: dict[str, Any] = yield _Send(call.request)
    except ServiceError as error:
        error.after_unknown = True
        raise
    return ResentReply(second)


def _sent_in_part(call: InterceptedCall, share: float) -> _Steps:
    """Yield the step that sends the first part of a batch, and return the reply.

    ``share`` is the share of the batch to send. The reply lists the rest as unprocessed.
    """
    request = orjson.loads(orjson.dumps(call.request))
    wanted = request["RequestItems"]
    total = sum(len(_batch_entries(each)) for each in wanted.values())
    room = min(total - 1, int(total * share))
    taken, left = {}, {}
    for table, each in wanted.items():
        entries = _batch_entries(each)
        count, room = min(room, len(entries)), max(0, room - len(entries))
        if entries[:count]:
            taken[table] = _with_entries(each, entries[:count])
        if entries[count:]:
            left[table] = _with_entries(each, entries[count:])
    reply: dict[str, Any] = {}
    if taken:
        reply = yield _Send({**request, "RequestItems": taken})
    elif call.operation == "BatchGetItem":
        reply = {"Responses": {table: [] for table in wanted}}
    member = _BATCHES[call.operation]
    return {**reply, member: {**(reply.get(member) or {}), **left}}


def _batch_entries(of_table: Any) -> list[Any]:
    entries: list[Any] = of_table["Keys"] if isinstance(of_table, dict) else of_table
    return entries


def _with_entries(of_table: Any, entries: list[Any]) -> Any:
    return {**of_table, "Keys": entries} if isinstance(of_table, dict) else entries


def _conflict(request: Mapping[str, Any]) -> TransactionCanceled:
    actions = request.get("TransactItems") or request.get("TransactStatements") or [None]
    codes = ["None"] * (len(actions) - 1) + ["TransactionConflict"]
    return TransactionCanceled(reasons=[{"Code": code} for code in codes])


class FaultyTransport:
    """A transport with faults, for a ``Db`` or for calls of your own.

    ``before`` decides the fault of each call: a ``Faults``, or a function of your own. ``after``
    receives each reply and may return another one. ``calls`` counts the calls, and ``injected``
    lists the faults that happened. Unless ``parallel`` is set, a ``Db`` makes one call after
    another, so that a seed always leads to the same calls and faults in the same order.
    """

    def __init__(
        self,
        inner: Transport,
        before: Before | None = None,
        after: After | None = None,
        *,
        clock: Clock | None = None,
        parallel: bool = False,
    ) -> None:
        self.inner = inner
        self.parallel = parallel
        self._clock = clock or SystemClock()
        self._injector = _Injector(before, after)

    @property
    def calls(self) -> int:
        """How many calls were made."""
        return self._injector.calls

    @property
    def injected(self) -> list[InjectedFault]:
        """The faults that happened, in the order of the calls."""
        return self._injector.injected

    def call(
        self,
        operation: str,
        request: Mapping[str, Any],
        **options: Unpack[CallOptions],
    ) -> dict[str, Any]:
        """Make the call and return the reply, or raise the error of the fault that it meets."""

        def take(step: _Send | _Wait) -> Any:
            if isinstance(step, _Wait):
                return self._clock.sleep(step.seconds)
            return self.inner.call(operation, step.request, **options)

        steps = self._injector.steps(operation, request, options.get("idempotent", True))
        try:
            step = next(steps)
            while True:
                try:
                    answer = take(step)
                except BaseException as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as done:
            reply: dict[str, Any] = done.value
            return reply

    def close(self) -> None:
        """Close the inner transport."""
        self.inner.close()


class AsyncFaultyTransport:
    """A transport with faults for asyncio; otherwise like ``FaultyTransport``."""

    def __init__(
        self,
        inner: AsyncTransport,
        before: Before | None = None,
        after: After | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        self.inner = inner
        self._clock = clock or SystemClock()
        self._injector = _Injector(before, after)

    @property
    def calls(self) -> int:
        """How many calls were made."""
        return self._injector.calls

    @property
    def injected(self) -> list[InjectedFault]:
        """The faults that happened, in the order of the calls."""
        return self._injector.injected

    async def call(
        self,
        operation: str,
        request: Mapping[str, Any],
        **options: Unpack[CallOptions],
    ) -> dict[str, Any]:
        """Make the call and return the reply, or raise the error of the fault that it meets."""

        async def take(step: _Send | _Wait) -> Any:
            if isinstance(step, _Wait):
                return await pause(self._clock, step.seconds)
            await pause(self._clock, 0.0)  # concurrent calls interleave, as they do on a network
            return await self.inner.call(operation, step.request, **options)

        steps = self._injector.steps(operation, request, options.get("idempotent", True))
        try:
            step = next(steps)
            while True:
                try:
                    answer = await take(step)
                except BaseException as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as done:
            reply: dict[str, Any] = done.value
            return reply

    async def close(self) -> None:
        """Close the inner transport."""
        await self.inner.close()


@overload
def faulty(
    target: Db | Transport,
    before: Before | None = None,
    after: After | None = None,
    *,
    clock: Clock | None = None,
) -> AbstractContextManager[FaultyTransport]: ...
@overload
def faulty(
    target: AsyncDb | AsyncTransport,
    before: Before | None = None,
    after: After | None = None,
    *,
    clock: Clock | None = None,
) -> AbstractContextManager[AsyncFaultyTransport]: ...
def faulty(
    target: Any,
    before: Before | None = None,
    after: After | None = None,
    *,
    clock: Clock | None = None,
) -> Any:
    """Disturb a ``Db``, an ``AsyncDb`` or a transport inside a ``with`` block.

    ``before`` is a ``Faults``, or a function that decides the fault of each call. ``after``
    receives each reply and may return another one. If the target is a ``Db``, the faults apply to
    every call that is made through it. A bare transport is left as it is: make calls through the
    transport that the ``with`` statement returns. Late calls wait on ``clock``, by default the
    clock of the ``Db``.
    """
    return _faulty(target, before, after, clock)


@contextmanager
def _faulty(
    target: Any, before: Before | None, after: After | None, clock: Clock | None
) -> Iterator[FaultyTransport | AsyncFaultyTransport]:
    if not isinstance(target, (Db, AsyncDb)):
        yield _disturbing(target, before, after, clock)
        return
    runner: Any = target.runner
    inner = runner.transport
    made: Any = _disturbing(inner, before, after, clock or target.context.clock)
    runner.transport = made
    try:
        yield made
    finally:
        runner.transport = inner


def _disturbing(
    inner: Any, before: Before | None, after: After | None, clock: Clock | None
) -> FaultyTransport | AsyncFaultyTransport:
    if inspect.iscoroutinefunction(inner.call):
        return AsyncFaultyTransport(inner, before, after, clock=clock)
    return FaultyTransport(inner, before, after, clock=clock)
