"""Runners: processes, sockets, deadlines and repeated calls."""

from __future__ import annotations

import multiprocessing
import resource
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest

from stator import (
    connect,
)
from stator.addresses import EngineTransport
from stator.engine import Engine
from stator.errors import (
    DeadlineExceeded,
    ReplyLost,
)
from stator.tables.db import Db
from stator.tables.runner import Runner
from tests.targets import Target

from .shop import (
    Product,
    shop,
)


def _in_a_fork(db: Db, answers: Any) -> None:
    answers.put(len(db.get_many(Product, [f"s{n}" for n in range(250)])))


def test_threads_work_in_a_fork(target: Target) -> None:
    if target.kind != "http":
        pytest.skip("only calls over a network run in threads")
    db = target.connect(shop())
    db.write_many(Product(sku=f"s{n}") for n in range(250))
    db.get_many(Product, [f"s{n}" for n in range(250)])
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_in_a_fork, args=(db, answers))
    child.start()
    assert answers.get(timeout=30) == 250
    child.join()


def test_many_open_files_are_no_obstacle(target: Target) -> None:
    if target.kind != "http":
        pytest.skip("only for sockets")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 3000:
        pytest.skip("this machine allows too few open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 3000), hard))
    opened = [socket.socket() for _ in range(1100)]
    try:
        db = target.connect(shop())
        db.put(Product(sku="s1"))
        time.sleep(1.1)
        assert db.get(Product, sku="s1") is not None
    finally:
        for each in opened:
            each.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_deadline_is_for_the_whole_answer() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b" " * 1000
    dripped: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            here, _ = listener.accept()
            with here:
                here.recv(65536)
                try:
                    for letter in answer:
                        here.sendall(bytes([letter]))
                        dripped.append(letter)
                        time.sleep(0.02)
                except OSError:
                    return

        thread = threading.Thread(target=drip)
        thread.start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        db = connect(
            shop(), address, access_key_id="a", secret_access_key="b", max_attempts=1, proxy=None
        )
        with pytest.raises((DeadlineExceeded, ReplyLost)):
            db.within(0.3).get(Product, sku="s1")
        db.close()
        thread.join()
    assert len(dripped) < len(answer)  # it gave up before the answer was there


def test_raw_calls_say_whether_they_may_be_repeated() -> None:
    seen: list[tuple[str, bool, bool]] = []

    class Watching(EngineTransport):
        def call(
            self,
            operation: str,
            request: Mapping[str, Any],
            *,
            idempotent: bool = True,
            **more: Any,
        ) -> dict[str, Any]:
            seen.append((operation, idempotent, "ClientRequestToken" in request))
            return super().call(operation, request)

    engine = Engine.open()
    db = connect(shop(), engine)
    watched = Db(db.context, Runner(Watching(engine), db.context.clock))
    of = db.context.schema.of(Product)
    key = of.key_from({"sku": "s1"})
    update = {
        "TableName": "shop",
        "Key": key,
        "UpdateExpression": "ADD n :n",
        "ExpressionAttributeValues": {":n": {"N": "1"}},
    }
    watched.call("UpdateItem", update)
    watched.call("UpdateItem", update, idempotent=True)
    watched.call("TransactWriteItems", {"TransactItems": [{"Update": update}]})
    assert seen == [
        ("UpdateItem", False, False),
        ("UpdateItem", True, False),
        ("TransactWriteItems", True, True),
    ]
