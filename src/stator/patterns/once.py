"""Idempotency: the same request, however often it comes, is carried out once, and answered the same each time.

    PK  ONCE#payments#7f3c...   SK  RECORD   state  running | done   until  ...   sum  <checksum>   result  <JSON>   <ttl>  ...

The first to come writes the record in state *running*, with a time until which it is given to finish, and works. When it has finished it stores the
result and the state becomes *done*; whoever comes later gets the stored result. One who comes while it is running gets AlreadyRunning, or waits. If the
first fails with an exception, the record is taken away, so that it can be tried again; if it dies without a word, the record can be taken over once
its time is over, with a new owner, so that a late first cannot store its result over the second's.

A request that has the same key and another payload is a mistake of the caller's and refused: the checksum says so. Records expire: after
``remember_seconds`` (a day) the same key is new again, even before DynamoDB has deleted the record.

``seen`` is the short form for messages: False the first time within the window, True for duplicates.
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
from stator.errors import (
    AlreadyRunning,
    ConditionFailed,
    PayloadDiffers,
    TookTooLong,
    Unstorable,
    ValidationFailed,
)
from stator.model.values import Item
from stator.patterns.explanation import OperationCost, PatternExplanation
from stator.tables.db import AsyncDb, Db
from stator.tables.operation import D, OnDb, operation
from stator.tables.work import Call, Pause, Work
from stator.tables.writes.expressions import Expressions

_BACKOFF = Backoff(base_seconds=0.05, cap_seconds=1.0, floor_seconds=0.01)

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(slots=True)
class Attempt:
    """The right to carry something out. ``result`` is there already when it has been."""

    key: str
    owner: str
    is_done: bool = False
    result: Any = None


class Once(OnDb[D]):
    """``Once(db, "payments")`` keeps records of a name: ``run``, ``decorate``, ``seen``, or ``begin`` with ``finish`` and ``fail``."""

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
        """Take it on. ``is_done`` and ``result`` are set when it was carried out before."""
        timer = self.context.timer(_BACKOFF, self.wait_seconds)
        while True:
            owner = self.context.token()
            try:
                yield Call("PutItem", self._taking(key, payload, owner), f"once {self.name}")
                return Attempt(key, owner)
            except ConditionFailed as failed:
                record: Item = failed.item or {}
                if failed.after_unknown and record.get("owner", {}).get("S") == owner:
                    return Attempt(key, owner)
            found = self._judged(key, payload, record)
            if found is not None:
                return found
            until = float(record["until"]["N"]) if "until" in record else 0.0
            if timer.is_over:
                raise AlreadyRunning(key, until)
            yield Pause(timer.next_delay())

    def _taking(self, key: str, payload: Any, owner: str) -> dict[str, Any]:
        now = self.context.now()
        item: Item = self._key(key) | {
            "state": {"S": "running"},
            "owner": {"S": owner},
            "until": {"N": f"{now + self.running_seconds:.6f}"},
            "sum": {"S": _checksum(payload)},
            self._place.ttl: {
                "N": str(int(now + max(self.remember_seconds, self.running_seconds)) + 1)
            },
        }
        written = Expressions()
        state, until, expires = (written.name(name) for name in ("state", "until", self._place.ttl))
        late = written.value({"N": f"{now:.6f}"})
        request = {
            "TableName": self._place.table,
            "Item": item,
            "ConditionExpression": f"attribute_not_exists({state}) OR {expires} <= {late} OR "
            f"({state} = {written.value({'S': 'running'})} AND {until} < {late})",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        return written.into(request)

    def _judged(self, key: str, payload: Any, record: Item) -> Attempt | None:
        """What a record that is in the way means: the result, or None while it is running."""
        if record.get("sum", {}).get("S") not in (None, _checksum(payload)):
            raise PayloadDiffers(key)
        if record.get("state") != {"S": "done"}:
            return None
        if "unstorable" in record:
            raise Unstorable(
                f"{key} was carried out before, but its result could not be kept: {record['unstorable']['S']}"
            )
        return Attempt(
            key, record["owner"]["S"], is_done=True, result=orjson.loads(record["result"]["S"])
        )

    @operation
    def finish(self, attempt: Attempt, result: Any = None) -> Work[None]:
        """Store the result, which must be JSON. TookTooLong if another has taken over meanwhile."""
        try:
            yield from self._finish(attempt, {"result": {"S": _json(result)}})
        except (Unstorable, ValidationFailed) as error:
            # The work is done, and must not be done again because its result cannot be kept.
            yield from self._finish(attempt, {"unstorable": {"S": str(error)[:1000]}})
            raise
        attempt.is_done, attempt.result = True, result

    def _finish(self, attempt: Attempt, outcome: Item) -> Work[None]:
        now = self.context.now()
        [(name, value)] = outcome.items()
        written = Expressions()
        state, kept, expires = (written.name(each) for each in ("state", name, self._place.ttl))
        request = {
            "TableName": self._place.table,
            "Key": self._key(attempt.key),
            "UpdateExpression": f"SET {state} = {written.value({'S': 'done'})}, {kept} = {written.value(value)}, "
            f"{expires} = {written.value({'N': str(int(now + self.remember_seconds) + 1)})}",
            "ConditionExpression": f"{written.name('owner')} = {written.value({'S': attempt.owner})}",
        }
        try:
            yield Call("UpdateItem", written.into(request), f"once {self.name}")
        except ConditionFailed:
            raise TookTooLong(
                f"{attempt.key} took longer than {self.running_seconds:g} seconds and was taken over",
                hint="give running_seconds more than the work takes",
            ) from None

    @operation
    def fail(self, attempt: Attempt) -> Work[None]:
        """Forget it, so that it can be tried again."""
        written = Expressions()
        condition = f"{written.name('owner')} = {written.value({'S': attempt.owner})}"
        request = {
            "TableName": self._place.table,
            "Key": self._key(attempt.key),
            "ConditionExpression": condition,
        }
        try:
            yield Call("DeleteItem", written.into(request), f"once {self.name}")
        except ConditionFailed:
            return  # another has taken over: it is theirs now

    # -- in one

    def run(self, key: str, work: Callable[[], Any], payload: Any = None) -> Any:
        """Carry ``work`` out, or give the result it had before. With an AsyncDb both are awaited."""
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

    def attempt(self, key: str, payload: Any = None) -> Attempting[D]:
        """``with once.attempt(key) as attempt:``, or ``async with``. If ``attempt.is_done``, its result is there; otherwise do the work and
        set ``attempt.result``. It is stored when the block ends, and forgotten if it raises."""
        return Attempting(self, key, payload)

    def decorate(self, key: Callable[..., str]) -> Callable[[F], F]:
        """``@once.decorate(key=lambda order: order.order_id)``: the function runs once for each key."""

        def wrap(function: F) -> F:
            @functools.wraps(function)
            def wrapped(*args: Any, **kwargs: Any) -> Any:
                payload = {"args": args, "kwargs": kwargs}
                return self.run(key(*args, **kwargs), lambda: function(*args, **kwargs), payload)

            return cast("F", wrapped)

        return wrap

    @operation
    def seen(self, message_id: str) -> Work[bool]:
        """Whether a message came before, within the time that is remembered; from now on it has."""
        now = self.context.now()
        written = Expressions()
        partition, expires = written.name(self._place.partition), written.name(self._place.ttl)
        owner = self.context.token()
        request = {
            "TableName": self._place.table,
            "Item": self._key(message_id)
            | {
                "state": {"S": "seen"},
                "owner": {"S": owner},
                self._place.ttl: {"N": str(int(now + self.remember_seconds) + 1)},
            },
            "ConditionExpression": f"attribute_not_exists({partition}) OR {expires} <= {written.value({'N': str(int(now))})}",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        try:
            yield Call("PutItem", written.into(request), f"once {self.name}")
        except ConditionFailed as failed:
            return bool((failed.item or {}).get("owner", {}).get("S") != owner)
        return False

    def _key(self, key: str) -> Item:
        return self._place.key(f"ONCE#{self.name}#{key}", "RECORD")

    def explain(self) -> PatternExplanation:
        return PatternExplanation(
            f"once {self.name} in {self._place.table}",
            (
                f"{self._place.partition} ONCE#{self.name}#<key>  {self._place.sort} RECORD  state, owner, until, sum, result",
            ),
            (
                OperationCost("run, the first time", "PutItem and UpdateItem", 0, 2),
                OperationCost("run, a repetition", "PutItem, refused", 0, 1),
                OperationCost("seen", "PutItem", 0, 1),
            ),
            ("results are kept with the record: at most 400 KB",),
        )


class Attempting(OnDb[D]):
    """One attempt for the length of a block."""

    def __init__(self, once: Once[D], key: str, payload: Any) -> None:
        super().__init__(once.db)
        self._once: Any = once
        self._asked = (key, payload)
        self._was_done = False
        self._attempt: Attempt | None = None

    def __enter__(self: Attempting[Db]) -> Attempt:
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

    async def __aenter__(self: Attempting[AsyncDb]) -> Attempt:
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
        """What is left to do: nothing, where it was done before."""
        attempt = self._attempt
        if attempt is None or self._was_done:
            return None
        work: Work[None] = (
            self._once.finish.work(attempt, attempt.result)
            if kind is None
            else self._once.fail.work(attempt)
        )
        return work


def _json(result: Any) -> str:
    try:
        return orjson.dumps(result).decode()
    except TypeError as error:
        raise Unstorable(
            f"the result cannot be stored: {error}",
            hint="return JSON, such as an id or a dictionary",
        ) from None


def _checksum(payload: Any) -> str:
    return hashlib.sha256(
        orjson.dumps(payload, default=_plain, option=orjson.OPT_SORT_KEYS)
    ).hexdigest()


def _plain(value: Any) -> Any:
    """Something that is the same each time for equal values, which the usual repr, with its address, is not."""
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, value))
    if isinstance(value, (bytes, bytearray, Decimal)):
        return repr(value)
    return {"type": type(value).__qualname__, "fields": getattr(value, "__dict__", None)}
