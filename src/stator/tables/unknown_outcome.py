"""Errors that must not be read as "nothing was written": lost answers, and steps after a write.

**Unknown.** A client retries a write whose answer was lost. If all retries are throttled, the last
error is ``Throttled``, although the first attempt may have been applied. A fault inside the service
says nothing about the write either. A caller would take these errors to mean that nothing was
written. ``unproven`` therefore replaces them with OutcomeUnknown. Single writes look for a proof
first (``writes.sender``). Batches call ``unproven``, and every operation of a pattern object passes
through ``proven``.

**Partly done.** Some operations write and then go on: they read the item back, or write more items.
If a later step is throttled, the write is stored all the same. ``after_write`` and
``several_writes`` replace the error of such a step with PartlyDone, which says how to go on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from typing import Any, ParamSpec, TypeVar

from stator.errors import (
    ConditionFailed,
    ConnectionTrouble,
    ItemMismatch,
    OutcomeUnknown,
    PartlyDone,
    ServiceError,
    StatorError,
    TransactionCanceled,
)
from stator.tables.observers import WRITES
from stator.tables.work import Call, Gather, Work

P = ParamSpec("P")
T = TypeVar("T")


def unproven(error: StatorError, *, is_uncertain: bool = False) -> StatorError:
    """Return the error to raise for a failed write: OutcomeUnknown if it may have been applied.

    Otherwise, this is ``error`` itself. A failed condition or a cancelled transaction is returned
    as it is, too: the caller must compare it with the stored item. ``is_uncertain`` says that the
    answer to an earlier request for the same write was lost.
    """
    if isinstance(error, ConnectionTrouble):
        is_lost = is_uncertain and not error.sent  # with `sent` the error itself says so
    elif isinstance(error, ServiceError) and error.operation in WRITES:
        is_proof = isinstance(error, (ConditionFailed, TransactionCanceled))
        is_lost = (is_uncertain or error.sent) and not is_proof
    else:
        is_lost = False
    if not is_lost:
        return error
    how = "its answer was lost, and then: " if is_uncertain or _is_after_unknown(error) else ""
    unknown = OutcomeUnknown(f"the write may or may not have happened: {how}{error.message}")
    unknown.__cause__ = error
    return unknown


def _is_after_unknown(error: StatorError) -> bool:
    return isinstance(error, ServiceError) and error.after_unknown


def proven(work: Work[T]) -> Work[T]:
    """Run work. If its error does not prove that nothing was written, raise OutcomeUnknown."""
    try:
        return (yield from work)
    except ServiceError as error:
        raise unproven(error)  # noqa: B904 - it is the error itself, or has it as its cause


def after_write(work: Work[T], written: str, hint: str) -> Work[T]:
    """Run the steps that follow a write. If one of them fails, raise PartlyDone.

    A step may fail in the service, because the item does not fit the class, or in a hook of the
    user's. ``written`` says what is stored, and ``hint`` how to go on. A failed condition, such as
    ItemNotFound, is raised as it is.
    """
    try:
        return (yield from work)
    except ConditionFailed:
        raise  # such as ItemNotFound: it says what happened after the write
    except Exception as error:  # hooks of the user's may raise anything
        shown = str(error) if isinstance(error, StatorError) else f"{type(error).__name__}: {error}"
        raise PartlyDone(f"{written}, but a later step failed: {shown}", hint=hint) from error


def several_writes(
    written: str, hint: str
) -> Callable[[Callable[P, Work[T]]], Callable[P, Work[T]]]:
    """Decorate a method that plans several requests, so that failures after a write are PartlyDone.

    Failures before the first write, and failed conditions, are raised as they are. ``written`` says
    what may be stored after a write, and ``hint`` how to go on.
    """

    def decorate(plan: Callable[P, Work[T]]) -> Callable[P, Work[T]]:
        @functools.wraps(plan)
        def traced(*args: P.args, **kwargs: P.kwargs) -> Work[T]:
            return _traced(plan(*args, **kwargs), written, hint)

        return traced

    return decorate


def _traced(work: Work[T], written: str, hint: str) -> Work[T]:
    writes = _Writes()
    try:
        return (yield from writes.counted(work))
    except ConditionFailed:
        raise
    except (ServiceError, ConnectionTrouble, ItemMismatch) as error:
        if not writes.count:
            raise
        raise PartlyDone(f"{written}, but a later step failed: {error}", hint=hint) from error


class _Writes:
    """Counts the requests of some work that have certainly written."""

    def __init__(self) -> None:
        self.count = 0

    def counted(self, work: Work[T]) -> Work[T]:
        effect = _next(work)
        while not isinstance(effect, _Done):
            try:
                answer = yield self._inside(effect)
            except StatorError as error:
                effect = _next(work, error=error)
            else:
                self._note(effect, answer)
                effect = _next(work, answer)
        result: T = effect.result
        return result

    def _inside(self, effect: Any) -> Any:
        """Return the effect, changed so that the writes of work inside a Gather are counted."""
        if not isinstance(effect, Gather):
            return effect
        return Gather(
            [self.counted(part) if isinstance(part, Generator) else part for part in effect.parts]
        )

    def _note(self, effect: Any, answer: Any) -> None:
        calls = [effect] if isinstance(effect, Call) else getattr(effect, "parts", ())
        answers = [answer] if isinstance(effect, Call) else answer
        for call, each in zip(calls, answers or ()):
            if isinstance(call, Call) and call.operation in WRITES and isinstance(each, dict):
                self.count += 1


class _Done:
    def __init__(self, result: Any) -> None:
        self.result = result


def _next(work: Work[Any], answer: Any = None, *, error: StatorError | None = None) -> Any:
    """Return the next effect of work, or ``_Done`` with its result."""
    try:
        return work.send(answer) if error is None else work.throw(error)
    except StopIteration as done:
        return _Done(done.value)
