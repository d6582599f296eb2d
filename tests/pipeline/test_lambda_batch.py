"""One batch of an event source mapping: retries, halves, partial failures, age."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from stator.pipeline.workers.lambda_batch import BatchRules, BatchRun, GivenUp, number_of


def records(count: int, at: float = 100.0) -> list[dict[str, Any]]:
    return [
        {"dynamodb": {"SequenceNumber": str(100 + n), "ApproximateCreationDateTime": at + n}}
        for n in range(count)
    ]


class Sent:
    def __init__(self, rules: BatchRules, function: Callable[[list[str]], Any]) -> None:
        self.batches: list[str] = []
        self.given_up: list[GivenUp] = []
        self.now = 100.0
        self._function = function
        self._run = BatchRun(
            rules, self._invoke, lambda: self.now, self._pause, self.given_up.append
        )

    def run(self, batch: list[dict[str, Any]]) -> Sent:
        self._run.run(batch)
        return self

    def _invoke(self, batch: Sequence[Any]) -> Any:
        numbers = [number_of(each)[-1] for each in batch]
        self.batches.append("".join(numbers))
        return self._function(numbers)

    def _pause(self, retry: int) -> None:
        self.now += 10.0

    @property
    def lost(self) -> str:
        return "".join(number_of(each)[-1] for given in self.given_up for each in given.records)


def poison(number: str) -> Callable[[list[str]], Any]:
    def function(numbers: list[str]) -> None:
        if number in numbers:
            raise ValueError("cannot")

    return function


def reporting(number: str) -> Callable[[list[str]], Any]:
    def function(numbers: list[str]) -> Any:
        failed = [{"itemIdentifier": f"10{number}"}] if number in numbers else []
        return {"batchItemFailures": failed}

    return function


def test_a_batch_that_fails_comes_again_as_a_whole_and_is_given_up() -> None:
    sent = Sent(BatchRules(maximum_retry_attempts=2), poison("1")).run(records(3))
    assert sent.batches == ["012", "012", "012"]
    assert (sent.lost, sent.given_up[0].condition) == ("012", "RetryAttemptsExhausted")
    assert sent.given_up[0].invocations == 3


def test_a_split_isolates_the_record_and_does_not_count_as_a_retry() -> None:
    sent = Sent(BatchRules(maximum_retry_attempts=1, bisects=True), poison("2")).run(records(4))
    assert sent.batches == ["0123", "01", "23", "2", "2", "3"]
    assert sent.lost == "2"


def test_a_reported_failure_comes_again_with_what_follows() -> None:
    rules = BatchRules(maximum_retry_attempts=1, reports_failures=True)
    sent = Sent(rules, reporting("2")).run(records(4))
    assert sent.batches == ["0123", "23"]
    assert sent.lost == "23"


def test_an_answer_counts_only_if_the_mapping_asks_for_it() -> None:
    assert Sent(BatchRules(), reporting("2")).run(records(4)).batches == ["0123"]


@pytest.mark.parametrize("answer", [None, {}, {"batchItemFailures": []}, "x", 5])
def test_answers_that_mean_success(answer: Any) -> None:
    rules = BatchRules(maximum_retry_attempts=0, reports_failures=True)
    assert not Sent(rules, lambda numbers: answer).run(records(2)).lost


@pytest.mark.parametrize("identifier", ["", None, "999"])
def test_an_identifier_that_is_not_in_the_batch_fails_all_of_it(identifier: Any) -> None:
    rules = BatchRules(maximum_retry_attempts=0, reports_failures=True)
    answer = {"batchItemFailures": [{"itemIdentifier": identifier}]}
    assert Sent(rules, lambda numbers: answer).run(records(2)).lost == "01"


def test_records_that_become_too_old_are_given_up_and_younger_ones_are_not() -> None:
    rules = BatchRules(maximum_record_age_seconds=9, maximum_retry_attempts=1)
    sent = Sent(rules, poison("1")).run(records(3))
    assert sent.batches == ["012", "12"]
    assert [given.condition for given in sent.given_up] == [
        "RecordAgeExceeded",
        "RetryAttemptsExhausted",
    ]
