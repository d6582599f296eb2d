"""Idempotency: a repeated request runs only once and gets the same answer each time.

    PK  ONCE#payments#7f3c...   SK  RECORD
        state  running | done   owner  5be1...   until  ...   sum  <checksum>   result  <JSON>
        <ttl>  ...   _format  1 | 2

The record is a lease (``coordination.lease``) whose owner token is new for every attempt. The first
attempt writes the record in state *running*, with the time by which it must finish, and then does
the work. When it finishes, it stores the result, and the state becomes *done*: later attempts get
the stored result. An attempt that starts while another is running waits, or raises AlreadyRunning.

If the work raises an error that says what happened, the record is deleted, and the next attempt
runs the work again. If the error leaves the outcome unknown (a lost answer, a cancellation: see
``coordination.outcome``), the record stays *running*. The work may have been done, so another
attempt takes over only once the time to finish has passed. The same happens if the process dies.
Work that must never happen twice needs a check of its own. It can look for the effects of an
earlier attempt first, or pass the key on to the called service as an idempotency key. If the first
attempt finishes after another took over, it can no longer store its result, because the owner has
changed.

Results keep their types (``typed_json``): the first caller and later ones get equal values. A
record whose result is plain JSON has format 1, which older programs read; any other has format 2.

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
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from decimal import Decimal
from types import TracebackType
from typing import Any, TypeVar, cast, overload

import orjson

from stator.backoff import Backoff
from stator.coordination.lease import Condition, LeaseAttributes, LeaseHold, LeaseItem, both
from stator.coordination.outcome import is_outcome_unknown
from stator.coordination.stored_format import ATTRIBUTE, StoredFormat
from stator.errors import (
    AlreadyRunning,
    ConfigurationError,
    ConnectionTrouble,
    DbClosed,
    PayloadDiffers,
    RequestRefused,
    ResultNotStored,
    ServiceError,
    StatorError,
    TookTooLong,
    Unstorable,
    ValidationFailed,
)
from stator.model.seconds import check_seconds
from stator.model.values import Item
from stator.patterns.explanation import OperationCost, PatternExplanation
from stator.patterns.typed_json import NotTypedJson, is_plain, read_typed, write_typed
from stator.tables.argument_rules import checks_arguments
from stator.tables.db import AsyncDb, Db
from stator.tables.operation import D, OnDb, check_block, operation
from stator.tables.unknown_outcome import proven
from stator.tables.work import Pause, Work
from stator.tables.writes.expressions import Expressions

_PLAIN = StoredFormat("once", 1)
_FORMAT = StoredFormat("once", 2)  # results with types
_ATTRIBUTES = LeaseAttributes(fence=None)
_STORING = Backoff(base_seconds=0.1, cap_seconds=2.0, floor_seconds=0.05)
_STORING_SECONDS = 20.0
_STORING_ATTEMPTS = 3
_BACKOFF = Backoff(base_seconds=0.05, cap_seconds=1.0, floor_seconds=0.01)

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


@dataclass(slots=True)
class Attempt:
    """One attempt to do the work of an idempotency key.

    If ``is_done`` is set, the work is done, by this attempt or an earlier one, and ``result`` is
    its result.
    """

    key: str
    owner: str
    is_done: bool = False
    result: Any = None
    until: float = 0.0
    """The end of ``running_seconds``, in seconds since the epoch. Then another may take over."""


@checks_arguments("Once")
class Once(OnDb[D]):
    """Remembers which keys have run: ``Once(db, "payments")``.

    Use ``run``, ``decorate`` or ``attempt``; or ``begin`` with ``finish`` and ``fail``; or
    ``seen``. A key is new again after ``remember_seconds``. An attempt must finish within
    ``running_seconds``; after that, another may take over. An attempt waits for up to
    ``wait_seconds`` while another is running. With 0, the default, it does not wait: it raises
    AlreadyRunning at once.

    If the work raises an error, the next attempt may run at once. There is one exception: after an
    error that leaves the outcome unknown, no attempt may run for the rest of ``running_seconds``.
    Such errors are OutcomeUnknown, timeouts and cancellations, and those in ``unknown_errors``.
    """

    def __init__(
        self,
        db: D,
        name: str,
        *,
        remember_seconds: float = 86_400.0,
        running_seconds: float = 60.0,
        wait_seconds: float = 0.0,
        unknown_errors: tuple[type[BaseException], ...] = (),
    ) -> None:
        super().__init__(db)
        check_seconds(
            f"once {name}", remember_seconds=remember_seconds, running_seconds=running_seconds
        )
        check_seconds(f"once {name}", or_zero=True, wait_seconds=wait_seconds)
        self.name = name
        self.remember_seconds = remember_seconds
        self.running_seconds = running_seconds
        self.wait_seconds = wait_seconds
        for each in unknown_errors:
            if not (isinstance(each, type) and issubclass(each, BaseException)):
                raise ConfigurationError(
                    f"once {name}: unknown_errors has {each!r}, which is not an exception class",
                    hint="pass classes, such as unknown_errors=(PaymentTimeout,)",
                )
        self.unknown_errors = unknown_errors
        self._place = self.context.schema.place

    # -- the three steps

    @operation
    def begin(self, key: str, payload: Any = None) -> Work[Attempt]:
        """Start an attempt and return it.

        If an earlier attempt finished, the returned attempt has ``is_done`` set, and ``result`` is
        the earlier result. Raises AlreadyRunning if another attempt is still running after
        ``wait_seconds``. If the answer to the write that starts the attempt is lost, raises a
        ConnectionTrouble. The key may then stay taken for ``running_seconds``.
        """
        timer = self.context.timer(_BACKOFF, self.wait_seconds)
        item, checksum = self._record(key), _checksum(payload)
        while True:
            owner = self.context.token()
            until = self.context.now() + self.running_seconds
            taken = yield from item.replace(self._running(checksum, owner), self._is_free())
            _FORMAT.check(taken.item, self.name)
            if taken.is_mine:
                return Attempt(key, owner, until=until)
            finished = _finished(key, checksum, taken.item)
            if finished is not None:
                return finished
            if timer.is_over:
                raise AlreadyRunning(key, item.attributes.read(taken.item).until)
            yield Pause(timer.next_delay())

    def _running(self, checksum: str, owner: str) -> Item:
        now = self.context.now()
        expires_at = now + max(self.remember_seconds, self.running_seconds)
        return {
            "state": {"S": "running"},
            "owner": {"S": owner},
            "until": {"N": f"{now + self.running_seconds:.6f}"},
            "sum": {"S": checksum},
            self._place.ttl: {"N": str(int(expires_at) + 1)},
            **_PLAIN.attributes(),
        }

    def _is_free(self) -> Condition:
        """Return the condition under which an attempt may start.

        An attempt may start if the key has no record, or if the record has expired. It may also
        start if the recorded attempt has run for longer than ``running_seconds``.
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
        """Store the result, so that later attempts return it.

        Raises Unstorable if the result cannot be stored with its types, or is larger than an item
        can be. Later attempts then raise Unstorable too: the work is done and is not repeated.
        Raises TookTooLong if another attempt has taken over. If the write is throttled or gets no
        answer, it is repeated for some seconds, and then ResultNotStored is raised. All three
        errors carry the ``result``.
        """
        try:
            yield from self._finish(attempt, _outcome(result), result)
        except (NotTypedJson, ValidationFailed) as error:
            # The work is done, and must not be repeated because its result cannot be stored.
            yield from self._finish(attempt, {"unstorable": {"S": str(error)[:1000]}}, result)
            raise Unstorable(
                f"the work of {attempt.key} is done, but its result cannot be stored: {error}",
                result=result,
                hint="the result is in error.result; return something smaller or simpler, such as "
                "an id, a dictionary or a dataclass",
            ) from None
        attempt.is_done, attempt.result = True, result

    def _finish(self, attempt: Attempt, outcome: Item, result: Any) -> Work[None]:
        expires_at = int(self.context.now() + self.remember_seconds) + 1
        done: Item = {
            "state": {"S": "done"},
            **outcome,
            self._place.ttl: {"N": str(expires_at)},
        }
        if (yield from self._stored(attempt, done, result)) is None:
            raise TookTooLong(
                f"{attempt.key} took longer than {self.running_seconds:g} seconds, "
                "and another attempt has taken over",
                result=result,
                hint="set running_seconds to more than the work takes",
            )

    def _stored(self, attempt: Attempt, done: Item, result: Any) -> Work[Item | None]:
        """Write the result into the record. Return None if another attempt has taken over.

        The work is done, and without its result the next attempt would do it again. So the write
        is retried beyond the client's own retries. It is sent at least ``_STORING_ATTEMPTS`` times,
        and then until ``_STORING_SECONDS`` are over or another attempt may take over.
        """
        left = attempt.until - self.context.now()
        timer = self.context.timer(_STORING, max(0.0, min(left, _STORING_SECONDS)))
        record, number = self._record(attempt.key), 0
        while True:
            number += 1
            try:
                return (yield from record.change(LeaseHold(attempt.owner), done))
            except ValidationFailed:
                raise  # the result is at fault, not the service
            except (ServiceError, ConnectionTrouble, DbClosed) as error:
                may_pass = not isinstance(error, DbClosed) and (error.retryable or error.sent)
                if not may_pass or (timer.is_over and number >= _STORING_ATTEMPTS):
                    raise self._not_stored(attempt, result, error) from error
            yield Pause(timer.next_delay())

    def _not_stored(self, attempt: Attempt, result: Any, error: StatorError) -> ResultNotStored:
        return ResultNotStored(
            f"the work of {attempt.key} is done, but its result may not have been stored: {error}",
            result=result,
            attempt=attempt,
            hint="do not run the work again: the result is in error.result. Store it with "
            f"once.finish(error.attempt, error.result); otherwise an attempt later than "
            f"{self.running_seconds:g} seconds after the start runs the work again",
        )

    @operation
    def fail(self, attempt: Attempt) -> Work[None]:
        """Delete the record of an attempt, so that the next attempt may run.

        Call ``fail`` only if the work was certainly not done, because the next attempt does the
        work again. Does nothing if another attempt took over, or if the attempt has finished: its
        result stays, even if the answer to ``finish`` was lost.
        """

        def is_running(written: Expressions) -> str:
            return f"{written.name('state')} = {written.value({'S': 'running'})}"

        yield from self._record(attempt.key).delete(LeaseHold(attempt.owner), is_running)

    def _give_up(self, attempt: Attempt, error: BaseException) -> Work[None]:
        """End an attempt whose work raised an error.

        The record is deleted if the error proves that the work was not done, and stays *running*
        if the outcome is unknown. If the deletion fails, ``error`` gets a note about the failure,
        which is not raised.
        """
        if not is_outcome_unknown(error, self.unknown_errors):
            try:
                yield from self.fail.work(attempt)
                return
            except StatorError as failed:
                error.add_note(f"once {self.name}: the record was not deleted: {failed.message}")
        error.add_note(
            f"once {self.name}: the key {attempt.key} stays taken for up to "
            f"{self.running_seconds:g} seconds from its start; then the next attempt runs the work "
            "again"
        )

    # -- in one

    @overload
    def run(self: Once[Db], key: str, work: Callable[[], T], payload: Any = None) -> T: ...
    @overload
    def run(
        self: Once[AsyncDb], key: str, work: Callable[[], Awaitable[T]], payload: Any = None
    ) -> Coroutine[Any, Any, T]: ...
    def run(self, key: str, work: Callable[[], Any], payload: Any = None) -> Any:
        """Run ``work``, or return its earlier result.

        With an AsyncDb, await both this call and ``work``. Results may be made of None, bool, int,
        float, str, bytes, Decimal, datetime, date, time, timedelta, UUID, Enum members, lists,
        tuples, sets, dictionaries, dataclasses and entities. Any other result raises Unstorable,
        with the result as ``error.result``. So do TookTooLong and ResultNotStored (``finish``).
        """
        return (
            self._run_async(key, work, payload)
            if isinstance(self.db, AsyncDb)
            else self._run(key, work, payload)
        )

    def _run(self, key: str, work: Callable[[], Any], payload: Any) -> Any:
        _refuse_coroutines(key, work)
        me = cast("Any", self)
        attempt: Attempt = me.begin(key, payload)
        if attempt.is_done:
            return attempt.result
        try:
            result = work()
            if inspect.iscoroutine(result):  # it has not begun
                result.close()
                raise _cannot_await(key)
        except BaseException as error:
            me.db.run(self._give_up(attempt, error))
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
        except BaseException as error:
            await me.db.run(self._give_up(attempt, error))
            raise
        await me.finish(attempt, result)
        return result

    def attempt(self, key: str, payload: Any = None) -> AttemptBlock[D]:
        """Return a context manager for one attempt: ``with once.attempt(key) as attempt:``.

        With an AsyncDb, write ``async with``. If ``attempt.is_done``, use ``attempt.result``.
        Otherwise do the work and set ``attempt.result``, which is stored when the block ends. If
        the block raises, the attempt ends as in ``run``.
        """
        return AttemptBlock(self, key, payload)

    def decorate(self, key: Callable[..., str]) -> Callable[[F], F]:
        """Return a decorator that makes a function run once for each key.

        ``key`` computes the key from the function's arguments, for example
        ``@once.decorate(key=lambda order: order.order_id)``.
        """

        me = cast("Any", self)

        def wrap(function: F) -> F:
            if not isinstance(self.db, AsyncDb):
                _refuse_coroutines(getattr(function, "__name__", "the work"), function)

            @functools.wraps(function)
            def wrapped(*args: Any, **kwargs: Any) -> Any:
                payload = {"args": args, "kwargs": kwargs}
                return me.run(key(*args, **kwargs), lambda: function(*args, **kwargs), payload)

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
            **_PLAIN.attributes(),
        }

        def is_new(written: Expressions) -> str:
            partition, expires = written.name(self._place.partition), written.name(self._place.ttl)
            late = written.value({"N": str(int(now))})
            return f"(attribute_not_exists({partition}) OR {expires} <= {late})"

        return not (yield from self._record(message_id).replace(record, is_new)).is_mine

    def _record(self, key: str) -> LeaseItem:
        if type(key) is not str or not key:
            shown = "an empty one" if isinstance(key, str) else f"a {type(key).__name__}"
            raise RequestRefused(
                f"once {self.name}: a key must be a non-empty str, not {shown}",
                hint="pass text that identifies the request, for example str(order_id)",
            )
        stored_key = self._place.key(f"ONCE#{self.name}#{key}", "RECORD")
        return LeaseItem(self._place.table, stored_key, f"once {self.name}", _ATTRIBUTES)

    def explain(self) -> PatternExplanation:
        """Return the key of a record, and the units and cost of each operation."""
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


