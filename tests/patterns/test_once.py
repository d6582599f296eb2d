from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

import pytest

from stator import connect, connect_async
from stator.clock import VirtualClock
from stator.errors import (
    AlreadyRunning,
    ConfigurationError,
    PayloadDiffers,
    RequestRefused,
    ResultNotStored,
    TookTooLong,
    Unreachable,
    Unstorable,
)
from stator.patterns.once import Once
from stator.tables.async_runner import AsyncRunner
from stator.tables.db import AsyncDb, Db
from stator.tables.runner import Runner
from stator.testing import Fault, FaultyTransport, InterceptedCall, faulty
from tests.coordination.test_outcome import KNOWN, UNKNOWN
from tests.patterns.crashing import Awaited, Form, every_crash
from tests.patterns.test_typed_json import VALUES, Colour, Money, Order, same
from tests.tables.shop import shop
from tests.targets import Target


def test_it_is_carried_out_once_and_answered_the_same(target: Target) -> None:
    once = Once(target.connect(shop()), "payments")
    done: list[int] = []

    def pay() -> dict[str, int]:
        done.append(1)
        return {"receipt": len(done)}

    for _ in range(3):
        assert once.run("order-1", pay, {"amount": 5}) == {"receipt": 1}
    assert once.run("order-2", pay) == {"receipt": 2}
    with pytest.raises(PayloadDiffers):
        once.run("order-1", pay, {"amount": 6})
    assert len(done) == 2


def test_a_failure_can_be_tried_again(target: Target) -> None:
    once = Once(target.connect(shop()), "payments")
    with pytest.raises(ZeroDivisionError):
        once.run("k", lambda: 1 // 0)
    assert once.run("k", lambda: 7) == 7


def test_a_result_outlives_a_failure_that_is_reported_afterwards(target: Target) -> None:
    """As after a ``finish`` whose answer was lost: the work is done, and is not repeated."""
    once = Once(target.connect(shop()), "payments")
    for result in (1, None):
        attempt = once.begin(f"k{result}")
        once.finish(attempt, result)
        once.fail(attempt)
        assert once.run(f"k{result}", lambda: 2) == result


def test_threads_that_come_together_do_it_once(target: Target) -> None:
    db = target.connect(shop())
    done: list[int] = []
    answers: list[int] = []

    def work() -> int:
        done.append(1)
        return 42

    def ask() -> None:
        answers.append(Once(db, "jobs", wait_seconds=20).run("same", work))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(done), answers) == (1, [42] * 6)


def test_states_over_time() -> None:
    clock = VirtualClock()
    once = Once(connect(shop(), clock=clock), "jobs", running_seconds=10, remember_seconds=100)
    first = once.begin("k")
    with pytest.raises(AlreadyRunning) as caught:
        once.begin("k")
    assert caught.value.until == pytest.approx(clock.now() + 10)
    clock.advance(11)
    second = once.begin("k")  # the first is taken for dead
    with pytest.raises(TookTooLong):
        once.finish(first, 1)
    once.fail(first)  # it has no say any more
    once.finish(second, 2)
    assert once.begin("k").result == 2
    clock.advance(99)
    assert once.begin("k").result == 2
    clock.advance(5)
    assert not once.begin("k").is_done  # forgotten


def test_messages_within_a_window() -> None:
    clock = VirtualClock()
    once = Once(connect(shop(), clock=clock), "inbox", remember_seconds=60)
    assert [once.seen("m1"), once.seen("m1"), once.seen("m2"), once.seen("m1")] == [
        False,
        True,
        False,
        True,
    ]
    clock.advance(62)
    assert [once.seen("m1"), once.seen("m1")] == [False, True]


def test_a_decorated_function(target: Target) -> None:
    once = Once(target.connect(shop()), "mails")
    sent: list[str] = []

    @once.decorate(key=lambda address, text: address)
    def mail(address: str, text: str) -> int:
        sent.append(address)
        return len(sent)

    assert [mail("a", "x"), mail("b", "x"), mail("a", "x")] == [1, 2, 1]
    with pytest.raises(PayloadDiffers):
        mail("a", "another text")
    assert mail.__name__ == "mail"


def test_awaited(target: Target) -> None:
    async def main() -> None:
        async with target.connect_async(shop()) as db:
            once = Once(db, "jobs", wait_seconds=10)
            done: list[int] = []

            async def work() -> int:
                done.append(1)
                await asyncio.sleep(0.01)
                return 5

            assert await asyncio.gather(*(once.run("k", work) for _ in range(5))) == [5] * 5
            assert len(done) == 1
            assert [await once.seen("m"), await once.seen("m")] == [False, True]

    asyncio.run(main())


