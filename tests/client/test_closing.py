"""A client that is closed ends the calls that are in flight, and their retries."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from stator import Design, Entity, connect, connect_async, ident
from stator.errors import BatchFailed, ConnectionTrouble, ServiceError, StatorError

from .scripted import Scripted, Step, drop, refuse, scripted, stall

WAIT = 30.0


class Row(Entity):
    row_id: str = ident()


DESIGN = Design("rows", [Row])
KEYS: dict[str, Any] = {
    "region": "us-east-1",
    "access_key_id": "local",
    "secret_access_key": "local",
}
CALLS: dict[str, Callable[[Any], Any]] = {
    "get": lambda db: db.get(Row, row_id="1"),
    "put": lambda db: db.put(Row(row_id="1")),
    "write_many": lambda db: db.write_many([Row(row_id=str(at)) for at in range(200)]),
}
SILENT: dict[str, Step] = {
    "no answer": stall(600),
    "throttled": refuse("ThrottlingException"),
    "dropped": drop,
}


def _wait_for_request(server: Scripted) -> None:
    for _ in range(3000):
        if server.requests:
            return
        threading.Event().wait(0.01)
    raise AssertionError("no request arrived")


@pytest.mark.parametrize("how", SILENT)
@pytest.mark.parametrize("name", CALLS)
def test_closing_ends_calls_in_flight(name: str, how: str) -> None:
    seen: list[BaseException] = []

    with scripted(SILENT[how]) as server:
        db = connect(DESIGN, server.url, **KEYS, max_attempts=1000, max_backoff_seconds=300)

        def call() -> None:
            try:
                CALLS[name](db)
            except StatorError as error:
                seen.append(error)

        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        _wait_for_request(server)
        db.close()
        thread.join(WAIT)
        assert not thread.is_alive()
    _check(seen[0], how, name)


@pytest.mark.parametrize("how", SILENT)
@pytest.mark.parametrize("name", CALLS)
def test_the_same_awaited(name: str, how: str) -> None:
    async def main(server: Scripted) -> None:
        db = connect_async(DESIGN, server.url, **KEYS, max_attempts=1000, max_backoff_seconds=300)
        task = asyncio.create_task(CALLS[name](db))
        while not server.requests:
            await asyncio.sleep(0.01)
        await db.close()
        with pytest.raises(StatorError) as seen:
            await asyncio.wait_for(task, WAIT)
        _check(seen.value, how, name)

    with scripted(SILENT[how]) as server:
        asyncio.run(main(server))


def _check(error: BaseException, how: str, name: str) -> None:
    errors = [each.error for each in error.failures] if isinstance(error, BatchFailed) else [error]
    if how != "throttled" and name != "write_many":  # other parts of a batch may not be sent
        assert all(isinstance(each, ConnectionTrouble) and each.sent for each in errors)
    else:
        assert all(isinstance(each, (ServiceError, StatorError)) for each in errors)


SCRIPT = """
import os, signal, sys, threading
from stator import Design, Entity, connect, ident

class Row(Entity):
    row_id: str = ident()

signal.signal(signal.SIGINT, signal.default_int_handler)
db = connect(
    Design("rows", [Row]), sys.argv[1],
    region="us-east-1", access_key_id="local", secret_access_key="local",
)
threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    db.write_many([Row(row_id=str(at)) for at in range(300)])
except KeyboardInterrupt:
    print("interrupted")
    if sys.argv[2] == "closed":
        db.close()
"""


@pytest.mark.parametrize("end", ["closed", "left open"])
def test_an_interrupted_program_ends(end: str) -> None:
    with scripted(stall(600)) as server:
        ran = subprocess.run(
            [sys.executable, "-c", SCRIPT, server.url, end],
            capture_output=True,
            text=True,
            timeout=25,  # less than the 30 seconds in which one attempt waits for its answer
        )
    assert (ran.stdout, ran.stderr) == ("interrupted\n", "")
