"""Work that is repeated until it succeeds: the one retry loop above the client's own.

The client retries a single request a few times (``client.retry``). A lease holder, or a job that
runs for hours, must outlast longer failures: throttling of a hot partition, a network outage, a
conflict with another transaction. ``retry`` repeats the whole work, which must therefore be safe
to repeat: a conditional write, a read, or a write of the same item.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeVar

from stator.backoff import Backoff
from stator.errors import ConnectionTrouble, ServiceError, TransactionCanceled
from stator.tables.context import Context
from stator.tables.work import Call, Pause, Work

T = TypeVar("T")
Reply = dict[str, Any]
Trouble = ServiceError | ConnectionTrouble

PATIENT = Backoff(base_seconds=0.05, cap_seconds=2.0)
_TRANSIENT_REASONS = frozenset(
    {"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}
)


def is_transient(error: Trouble) -> bool:
    """Whether the same request may succeed later.

    A cancelled transaction is transient if every reason for its cancellation is. A failed condition
    is not transient.
    """
    if isinstance(error, TransactionCanceled):
        codes = {reason.get("Code") for reason in error.reasons} - {"None", None}
        return bool(codes) and codes <= _TRANSIENT_REASONS
    return isinstance(error, ConnectionTrouble) or error.retryable


def retry_with(
    chance: random.Random,
    make: Callable[[], Work[T]],
    *,
    check: Callable[[], Any] | None = None,
    backoff: Backoff = PATIENT,
    max_attempts: int | None = None,
    on_failure: Callable[[Trouble], None] | None = None,
) -> Work[T]:
    """Run ``make()`` repeatedly until it succeeds or fails with an error that is not transient.

    ``check`` runs before every attempt and may raise, for example LeaseLost. ``on_failure`` is
    called with every error that is retried. Without ``max_attempts``, transient errors are retried
    until ``check`` or ``on_failure`` raises. ``chance`` randomises the pauses between attempts.
    """
    attempt = 0
    while True:
        if check is not None:
            check()
        try:
            return (yield from make())
        except (ServiceError, ConnectionTrouble) as error:
            attempt += 1
            if not is_transient(error) or attempt == max_attempts:
                raise
            if on_failure is not None:
                on_failure(error)
        yield Pause(backoff.delay(attempt - 1, chance.random()))


def retry(
    context: Context, check: Callable[[], Any] | None, make: Callable[[], Work[T]]
) -> Work[T]:
    """Return the result of ``make()``, which is repeated after transient errors (``retry_with``).

    ``check`` runs before every attempt and may raise an error to stop, for example LeaseLost.
    ``context.random`` randomises the pauses.
    """
    return (yield from retry_with(context.random, make, check=check))


def retry_call(context: Context, check: Callable[[], Any] | None, call: Call) -> Work[Reply]:
    """Return the reply to one request, which is repeated after transient errors (``retry_with``).

    ``check`` runs before every attempt and may raise an error to stop, for example LeaseLost.
    ``context.random`` randomises the pauses.
    """
    return (yield from retry_with(context.random, lambda: answered(call), check=check))


def answered(call: Call) -> Work[Reply]:
    """Turn a single call into work: a generator that yields the call and returns its reply."""
    reply: Reply = yield call
    return reply
