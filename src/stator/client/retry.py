"""Retries as AWS advises them.

Only errors that may go away by themselves are retried: throttling, faults of the service, broken
connections. The wait is random, between zero and a limit that doubles with each attempt (full
jitter), so clients that failed together do not retry together. All calls of a client share a retry
quota: retries use it up, and successes refill it. So a client soon stops adding load to a service
that is down. https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html has the
quota's numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from stator.backoff import Backoff
from stator.errors import ConnectionTrouble, DeadlineExceeded, OutcomeUnknown, ServiceError

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


class Attempts:
    """The attempts of one call: counts them, and decides whether and when the next one is made."""

    __slots__ = (
        "_chance",
        "_deadline",
        "_drawn",
        "_idempotent",
        "_policy",
        "_quota",
        "_unknown",
        "number",
    )

    def __init__(
        self,
        policy: RetryPolicy,
        quota: RetryQuota,
        chance: Callable[[], float],
        idempotent: bool,
        deadline: float | None,
    ) -> None:
        self._policy = policy
        self._quota = quota
        self._chance = chance
        self._idempotent = idempotent
        self._deadline = deadline
        self._drawn = 0.0
        self._unknown = False
        self.number = 1

    def succeeded(self) -> None:
        self._quota.refill(self._drawn or _REFILL)

    def after(self, error: ServiceError | ConnectionTrouble, now: float) -> float:
        """Return the seconds to wait before the next attempt, and take its cost from the quota.

        If there is no further attempt, raises ``error``, DeadlineExceeded, or OutcomeUnknown for a
        write that may have happened and is not safe to repeat.
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
        if not error.retryable or self.number >= self._policy.max_attempts:
            raise error
        delay = self._policy.delay(self.number, self._chance())
        if self._deadline is not None and now + delay >= self._deadline:
            raise DeadlineExceeded(
                f"the deadline passed after {self.number} attempts: {error.message}"
            ) from error
        cost = _COST_AFTER_LOSS if isinstance(error, ConnectionTrouble) else _COST
        if not self._quota.draw(cost):
            raise error
        self._drawn = cost
        self.number += 1
        return delay


def _may_have_happened(error: ServiceError | ConnectionTrouble) -> bool:
    """Whether the write may have happened: after a lost reply or a fault inside the service."""
    if isinstance(error, ConnectionTrouble):
        return error.sent
    return error.status >= 500