def test_as_a_block(target: Target) -> None:
    db = target.connect(shop())
    once = Once(db, "jobs")
    for _ in range(2):
        with once.attempt("k", {"n": 1}) as attempt:
            if not attempt.is_done:
                attempt.result = [1, 2]
        assert attempt.result == [1, 2]
    with pytest.raises(ZeroDivisionError), once.attempt("other") as attempt:
        raise ZeroDivisionError
    with once.attempt("other") as attempt:
        assert not attempt.is_done

    async def main() -> None:
        async with target.connect_async(shop()) as other:
            async with Once(other, "jobs").attempt("k", {"n": 1}) as attempt:
                assert attempt.is_done and attempt.result == [1, 2]
            async with Once(other, "jobs").attempt("third") as attempt:
                attempt.result = 3
            assert (await Once(other, "jobs").begin("third")).result == 3

    asyncio.run(main())


def test_a_result_that_cannot_be_kept_says_so() -> None:
    once = Once(connect(shop()), "jobs")
    done: list[int] = []

    def work() -> object:
        done.append(1)
        return object()

    with pytest.raises(Unstorable, match="cannot be stored"):
        once.run("k", work)
    with pytest.raises(Unstorable, match="was done before"):
        once.run("k", work)
    assert done == [1]  # not done again for want of a result


def test_a_process_that_dies_at_any_call_does_not_keep_others_from_it(form: Form) -> None:
    clock = VirtualClock()
    db = connect(shop(), clock=clock)
    done: list[str] = []
    number = 0

    def pay(dying: Any) -> Any:
        key = f"order-{number}"

        def work() -> int:
            done.append(key)
            return number

        return Once(dying, "payments", running_seconds=60).run(key, work)

    for _ in every_crash(db, pay, form=form):
        clock.advance(61)
        assert pay(db) == pay(db) == number
        assert done.count(f"order-{number}") in (1, 2), "twice only if its end was not written down"
        number += 1
    assert number >= 4
    assert done.count(f"order-{number}") == 1


def attempts(once: Any, form: Form, error: BaseException | None) -> list[Callable[[str], Any]]:
    """The three ways to run work that raises an error, or returns 7 without one."""

    def work(*_: Any) -> int:
        if error is not None:
            raise error
        return 7

    async def awaited(*_: Any) -> int:
        await asyncio.sleep(0)
        return work()

    def block(key: str) -> Any:
        with once.attempt(key) as attempt:
            attempt.result = work()
        return attempt.result

    async def async_block(key: str) -> Any:
        async with once.attempt(key) as attempt:
            attempt.result = await awaited()
        return attempt.result

    if form == "sync":
        return [
            lambda key: once.run(key, work),
            block,
            lambda key: once.decorate(lambda key: key)(work)(key),
        ]
    return [
        lambda key: once.run(key, awaited),
        async_block,
        lambda key: once.decorate(lambda key: key)(awaited)(key),
    ]


async def finished(result: Any) -> Any:
    return await result if asyncio.iscoroutine(result) else result


async def outcome(attempt: Callable[[str], Any], key: str) -> Any:
    """The result of an attempt or its error, also one that would end the loop."""
    try:
        return await finished(attempt(key))
    except BaseException as error:
        return error


async def two_attempts(error: BaseException, form: Form) -> list[tuple[Any, Any]]:
    """The outcomes of a second attempt, at once and after the first one's time has passed."""
    clock = VirtualClock()
    db: Any = connect(shop(), clock=clock)
    if form == "async":
        db = AsyncDb(db.context, AsyncRunner(Awaited(db.runner.transport), clock))
    once = Once(db, "payments", running_seconds=60)
    found = []
    failing, working = attempts(once, form, error), attempts(once, form, None)
    for number, (fails, works) in enumerate(zip(failing, working, strict=True)):
        assert await outcome(fails, f"k{number}") is error
        at_once = await outcome(works, f"k{number}")
        clock.advance(61)
        found.append((at_once, await outcome(works, f"k{number}")))
    return found


@pytest.mark.parametrize("error", UNKNOWN.values(), ids=UNKNOWN)
def test_work_whose_outcome_is_unknown_is_not_repeated_before_its_time(
    error: BaseException, form: Form
) -> None:
    for at_once, later in asyncio.run(two_attempts(error, form)):
        assert isinstance(at_once, AlreadyRunning)
        assert later == 7
    assert any("stays taken" in note for note in error.__notes__)


