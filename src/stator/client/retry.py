"""Retries as AWS advises them.

Only errors that may go away by themselves are retried: throttling, faults of the service, broken
connections. The wait is random, between zero and a limit that doubles with each attempt (full
jitter), so clients that failed together do not retry together. All calls of a client share a retry
quota: retries use it up, and successes refill it. So a client soon stops adding load to a service
that is down. https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html has the
quota's numbers.

Throttling slows down only the requests to the limit that was reached (``stator.throttle_reason``):

    key range   The refused request backs off. It draws on a quota of its own, so that a hot key
                does not use up the retries of other keys.
    table       The table's reads or writes are paced from then on (``request_pace``).
    account     All requests are paced.
    not named   The refused request backs off.

A caller that spreads a hot key itself asks for the refusal at once (``raise_hot_key``, or
``raise_hot_index`` for the key of an index), and so does a caller that has further tables to write
to (``raise_table_limit``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stator.backoff import Backoff
from stator.client.request_pace import RequestPaces
from stator.errors import ConnectionTrouble, DeadlineExceeded, OutcomeUnknown, ServiceError
from stator.throttle_reason import (
    is_hot_index,
    is_hot_key,
    is_table_limit,
    throttle_reasons,
    widest,
)

_CAPACITY = 500.0
_COST = 5.0
_COST_AFTER_LOSS = 10.0
_REFILL = 1.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    max_attempts: int = 10
    base_seconds: float = 0.025
    max_backoff_seconds: float = 20.0

    def delay(self, attempt: int, chance: float) -> float:
        """Return the wait before retry number ``attempt`` (from 1).

        ``chance`` is a random number between 0 and 1, the share of the longest wait to take.
        """
        return Backoff(self.base_seconds, self.max_backoff_seconds).delay(attempt - 1, chance)


class RetryQuota:
    def __init__(self, capacity: float = _CAPACITY) -> None:
        self.capacity = capacity
        self.left = capacity
        self._lock = threading.Lock()

    def draw(self, amount: float) -> bool:
        with self._lock:
            if self.left < amount:
                return False
            self.left -= amount
            return True

    def refill(self, amount: float) -> None:
        if self.left < self.capacity:
            with self._lock:
                self.left = min(self.capacity, self.left + amount)


class SharedRetries:
    """The state that all calls of a client share: the retry policy, two quotas, and the paces."""

    __slots__ = ("chance", "hot_keys", "pacing", "policy", "quota")

    def __init__(self, policy: RetryPolicy, chance: Callable[[], float]) -> None:
        self.policy = policy
        self.chance = chance
        self.quota = RetryQuota()
        self.hot_keys = RetryQuota()
        self.pacing = RequestPaces()


class Attempts:
    """The attempts of one call: counts them, and decides whether and when the next one is made."""

    __slots__ = (
        "_deadline",
        "_drawn",
        "_drawn_from",
        "_idempotent",
        "_on_retry",
        "_operation",
        "_raise_hot_index",
        "_raise_hot_key",
        "_raise_table_limit",
        "_request",
        "_shared",
        "_unknown",
        "number",
    )

    def __init__(
        self,
        shared: SharedRetries,
        operation: str,
        request: Mapping[str, Any],
        *,
        idempotent: bool,
        deadline: float | None,
        raise_hot_key: bool = False,
        raise_hot_index: bool = False,
        raise_table_limit: bool = False,
        on_retry: Callable[[BaseException], None] | None = None,
    ) -> None:
        self._shared = shared
        self._operation = operation
        self._request = request
        self._idempotent = idempotent
        self._deadline = deadline
        self._raise_hot_key = raise_hot_key
        self._raise_hot_index = raise_hot_index
        self._raise_table_limit = raise_table_limit
        self._on_retry = on_retry
        self._drawn = 0.0
        self._drawn_from = shared.quota
        self._unknown = False
        self.number = 1

    def before(self, now: float) -> float:
        """Return the seconds to wait before the first attempt, because its table is at its limit.

        Raises DeadlineExceeded if the deadline comes first.
        """
        delay = self._shared.pacing.before(self._operation, self._request, now)
        if delay and self._deadline is not None and now + delay >= self._deadline:
            raise DeadlineExceeded(
                "the deadline passed before the request could be sent: its table or account is at "
                "its limit"
            )
        return delay

    def succeeded(self, now: float) -> None:
        self._drawn_from.refill(self._drawn or _REFILL)
        if self._shared.hot_keys is not self._drawn_from:
            self._shared.hot_keys.refill(_REFILL)
        self._shared.pacing.succeeded(self._operation, self._request, now)

    def after(self, error: ServiceError | ConnectionTrouble, now: float) -> float:
        """Return the seconds to wait before the next attempt.

        The cost of the attempt is taken from the client's retry quota. If there is no further
        attempt, raises ``error``, DeadlineExceeded, or OutcomeUnknown for a write that may have
        happened and is not safe to repeat.
        """
        may_have_happened = _may_have_happened(error)
        if may_have_happened and not self._idempotent:
            raise OutcomeUnknown(
                f"the write may or may not have happened: {error.message}"
            ) from error
        self._unknown = self._unknown or may_have_happened
        if isinstance(error, ServiceError):
            error.after_unknown = self._unknown and not may_have_happened
        else:
            error.sent = self._unknown
        reasons = throttle_reasons(error)
        shared = self._shared
        if self._raise_table_limit and is_table_limit(reasons):
            raise error  # the caller moves its writes elsewhere, so the table need not be paced
        if reasons:
            shared.pacing.throttled(self._operation, self._request, reasons, now)
        is_final = not error.retryable or self.number >= shared.policy.max_attempts
        if is_final or (self._raise_hot_key and is_hot_key(reasons)):
            raise error
        if self._raise_hot_index and is_hot_index(reasons):
            raise error
        delay = shared.policy.delay(self.number, shared.chance())
        delay = max(delay, shared.pacing.before(self._operation, self._request, now))
        if self._deadline is not None and now + delay >= self._deadline:
            raise DeadlineExceeded(
                f"the deadline passed after {self.number} attempts: {error.message}"
            ) from error
        cost = _COST_AFTER_LOSS if isinstance(error, ConnectionTrouble) else _COST
        quota = shared.hot_keys if widest(reasons) == "key range" else shared.quota
        if not quota.draw(cost):
            raise error
        self._drawn, self._drawn_from = cost, quota
        self.number += 1
        if self._on_retry is not None:
            self._on_retry(error)
        return delay


def _may_have_happened(error: ServiceError | ConnectionTrouble) -> bool:
    """Whether a write that ended with this error may have been carried out.

    It may after a lost reply, or after a fault inside the service.
    """
    if isinstance(error, ConnectionTrouble):
        return error.sent
    return error.status >= 500
