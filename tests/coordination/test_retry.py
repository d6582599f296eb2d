from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from stator.clock import VirtualClock
from stator.coordination.retry import is_transient, retry_with
from stator.errors import (
    ConditionFailed,
    LeaseLost,
    ServiceError,
    Throttled,
    TransactionCanceled,
    Unreachable,
)
from stator.tables.runner import Runner
from stator.tables.work import Work


def work_of(answers: Iterator[Any]) -> Any:
    def make() -> Work[Any]:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer
        yield

    return make


def run(work: Work[Any], clock: VirtualClock) -> Any:
    return Runner(None, clock).run(work)  # type: ignore[arg-type]  # the work makes no calls


def test_throttling_and_lost_connections_are_retried_until_the_work_succeeds() -> None:
    clock = VirtualClock()
    before = clock.now()
    seen: list[Exception] = []
    answers = iter([Throttled(), Unreachable("away"), Throttled(), "done"])
    work = retry_with(random.Random(1), work_of(answers), on_failure=seen.append)
    assert run(work, clock) == "done"
    assert [type(error) for error in seen] == [Throttled, Unreachable, Throttled]
    assert 0 < clock.now() - before < 1


def test_a_failed_condition_is_raised_at_once() -> None:
    with pytest.raises(ConditionFailed):
        run(retry_with(random.Random(1), work_of(iter([ConditionFailed()]))), VirtualClock())


def test_the_last_of_so_many_attempts_raises() -> None:
    answers = iter([Throttled(), Throttled(), "too late"])
    with pytest.raises(Throttled):
        run(retry_with(random.Random(1), work_of(answers), max_attempts=2), VirtualClock())


def test_a_check_that_raises_ends_the_retries() -> None:
    checks = iter([None, LeaseLost("lost")])

    def check() -> None:
        error = next(checks)
        if error is not None:
            raise error

    answers = iter([Throttled(), "too late"])
    with pytest.raises(LeaseLost):
        run(retry_with(random.Random(1), work_of(answers), check=check), VirtualClock())


@pytest.mark.parametrize(
    ("codes", "passes"),
    [
        (["TransactionConflict", "None"], True),
        (["ThrottlingError", "ProvisionedThroughputExceeded"], True),
        (["TransactionConflict", "ConditionalCheckFailed"], False),
        (["None"], False),
    ],
)
def test_a_cancelled_transaction_is_retried_if_every_reason_is_transient(
    codes: list[str], passes: bool
) -> None:
    error: ServiceError = TransactionCanceled(reasons=[{"Code": code} for code in codes])
    assert is_transient(error) == passes
