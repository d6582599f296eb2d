"""What an event source mapping of AWS Lambda does with one batch, until it is handled or given up.

A batch that fails is sent again: as a whole, from the lowest sequence number that the function
reports (``ReportBatchItemFailures``), or in halves (``BisectBatchOnFunctionError``). A split does
not count as a retry. What is still failing after the last retry, or has become too old, is given
up, and goes to the destination for failures.

The function's answer is read as the developer guide says ("services-ddb-batchfailurereporting"): no
answer, or an empty list, is success; an identifier that is empty or not in the batch is a failure
of the whole batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Raw = Mapping[str, Any]
Condition = Literal["RetryAttemptsExhausted", "RecordAgeExceeded"]


@dataclass(frozen=True, slots=True)
class BatchRules:
    """The settings of a mapping that decide about failures, under AWS's names.

    -1 stands for no limit, as on AWS.
    """

    maximum_retry_attempts: int = -1
    maximum_record_age_seconds: int = -1
    bisects: bool = False
    reports_failures: bool = False


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Records that are not sent again, and why. ``invocations`` is how often they were sent."""

    records: Sequence[Raw]
    condition: Condition
    invocations: int


class BatchRun:
    """Sends a batch to a function until each record is handled or given up.

    ``invoke`` calls the function and returns its answer, or raises. ``pause`` waits before retry
    number ``n``.
    """

    def __init__(
        self,
        rules: BatchRules,
        invoke: Callable[[Sequence[Raw]], Any],
        now: Callable[[], float],
        pause: Callable[[int], None],
        given_up: Callable[[GivenUp], None],
    ) -> None:
        self._rules = rules
        self._invoke = invoke
        self._now = now
        self._pause = pause
        self._given_up = given_up

    def run(self, records: Sequence[Raw], retries: int = 0, invocations: int = 0) -> None:
        while records:
            records = self._without_old(records, invocations)
            if not records:
                return
            invocations += 1
            left = self._left(records)
            if not left:
                return
            is_partial = len(left) < len(records)
            if self._rules.bisects and len(left) > 1 and not is_partial:
                middle = len(left) // 2
                self.run(left[:middle], retries, invocations)
                records = left[middle:]
                continue
            if retries == self._rules.maximum_retry_attempts:
                self._given_up(GivenUp(left, "RetryAttemptsExhausted", invocations))
                return
            self._pause(retries)
            retries += 1
            records = left

    def _without_old(self, records: Sequence[Raw], invocations: int) -> Sequence[Raw]:
        longest = self._rules.maximum_record_age_seconds
        if longest < 0:
            return records
        limit = self._now() - longest
        old = [each for each in records if _made(each) < limit]
        if old:
            self._given_up(GivenUp(old, "RecordAgeExceeded", invocations))
        return [each for each in records if _made(each) >= limit]

    def _left(self, records: Sequence[Raw]) -> Sequence[Raw]:
        """Invoke the function. Return the records that it has not handled."""
        try:
            answer = self._invoke(records)
        except Exception:  # user code: whatever it raises, the invocation failed
            return records
        return left_of(records, answer) if self._rules.reports_failures else ()


def left_of(records: Sequence[Raw], answer: Any) -> Sequence[Raw]:
    """Return the records from the lowest reported failure on, by the answer of a function."""
    failures = answer.get("batchItemFailures") if isinstance(answer, Mapping) else None
    if not failures:
        return ()
    numbers = [number_of(each) for each in records]
    found: list[int] = []
    for failure in failures if isinstance(failures, list) else [failures]:
        told = failure.get("itemIdentifier") if isinstance(failure, Mapping) else None
        if told not in numbers:
            return records
        found.append(numbers.index(told))
    return records[min(found) :]


def number_of(record: Raw) -> str:
    return str(record["dynamodb"]["SequenceNumber"])


def _made(record: Raw) -> float:
    return float(record["dynamodb"]["ApproximateCreationDateTime"])
