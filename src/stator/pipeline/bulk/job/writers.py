"""Writers take rows from the window, put them into the table, and account for every row.

A BatchWriteItem request holds up to 25 rows. Rows that DynamoDB leaves unprocessed or throttles go
back into the window, where they mix with others and are retried; the writer backs off first. If
DynamoDB rejects a request, the request is halved until the row at fault stands alone. That row
becomes a dead letter. An error that would hit every row (no such table, no permission) ends the
job. So does a service that has not accepted a single row for minutes. The journal then says how far
the job got.

BatchWriteItem takes no conditions, so rows with a condition are guarded writes
(``tables.writes.guarded``). If the condition fails but the stored item equals the row, the row
counts as written: it was written before a crash, or its reply was lost.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any, Protocol

import orjson

from stator.backoff import Backoff
from stator.clock import Clock
from stator.errors import (
    AccessDenied,
    ConditionFailed,
    ConnectionTrouble,
    CredentialsMissing,
    IncompleteSignature,
    InvalidSignature,
    MissingAuthenticationToken,
    ResourceNotFound,
    RowRefused,
    ServiceError,
    SlowDown,
    StatorError,
    StorageError,
    Throttled,
    UnknownOperation,
    UnrecognizedClient,
)
from stator.model.limits import BATCH_WRITE_ITEMS
from stator.model.values import Item, normalise_item
from stator.pipeline.bulk.job.governor import Governor
from stator.pipeline.bulk.job.pending_rows import PendingEntity, PendingRow, Watermark
from stator.pipeline.bulk.job.row_condition import RowCondition
from stator.pipeline.bulk.job.window import Window
from stator.tables.observers import units_of
from stator.tables.runner import Runner
from stator.tables.writes.guarded.guarded_write import GuardedPut
from stator.tables.writes.guarded.outcomes import (
    Applied,
    Later,
    Outcome,
    Refused,
    Stale,
    Unknown,
)
from stator.tables.writes.guarded.writer import GuardedWriter
from stator.throttle_reason import ThrottleScope, throttle_scope
from stator.transport import Transport

_BACKOFF = Backoff(base_seconds=0.05, cap_seconds=10.0)
_CONDITION_FALSE = "the condition is false for the stored item"
# A service that takes nothing for this long is not coming back soon.
_PATIENCE_SECONDS = 180.0
_FATAL = (
    AccessDenied,
    MissingAuthenticationToken,
    IncompleteSignature,
    InvalidSignature,
    UnrecognizedClient,
    UnknownOperation,
    ResourceNotFound,
    CredentialsMissing,
    StorageError,
)


class EntityWriter(Protocol):
    """Writes entities that a plain put cannot: those with guards, versions or large values.

    ``put`` returns the write units consumed.
    """

    def put(self, entity: Any) -> float: ...


class Writers:
    """The writers of one job. The job calls ``run`` in several threads, one for each writer.

    ``rows`` is the largest number of rows in a request.
    """

    def __init__(
        self,
        transport: Transport,
        table: str,
        key_of: Callable[[Item], Any],
        window: Window,
        watermark: Watermark,
        governor: Governor,
        clock: Clock,
        chance: random.Random,
        *,
        condition: RowCondition | None = None,
        key_names: tuple[str, ...] = (),
        shape: frozenset[str] | None = None,
        entities: EntityWriter | None = None,
        rows: int = BATCH_WRITE_ITEMS,
    ) -> None:
        """Create the writers. Only a job with a ``condition`` needs ``key_names`` and ``shape``.

        ``key_names`` are the attributes of the table's key. ``shape`` names every attribute that an
        item of the table may have, or is None if they are unknown.
        """
        self._transport = transport
        self._table = orjson.dumps(table)
        self._table_name = table
        self._key_of = key_of
        self._window = window
        self._watermark = watermark
        self._governor = governor
        self._clock = clock
        self._chance = chance
        self._condition = condition
        self._key_names = key_names
        self._shape = shape
        self._guarded = GuardedWriter(chance, label="load", old_items=True, measure=True)
        self._runner = Runner(transport, clock, threads=1)
        self._uncertain: set[Any] = set()
        """Keys of rows whose answer was lost, and which will be written again."""
        self._entities = entities
        self._rows = 1 if entities is not None else rows
        self._progressed_at = clock.now()
        self._stopping = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        tries = 0
        while not self._stopping.is_set():
            entries = self._window.take(self._rows)
            if entries is None:
                self._governor.gate.pause(self._window.pause_seconds())
                continue
            if not entries:
                return
            try:
                left = self._sent(entries)
            except BaseException as error:
                self._window.give_back(entries)
                self.stop(error)
                return
            if not left:
                tries = 0
                continue
            if self._others_get_through(entries, left):
                tries = 0
            else:
                tries += 1
                self._governor.gate.pause(_BACKOFF.delay(tries, self._chance.random()))
            self._window.give_back(left)

    def _others_get_through(self, entries: list[PendingRow], left: list[PendingRow]) -> bool:
        """Whether only hot partition keys were refused, so that other rows need not wait.

        ``left`` are the rows of ``entries`` that were refused.
        """
        if self._governor.named_scope != "key range":
            return False
        return len(left) < len(entries) or self._window.are_paced(left)

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self, error: BaseException | None = None) -> None:
        """Send no further request. Requests in flight finish before the writers' threads end.

        ``error`` is the reason, if the job failed. The first error is kept, for the job to raise.
        """
        self.error = self.error or error
        self._stopping.set()
        self._governor.gate.stop()
        self._window.stop()

    # -- one request

    def _sent(self, entries: list[PendingRow]) -> list[PendingRow]:
        """Send rows in one request. Return the rows that must be sent again."""
        units = sum(entry.units for entry in entries)
        self._governor.acquire(units)
        if self._stopping.is_set():  # while it waited
            return entries
        try:
            if self._entities is not None:
                return self._put_entity(entries[0], units)
            if self._condition is not None:
                return self._put_guarded(entries, units)
            return self._put_batch(entries, units)
        except SlowDown as error:
            self._governor.returned(units)
            self._throttled(entries, throttle_scope(error), "table")
            self._check_patience(error)
            return entries
        except StatorError as error:
            self._governor.returned(units)
            return self._refused(entries, error)

    def _put_batch(self, entries: list[PendingRow], units: int) -> list[PendingRow]:
        reply = self._transport.call("BatchWriteItem", self._request(entries))
        left = self._unprocessed(reply, entries)
        consumed = _consumed(reply, units)
        self._governor.consumed(units, consumed)
        if not left:
            self._settle(entries, consumed)
            return []
        named = self._governor.named_scope
        if named is None:
            named, probed = self._limit_of(left[0])
            consumed += probed
        again = set(map(id, left))
        self._settle([entry for entry in entries if id(entry) not in again], consumed)
        self._throttled(left, named, "key range" if len(left) < len(entries) else "table")
        self._check_patience(Throttled("DynamoDB leaves every item unprocessed"))
        return left

    def _limit_of(self, entry: PendingRow) -> tuple[ThrottleScope | None, float]:
        """Find out which limit left a row unprocessed, because the reply of a batch does not say.

        The row is sent again by itself. If it is refused, the error names the limit, which is
        returned. If it is written, the limit is None. The caller then writes the row once more with
        the other rows, which changes nothing. Returns also the units that the row consumed.
        """
        request = {
            "TableName": self._table_name,
            "Item": orjson.Fragment(entry.item),
            "ReturnConsumedCapacity": "TOTAL",
        }
        try:
            reply = self._transport.call("PutItem", request)
        except SlowDown as error:
            return throttle_scope(error), 0.0
        except StatorError:
            return None, 0.0  # the next batch fails for the same reason
        consumed = _consumed(reply, entry.units)
        self._governor.consumed(0.0, consumed)
        return None, consumed

    def _throttled(
        self, entries: list[PendingRow], named: ThrottleScope | None, guess: ThrottleScope
    ) -> None:
        """Slow down the partition keys of refused rows, or the whole job.

        ``named`` is the limit that the refusal named. If it is None, the limit is taken from
        another refusal within the last seconds, or else from ``guess``. If the keys already had
        paces of their own, only these fall, and the rate of the job stays.
        """
        scope = named or self._governor.named_scope or guess
        is_known = scope == "key range" and self._window.refused(entries)
        self._governor.throttled(scope, is_named=named is not None, is_paced=is_known)

    def _request(self, entries: list[PendingRow]) -> dict[str, Any]:
        puts = b'}},{"PutRequest":{"Item":'.join([entry.item for entry in entries])
        body = b'{%b:[{"PutRequest":{"Item":%b}}]}' % (self._table, puts)
        return {"RequestItems": orjson.Fragment(body), "ReturnConsumedCapacity": "TOTAL"}

    def _unprocessed(self, reply: dict[str, Any], entries: list[PendingRow]) -> list[PendingRow]:
        left = (reply.get("UnprocessedItems") or {}).get(self._table_name)
        if not left:
            return []
        keys = {self._key_of(each["PutRequest"]["Item"]) for each in left}
        return [entry for entry in entries if entry.key in keys]

    def _put_guarded(self, entries: list[PendingRow], units: int) -> list[PendingRow]:
        sent: list[PendingRow] = []
        writes: list[GuardedPut] = []
        for entry in entries:
            try:
                write = self._guarded_put(entry)
            except RowRefused as error:
                self._bury(entry, _reason(error))
                continue
            sent.append(entry)
            writes.append(write)
        result = self._runner.run(self._guarded.write(writes))
        applied = [
            entry for entry, outcome in zip(sent, result.outcomes) if isinstance(outcome, Applied)
        ]
        # Replies report the units of applied writes. A refused write is billed as well, but one
        # that is to be sent later is not.
        estimated = sum(entry.units for entry in applied)
        later = [each for each in result.outcomes if isinstance(each, Later)]
        waiting = sum(
            entry.units for entry, each in zip(sent, result.outcomes) if isinstance(each, Later)
        )
        consumed = (result.write_units or estimated) + units - estimated - waiting
        slow = next((each.error for each in later if isinstance(each.error, SlowDown)), None)
        if len(later) == len(sent) and sent:
            self._governor.returned(units)
        else:
            self._governor.consumed(units, consumed)
        if slow is not None:
            refused = [
                entry
                for entry, each in zip(sent, result.outcomes)
                if isinstance(each, Later) and isinstance(each.error, SlowDown)
            ]
            unnamed: ThrottleScope = "key range" if len(refused) < len(sent) else "table"
            self._throttled(refused, throttle_scope(slow), unnamed)
        self._settle(applied, consumed)
        left: list[PendingRow] = []
        for entry, write, outcome in zip(sent, writes, result.outcomes):
            if isinstance(outcome, Later):
                left.append(entry)
                self._postponed(entry, write, outcome)
            else:
                self._uncertain.discard(entry.key)
                self._ended(entry, write, outcome)
        return left

    def _guarded_put(self, entry: PendingRow) -> GuardedPut:
        assert self._condition is not None
        write = self._condition.write(self._table_name, self._key_names, self._shape, entry.item)
        write.uncertain = entry.key in self._uncertain
        return write

    def _postponed(self, entry: PendingRow, write: GuardedPut, outcome: Later) -> None:
        if write.uncertain:
            self._uncertain.add(entry.key)
        self._check_patience(outcome.error)

    def _ended(self, entry: PendingRow, write: GuardedPut, outcome: Outcome) -> None:
        """Account for a row whose conditional write failed and is not retried.

        The row counts as written if the stored item equals the row; otherwise it becomes a dead
        letter. An error that would hit every row is raised.
        """
        if isinstance(outcome, Refused):
            if isinstance(outcome.error, _FATAL):
                raise outcome.error
            self._bury(entry, _reason(outcome.error))
        elif isinstance(outcome, (Stale, Unknown)):
            stored = outcome.old if isinstance(outcome, Stale) else outcome.stored
            if stored is not None and is_same(stored, write.item):
                self._settle([entry], 0.0, already=True)
            elif isinstance(outcome, Stale):
                self._bury(entry, f"{ConditionFailed.code}: {_CONDITION_FALSE}")
            else:
                self._bury(entry, f"{_reason(outcome.error)}; {_CONDITION_FALSE}")

    def _put_entity(self, entry: PendingRow, units: int) -> list[PendingRow]:
        assert self._entities is not None and isinstance(entry, PendingEntity)
        consumed = self._entities.put(entry.entity) or units
        self._governor.consumed(units, consumed)
        self._settle([entry], consumed)
        return []

    # -- rejected rows

    def _refused(self, entries: list[PendingRow], error: StatorError) -> list[PendingRow]:
        if isinstance(error, _FATAL):
            raise error
        if isinstance(error, ConnectionTrouble) or (
            isinstance(error, ServiceError) and error.retryable
        ):
            self._check_patience(error)
            return entries
        if len(entries) == 1:
            self._bury(entries[0], _reason(error))
            return []
        middle = len(entries) // 2
        return self._sent(entries[:middle]) + self._sent(entries[middle:])

    def _check_patience(self, error: StatorError) -> None:
        waits_since = max(self._progressed_at, self._governor.gate.opened_at)
        if self._clock.now() - waits_since > _PATIENCE_SECONDS:
            raise error

    def _settle(
        self, entries: list[PendingRow], consumed_units: float, *, already: bool = False
    ) -> None:
        if entries:
            self._progressed_at = self._clock.now()
            self._watermark.written(entries, consumed_units, already=already)
            self._window.settled(entries)

    def _bury(self, entry: PendingRow, reason: str) -> None:
        self._watermark.refused(entry, orjson.loads(entry.item), reason)
        self._window.settled([entry])


def _reason(error: StatorError) -> str:
    """Return the reason for a dead letter: an error's code and message.

    The text is the same whether the error came from the embedded engine or over HTTP.
    """
    name = error.code if isinstance(error, ServiceError) else type(error).__name__
    return f"{name}: {error.message}"


def _consumed(reply: dict[str, Any], estimated: float) -> float:
    return units_of(reply) if reply.get("ConsumedCapacity") else estimated


def is_same(stored: Item, put: Item) -> bool:
    """Whether two items are equal. Normalises both in place.

    Numbers may be spelled differently (``1`` and ``1.0``), and sets may be in any order.
    """
    for item in (stored, put):
        normalise_item(item)
    return stored == put
