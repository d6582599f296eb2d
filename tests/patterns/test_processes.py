"""Several processes on one table, through a server: their combined result is exact."""

from __future__ import annotations

import multiprocessing
from typing import Any

import pytest

from stator import connect
from stator.errors import UniqueTaken
from stator.patterns.counter import Counter
from stator.patterns.lock import Lock
from stator.patterns.once import Once
from tests.tables.shop import Product, User, shop, user
from tests.targets import Servers

OPTIONS: Any = {
    "access_key_id": "processes",
    "secret_access_key": "x",
    "region": "us-east-1",
    "prefix": "processes-",
}


def work(address: str, number: int, answers: Any) -> None:
    """The work of one process: count, take the lock, claim names, run jobs."""
    with connect(shop(), address, **OPTIONS) as db:
        won, ran = [], 0
        once = Once(db, "jobs", wait_seconds=30)
        for step in range(8):
            Counter(db, "views", shards=2).add()
            with Lock(db, "stock").held(wait_seconds=60):
                found = db.get(Product, sku="s1", consistent=True)
                assert found is not None
                db.put(Product(sku="s1", stock=found.stock + 1))
            made = user(number * 100 + step)
            made.email = f"name{step}@example.com"
            try:
                db.create(made)
                won.append(step)
            except UniqueTaken:
                pass
            with once.attempt(f"job{step}") as attempt:
                if not attempt.is_done:
                    ran += 1
                    attempt.result = number
        answers.put((won, ran))


@pytest.mark.parametrize("kind", ["http", "dynamodb-local"])
def test_processes_share_a_counter_and_unique_values_exactly(kind: str, servers: Servers) -> None:
    address = servers.address(kind)
    with connect(shop(), address, **OPTIONS) as db:
        db.ensure()
        db.put(Product(sku="s1", stock=0))
        context = multiprocessing.get_context("spawn")
        answers = context.Queue()
        processes = [
            context.Process(target=work, args=(address, number, answers)) for number in range(3)
        ]
        for process in processes:
            process.start()
        results = [answers.get(timeout=100) for _ in processes]
        for process in processes:
            process.join()
        assert sorted(step for won, _ in results for step in won) == [*range(8)]
        assert sum(ran for _, ran in results) == 8
        assert Counter(db, "views", shards=2).value() == 24
        assert db.get(Product, sku="s1", consistent=True) == Product(sku="s1", stock=24)
        assert len(list(db.scan(User, allow=True))) == 8
