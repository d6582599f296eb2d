from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from stator import connect
from stator.clock import VirtualClock
from stator.errors import AlreadyRunning, PayloadDiffers, TookTooLong, Unstorable
from stator.patterns.once import Once
from tests.patterns.crashing import Form, every_crash
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
    with pytest.raises(Unstorable, match="ran before"):
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