@checks_arguments("AttemptBlock")
class AttemptBlock(OnDb[D]):
    """A context manager for one attempt, which ends with the block; ``Once.attempt`` returns it."""

    def __init__(self, once: Once[D], key: str, payload: Any) -> None:
        super().__init__(once.db)
        self._once: Any = once
        self._asked = (key, payload)
        self._was_done = False
        self._attempt: Attempt | None = None

    def __enter__(self: AttemptBlock[Db]) -> Attempt:
        check_block(self.db, "once.attempt(...)", is_awaited=False)
        return self._began(self._once.begin(*self._asked))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        end = self._end(error)
        if end is not None:
            self._once.db.run(proven(end))

    async def __aenter__(self: AttemptBlock[AsyncDb]) -> Attempt:
        check_block(self.db, "once.attempt(...)", is_awaited=True)
        return self._began(await self._once.begin(*self._asked))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        end = self._end(error)
        if end is not None:
            await self._once.db.run(proven(end))

    def _began(self, attempt: Attempt) -> Attempt:
        self._attempt, self._was_done = attempt, attempt.is_done
        return attempt

    def _end(self, error: BaseException | None) -> Work[None] | None:
        """Return the work that ends the attempt: ``finish``, or ``_give_up`` after an error.

        Returns None if there is nothing to write, because this attempt never began or an earlier
        attempt had finished.
        """
        attempt = self._attempt
        if attempt is None or self._was_done:
            return None
        work: Work[None] = (
            self._once.finish.work(attempt, attempt.result)
            if error is None
            else self._once._give_up(attempt, error)
        )
        return work


