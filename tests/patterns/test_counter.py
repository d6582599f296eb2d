"""Counters are exact while others add, compact and read."""

from __future__ import annotations

import asyncio
import threading

import pytest

from stator import connect
from stator.errors import ConfigurationError
from stator.patterns.counter import Counter
from tests.patterns.crashing import Form, every_crash
from tests.tables.shop import shop
from tests.targets import Target


def test_the_value_is_the_sum_of_the_additions(target: Target) -> None:
    counter = Counter(target.connect(shop()), "views", shards=4)
    assert counter.value() == 0
    for amount in (1, 2, 30, -3):
        counter.add(amount)
    assert counter.value() == 30
    assert counter.compact() == 30
    assert counter.compact() == 0
    counter.add()
    assert counter.value() == 31
    counter.reset()
    assert counter.value() == 0


def test_counters_of_different_names_are_independent(target: Target) -> None:
    db = target.connect(shop("table-per-entity"))
    one, other = Counter(db, "one"), Counter(db, "other")
    one.add(5)
    assert (one.value(), other.value()) == (5, 0)


def test_the_number_of_shards_can_be_raised_and_lowered(target: Target) -> None:
    db = target.connect(shop())
    wide = Counter(db, "views", shards=8)
    for _ in range(40):
        wide.add()
    wide.compact()
    for _ in range(20):
        wide.add()
    narrow = Counter(db, "views", shards=2)
    narrow.add()
    assert narrow.value() == wide.value() == 61


def test_threads_add_while_others_compact_and_read(target: Target) -> None:
    counter = Counter(target.connect(shop()), "views", shards=3)
    seen: list[int] = []

    def add() -> None:
        for _ in range(25):
            counter.add()

    def look() -> None:
        for _ in range(10):
            counter.compact()
            seen.append(counter.value())

    threads = [threading.Thread(target=add) for _ in range(3)] + [
        threading.Thread(target=look) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.value() == 75
    assert all(0 <= value <= 75 for value in seen)


def test_asyncio_tasks_add_exactly(target: Target) -> None:
    async def main() -> None:
        async with target.connect_async(shop()) as db:
            counter = Counter(db, "views", exact=False)
            await asyncio.gather(*(counter.add(2) for _ in range(30)))
            assert await counter.value() == 60

    asyncio.run(main())


def test_explain_shows_the_cost() -> None:
    from stator import connect

    counter = Counter(connect(shop()), "views", shards=10)
    text = str(counter.explain())
    assert "COUNTER#views#0..9" in text and "add: TransactWriteItems of 1; 2 write units" in text
    with pytest.raises(ConfigurationError):
        Counter(connect(shop()), "views", shards=0)


def test_a_compaction_that_dies_at_any_call_loses_nothing(form: Form) -> None:
    db = connect(shop())
    counter = Counter(db, "views", shards=3)

    def more() -> None:
        for _ in range(9):
            counter.add(1)

    more()
    for number, _ in enumerate(
        every_crash(db, lambda dying: Counter(dying, "views", shards=3).compact(), form=form), 1
    ):
        assert counter.value() == 9 * number
        more()
    assert counter.value() % 9 == 0 and counter.value() > 18
