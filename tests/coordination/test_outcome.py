"""Which errors leave it unknown whether the work was done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from stator.coordination.outcome import is_outcome_unknown
from stator.errors import (
    ConditionFailed,
    DeadlineExceeded,
    InternalServerError,
    OutcomeUnknown,
    ReplyDamaged,
    ReplyLost,
    StorageFailed,
    Throttled,
    Unreachable,
    ValidationFailed,
)


class PaymentFailed(Exception):
    """A user's own error."""


class _Transport(Exception):
    pass


class ReadTimeout(_Transport):
    pass


_Transport.__module__, _Transport.__name__ = "httpx", "TransportError"


def raised(raise_it: Callable[[], Any]) -> BaseException:
    try:
        raise_it()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def chained(*, how: str) -> Exception:
    def raise_it() -> None:
        try:
            raise OutcomeUnknown("lost")
        except OutcomeUnknown as error:
            if how == "from":
                raise PaymentFailed from error
            if how == "from none":
                raise PaymentFailed from None
            raise PaymentFailed  # noqa: B904 - the case

    error = raised(raise_it)
    assert isinstance(error, Exception)
    return error


def refused_after_a_loss() -> ConditionFailed:
    error = ConditionFailed()
    error.after_unknown = True
    return error


def a_ring() -> BaseException:
    first, second = ValueError(), KeyError()
    first.__context__, second.__context__ = second, first
    return first


UNKNOWN: dict[str, BaseException] = {
    "outcome unknown": OutcomeUnknown("lost"),
    "reply lost": ReplyLost("lost"),
    "reply damaged": ReplyDamaged("damaged"),
    "deadline": DeadlineExceeded("late"),
    "500": InternalServerError(),
    "disk": StorageFailed("data", "input/output error"),
    "refused after a loss": refused_after_a_loss(),
    "timeout": TimeoutError(),
    "reset": ConnectionResetError(),
    "another library's": ReadTimeout(),
    "cancelled": asyncio.CancelledError(),
    "interrupted": KeyboardInterrupt(),
    "exit": SystemExit(1),
    "a cause": chained(how="from"),
    "a context": chained(how="context"),
    "a hidden context": chained(how="from none"),
    "in a group": ExceptionGroup("two", [ValueError(), OutcomeUnknown("lost")]),
    "in a group of groups": ExceptionGroup("one", [ExceptionGroup("two", [TimeoutError()])]),
    "a cause in a group": ExceptionGroup("one", [chained(how="from")]),
    "a cancelled group": BaseExceptionGroup("one", [asyncio.CancelledError()]),
}
KNOWN: dict[str, BaseException] = {
    "a mistake": ZeroDivisionError(),
    "refused": ConditionFailed(),
    "throttled": Throttled(),
    "invalid": ValidationFailed("wrong"),
    "never sent": Unreachable("no connection"),
    "connection refused": ConnectionRefusedError(),
    "the user's own": PaymentFailed(),
    "a group": ExceptionGroup("two", [ValueError(), Throttled()]),
    "a ring of contexts": a_ring(),
}


@pytest.mark.parametrize("error", UNKNOWN.values(), ids=UNKNOWN)
def test_an_outcome_is_unknown(error: BaseException) -> None:
    assert is_outcome_unknown(error)


@pytest.mark.parametrize("error", KNOWN.values(), ids=KNOWN)
def test_an_outcome_is_known(error: BaseException) -> None:
    assert not is_outcome_unknown(error)


def test_further_classes_can_be_named() -> None:
    assert is_outcome_unknown(PaymentFailed(), (PaymentFailed,))
    assert is_outcome_unknown(ExceptionGroup("one", [PaymentFailed()]), (PaymentFailed,))
    assert is_outcome_unknown(Unreachable("no connection"), (Unreachable,))
    assert is_outcome_unknown(Throttled(), (Throttled,))
    assert not is_outcome_unknown(ValueError(), (PaymentFailed,))