def _finished(key: str, checksum: str, record: Item) -> Attempt | None:
    """Return the earlier attempt that ``record`` describes, or None if it is still running.

    Raises PayloadDiffers if that attempt had another payload, and Unstorable if its result was not
    stored or cannot be read.
    """
    if record.get("sum", {}).get("S") not in (None, checksum):
        raise PayloadDiffers(key)
    if record.get("state") != {"S": "done"}:
        return None
    if "unstorable" in record:
        reason = record["unstorable"]["S"]
        raise Unstorable(
            f"the work of {key} was done before, but its result could not be stored: {reason}",
            hint="let the work return a smaller value, or one that JSON can hold",
        )
    text, is_typed = record["result"]["S"], record.get(ATTRIBUTE) == {"N": "2"}
    try:
        result = read_typed(text) if is_typed else orjson.loads(text)
    except NotTypedJson as error:
        raise Unstorable(
            f"the work of {key} was done before, but its result cannot be read: {error}"
        ) from error
    return Attempt(key, record["owner"]["S"], is_done=True, result=result)


def _outcome(result: Any) -> Item:
    """Return the attributes that store a result in the record: its JSON and the format number."""
    text = write_typed(result)
    return {"result": {"S": text}, **(_PLAIN if is_plain(text) else _FORMAT).attributes()}


