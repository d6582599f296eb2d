"""``stator serve`` in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests import warm_python
from tests.warm_python import SOURCES

TIMEOUT_SECONDS = 60
# The AWS CLI is installed beside the interpreter that runs the tests.
ENVIRONMENT = {
    **{
        name: value
        for name, value in os.environ.items()
        if not name.startswith("AWS_") and name not in ("COLUMNS", "FORCE_COLOR", "NO_COLOR")
    },
    "PYTHONPATH": os.pathsep.join([str(SOURCES), os.environ.get("PYTHONPATH", "")]),
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    "AWS_EC2_METADATA_DISABLED": "true",
}


def run(*arguments: str, script: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run ``stator`` with the arguments, or a Python script, to its end."""
    if script is None:
        return warm_python.run("-m", "stator", *arguments, env=ENVIRONMENT, timeout=TIMEOUT_SECONDS)
    return subprocess.run(
        [sys.executable, "-c", script],
        check=False,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
    )


def run_shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        line,
        check=False,
        shell=True,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
    )


class Serving:
    """A server started with ``--json --port 0``; ``facts`` is the line it printed."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "stator", "serve", "--json", "--port", "0", *arguments],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"the server did not start: {self.stop()}")
        self.facts: dict[str, Any] = json.loads(line)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=TIMEOUT_SECONDS)
        return self.process.returncode, out, err
