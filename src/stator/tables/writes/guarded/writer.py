"""The guarded writer: sends guarded writes and finds out what became of each.

Writes of one ``write`` call are sent together, up to 25 statements and 1 MB in a request. Each
table gets requests of its own. Two writes of the same item are sent one after the other: AWS
refuses a request that names an item twice, and DynamoDB Local refuses it *and* applies both. If the
first of them ends without a definite outcome, the second is not sent.

The client never repeats these requests, because a success reply does not say whether it answers
the first attempt or a repeated one. The writer repeats them itself and remembers which writes are
uncertain. If a repeated write is refused, the writer reads the item. The outcome is Applied if the
item carries the proof of the write, and Unknown otherwise.

A refused UPDATE does not say whether the guard condition was false, the item was gone, or it has
another entity version. For a put, that matters: an item that is gone must be inserted, and one of
another version replaced. So the writer reads refused items with strong consistency, 100 in a
request, evaluates the condition on them, and takes the next step.

A table is written with single conditional requests if its name is an ARN, if the caller may not use
PartiQL on it, or if the endpoint does not know PartiQL. AWS supports no PartiQL across accounts
("DynamoDB API operations supported by resource-based policies" in the Developer Guide).
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from stator.backoff import Backoff
from stator.errors import (
    AccessDenied,
    ConditionFailed,
    ConnectionTrouble,
    DeadlineExceeded,
    OutcomeUnknown,
    ServiceError,
    StatorError,
    TransactionConflict,
    UnknownOperation,
    ValidationFailed,
)
from stator.formats.plain import comparable
from stator.model.limits import BATCH_STATEMENTS
from stator.model.values import Item
from stator.tables.reads.items import batch_get_with, key_text
from stator.tables.work import Call, Gather, Pause, Work, gathered
from stator.tables.writes.guarded.guarded_write import GuardedPut, GuardedWrite, Step, TextKey
from stator.tables.writes.guarded.outcomes import (
    Applied,
    Later,
    Outcome,
    Refused,
    Stale,
    Unknown,
)
from stator.tables.writes.guarded.price import GuardedPrice, price
from stator.tables.writes.guarded.statement_text import STATEMENT_CHARACTERS, NotInPartiQL
from stator.tables.writes.sender import reason_error

REQUEST_BYTES: Final = 1 << 20
# Attempts to get an answer, within one ``write``.
_LOST_ANSWERS: Final = 3
# Reads of one item after which it is left for later: other writers keep changing it.
_TURNS: Final = 5
_TEXTS: Final = 4096
_RECENT_KEYS: Final = 32_768
_BACKOFF: Final = Backoff(base_seconds=0.05, cap_seconds=2.0)
_SETTLE_ATTEMPTS: Final = 12

Trouble = ServiceError | ConnectionTrouble


@dataclass(slots=True)
class GuardedResult:
    """The outcomes of several writes, in the order of the writes, and what they consumed.

    The units are 0 unless the writer was created with ``measure=True``.
    """

    outcomes: list[Outcome]
    write_units: float = 0.0
    read_units: float = 0.0
    requests: int = 0

    def all(self, kind: type[Outcome]) -> bool:
        return all(isinstance(each, kind) for each in self.outcomes)


@dataclass(slots=True)
class _Usage:
    write_units: float = 0.0
    read_units: float = 0.0
    requests: int = 0


class _Attempt:
    """The progress of one write: its next step and, once it is known, its outcome."""

    __slots__ = ("at", "key", "losses", "outcome", "step", "turns", "write")

    def __init__(self, at: int, write: GuardedWrite, key: Any) -> None:
        self.at = at
        self.write = write
        self.key = key
        self.step: Step = "put"
        self.outcome: Outcome | None = None
        self.losses = 0
        self.turns = 0


@dataclass(slots=True)
class _Statement:
    attempt: _Attempt
    text: str


class GuardedWriter:
    """Sends guarded writes. One object serves many calls, also from several threads.

    ``old_items`` asks for the stored item of every stale write, at the price of a strong read.
    ``measure`` asks for the consumed capacity. ``statements`` is how many writes one request may
    have.
    """

    def __init__(
        self,
        chance: random.Random,
        *,
        label: str = "guarded write",
        old_items: bool = False,
        measure: bool = False,
        statements: int = BATCH_STATEMENTS,
        request_bytes: int = REQUEST_BYTES,
    ) -> None:
        self._chance = chance
        self._label = label
        self._old_items = old_items
        self._measure = measure
        self._statements = statements
        self._request_bytes = request_bytes
        self._alone: set[str] = set()
        self._texts = StatementTexts()
        self._recent = _RecentKeys()

    def writes_alone(self, table: str) -> bool:
        """Whether a table is written with single requests, because PartiQL cannot be used."""
        return table in self._alone or table.startswith("arn:")

    def explain(
        self, write: GuardedWrite, *, whole_indexes: int = 0, has_stream: bool = False
    ) -> GuardedPrice:
        """Return what a write costs, by its outcome.

        ``whole_indexes`` is the number of the table's indexes that project all attributes.
        """
        return price(write, whole_indexes=whole_indexes, has_stream=has_stream)

    # -- many writes

    def write(self, writes: Sequence[GuardedWrite]) -> Work[GuardedResult]:
        """Carry out the writes and return the outcome of each.

        Writes of the same item are carried out in their order. A write that ends in Later or
        Unknown makes the later writes of its item end in Later.
        """
        outcomes: list[Outcome | None] = [None] * len(writes)
        usage = _Usage()
        queues = self._queues(writes)
        under_way = [queue.popleft() for queue in queues.values()]
        for attempt in under_way:
            self._begin(attempt)
        while under_way:
            yield from self._round(under_way, usage)
            is_lost = any(attempt.outcome is None and attempt.losses for attempt in under_way)
            following: list[_Attempt] = []
            for attempt in under_way:
                if attempt.outcome is None:
                    following.append(attempt)
                    continue
                outcomes[attempt.at] = attempt.outcome
                following += self._next(attempt, queues[attempt.key], outcomes)
            if is_lost:
                losses = max(attempt.losses for attempt in following)
                yield Pause(_BACKOFF.delay(losses - 1, self._chance.random()))
            under_way = following
        found = [outcome for outcome in outcomes if outcome is not None]
        assert len(found) == len(writes)
        return GuardedResult(found, usage.write_units, usage.read_units, usage.requests)

    def settle(
        self,
        writes: Sequence[GuardedWrite],
        *,
        attempts: int = _SETTLE_ATTEMPTS,
        check: Callable[[], Any] | None = None,
    ) -> Work[GuardedResult]:
        """Carry out the writes like ``write``, and repeat writes that end in Later.

        There are pauses between the attempts. ``check`` runs before each attempt and may raise. A
        write that still ends in Later after the last attempt is returned as such.
        """
        if check is not None:
            check()
        result = yield from self.write(writes)
        for attempt in range(attempts - 1):
            left = [at for at, each in enumerate(result.outcomes) if isinstance(each, Later)]
            if not left:
                break
            yield Pause(_BACKOFF.delay(attempt, self._chance.random()))
            if check is not None:
                check()
            again = yield from self.write([writes[at] for at in left])
            for at, outcome in zip(left, again.outcomes):
                result.outcomes[at] = outcome
            result.write_units += again.write_units
            result.read_units += again.read_units
            result.requests += again.requests
        return result

    def _queues(self, writes: Sequence[GuardedWrite]) -> dict[Any, deque[_Attempt]]:
        queues: dict[Any, deque[_Attempt]] = {}
        for at, write in enumerate(writes):
            key = (write.table, *map(comparable, write.key.values()))
            queues.setdefault(key, deque()).append(_Attempt(at, write, key))
        return queues

    def _next(
        self, ended: _Attempt, queue: deque[_Attempt], outcomes: list[Outcome | None]
    ) -> Iterable[_Attempt]:
        """Start the next queued write of the item that ``ended`` has written.

        Returns the next write in a tuple, which is empty if the queue is empty. If the outcome of
        ``ended`` is Later or Unknown, nothing is started, and all queued writes end in Later.
        """
        if not queue:
            return ()
        outcome = ended.outcome
        if isinstance(outcome, (Later, Unknown)):
            error = (
                outcome.error
                if isinstance(outcome, Later)
                else TransactionConflict("the outcome of an earlier write of the item is unknown")
            )
            for attempt in queue:
                outcomes[attempt.at] = Later(error)
            queue.clear()
            return ()
        following = queue.popleft()
        self._begin(following)
        return (following,)

    # -- one write

    def _begin(self, attempt: _Attempt) -> None:
        """Choose the first step.

        A key that was written lately probably has an item. A put then begins with an UPDATE instead
        of an INSERT.
        """
        write = attempt.write
        expects = attempt.key in self._recent
        if isinstance(write, GuardedPut):
            expects = expects or write.expects_item
            if self.writes_alone(write.table):
                return
        if write.can("delete"):
            attempt.step = "delete"
        elif write.can("insert") and not expects:
            attempt.step = "insert"
        elif write.can("update"):
            attempt.step = "update"

    def _applied(self, attempt: _Attempt) -> None:
        attempt.outcome = Applied()
        if attempt.write.can("update"):
            self._recent.add(attempt.key)

    def _exists(self, attempt: _Attempt) -> None:
        """Choose the step after an INSERT that found an existing item."""
        write = attempt.write
        if write.can("update"):
            attempt.step = "update"
        elif write.guard.case(write.key_names).where is False:
            self._is_false(attempt)
        else:
            attempt.step = "read"

    def _is_refused(self, attempt: _Attempt) -> None:
        """Choose the step after a failed condition.

        A refused UPDATE may mean that the item is gone, or that it has another entity version. So
        the item is read if the write is a put, or could insert.
        """
        write = attempt.write
        if attempt.step == "update" and (isinstance(write, GuardedPut) or write.can("insert")):
            attempt.step = "read"
        else:
            self._is_false(attempt)

    def _is_false(self, attempt: _Attempt) -> None:
        """End the write as Stale, because the guard condition is false for the stored item.

        The item is read first if the caller wants old items or if an earlier answer was lost.
        """
        if self._old_items or attempt.write.uncertain:
            attempt.step = "read"
        else:
            attempt.outcome = Stale()

    def _seen(self, attempt: _Attempt, stored: Item | None) -> None:
        """End the write or choose its next step, based on the item that was read."""
        write = attempt.write
        attempt.turns += 1
        if attempt.turns > _TURNS:
            attempt.outcome = Later(TransactionConflict("other writers keep changing the item"))
        elif stored is None and write.can("delete"):
            self._applied(attempt)
        elif stored is None and write.can("insert"):
            attempt.step = "insert"
        elif stored is not None and write.guard.holds(stored):
            can_update = write.can("update") and not (
                isinstance(write, GuardedPut) and not write.has_version_of(stored)
            )
            attempt.step = "delete" if write.can("delete") else "update" if can_update else "put"
        else:
            self._ended(attempt, stored)

    def _ended(self, attempt: _Attempt, stored: Item | None) -> None:
        """End a write whose guard condition is false, or which has no item to change.

        The outcome is Stale if no answer was lost. Otherwise it is Applied with a proof in
        ``stored``, and Unknown without.
        """
        write = attempt.write
        if not write.uncertain:
            attempt.outcome = Stale(stored)
        elif write.proof is not None and write.proof.is_in(stored):
            self._applied(attempt)
        else:
            attempt.outcome = Unknown(
                OutcomeUnknown(
                    "the answer to the write was lost, and when it was sent again, its guard"
                    " condition was false",
                    hint="the stored item shows what is there now, not who wrote it",
                ),
                stored,
            )

    def _failed(self, attempt: _Attempt, error: StatorError) -> None:
        """Handle the error of a step: set the outcome, or leave it unset to repeat the step now."""
        write = attempt.write
        if isinstance(error, (ServiceError, ConnectionTrouble)) and error.sent:
            write.uncertain = True
            attempt.losses += 1
            if not write.repeatable:
                attempt.outcome = Unknown(error)
            elif attempt.losses >= _LOST_ANSWERS or isinstance(error, DeadlineExceeded):
                attempt.outcome = Later(error)
        elif isinstance(error, ConnectionTrouble) or (
            isinstance(error, ServiceError) and error.retryable
        ):
            attempt.outcome = Later(error)
        elif write.uncertain:
            attempt.outcome = Unknown(error)
        else:
            attempt.outcome = Refused(error)

    # -- one round of requests

    def _round(self, attempts: list[_Attempt], usage: _Usage) -> Work[None]:
        """Send the current step of every attempt, in as few requests as possible, in parallel."""
        statements: defaultdict[str, list[_Statement]] = defaultdict(list)
        reads: defaultdict[str, list[_Attempt]] = defaultdict(list)
        parts: list[Work[None]] = []
        for attempt in attempts:
            if attempt.step == "read":
                reads[attempt.write.table].append(attempt)
                continue
            text = self._text(attempt)
            if text is None:
                parts.append(self._send_alone(attempt, usage))
            else:
                statements[attempt.write.table].append(_Statement(attempt, text))
        for table, found in statements.items():
            parts += [self._send_batch(table, batch, usage) for batch in self._packed(found)]
        parts += [self._read(table, found, usage) for table, found in reads.items()]
        if len(parts) == 1:
            yield from parts[0]
        else:
            gathered((yield Gather(parts)))

    def _text(self, attempt: _Attempt) -> str | None:
        """Return the statement of a step, or None if the step must be sent alone."""
        write, step = attempt.write, attempt.step
        if step == "put" or self.writes_alone(write.table):
            return None
        return self._texts.of(write, step)

    def _packed(self, statements: list[_Statement]) -> Iterable[list[_Statement]]:
        batch: list[_Statement] = []
        size = 0
        for each in statements:
            own = each.attempt.write.size + len(each.text)
            if batch and (len(batch) == self._statements or size + own > self._request_bytes):
                yield batch
                batch, size = [], 0
            batch.append(each)
            size += own
        if batch:
            yield batch

    def _send_batch(self, table: str, batch: list[_Statement], usage: _Usage) -> Work[None]:
        request: dict[str, Any] = {
            "Statements": [
                {
                    "Statement": each.text,
                    "Parameters": each.attempt.write.parameters(each.attempt.step),
                }
                for each in batch
            ]
        }
        if self._measure:
            request["ReturnConsumedCapacity"] = "TOTAL"
        usage.requests += 1
        try:
            # The client must not repeat it: a success reply would not say so.
            reply = yield Call("BatchExecuteStatement", request, self._label, idempotent=False)
        except (AccessDenied, UnknownOperation):
            self._alone.add(table)  # each write is sent alone in the next round
        except ValidationFailed as error:
            yield from self._send_halves(table, batch, error, usage)
        except (ServiceError, ConnectionTrouble) as error:
            for each in batch:
                self._failed(each.attempt, error)
        else:
            usage.write_units += _units(reply)
            for each, answer in zip(batch, reply["Responses"], strict=True):
                self._answered(each.attempt, answer.get("Error"))

    def _send_halves(
        self, table: str, batch: list[_Statement], error: ValidationFailed, usage: _Usage
    ) -> Work[None]:
        """Find the statement for which a whole request was refused, by halving the request."""
        if len(batch) == 1:
            self._failed(batch[0].attempt, error)
            return
        middle = len(batch) // 2
        yield from self._send_batch(table, batch[:middle], usage)
        yield from self._send_batch(table, batch[middle:], usage)

    def _answered(self, attempt: _Attempt, error: dict[str, Any] | None) -> None:
        """Process the answer to one statement of a batch: set its outcome or its next step.

        ``error`` is the error in the answer, or None if the statement succeeded.
        """
        if error is None:
            self._applied(attempt)
            return
        code = error["Code"]
        if code == "DuplicateItem":
            self._exists(attempt)
        elif code == "ConditionalCheckFailed":
            self._is_refused(attempt)
        elif code == "AccessDenied":
            self._alone.add(attempt.write.table)
        else:
            self._failed(attempt, reason_error(code, error.get("Message")))

    def _send_alone(self, attempt: _Attempt, usage: _Usage) -> Work[None]:
        operation, request = attempt.write.call(attempt.step)
        request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        if self._measure:
            request["ReturnConsumedCapacity"] = "TOTAL"
        usage.requests += 1
        try:
            reply = yield Call(operation, request, self._label, idempotent=False)
        except ConditionFailed as error:
            attempt.write.uncertain = attempt.write.uncertain or error.after_unknown
            if attempt.step in ("insert", "update") and not isinstance(attempt.write, GuardedPut):
                self._after_refused_call(attempt, error.item)
            else:
                self._ended(attempt, error.item)
        except (ServiceError, ConnectionTrouble) as error:
            self._failed(attempt, error)
        else:
            usage.write_units += _units(reply)
            self._applied(attempt)

    def _after_refused_call(self, attempt: _Attempt, stored: Item | None) -> None:
        """Choose the step after a GuardedUpdate, sent as a single request, failed its condition.

        ``stored`` is the item that DynamoDB returned with the failure, or None if there is none.
        """
        if attempt.step == "insert":
            attempt.step = "update"
        elif stored is None and attempt.write.can("insert"):
            self._seen(attempt, None)
        else:
            self._ended(attempt, stored)

    def _read(self, table: str, attempts: list[_Attempt], usage: _Usage) -> Work[None]:
        keys = [attempt.write.key for attempt in attempts]
        usage.requests += 1
        try:
            items = yield from batch_get_with(
                self._chance, table, keys, self._label, consistent=True
            )
        except (ServiceError, ConnectionTrouble) as error:
            for attempt in attempts:
                self._unread(attempt, error)
            return
        names = attempts[0].write.key_names
        found = {key_text({name: item[name] for name in names}): item for item in items}
        for attempt, key in zip(attempts, keys):
            self._seen(attempt, found.get(key_text(key)))

    def _unread(self, attempt: _Attempt, error: Trouble) -> None:
        """Handle a failed read of the item.

        If reads are forbidden, a GuardedPut goes on with a PutItem, which needs no read.
        """
        if isinstance(error, AccessDenied) and isinstance(attempt.write, GuardedPut):
            attempt.step = "put"
        elif isinstance(error, ConnectionTrouble) or error.retryable:
            attempt.outcome = Later(error)
        elif attempt.write.uncertain:
            attempt.outcome = Unknown(error)
        else:
            attempt.outcome = Refused(error)


@dataclass(slots=True)
class StatementTexts:
    """A cache of PartiQL texts. The text is None for a step that must be sent as a single request.

    Items without a schema can have any set of attributes, so the size of the cache is limited.
    """

    _texts: dict[tuple[str, TextKey], str | None] = field(default_factory=dict)

    def of(self, write: GuardedWrite, step: Step) -> str | None:
        key = (write.table, write.text_key(step))
        try:
            return self._texts[key]
        except KeyError:
            pass
        if len(self._texts) >= _TEXTS:
            self._texts.clear()
        made = self._texts[key] = self._made(write, step)
        return made

    @staticmethod
    def _made(write: GuardedWrite, step: Step) -> str | None:
        try:
            text = write.text(step)
        except NotInPartiQL:
            return None
        return text if len(text) <= STATEMENT_CHARACTERS else None


class _RecentKeys:
    """A bounded set of recently written keys. When it is full, the older half is dropped."""

    def __init__(self) -> None:
        self._new: set[Any] = set()
        self._old: set[Any] = set()

    def __contains__(self, key: Any) -> bool:
        return key in self._new or key in self._old

    def add(self, key: Any) -> None:
        if len(self._new) >= _RECENT_KEYS:
            self._old, self._new = self._new, set()
        self._new.add(key)


def _units(reply: dict[str, Any]) -> float:
    found = reply.get("ConsumedCapacity") or ()
    entries = [found] if isinstance(found, dict) else found
    return float(sum(entry.get("CapacityUnits", 0.0) for entry in entries))