def _checksum(payload: Any) -> str:
    """Return a checksum of a payload. Equal payloads have the same one in every process."""
    option = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
    try:
        text = orjson.dumps(payload, default=_plain, option=option)
    except TypeError:  # such as a tuple as a key, or an int beyond 64 bits
        text = _typed_payload(payload)
    return hashlib.sha256(text).hexdigest()


def _typed_payload(payload: Any) -> bytes:
    try:
        return write_typed(payload).encode()
    except NotTypedJson as error:
        raise RequestRefused(
            f"the payload cannot be compared with those of later requests: {error}",
            hint="pass what identifies the request as payload=: text, numbers, dataclasses, or "
            "lists and dictionaries of these",
        ) from None


def _plain(value: Any) -> Any:
    """Return a part of a payload in a form that orjson can write. Equal values have equal forms.

    An object becomes its type and its fields. Its default ``repr`` would contain its address, which
    differs between equal objects.
    """
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, value))
    if isinstance(value, (bytes, bytearray, Decimal)):
        return repr(value)
    return {"type": type(value).__qualname__, "fields": _fields(value)}


def _fields(value: Any) -> dict[str, Any]:
    fields = getattr(value, "__dict__", None)
    if fields is not None:
        return dict(fields)
    slots = [name for cls in type(value).__mro__ for name in _slots(cls)]
    if not slots:
        raise TypeError(f"a {type(value).__qualname__} has no fields to compare")
    return {name: getattr(value, name) for name in slots if hasattr(value, name)}


def _slots(cls: type) -> tuple[str, ...]:
    found = cls.__dict__.get("__slots__", ())
    return (found,) if isinstance(found, str) else tuple(found)


def _refuse_coroutines(key: str, work: Any) -> None:
    """Raise RequestRefused for a coroutine function as the work of a Db."""
    if inspect.iscoroutinefunction(work):
        raise _cannot_await(key)


def _cannot_await(key: str) -> RequestRefused:
    return RequestRefused(
        f"{key}: the work is a coroutine function, which a Db cannot await",
        hint="use Once with an AsyncDb, or pass a plain function",
    )
