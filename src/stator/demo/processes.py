"""The server and the workers of the demo, each in its own process. One worker gets killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stator.child_process import child_options
from stator.errors import ConfigurationError

_APP = "stator.demo.app:app"


class ServerProcess:
    """A process that runs ``stator serve`` on a folder, at a free local port.

    With ``throughput="enforced"``, it refuses what DynamoDB would refuse.
    """

    def __init__(self, folder: Path, throughput: str = "off") -> None:
        command = [
            sys.executable,
            "-m",
            "stator",
            "serve",
            "--port",
            "0",
            "--json",
            "--data",
            str(folder),
            "--throughput",
            throughput,
        ]
        self._process = subprocess.Popen(  # noqa: S603 - this program itself
            [*command, "--durability", "process"],
            stdout=subprocess.PIPE,
            text=True,
            **child_options(),
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ConfigurationError(
                "the server did not start", hint="run `stator serve` to see why"
            )
        self.url = str(json.loads(line)["url"])

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@dataclass(slots=True)
class WorkerState:
    """The figures in the last report of a worker."""

    handled: int = 0
    parked: int = 0
    lag_seconds: float | None = None
    shards: int = 0


@dataclass(slots=True)
class WorkerProcess:
    """A process that runs ``stator work``. It reports its figures as lines of JSON."""

    url: str
    folder: Path
    start: str
    catch_up: bool = False
    state: WorkerState = field(default_factory=WorkerState)
    _process: Any = None
    _log: Any = None

    def begin(self) -> WorkerProcess:
        words = [
            "work",
            _APP,
            "--at",
            self.url,
            "--from",
            self.start,
            "--json",
            "--every",
            "0.5",
            "--lease",
            "4",
        ]
        words += ["--catch-up"] if self.catch_up else []
        self._log = (self.folder / "workers.log").open("ab")
        self._process = subprocess.Popen(  # noqa: S603 - this program itself
            [sys.executable, "-m", "stator", *words],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            **child_options(os.environ | {"STATOR_DEMO_FOLDER": str(self.folder)}),
        )
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def _listen(self) -> None:
        for line in self._process.stdout:
            facts = json.loads(line)
            self.state = WorkerState(
                facts["handled"], facts["parked"], facts["lag_seconds"], facts["shards"]
            )

    @property
    def pid(self) -> int:
        return int(self._process.pid)

    def kill(self) -> None:
        """Kill with SIGKILL, so the worker cannot release its leases."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._log.close()

    def wait(self, seconds: float = 120.0) -> None:
        """Wait until the process exits by itself."""
        self._process.wait(timeout=seconds)
        self._process.stdout.close()
        self._log.close()

    def tell_to_stop(self) -> None:
        self._process.terminate()

    def stop(self) -> None:
        self.tell_to_stop()
        self._process.wait(timeout=60)
        self._process.stdout.close()
        self._log.close()


def rebuild_views(url: str, names: list[str]) -> dict[str, dict[str, Any]]:
    """Run ``stator views rebuild``. Return its figures for each view."""
    words = [
        "views",
        "rebuild",
        _APP,
        *names,
        "--at",
        url,
        "--grace",
        "0",
        "--settle",
        "0",
        "--json",
    ]
    ran = subprocess.run(  # noqa: S603 - this program itself
        [sys.executable, "-m", "stator", *words],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        **child_options(),
    )
    if ran.returncode:
        raise ConfigurationError(
            "not every view of the demo could be built",
            hint=f"run `stator views rebuild {_APP} --at {url}` to see why",
        )
    found: dict[str, dict[str, Any]] = json.loads(ran.stdout)
    return found


def wait_until(holds: Any, seconds: float) -> bool:
    """Call ``holds`` repeatedly until it returns a true value.

    Returns False if that has not happened after ``seconds``.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.1)
    return bool(holds())
