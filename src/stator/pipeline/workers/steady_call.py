"""Requests that are tried for as long as the lease is held: throttling, a lost connection and a conflict with another transaction pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from stator.errors import ConnectionTrouble, ServiceError, TransactionCanceled
from stator.tables.context import Context
from stator.tables.work import Pause, Work

T = TypeVar("T")
_PASSING = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})


def is_passing(error: ServiceError | ConnectionTrouble) -> bool:
    if isinstance(error, TransactionCanceled):
        codes = {reason.get("Code") for reason in error.reasons} - {"None", None}
        return bool(codes) and codes <= _PASSING
    return not isinstance(error, ServiceError) or error.retryable


def steadily(context: Context, check: Callable[[], Any], make: Callable[[], Work[T]]) -> Work[T]:
    """Carry work out that may be repeated, until it is done."""
    attempt = 0
    while True:
        check()
        try:
            return (yield from make())
        except (ServiceError, ConnectionTrouble) as error:
            if not is_passing(error):
                raise
            attempt += 1
        yield Pause(context.backoff(attempt))
