"""Writes whose error does not prove that they were not applied.

A client repeats a write whose answer was lost. If a repeat is then throttled to the end, the error
is Throttled, but the first attempt may have been applied. Reporting Throttled would say that
nothing happened. ``unproven`` returns OutcomeUnknown for such an error. Single writes look for a
proof first (``writes.sender``); batches and pattern objects use this function as it is.
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
    """Return OutcomeUnknown if the error follows a write whose answer was lost, else the error.

    A failed condition is an answer about the stored item, which its caller has to judge.
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
