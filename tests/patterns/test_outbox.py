"""A message exists exactly when its item does, and is delivered at least once, in key order."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter as Tally
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator import connect
from stator.clock import VirtualClock
from stator.errors import ConfigurationError, RequestRefused, TransactionFailed
from stator.patterns import Outbox
from stator.patterns.lock import Lock
from stator.patterns.outbox.items import OutboxMessage
from stator.tables.db import Db
from stator.tables.writes.transactions import Transaction
from stator.testing import Killed
from tests.patterns.crashing import (
    Form,
    crashing,
    every_crash,
    every_item,
    finished,
    in_threads,
    transacted,
)
from tests.tables.shop import Order, User, order, shop, user
from tests.targets import Target


class Receiver:
    """Keeps what it gets; fails on messages whose number is in ``bad``."""

    def __init__(self, *bad: int) -> None:
        self.got: list[OutboxMessage] = []
        self.bad = list(bad)
        self._lock = threading.Lock()

    def __call__(self, message: OutboxMessage) -> None:
        if message.body in self.bad:
            raise ValueError(f"not {message.body}")
        with self._lock:
            self.got.append(message)

    @property
    def bodies(self) -> list[Any]:
        return [message.body for message in self.got]

    def of(self, key: str) -> list[Any]:
        return [message.body for message in self.got if message.key == key]


def write(db: Db, outbox: Outbox[Db], *numbers: int, key: str | None = "k") -> None:
    with db.transaction() as tx:
        for number in numbers:
            outbox.add(tx, topic="numbers", body=number, key=key)


def present() -> VirtualClock:
    return VirtualClock(float(int(time.time())))


def test_a_message_is_written_with_its_item_or_not_at_all(target: Target) -> None:
    db = target.connect(shop())
    outbox = Outbox(db, "orders")
    with db.transaction() as tx:
        tx.create(order(1))
        id = outbox.add(
            tx, topic="order-placed", body={"order": "o001", "n": [1, None]}, key="o001"
        )
    with pytest.raises(TransactionFailed), db.transaction() as tx:
        tx.create(order(1))
        outbox.add(tx, topic="order-placed", body={}, key="o001")
    with pytest.raises(KeyError), db.transaction() as tx:
        outbox.add(tx, topic="order-placed", body={}, key="o001")
        raise KeyError
    assert outbox.count() == 1
    receiver = Receiver()
    result = outbox.relay(receiver)
    assert (result.sent, result.failed, result.parked, result.busy) == (1, 0, 0, 0)
    [message] = receiver.got
    assert (message.id, message.topic, message.key, message.attempts) == (
        id,
        "order-placed",
        "o001",
        0,
    )
    assert message.body == {"order": "o001", "n": [1, None]}
    assert db.get(Order, order_id="o001") is not None
    assert outbox.relay(receiver).sent == 0 and outbox.count() == 0


def test_messages_of_a_key_come_in_the_order_of_their_transactions(target: Target) -> None:
    db = target.connect(shop("table-per-entity"))
    outbox = Outbox(db, "numbers", shards=3)
    for number in range(0, 12, 2):
        write(db, outbox, number, number + 1, key=f"k{number % 4}")
    write(db, outbox, 100, 101, key=None)
    receiver = Receiver()
    assert outbox.relay(receiver, limit=5).sent == 5
    assert outbox.relay(receiver).sent == 9
    assert receiver.of("k0") == [0, 1, 4, 5, 8, 9] and receiver.of("k2") == [2, 3, 6, 7, 10, 11]
    assert sorted(receiver.bodies) == [*range(12), 100, 101]


def test_order_does_not_depend_on_clocks() -> None:
    ahead, behind = VirtualClock(2_000_000_000.0), VirtualClock(1_900_000_000.0)
    one = connect(shop(), clock=ahead)
    with connect(shop(), clock=behind) as other:
        other.runner.transport = one.runner.transport
        for number in range(6):
            db = one if number % 2 == 0 else other
            write(db, Outbox(db, "numbers"), number)
        receiver = Receiver()
        Outbox(one, "numbers").relay(receiver)
        assert receiver.bodies == list(range(6))
        assert len({message.added for message in receiver.got}) == 6


def test_a_failure_is_tried_again_later_and_holds_its_key_back(target: Target) -> None:
    clock = present()
    db = target.connect(shop(), clock=clock)
    outbox = Outbox(db, "numbers", shards=1, retry_seconds=10)
    write(db, outbox, 1, 2, key="a")
    write(db, outbox, 3, key="b")
    write(db, outbox, 4, key=None)
    receiver = Receiver(1)
    result = outbox.relay(receiver)
    assert (result.sent, result.failed) == (2, 1) and sorted(receiver.bodies) == [3, 4]
    result = outbox.relay(receiver)
    assert result.attempted == 0  # it is not due, and what comes after it waits for it
    clock.advance(10)
    assert outbox.relay(receiver).failed == 1
    clock.advance(9)
    assert (
        outbox.relay(receiver).attempted == 0
    )  # the second pause is longer: ten to twenty seconds
    clock.advance(11)
    receiver.bad.clear()
    assert outbox.relay(receiver).sent == 2
    assert receiver.of("a") == [1, 2]
    assert receiver.got[-2].attempts == 2 and receiver.got[-2].error == "ValueError: not 1"


def test_poison_is_parked_and_the_key_goes_on(target: Target) -> None:
    clock = present()
    db = target.connect(shop(), clock=clock)
    outbox = Outbox(db, "numbers", max_attempts=3, retry_seconds=1)
    write(db, outbox, 1, 2, 3)
    receiver = Receiver(2)
    totals = Tally[str]()
    for _ in range(6):
        result = outbox.relay(receiver)
        totals.update(sent=result.sent, failed=result.failed, parked=result.parked)
        clock.advance(5)
    assert receiver.bodies == [1, 3]
    assert totals == {"sent": 2, "failed": 2, "parked": 1}
    [parked] = outbox.parked()
    assert (parked.body, parked.attempts, parked.error) == (2, 3, "ValueError: not 2")
    receiver.bad.clear()
    assert outbox.retry(parked) and not outbox.retry(parked)
    outbox.relay(receiver)
    assert receiver.bodies == [1, 3, 2] and list(outbox.parked()) == []
    receiver.bad.append(4)
    write(db, outbox, 4)
    for _ in range(3):
        outbox.relay(receiver)
        clock.advance(5)
    [parked] = outbox.parked()
    assert outbox.discard(parked) and not outbox.discard(parked)
    assert outbox.count() == 0


def test_what_is_sent_is_kept_for_a_while_and_expires(target: Target) -> None:
    db = target.connect(shop())
    write(db, Outbox(db, "kept", keep_seconds=3600), 1)
    write(db, Outbox(db, "not-kept", keep_seconds=0), 2)
    for name in ("kept", "not-kept"):
        Outbox(db, name, keep_seconds=3600 if name == "kept" else 0).relay(Receiver())
    sent = [item for item in every_item(db) if item["PK"]["S"].endswith("#SENT")]
    [item] = sent
    left = int(item[db.context.schema.place.ttl]["N"]) - time.time()
    assert 3500 < left <= 3600 and item["_body"] == {"S": "1"}


def test_relays_side_by_side_deliver_each_message_once(target: Target) -> None:
    db = target.connect(shop())
    writer = Outbox(db, "numbers", shards=4)
    for number in range(0, 40, 4):
        write(db, writer, *range(number, number + 4), key=f"k{number % 3}")
    receiver = Receiver()

    def relay() -> None:
        outbox = Outbox(target.connect(shop()), "numbers", shards=4)
        for _ in range(6):
            outbox.relay(receiver, limit=9)

    assert in_threads(*[relay] * 4) == []
    while writer.count():
        writer.relay(receiver)
    assert sorted(receiver.bodies) == list(range(40))
    for key in ("k0", "k1", "k2"):
        assert receiver.of(key) == sorted(receiver.of(key))


def test_one_object_used_by_several_threads(target: Target) -> None:
    db = target.connect(shop())
    outbox = Outbox(db, "numbers", shards=2)
    write(db, outbox, *range(30))
    receiver = Receiver()
    assert in_threads(*[lambda: outbox.relay(receiver)] * 4) == []
    outbox.relay(receiver)
    assert receiver.bodies == list(range(30))


def test_writers_of_one_key_at_once_and_a_relay_meanwhile(target: Target) -> None:
    """What each writer wrote comes in its order, and everything comes once."""
    db = target.connect(shop())
    receiver = Receiver()
    done = threading.Event()

    def writer(start: int) -> None:
        outbox = Outbox(db, "numbers", shards=2)
        for number in range(start, start + 8):
            write(db, outbox, number, key="k")

    def relay() -> None:
        while not done.is_set():
            Outbox(db, "numbers", shards=2).relay(receiver)

    relaying = threading.Thread(target=relay)
    relaying.start()
    raised = in_threads(*(partial(writer, start) for start in (0, 100, 200)))
    done.set()
    relaying.join()
    assert raised == []
    Outbox(db, "numbers", shards=2).relay(receiver)
    assert sorted(receiver.bodies) == [*range(8), *range(100, 108), *range(200, 208)]
    positions = [message.position for message in receiver.got]
    assert positions == sorted(positions)
    for start in (0, 100, 200):
        assert [body for body in receiver.bodies if start <= body < start + 100] == list(
            range(start, start + 8)
        )


def test_a_relay_that_dies_at_any_call_loses_nothing(target: Target, form: Form) -> None:
    clock = present()
    db = target.connect(shop(), clock=clock)
    outbox = Outbox(db, "numbers", shards=1)
    write(db, outbox, 1, 2)
    receiver = Receiver()

    def dies(dying: Any) -> Any:
        return Outbox(dying, "numbers", shards=1).relay(receiver)

    for _ in every_crash(db, dies, form=form):
        clock.advance(40)  # its lease ends
        outbox.relay(receiver)
        firsts = list(dict.fromkeys(receiver.bodies))
        assert firsts == [
            1,
            2,
        ]  # each once at least, in order; repetitions are of the message that was under way
        assert len(receiver.got) <= 3
        assert outbox.count() == 0
        receiver.got.clear()
        write(db, outbox, 1, 2)


def test_a_writer_that_dies_at_any_call_leaves_both_or_none(target: Target, form: Form) -> None:
    db = target.connect(shop())
    outbox = Outbox(db, "orders", shards=1)

    def dies(dying: Any) -> Any:
        def fill(tx: Transaction) -> None:
            tx.create(user(1))
            Outbox(dying, "orders", shards=1).add(tx, topic="new", body=1, key="u1")

        return transacted(dying, fill)

    for _ in every_crash(db, dies, form=form):
        receiver = Receiver()
        outbox.relay(receiver)
        is_there = db.get(User, user_id="u1", consistent=True) is not None
        assert receiver.bodies == ([1] if is_there else [])
        db.delete(User, user_id="u1")


def test_a_slow_relay_loses_its_shard_and_stops(target: Target) -> None:
    clock = present()
    db = target.connect(shop(), clock=clock)
    outbox = Outbox(db, "numbers", shards=1, lease_seconds=10)
    write(db, outbox, 1, 2, 3)
    second = Receiver()
    first: list[int] = []

    def slow(message: OutboxMessage) -> None:
        first.append(message.body)
        clock.advance(60)
        Outbox(db, "numbers", shards=1).relay(second)

    result = outbox.relay(slow)
    assert (first, result.sent) == (
        [1],
        1,
    )  # it finds the lease gone, and leaves the rest to the other
    assert second.bodies == [1, 2, 3]
    assert outbox.count() == 0


def test_a_long_delivery_renews_the_lease(target: Target) -> None:
    clock = present()
    db = target.connect(shop(), clock=clock)
    outbox = Outbox(db, "numbers", shards=1, lease_seconds=10)
    write(db, outbox, *range(10))
    receiver = Receiver()

    def slow(message: OutboxMessage) -> None:
        clock.advance(4)
        assert Outbox(db, "numbers", shards=1).relay(Receiver()).busy == 1
        receiver(message)

    assert outbox.relay(slow).sent == 10
    assert receiver.bodies == list(range(10))
    assert Lock(db, "outbox/numbers/0").holder() is None


def test_the_number_of_shards_can_change(target: Target) -> None:
    db = target.connect(shop())
    wide, narrow = Outbox(db, "numbers", shards=16), Outbox(db, "numbers", shards=2)
    keys = [f"k{number}" for number in range(10)]
    for number, key in enumerate(keys):
        write(db, wide, number, key=key)
    for number, key in enumerate(keys):
        write(db, narrow, 100 + number, key=key)
        write(db, narrow, 200, key=None)
    receiver = Receiver()
    assert narrow.relay(receiver).sent == 30
    for number, key in enumerate(keys):
        assert receiver.of(key) == [number, 100 + number]


def test_a_message_that_a_query_has_not_seen_yet_is_waited_for() -> None:
    """A Query is not isolated from transactions: it may see only the second message of one."""
    db = connect(shop())
    outbox = Outbox(db, "numbers", shards=1)
    write(db, outbox, 1)
    write(db, outbox, 2)
    transport = db.runner.transport
    call = transport.call

    def blind(operation: str, *args: Any, **more: Any) -> Any:
        reply = call(operation, *args, **more)
        if operation == "Query":
            reply["Items"] = [item for item in reply["Items"] if item["_body"] != {"S": "1"}]
        return reply

    receiver = Receiver()
    transport.call = blind  # type: ignore[method-assign]  # replaced for the test
    assert outbox.relay(receiver).attempted == 0
    transport.call = call  # type: ignore[method-assign]  # put back
    outbox.relay(receiver)
    assert receiver.bodies == [1, 2]


def test_sending_asynchronously(target: Target) -> None:
    async def main() -> None:
        got: list[int] = []

        async def send(message: OutboxMessage) -> None:
            await asyncio.sleep(0)
            if message.body == 3 and message.attempts == 0:
                raise ValueError("not yet")
            got.append(message.body)

        async with target.connect_async(shop()) as db:
            outbox = Outbox(db, "numbers", shards=2, retry_seconds=0.001)
            async with db.transaction() as tx:
                for number in range(6):
                    outbox.add(tx, topic="numbers", body=number, key="k")
            await asyncio.gather(*(outbox.relay(send) for _ in range(3)))
            while await outbox.count():
                await outbox.relay(send)
            assert got == list(range(6))
            async with db.transaction() as tx:
                outbox.add(tx, topic="numbers", body=7)
            assert (await outbox.relay(lambda message: got.append(message.body))).sent == 1
            assert [message async for message in outbox.parked()] == []

    asyncio.run(main())


def test_a_relay_that_is_cancelled_anywhere(target: Target) -> None:
    async def main() -> None:
        got: list[int] = []

        async def send(message: OutboxMessage) -> None:
            await asyncio.sleep(0.001)
            got.append(message.body)

        async with target.connect_async(shop()) as db:
            outbox = Outbox(db, "numbers", shards=1, lease_seconds=0.2)
            for turn in range(8):
                got.clear()
                async with db.transaction() as tx:
                    for number in range(5):
                        outbox.add(tx, topic="numbers", body=number, key="k")
                task = asyncio.ensure_future(outbox.relay(send))
                await asyncio.sleep(turn * 0.003)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                while await outbox.count():
                    await outbox.relay(send)
                    await asyncio.sleep(0.05)
                assert list(dict.fromkeys(got)) == list(range(5))
                assert len(got) <= 6

    asyncio.run(main())


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from("ab"), st.integers(1, 3)),
        st.tuples(st.just("relay"), st.integers(1, 4), st.integers(0, 6)),
    ),
    max_size=20,
)


@settings(max_examples=50)
@given(STEPS, st.integers(0, 1000), st.sampled_from(["sync", "async"]))
def test_it_does_what_a_queue_for_each_key_does(
    steps: list[tuple[Any, ...]], seed: int, form: Form
) -> None:
    """Some relays die after some calls: what is received first is what was written, in order."""
    clock, numbers = VirtualClock(), iter(range(1000))
    with connect(shop(), clock=clock, random=random.Random(seed)) as db:
        written: dict[str, list[int]] = {"a": [], "b": []}
        receiver = Receiver()
        for what, *more in steps:
            if what == "write":
                key, count = more
                batch = [next(numbers) for _ in range(count)]
                write(db, Outbox(db, "numbers", shards=2), *batch, key=key)
                written[key] += batch
            else:
                limit, calls = more
                try:
                    dying = crashing(db, calls, reply_lost=bool(calls % 2), form=form)
                    finished(Outbox(dying, "numbers", shards=2).relay(receiver, limit=limit))
                except Killed:
                    clock.advance(40)
        Outbox(db, "numbers", shards=2).relay(receiver)
        for key, wanted in written.items():
            assert list(dict.fromkeys(receiver.of(key))) == wanted


def test_what_does_not_make_sense_is_refused() -> None:
    db = connect(shop())
    with pytest.raises(ConfigurationError):
        Outbox(db, "x", shards=0)
    with pytest.raises(ConfigurationError):
        Outbox(db, "x", max_attempts=0)
    outbox = Outbox(db, "x")
    with pytest.raises(RequestRefused):
        outbox.relay(print, limit=0)
    with pytest.raises(RequestRefused, match="JSON"), db.transaction() as tx:
        outbox.add(tx, topic="t", body={1, 2})
    with pytest.raises(RequestRefused, match="sent already"):
        outbox.add(_sent(db), topic="t", body=1)

    async def send(message: OutboxMessage) -> None: ...

    write(db, outbox, 1)
    with pytest.raises(RequestRefused, match="async function"):
        outbox.relay(send)
    assert outbox.count() == 1


def _sent(db: Db) -> Any:
    with db.transaction() as tx:
        tx.create(user(1))
    return tx


def test_it_says_what_it_costs() -> None:
    text = str(Outbox(connect(shop()), "orders", shards=4).explain())
    assert (
        "OUTBOX#orders#0..3" in text
        and "add: one more Put in the transaction; 2 write units" in text
    )
