"""Runs several workers as separate processes, and restarts a worker that is killed.

Each process runs the same command for a single worker, such as ``stator work``. It finds its
number in the environment; a process that replaces a killed one has the same number. If this process
is killed, its workers finish the batches in flight and exit (``stator.child_process``).
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Sequence

from stator.child_process import child_options
from stator.cli.stop_signal import StopSignal

log = logging.getLogger("stator.workers")

WORKER_NUMBER = "STATOR_WORKER_NUMBER"
"""The environment variable with the number of a worker process, from 1 on."""
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0
_STEADY_SECONDS = 60.0


class WorkerProcesses:
    """Runs ``count`` workers with the arguments of the current command."""

    def __init__(self, count: int, arguments: Sequence[str]) -> None:
        self._count = count
        self._command = [sys.executable, "-m", "stator", *_single_worker(arguments)]

    def run(self) -> int:
        """Run until a signal arrives or every process has exited. Returns the exit code."""
        stop_signal = StopSignal()
        slots = [_Slot(self._command, at + 1) for at in range(self._count)]
        while not stop_signal.wait(0.1):
            ended = [slot.has_ended() for slot in slots]  # all of them: each call may restart one
            if all(ended):
                return max(slot.code for slot in slots)
        for slot in slots:
            slot.terminate()
        return max(slot.wait() for slot in slots)


class _Slot:
    """One worker process. A killed process is replaced by a new one."""

    def __init__(self, command: list[str], number: int) -> None:
        self._command = command
        self._environment = os.environ | {WORKER_NUMBER: str(number)}
        self._pause_seconds = _FIRST_PAUSE_SECONDS
        self.code = 0
        self._start()

    def _start(self) -> None:
        # In a separate session: Ctrl-C reaches the worker once, through this process.
        self._process = subprocess.Popen(  # noqa: S603 - this program itself
            self._command, start_new_session=True, **child_options(self._environment)
        )
        self._started_at = time.monotonic()
        self._restart_at: float | None = None

    def has_ended(self) -> bool:
        """Whether the worker has exited by itself. Restarts a worker that a signal killed.

        Call this method repeatedly: it starts the new worker after a pause. The pause doubles with
        each restart up to a limit, and is short again once a worker has run for some time.
        """
        if self._restart_at is not None:
            if time.monotonic() >= self._restart_at:
                self._start()
            return False
        code = self._process.poll()
        if code is None:
            return False
        if code >= 0:
            self.code = code
            return True
        if time.monotonic() - self._started_at > _STEADY_SECONDS:
            self._pause_seconds = _FIRST_PAUSE_SECONDS
        log.warning(
            "worker %d was killed by signal %d; a new one starts in %.1f s",
            self._process.pid,
            -code,
            self._pause_seconds,
        )
        self._restart_at = time.monotonic() + self._pause_seconds
        self._pause_seconds = min(self._pause_seconds * 2, _LONGEST_PAUSE_SECONDS)
        return False

    def terminate(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()

    def wait(self) -> int:
        """Wait up to a minute for the worker to exit after ``terminate``, then kill it.

        Returns its exit code, or 1 if it had to be killed.
        """
        try:
            return max(0, self._process.wait(timeout=60))
        except subprocess.TimeoutExpired:
            self._process.kill()
            return 1


def _single_worker(arguments: Sequence[str]) -> list[str]:
    """Return the arguments without --workers."""
    remaining: list[str] = []
    skip_value = False
    for word in arguments:
        if skip_value:
            skip_value = False
        elif word == "--workers":
            skip_value = True
        elif not word.startswith("--workers="):
            remaining.append(word)
    return remaining
