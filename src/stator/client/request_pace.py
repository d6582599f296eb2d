"""Pacing: how many requests a second a client sends to a table whose limit it has reached.

A hot partition slows down the requests that it refuses: each backs off by itself, and the others go
on. A table at its limit refuses whichever request comes next, so requests to it are paced before
they are sent. A limit of the account paces all requests. Reads and writes of each table have paces
of their own, as do reads of each index, because DynamoDB limits them separately.

The rate follows the adaptive mode of AWS's SDKs, with their constants
(https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html). There it applies to a
whole client, here to one limit. The first refusal sets the rate to seven tenths of the measured
one. After that it grows along a cubic curve: fast at first, slowly near the rate at which the table
last refused, and faster again if nothing refuses there. A limit that refuses nothing for a minute
is forgotten.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from stator.throttle_reason import CallKind, ThrottleReason

_BETA: Final = 0.7
_SCALE: Final = 0.4
_SMOOTHING: Final = 0.8
_MEASURE_SECONDS: Final = 0.5
_LEAST_RATE: Final = 0.5
_FORGET_SECONDS: Final = 60.0

_READS: Final = frozenset(
    {"GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems", "ExecuteStatement"}
)
_WRITES: Final = frozenset(
    {
        "PutItem",
        "UpdateItem",
        "DeleteItem",
        "BatchWriteItem",
        "BatchExecuteStatement",
        "TransactWriteItems",
        "ExecuteTransaction",
    }
)


@dataclass(frozen=True, slots=True)
class PacedLimit:
    """One limit: of an account if ``table`` is empty, else of a table or one of its indexes."""

    table: str = ""
    index: str | None = None
    kind: CallKind | None = None


ACCOUNT: Final = PacedLimit()


class RequestPace:
    """The rate of requests to one limit. Not thread-safe: ``RequestPaces`` holds the lock."""

    __slots__ = (
        "_count",
        "_cubic_seconds",
        "_fell_at",
        "_filled_at",
        "_measured",
        "_measured_at",
        "_peak",
        "_tokens",
        "rate",
    )

    def __init__(self, now: float, sent_per_second: float) -> None:
        self._measured = sent_per_second
        self._measured_at = self._filled_at = self._fell_at = now
        self._count = 0
        self._tokens = 0.0
        self._peak = self._cubic_seconds = 0.0
        self.rate = max(_LEAST_RATE, sent_per_second)
        self._fall(now)

    def wait_seconds(self, now: float) -> float:
        """Take a token for one request, and return how long the request has to wait for it."""
        passed = max(0.0, now - self._filled_at)
        self._tokens = min(max(1.0, self.rate / 4), self._tokens + self.rate * passed) - 1.0
        self._filled_at = max(self._filled_at, now)
        return -self._tokens / self.rate if self._tokens < 0 else 0.0

    def succeeded(self, now: float) -> None:
        self._measure(now, 1)
        passed = now - self._fell_at - self._cubic_seconds
        grown = _SCALE * passed**3 + self._peak
        self.rate = max(_LEAST_RATE, min(grown, 2 * max(self._measured, _LEAST_RATE)))

    def throttled(self, now: float) -> None:
        """Lower the rate after a refusal, unless it was lowered in the last half second.

        Requests that were in flight together may all be refused; they count as one refusal.
        """
        self._measure(now, 0)
        if now - self._fell_at >= _MEASURE_SECONDS:
            self._fall(now)

    def is_idle(self, now: float) -> bool:
        return now - self._fell_at > _FORGET_SECONDS

    def _fall(self, now: float) -> None:
        self._peak = max(_LEAST_RATE, min(self.rate, self._measured or self.rate))
        self._cubic_seconds = (self._peak * (1 - _BETA) / _SCALE) ** (1 / 3)
        self._fell_at = now
        self.rate = max(_LEAST_RATE, self._peak * _BETA)
        self._tokens = min(self._tokens, 0.0)

    def _measure(self, now: float, requests: int) -> None:
        self._count += requests
        passed = now - self._measured_at
        if passed >= _MEASURE_SECONDS:
            current = self._count / passed
            self._measured = _SMOOTHING * current + (1 - _SMOOTHING) * self._measured
            self._measured_at, self._count = now, 0


class RequestPaces:
    """The paces of all limits that a client has reached lately. Threads share it."""

    def __init__(self) -> None:
        self._paces: dict[PacedLimit, RequestPace] = {}
        self._lock = threading.Lock()
        self._sent: dict[PacedLimit, _Sent] = {}

    @property
    def limits(self) -> tuple[PacedLimit, ...]:
        """The limits that are paced now."""
        return tuple(self._paces)

    def before(self, operation: str, request: Mapping[str, Any], now: float) -> float:
        """Return how long a request must wait before it is sent."""
        if not self._paces:
            return 0.0
        with self._lock:
            paces = self._paces_of(operation, request, now)
            return max((pace.wait_seconds(now) for pace in paces), default=0.0)

    def succeeded(self, operation: str, request: Mapping[str, Any], now: float) -> None:
        with self._lock:
            for limit in _limits_of(operation, request):
                sent = self._sent.get(limit)
                if sent is None:
                    sent = self._sent[limit] = _Sent(now)
                sent.add(now)
            if self._paces:
                for pace in self._paces_of(operation, request, now):
                    pace.succeeded(now)

    def throttled(
        self,
        operation: str,
        request: Mapping[str, Any],
        reasons: Iterable[ThrottleReason],
        now: float,
    ) -> None:
        """Lower the rate of each table, index or account that the reasons of a refusal name.

        A refusal by a key range (one hot partition) lowers no rate: only that request backs off.
        """
        limits = {limit for each in reasons for limit in _limits_named(each, operation, request)}
        if not limits:
            return
        with self._lock:
            for limit in limits:
                pace = self._paces.get(limit)
                if pace is None:
                    sent = self._sent.get(limit)
                    self._paces[limit] = RequestPace(now, 1.0 if sent is None else sent.rate(now))
                else:
                    pace.throttled(now)

    def _paces_of(
        self, operation: str, request: Mapping[str, Any], now: float
    ) -> list[RequestPace]:
        found = []
        for limit in _limits_of(operation, request):
            pace = self._paces.get(limit)
            if pace is None:
                continue
            if pace.is_idle(now):
                del self._paces[limit]
            else:
                found.append(pace)
        return found


class _Sent:
    """How many requests a second to one limit succeeded lately."""

    __slots__ = ("_before", "_count", "_since")

    def __init__(self, now: float) -> None:
        self._since = now
        self._count = 0
        self._before = 0.0

    def add(self, now: float) -> None:
        if now - self._since >= _MEASURE_SECONDS:
            self._before = self._count / (now - self._since)
            self._since, self._count = now, 0
        self._count += 1

    def rate(self, now: float) -> float:
        passed = now - self._since
        current = self._count / passed if passed >= _MEASURE_SECONDS / 4 else 0.0
        return max(self._before if passed < 10 else 0.0, current, float(self._count), _LEAST_RATE)


def _limits_named(
    reason: ThrottleReason, operation: str, request: Mapping[str, Any]
) -> list[PacedLimit]:
    """Return the limits that a reason names.

    If an index has reached its write limit, it refuses writes to its table. The result is then
    the table's write limit.
    """
    if reason.scope == "account":
        return [ACCOUNT]
    if reason.scope != "table":
        return []
    kind = reason.kind or _kind(operation)
    tables = [reason.table] if reason.table else _tables(request)
    index = reason.index if kind == "read" else None
    return [PacedLimit(table, index, kind) for table in tables]


def _limits_of(operation: str, request: Mapping[str, Any]) -> list[PacedLimit]:
    kind = _kind(operation)
    if kind is None:
        return []
    index = request.get("IndexName")
    paced_index = index if kind == "read" else None
    return [ACCOUNT, *(PacedLimit(table, paced_index, kind) for table in _tables(request))]


def _kind(operation: str) -> CallKind | None:
    return "write" if operation in _WRITES else "read" if operation in _READS else None


def _tables(request: Mapping[str, Any]) -> list[str]:
    """Return the names of the tables in a request. Tables in PartiQL statements are not found."""
    if "TableName" in request:
        return [_name(str(request["TableName"]))]
    items = request.get("RequestItems")
    if isinstance(items, Mapping):
        return [_name(each) for each in items]
    actions = [each for some in request.get("TransactItems", ()) for each in some.values()]
    return list(dict.fromkeys(_name(str(each.get("TableName", ""))) for each in actions))


def _name(table: str) -> str:
    return table.rpartition("/")[2] if table.startswith("arn:") else table