@pytest.mark.parametrize("error", KNOWN.values(), ids=KNOWN)
def test_work_that_was_not_done_is_repeated_at_once(error: BaseException, form: Form) -> None:
    assert asyncio.run(two_attempts(error, form)) == [(7, 7)] * 3


def test_a_cancelled_task_leaves_its_key_taken() -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with connect_async(shop(), clock=clock) as db:
            await db.ensure()
            once = Once(db, "jobs", running_seconds=60)
            started = asyncio.Event()

            async def work() -> int:
                started.set()
                await asyncio.Event().wait()
                return 1

            task = asyncio.ensure_future(once.run("k", work))
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(AlreadyRunning):
                await once.run("k", work)
            clock.advance(61)
            assert not (await once.begin("k")).is_done

    asyncio.run(main())


def test_further_errors_can_leave_the_outcome_unknown() -> None:
    class GatewayError(Exception):
        pass

    def pay() -> None:
        raise GatewayError

    once = Once(connect(shop()), "payments", unknown_errors=(GatewayError,))
    with pytest.raises(GatewayError):
        once.run("k", pay)
    with pytest.raises(AlreadyRunning):
        once.run("k", pay)


def test_the_error_of_the_work_is_raised_even_if_the_record_cannot_be_deleted() -> None:
    db = connect(shop())

    def down(call: InterceptedCall) -> Fault | None:
        is_delete = call.operation == "DeleteItem"
        return Fault("lost request", error=Unreachable("down")) if is_delete else None

    transport = FaultyTransport(db.runner.transport, down)
    once = Once(Db(db.context, Runner(transport, db.context.clock, threads=1)), "jobs")
    with pytest.raises(ZeroDivisionError) as caught:
        once.run("k", lambda: 1 // 0)
    assert any("was not deleted: down" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_every_caller_gets_the_same_value_of_the_same_type(value: Any) -> None:
    once = Once(connect(shop()), "jobs")
    first, second = (once.run("k", lambda: value) for _ in range(2))
    assert first is value and same(second, value)


def test_types_survive_every_target(target: Target) -> None:
    result = {
        "money": Money(Decimal("1.50")),
        "order": Order(order_id="o", total=Decimal(1), colour=Colour.BLUE),
        "at": datetime(2026, 3, 1, tzinfo=UTC),
        "rest": (date(2026, 3, 1), UUID(int=1), {1, 2}, b"x"),
    }
    first = Once(target.connect(shop()), "jobs").run("k", lambda: result)
    second = Once(target.connect(shop()), "jobs").run("k", lambda: None)
    assert same(first, result) and same(second, result)


def test_plain_results_stay_readable_for_older_programs() -> None:
    db = connect(shop())
    once = Once(db, "jobs")
    once.run("plain", lambda: {"a": [1]})
    once.run("typed", lambda: Decimal(1))

    def stored(key: str) -> Any:
        place = db.context.schema.place
        key_ = place.key(f"ONCE#jobs#{key}", "RECORD")
        return db.runner.transport.call("GetItem", {"TableName": place.table, "Key": key_})["Item"]

    assert stored("plain")["_format"] == {"N": "1"}
    assert stored("plain")["result"] == {"S": '{"a":[1]}'}
    assert stored("typed")["_format"] == {"N": "2"}


def test_a_result_that_cannot_be_kept_is_not_lost() -> None:
    clock = VirtualClock()
    once = Once(connect(shop(), clock=clock), "jobs", running_seconds=10)
    for key, result in {"odd": object(), "large": "x" * 500_000}.items():
        with pytest.raises(Unstorable) as caught:
            once.run(key, lambda result=result: result)  # type: ignore[misc]
        assert caught.value.result is result
        assert "xxx" not in str(caught.value)
        with pytest.raises(Unstorable, match="was done before"):
            once.run(key, lambda: 1)
    attempt = once.begin("late")
    clock.advance(11)
    once.begin("late")
    with pytest.raises(TookTooLong) as late:
        once.finish(attempt, 5)
    assert late.value.result == 5


def test_without_waiting_a_running_request_is_refused_at_once() -> None:
    clock = VirtualClock()
    once = Once(connect(shop(), clock=clock), "jobs", wait_seconds=0)
    once.begin("k")
    before = clock.now()
    with pytest.raises(AlreadyRunning):
        once.begin("k")
    assert clock.now() == before


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value


def test_any_payload_is_compared_or_refused() -> None:
    once = Once(connect(shop()), "jobs")
    pairs: list[tuple[Any, Any]] = [
        ({1: "a"}, {2: "a"}),
        ({(1, 2): "a"}, {(1, 3): "a"}),
        (2**70, 2**70 + 1),
        (Slotted(1), Slotted(2)),
        (Decimal(1), Decimal(2)),
        ({b"x"}, {b"y"}),
    ]
    for number, (one, other) in enumerate(pairs):
        once.run(f"k{number}", lambda: 1, one)
        assert once.run(f"k{number}", lambda: 2, one) == 1
        with pytest.raises(PayloadDiffers):
            once.run(f"k{number}", lambda: 3, other)
    looped: list[Any] = []
    looped.append(looped)
    for payload in (object(), "\ud800", looped):
        with pytest.raises(RequestRefused, match="payload"):
            once.run("k", lambda: 1, payload)


@pytest.mark.parametrize("key", [None, "", 5, b"x", UUID(int=1)])
def test_a_key_is_text(key: Any) -> None:
    once = Once(connect(shop()), "jobs")
    for call in (once.begin, once.seen, lambda key: once.run(key, lambda: 1)):
        with pytest.raises(
            (RequestRefused, ConfigurationError), match=r"(key|message_id) is |non-empty str"
        ):
            call(key)


@pytest.mark.parametrize("option", ["remember_seconds", "running_seconds", "wait_seconds"])
def test_times_are_positive(option: str) -> None:
    with pytest.raises(ConfigurationError, match=option):
        Once(connect(shop()), "jobs", **cast("Any", {option: -1}))


def _refuse_results(call: InterceptedCall) -> Fault | None:
    return Fault("throttled") if call.operation == "UpdateItem" else None


@pytest.mark.parametrize(
    "fault",
    [Fault("throttled"), Fault("lost answer"), Fault("server error", carried_out=True)],
)
def test_a_result_that_is_not_stored_is_in_the_error(fault: Fault) -> None:
    db = connect(shop(), clock=VirtualClock())
    once = Once(db, "jobs", running_seconds=60)
    done: list[int] = []
    with (
        faulty(db, lambda call: fault if call.operation == "UpdateItem" else None) as faults,
        pytest.raises(ResultNotStored) as seen,
    ):
        once.run("k", lambda: done.append(1) or "receipt")  # type: ignore[func-returns-value]
    assert (seen.value.result, seen.value.sent) == ("receipt", True)
    assert faults.calls > 3
    once.finish(seen.value.attempt, seen.value.result)
    assert once.run("k", lambda: "again") == "receipt"
    assert done == [1]


def test_a_result_is_stored_as_soon_as_it_can_be() -> None:
    db = connect(shop(), clock=VirtualClock())
    once = Once(db, "jobs", running_seconds=60)

    def four_times(call: InterceptedCall) -> Fault | None:
        return Fault("throttled") if call.operation == "UpdateItem" and call.number < 6 else None

    with faulty(db, four_times):
        assert once.run("k", lambda: 5) == 5
    assert once.run("k", lambda: 6) == 5


def test_a_block_and_an_awaited_run_say_the_same() -> None:
    db = connect(shop(), clock=VirtualClock())
    with (
        faulty(db, _refuse_results),
        pytest.raises(ResultNotStored) as seen,
        Once(db, "jobs").attempt("k") as attempt,
    ):
        attempt.result = 5
    assert seen.value.result == 5

    async def main() -> None:
        async with connect_async(shop(), clock=VirtualClock()) as awaited:

            async def work() -> int:
                return 5

            with faulty(awaited, _refuse_results), pytest.raises(ResultNotStored) as seen:
                await Once(awaited, "jobs").run("k", work)
            assert seen.value.result == 5

    asyncio.run(main())


def test_work_whose_part_is_not_stored_is_not_run_again_at_once() -> None:
    """An outer key must not be freed when the inner work is done."""
    db = connect(shop(), clock=VirtualClock())
    inner, outer = Once(db, "inner"), Once(db, "outer")
    with faulty(db, _refuse_results), pytest.raises(ResultNotStored):
        outer.run("k", lambda: inner.run("k", lambda: 1))
    with pytest.raises(AlreadyRunning):
        outer.run("k", lambda: 2)


def test_a_coroutine_is_refused_before_its_key_is_taken(target: Target) -> None:
    once = Once(target.connect(shop()), "pay")
    ran: list[str] = []

    async def pay() -> None:
        ran.append("paid")

    with pytest.raises(RequestRefused, match="pay: the work is a coroutine function"):
        once.decorate(key=lambda: "k")(pay)
    with pytest.raises(RequestRefused, match="a coroutine function, which a Db cannot await"):
        once.run("k", lambda: pay())  # type: ignore[unused-coroutine]
    assert not ran
    assert once.run("k", lambda: 5) == 5  # the key is free
