"""Idempotency: a repeated request runs only once and gets the same answer each time.

    PK  ONCE#payments#7f3c...   SK  RECORD
        state  running | done   owner  5be1...   until  ...   sum  <checksum>   result  <JSON>
        <ttl>  ...   _format  1

The record is a lease (``coordination.lease``) whose owner token is new for every attempt. The first
attempt writes the record in state *running*, with the time by which it must finish, and then does
the work. When it finishes, it stores the result, and the state becomes *done*: later attempts get
the stored result. An attempt that starts while another is running waits, or raises AlreadyRunning.

If the work raises, the record is deleted, so that it can be tried again. If the process dies,
another attempt takes the record over once its time has passed. If the first attempt finishes after
that, it can no longer store its result, because the owner has changed.

A request with the same key and a different payload is a mistake of the caller. The checksum reveals
it, and the request is refused. Records expire: after ``remember_seconds`` (a day) the same key is
new again, even before DynamoDB has deleted the record.

``seen`` is the short form for messages: False the first time within the window, True for
duplicates.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from types import TracebackType
from typing import Any, TypeVar, cast

import orjson

from stator.backoff import Backoff
from stator.coordination.lease import Condition, LeaseAttributes, LeaseHold, LeaseItem, both
from stator.coordination.stored_format import StoredFormat
from stator.errors import (
    AlreadyRunning,
    PayloadDiffers,
    TookTooLong,
    Unstorable,
    ValidationFailed,
)
from stator.model.values import Item
from stator.patterns.explanation import OperationCost, PatternExplanation
from stator.tables.db import AsyncDb, Db
from stator.tables.operation import D, OnDb, operation
from stator.tables.work import Pause, Work
from stator.tables.writes.expressions import Expressions

_FORMAT = StoredFormat("once")
_ATTRIBUTES = LeaseAttributes(fence=None)
_BACKOFF = Backoff(base_seconds=0.05, cap_seconds=1.0, floor_seconds=0.01)

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(slots=True)
class Attempt:
    """One attempt to do the work of an idempotency key.

    If ``is_done``, an earlier attempt did the work, and ``result`` is its result.
    """

    key: str
    owner: str
    is_done: bool = False
    result: Any = None


class Once(OnDb[D]):
    """Remembers which keys have run: ``Once(db, "payments")``.

    Use ``run``, ``decorate`` or ``attempt``; or ``begin`` with ``finish`` and ``fail``; or
    ``seen``. A key is new again after ``remember_seconds``. An attempt must finish within
    ``running_seconds``; after that, another may take over. An attempt waits for up to
    ``wait_seconds`` while another is running.
    """

    def __init__(
        self,
        db: D,
        name: str,
        *,
        remember_seconds: float = 86_400.0,
        running_seconds: float = 60.0,
        wait_seconds: float = 0.0,
    ) -> None:
        super().__init__(db)
        self.name = name
        self.remember_seconds = remember_seconds
        self.running_seconds = running_seconds
        self.wait_seconds = wait_seconds
        self._place = self.context.schema.place

    # -- the three steps

    @operation
    def begin(self, key: str, payload: Any = None) -> Work[Attempt]:
        """Start an attempt and return it.

        If an earlier attempt finished, the returned one has ``is_done`` and ``result`` set. Raises
        AlreadyRunning if another attempt is still running after ``wait_seconds``.
        """
        timer = self.context.timer(_BACKOFF, self.wait_seconds)
        item = self._record(key)
        while True:
            owner = self.context.token()
            taken = yield from item.replace(self._running(payload, owner), self._is_free())
            _FORMAT.check(taken.item, self.name)
            if taken.is_mine:
                return Attempt(key, owner)
            finished = _finished(key, payload, taken.item)
            if finished is not None:
                return finished
            if timer.is_over:
                raise AlreadyRunning(key, item.attributes.read(taken.item).until)
            yield Pause(timer.next_delay())

    def _running(self, payload: Any, owner: str) -> Item:
        now = self.context.now()
        expires_at = now + max(self.remember_seconds, self.running_seconds)
        return {
            "state": {"S": "running"},
            "owner": {"S": owner},
            "until": {"N": f"{now + self.running_seconds:.6f}"},
            "sum": {"S": _checksum(payload)},
            self._place.ttl: {"N": str(int(expires_at) + 1)},
            **_FORMAT.attributes(),
        }

    def _is_free(self) -> Condition:
        """Return the condition under which an attempt may start.

        There must be no record, or it must have expired, or its attempt must have run out of time.
        """
        now = {"N": f"{self.context.now():.6f}"}

        def write(written: Expressions) -> str:
            names = ("state", "until", self._place.ttl)
            state, until, expires = (written.name(name) for name in names)
            late, running = written.value(now), written.value({"S": "running"})
            return (
                f"(attribute_not_exists({state}) OR {expires} <= {late} OR "
                f"({state} = {running} AND {until} < {late}))"
            )

        return both(write, _FORMAT.readable)

    @operation
    def finish(self, attempt: Attempt, result: Any = None) -> Work[None]:
        """Store the result, which must be JSON.

        Raises TookTooLong if another attempt has taken over.
        """
        try:
            yield from self._finish(attempt, {"result": {"S": _json(result)}})
        except (Unstorable, ValidationFailed) as error:
            # The work is done, and must not be repeated because its result cannot be stored.
            yield from self._finish(attempt, {"unstorable": {"S": str(error)[:1000]}})
            raise
        attempt.is_done, attempt.result = True, result

    def _finish(self, attempt: Attempt, outcome: Item) -> Work[None]:
        expires_at = int(self.context.now() + self.remember_seconds) + 1
        done: Item = {
            "state": {"S": "done"},
            **outcome,
            self._place.ttl: {"N": str(expires_at)},
        }
        record = self._record(attempt.key)
        if (yield from record.change(LeaseHold(attempt.owner), done)) is None:
            raise TookTooLong(
                f"{attempt.key} took longer than {self.running_seconds:g} seconds, "
                "and another attempt has taken over",
                hint="set running_seconds to more than the work takes",
            )

    @operation
    def fail(self, attempt: Attempt) -> Work[None]:
        """Forget an attempt, so that the next one may run.

        Does nothing if another attempt took over.
        """
        yield from self._record(attempt.key).delete(LeaseHold(attempt.owner))

    # -- in one

    def run(self, key: str, work: Callable[[], Any], payload: Any = None) -> Any:
        """Run ``work``, or return its earlier result.

        With an AsyncDb, await both this call and ``work``.
        """
        return (
            self._run_async(key, work, payload)
            if isinstance(self.db, AsyncDb)
            else self._run(key, work, payload)
        )

    def _run(self, key: str, work: Callable[[], Any], payload: Any) -> Any:
        me = cast("Any", self)
        attempt: Attempt = me.begin(key, payload)
        if attempt.is_done:
            return attempt.result
        try:
            result = work()
        except BaseException:
            me.fail(attempt)
            raise
        me.finish(attempt, result)
        return result

    async def _run_async(self, key: str, work: Callable[[], Any], payload: Any) -> Any:
        me = cast("Any", self)
        attempt: Attempt = await me.begin(key, payload)
        if attempt.is_done:
            return attempt.result
        try:
            result = work()
            if inspect.isawaitable(result):
                result = await result
        except BaseException:
            await me.fail(attempt)
            raise
        await me.finish(attempt, result)
        return result

    def attempt(self, key: str, payload: Any = None) -> AttemptBlock[D]:
        """Return a context manager for one attempt: ``with once.attempt(key) as attempt:``.

        With an AsyncDb, write ``async with``. If ``attempt.is_done``, use ``attempt.result``.
        Otherwise do the work and set ``attempt.result``, which is stored when the block ends. If
        the block raises, the attempt is forgotten.
        """
        return AttemptBlock(self, key, payload)

    def decorate(self, key: Callable[..., str]) -> Callable[[F], F]:
        """Return a decorator that makes a function run once for each key.

        ``key`` computes the key from the function's arguments, for example
        ``@once.decorate(key=lambda order: order.order_id)``.
        """

        def wrap(function: F) -> F:
            @functools.wraps(function)
            def wrapped(*args: Any, **kwargs: Any) -> Any:
                payload = {"args": args, "kwargs": kwargs}
                return self.run(key(*args, **kwargs), lambda: function(*args, **kwargs), payload)

            return cast("F", wrapped)

        return wrap

    @operation
    def seen(self, message_id: str) -> Work[bool]:
        """Whether this message was seen within ``remember_seconds``. If not, record it as seen."""
        now = self.context.now()
        record: Item = {
            "state": {"S": "seen"},
            "owner": {"S": self.context.token()},
            self._place.ttl: {"N": str(int(now + self.remember_seconds) + 1)},
            **_FORMAT.attributes(),
        }

        def is_new(written: Expressions) -> str:
            partition, expires = written.name(self._place.partition), written.name(self._place.ttl)
            late = written.value({"N": str(int(now))})
            return f"(attribute_not_exists({partition}) OR {expires} <= {late})"

        return not (yield from self._record(message_id).replace(record, is_new)).is_mine

    def _record(self, key: str) -> LeaseItem:
        stored_key = self._place.key(f"ONCE#{self.name}#{key}", "RECORD")
        return LeaseItem(self._place.table, stored_key, f"once {self.name}", _ATTRIBUTES)

    def explain(self) -> PatternExplanation:
        key = f"{self._place.partition} ONCE#{self.name}#<key>  {self._place.sort} RECORD"
        return PatternExplanation(
            f"once {self.name} in {self._place.table}",
            (f"{key}  state, owner, until, sum, result",),
            (
                OperationCost("run, the first time", "PutItem and UpdateItem", 0, 2),
                OperationCost("run, a repetition", "PutItem, refused", 0, 1),
                OperationCost("seen", "PutItem", 0, 1),
            ),
            ("results are kept with the record: at most 400 KB",),
        )


class AttemptBlock(OnDb[D]):
    """A context manager for one attempt, which lasts as long as the block."""

    def __init__(self, once: Once[D], key: str, payload: Any) -> None:
        super().__init__(once.db)
        self._once: Any = once
        self._asked = (key, payload)
        self._was_done = False
        self._attempt: Attempt | None = None

    def __enter__(self: AttemptBlock[Db]) -> Attempt:
        return self._began(self._once.begin(*self._asked))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        end = self._end(kind)
        if end is not None:
            self._once.db.run(end)

    async def __aenter__(self: AttemptBlock[AsyncDb]) -> Attempt:
        return self._began(await self._once.begin(*self._asked))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        end = self._end(kind)
        if end is not None:
            await self._once.db.run(end)

    def _began(self, attempt: Attempt) -> Attempt:
        self._attempt, self._was_done = attempt, attempt.is_done
        return attempt

    def _end(self, kind: type[BaseException] | None) -> Work[None] | None:
        """Return the write that ends the attempt: ``finish`` or, after an error, ``fail``.

        Returns None if there is nothing to write, because an earlier attempt had finished.
        """
        attempt = self._attempt
        if attempt is None or self._was_done:
            return None
        work: Work[None] = (
            self._once.finish.work(attempt, attempt.result)
            if kind is None
            else self._once.fail.work(attempt)
        )
        return work


def _finished(key: str, payload: Any, record: Item) -> Attempt | None:
    """Return the earlier attempt if it finished, or None while it is running.

    Raises PayloadDiffers if the request has another payload, and Unstorable if the earlier result
    could not be stored.
    """
    if record.get("sum", {}).get("S") not in (None, _checksum(payload)):
        raise PayloadDiffers(key)
    if record.get("state") != {"S": "done"}:
        return None
    if "unstorable" in record:
        reason = record["unstorable"]["S"]
        raise Unstorable(f"{key} ran before, but its result could not be stored: {reason}")
    return Attempt(
        key, record["owner"]["S"], is_done=True, result=orjson.loads(record["result"]["S"])
    )


def _json(result: Any) -> str:
    try:
        return orjson.dumps(result).decode()
    except TypeError as error:
        raise Unstorable(
            f"the result cannot be stored: {error}",
            hint="return something that JSON can hold, such as an id or a dictionary",
        ) from None


def _checksum(payload: Any) -> str:
    return hashlib.sha256(
        orjson.dumps(payload, default=_plain, option=orjson.OPT_SORT_KEYS)
    ).hexdigest()


def _plain(value: Any) -> Any:
    """Return a form of a value that orjson can write, and that is the same for equal values.

    An object becomes its type and its fields. Its default ``repr`` would contain its address, which
    differs between equal objects.
    """
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, value))
    if isinstance(value, (bytes, bytearray, Decimal)):
        return repr(value)
    return {"type": type(value).__qualname__, "fields": getattr(value, "__dict__", None)}
