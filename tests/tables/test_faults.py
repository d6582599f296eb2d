"""Faults between client and service: throttles, lost or repeated requests, lost answers, errors.

Whatever happens on the way, totals are exact and nothing that was acknowledged is missing.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Protocol

import pytest

from stator import connect, connect_async
from stator.engine import Engine
from stator.errors import ConditionFailed, ConnectionTrouble, TransactionFailed
from stator.model.scope import DEFAULT_ACCOUNT, Scope
from stator.model.service import target_of
from stator.patterns.counter import Counter
from stator.patterns.once import Once
from stator.tables.connection import ConnectOptions
from tests.client.scripted import Closed, Connection, scripted
from tests.dynamodb_local import dynamodb_local
from tests.ports import free_port

from .shop import Product, User, order, shop, user

OPTIONS: ConnectOptions = {
    "access_key_id": "a", "secret_access_key": "b", "region": "us-east-1", "max_attempts": 30,
    "max_backoff_seconds": 0.02, "read_timeout_seconds": 2.0, "proxy": None,
}  # fmt: skip


class Service(Protocol):
    """What stands behind the bad network: it carries out a request and returns its reply."""

    def __call__(self, operation: str, body: bytes) -> tuple[int, bytes]: ...


class Faulty:
    """A service behind a bad network."""

    def __init__(self, service: Service, seed: int, rate: float = 0.3) -> None:
        self._service = service
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self.rate = rate
        self.faults = 0

    def __call__(self, to: Connection) -> None:
        operation = to.head.partition("X-Amz-Target: ")[2].partition("\r\n")[0].rpartition(".")[2]
        with self._lock:
            roll, kind = self._random.random(), self._random.randrange(6)
        if roll >= self.rate or operation in (
            "CreateTable",
            "DescribeTable",
            "UpdateTimeToLive",
            "DescribeTimeToLive",
        ):
            return self._answer(to, operation)
        self.faults += 1
        if kind == 0:  # the request never arrives
            raise Closed
        if kind == 1:  # the answer never arrives
            self._service(operation, to.body)
            raise Closed
        if kind == 2:  # throttled
            return self._refuse(to, 400, "ProvisionedThroughputExceededException")
        if kind == 3:  # a fault before the work
            return self._refuse(to, 500, "InternalServerError")
        if kind == 4:  # a fault after it
            self._service(operation, to.body)
            return self._refuse(to, 500, "InternalServerError")
        time.sleep(0.005)  # late
        return self._answer(to, operation)

    def _answer(self, to: Connection, operation: str) -> None:
        status, body = self._service(operation, to.body)
        to.send(status, body, f"x-amz-crc32: {zlib.crc32(body)}")

    def _refuse(self, to: Connection, status: int, code: str) -> None:
        to.send(status, json.dumps({"__type": f"x#{code}", "message": "fault"}).encode())


SCOPE = Scope(DEFAULT_ACCOUNT, "us-east-1")


@contextmanager
def stator_engine() -> Iterator[Service]:
    with Engine.open() as engine:

        def answer(operation: str, body: bytes) -> tuple[int, bytes]:
            reply = engine.submit(operation, body, SCOPE)
            return reply.status, reply.body

        yield answer


@contextmanager
def amazons_engine(address: str) -> Iterator[Service]:
    """The server, without tables, until the end of a test."""

    def answer(operation: str, body: bytes) -> tuple[int, bytes]:
        headers = {
            "X-Amz-Target": target_of(operation),
            "Content-Type": "application/x-amz-json-1.0",
            "Authorization": "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/"
            "aws4_request, SignedHeaders=host, Signature=0",
        }
        request = urllib.request.Request(address, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    yield answer
    for name in json.loads(answer("ListTables", b"{}")[1])["TableNames"]:
        status, _ = answer("DeleteTable", json.dumps({"TableName": name}).encode())
        assert status == 200


@pytest.fixture(scope="module")
def amazons_address() -> Iterator[str]:
    with dynamodb_local() as address:
        yield address


@pytest.fixture(params=["stator", "dynamodb-local"])
def service(request: pytest.FixtureRequest) -> Iterator[Service]:
    is_local = request.param == "dynamodb-local"
    with (
        amazons_engine(request.getfixturevalue("amazons_address")) if is_local else stator_engine()
    ) as opened:
        yield opened


@contextmanager
def faulty(service: Service, seed: int, rate: float = 0.3) -> Iterator[tuple[str, Faulty]]:
    network = Faulty(service, seed, rate)
    with scripted(network) as server:
        yield server.url, network


@pytest.mark.parametrize("seed", range(3))
def test_totals_stay_exact(service: Service, seed: int) -> None:
    with faulty(service, seed) as (url, network):
        db = connect(shop(), url, **OPTIONS)
        db.ensure()
        db.put(Product(sku="s1", stock=0))
        counter = Counter(db, "views", shards=3)
        done: list[int] = []
        runs: list[int] = []

        def work(number: int) -> None:
            once = Once(db, "jobs", wait_seconds=30, running_seconds=60)
            for step in range(12):
                with db.update(Product, sku="s1", once=True) as p:
                    p.stock += 1
                counter.add(2)
                once.run(f"job-{step}", lambda: runs.append(1))
                done.append(1)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(done) == 36
        network.rate = 0
        assert network.faults > 10
        found = db.get(Product, sku="s1", consistent=True)
        assert found is not None and found.stock == 36
        assert counter.value() == 72
        assert len(runs) == 12
        db.close()


@pytest.mark.parametrize("seed", range(3))
def test_unique_and_conditional_writes(service: Service, seed: int) -> None:
    """Three threads want each of forty names: exactly one gets it, whatever is lost on the way."""
    with faulty(service, seed, rate=0.25) as (url, network):
        db = connect(shop(), url, **OPTIONS)
        db.ensure()
        won: list[tuple[int, int]] = []

        def work(number: int) -> None:
            for name in range(15):
                made = User(
                    user_id=f"{number}-{name}", email=f"{name}@example.com", name=str(number)
                )
                try:
                    db.create(made)
                except ConditionFailed:
                    continue
                won.append((number, name))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        network.rate = 0
        assert sorted(name for _, name in won) == [*range(15)]
        assert {each.user_id for each in db.scan(User, allow=True)} == {
            f"{n}-{name}" for n, name in won
        }
        db.close()


def test_batches_lose_nothing(service: Service) -> None:
    with faulty(service, 5) as (url, network):
        db = connect(shop(), url, **OPTIONS)
        db.ensure()
        result = db.write_many((order(n) for n in range(600)), on_error="collect")
        network.rate = 0
        written = {each.order_id for each in db.scan(type(order(1)), allow=True)}
        failed = {failure.change.order_id for failure in result.failures}
        assert result.written + len(failed) == 600
        assert {f"o{n:03d}" for n in range(600)} - failed <= written
        db.close()


def test_money_through_a_bad_network(service: Service) -> None:
    async def main(url: str, network: Faulty) -> None:
        db = connect_async(shop(), url, **OPTIONS)
        for n in range(4):
            await db.put(Product(sku=f"a{n}", price=Decimal(100)))

        async def move(seed: int) -> None:
            for step in range(10):
                source, to = f"a{(seed + step) % 4}", f"a{(seed + step * 2 + 1) % 4}"
                if source == to:
                    continue
                try:
                    async with db.transaction() as tx:
                        with tx.update(Product, sku=source) as p:
                            p.price -= 30
                            tx.require(Product.price >= 30)
                        with tx.update(Product, sku=to) as p:
                            p.price += 30
                except TransactionFailed:
                    continue

        await asyncio.gather(*(move(n) for n in range(5)))
        network.rate = 0
        assert sum([each.price async for each in db.scan(Product, allow=True)]) == 400
        await db.close()

    with faulty(service, 9) as (url, network):
        setup = connect(shop(), url, **OPTIONS)
        setup.ensure()
        setup.close()
        asyncio.run(main(url, network))


def test_a_server_that_is_killed_and_comes_back(tmp_path: Path) -> None:
    """Acknowledged writes survive, and exact ones stay exact, while the server dies repeatedly."""
    port = free_port()
    command = [
        str(Path(sys.executable).with_name("stator")),
        "serve",
        "--port",
        str(port),
        "--data",
        str(tmp_path / "data"),
        "--json",
    ]
    stop, ready = threading.Event(), threading.Event()
    up = threading.Event()

    def serve() -> None:
        chance = random.Random(4)
        while not stop.is_set():
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                process.stdout.readline()
                up.set()
                ready.wait()
                stop.wait(0.15 + chance.random() * 0.3)
                process.kill()

    keeper = threading.Thread(target=serve)
    keeper.start()
    try:
        assert up.wait(20)
        options: ConnectOptions = {**OPTIONS, "max_attempts": 200, "max_backoff_seconds": 0.1}
        db = connect(shop(), f"http://127.0.0.1:{port}", **options)
        db.ensure()
        db.upsert(Product(sku="s1", stock=0))
        ready.set()
        acknowledged: list[str] = []
        added = unknown = 0
        until = time.monotonic() + 6
        number = 0
        while time.monotonic() < until:
            number += 1
            try:
                with db.update(Product, sku="s1", once=True) as p:
                    p.stock += 1
                added += 1
            except ConnectionTrouble as trouble:  # the retry quota is empty: the service is down
                unknown += trouble.sent
            try:
                db.create(user(number))
                acknowledged.append(f"u{number}")
            except ConnectionTrouble:
                continue
        stop.set()
        keeper.join()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            db.close()
            db = connect(shop(), f"http://127.0.0.1:{port}", **OPTIONS)
            found = db.get(Product, sku="s1", consistent=True)
            users = {each.user_id for each in db.scan(User, allow=True)}
            db.close()
            process.kill()
        assert found is not None and added <= found.stock <= added + unknown
        assert added > 20 and unknown < 20
        assert users >= set(acknowledged)
    finally:
        ready.set()
        stop.set()
        keeper.join()
