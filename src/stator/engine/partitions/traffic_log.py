"""Notes what each request did, for the engine's metrics.

An engine with metrics has one log. Before a request starts, it folds a minute that has ended. The
request calls ``succeeded`` or ``failed`` when it ends, and the capacity meter adds the units. Both
only append to the lists of the table's ``TableTraffic``. When a minute has ended, or the lists have
grown, ``fold`` takes them.

Latency is measured on the engine's clock, so it is 0 under a virtual clock that does not move.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from stator.clock import Clock, SystemClock
from stator.engine.tables.table import Table
from stator.errors import (
    ConditionFailed,
    ServiceError,
    SlowDown,
    TransactionCanceled,
    TransactionConflict,
)
from stator.model.scope import Scope

MINUTE: Final = 60.0
# Lists are folded after this many requests, so that they stay small.
_FOLD_AFTER: Final = 5_000
# The operations that have metrics of their own, as values of the dimension Operation.
MEASURED_OPERATIONS: Final = frozenset(
    (
        "PutItem DeleteItem UpdateItem GetItem BatchGetItem Scan Query BatchWriteItem "
        "TransactWriteItems TransactGetItems ExecuteTransaction BatchExecuteStatement "
        "ExecuteStatement GetRecords"
    ).split()
)
_THROTTLING_CODES: Final = ("ProvisionedThroughputExceeded", "ThrottlingError")


class TrafficLog:
    """Notes the traffic of one engine; see the module's header."""

    __slots__ = ("_fold", "_left", "minute_end", "now", "on_turn", "user_errors")

    def __init__(self, clock: Clock, fold: Callable[[float], None]) -> None:
        self.now: Callable[[], float] = time.time if isinstance(clock, SystemClock) else clock.now
        self._fold = fold
        self._left = _FOLD_AFTER
        self.minute_end = self.now() // MINUTE * MINUTE + MINUTE
        self.user_errors: dict[Scope, int] = {}
        # Called at the first request of a minute. Under a virtual clock, this is when minutes end.
        self.on_turn: Callable[[], None] | None = None

    def turn(self) -> None:
        """Fold the minute if it has ended. ``Engine`` does this before each request."""
        now = self.now()
        if now >= self.minute_end:
            self.fold(now)

    def fold(self, now: float) -> None:
        """Pass the noted traffic on, and continue in the minute of ``now``."""
        self._left = _FOLD_AFTER
        self._fold(self.minute_end - MINUTE)
        if now >= self.minute_end:
            self.minute_end = now // MINUTE * MINUTE + MINUTE
            if self.on_turn is not None:
                self.on_turn()

    def succeeded(
        self, operation: str, table: Table | None, others: list[Table] | None, started: float
    ) -> None:
        """Note a request that succeeded; ``table`` and ``others`` are the tables it named."""
        if table is not None:
            taken = table.traffic.latencies.get(operation)
            if taken is not None and others is None:  # nearly every request
                taken.append(self.now() - started)
            elif operation in MEASURED_OPERATIONS:
                elapsed = self.now() - started
                for each in distinct(table, others):
                    each.traffic.latencies.setdefault(operation, []).append(elapsed)
        self._left -= 1
        if self._left <= 0:
            self.fold(started)

    def failed(
        self,
        operation: str,
        scope: Scope,
        table: Table | None,
        others: list[Table] | None,
        error: BaseException,
    ) -> None:
        """Note a request that ended with an error."""
        tables = distinct(table, others) if operation in MEASURED_OPERATIONS else []
        if isinstance(error, SlowDown):
            for each in tables:
                each.traffic.count("ThrottledRequests", "", operation)
        elif not isinstance(error, ServiceError) or error.status >= 500:
            for each in tables:
                each.traffic.count("SystemErrors", "", operation)
        elif isinstance(error, ConditionFailed):
            for each in tables:
                each.traffic.count("ConditionalCheckFailedRequests")
        elif isinstance(error, TransactionCanceled) and table is not None:
            self._canceled(operation, scope, [table, *(others or ())], error)
        else:
            if isinstance(error, TransactionConflict) and table is not None:
                table.traffic.count("TransactionConflict")
            self._blame(scope)

    def statement_failed(self, table: Table, error: ServiceError) -> None:
        """Note a statement of a batch that failed, while the batch itself succeeds."""
        if isinstance(error, ConditionFailed):
            table.traffic.count("ConditionalCheckFailedRequests")
        elif isinstance(error, TransactionConflict):
            table.traffic.count("TransactionConflict")

    def _canceled(
        self, operation: str, scope: Scope, tables: list[Table], error: TransactionCanceled
    ) -> None:
        """Note a canceled transaction, whose reasons are in the order of its actions' tables."""
        throttled: list[Table] = []
        blamed = False
        for each, reason in zip(tables, error.reasons):
            code = reason.get("Code")
            if code == "ConditionalCheckFailed":
                each.traffic.count("ConditionalCheckFailedRequests")
            elif code in _THROTTLING_CODES:
                if each not in throttled:
                    throttled.append(each)
            elif code == "TransactionConflict":
                each.traffic.count("TransactionConflict")
                blamed = True
            elif code != "None":
                blamed = True
        for each in throttled:
            each.traffic.count("ThrottledRequests", "", operation)
        if blamed:
            self._blame(scope)

    def _blame(self, scope: Scope) -> None:
        self.user_errors[scope] = self.user_errors.get(scope, 0) + 1


def distinct(table: Table | None, others: list[Table] | None) -> list[Table]:
    """Return the tables that a request named, each once."""
    if table is None:
        return []
    found = [table]
    for each in others or ():
        if each not in found:
            found.append(each)
    return found
