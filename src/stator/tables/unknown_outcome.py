"""Writes whose error does not prove that they were not applied.

A client retries a write whose answer was lost. If all retries are throttled, the last error is
Throttled, although the first attempt may have been applied. Throttled would tell the caller that
nothing was written. ``unproven`` therefore returns OutcomeUnknown for such an error. Single writes
look for a proof first (``writes.sender``). Batches and pattern objects call ``unproven`` directly.
"""

from __future__ import annotations

from stator.errors import (
    ConditionFailed,
    OutcomeUnknown,
    ServiceError,
    StatorError,
    TransactionCanceled,
)
from stator.tables.observers import WRITES


def unproven(error: StatorError) -> StatorError:
    """Return OutcomeUnknown if an earlier attempt of the write may have been applied.

    Otherwise, returns ``error`` itself. Failed conditions and cancelled transactions are also
    returned as they are: the caller must compare them with the stored item.
    """
    if not isinstance(error, ServiceError) or not error.after_unknown:
        return error
    if error.operation not in WRITES or isinstance(error, (ConditionFailed, TransactionCanceled)):
        return error
    unknown = OutcomeUnknown(
        f"the write may or may not have happened: its answer was lost, and then: {error.message}"
    )
    unknown.__cause__ = error
    return unknown
