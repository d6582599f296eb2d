"""Several workers as processes of their own, each the same command for one; one that dies is started again."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Sequence

from stator.cli.stop_signal import Told

log = logging.getLogger("stator.workers")

_LONGEST_PAUSE_SECONDS = 30.0
_STEADY_SECONDS = 60.0


class WorkerProcesses:
    def __init__(self, count: int, arguments: Sequence[str]) -> None:
        self._count = count
        self._command = [sys.executable, "-m", "stator", *_for_one(arguments)]

    def run(self) -> int:
        """Until a signal, or until every process has ended by itself; the exit code."""
        told = Told()
        slots = [_Slot(self._command) for _ in range(self._count)]
        while not told.within(0.1):
            if all(slot.has_ended() for slot in slots):
                return max(slot.code for slot in slots)
        for slot in slots:
            slot.tell_to_stop()
        return max(slot.stop() for slot in slots)


class _Slot:
    """The place of one worker."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._pause = 0.5
        self.code = 0
        self._start()

    def _start(self) -> None:
        # A group of its own: Ctrl-C reaches the workers through this process, once.
        self._process = subprocess.Popen(self._command, start_new_session=True)  # noqa: S603 - this program itself
        self._since = time.monotonic()
        self._again_at: float | None = None

    def has_ended(self) -> bool:
        """Whether it is done; one that was killed is started again, after a pause that grows while that goes on."""
        if self._again_at is not None:
            if time.monotonic() >= self._again_at:
                self._start()
            return False
        code = self._process.poll()
        if code is None:
            return False
        if code >= 0:
            self.code = code
            return True
        if time.monotonic() - self._since > _STEADY_SECONDS:
            self._pause = 0.5
        log.warning(
            "worker %d was killed by signal %d; another starts in %.1f s",
            self._process.pid,
            -code,
            self._pause,
        )
        self._again_at = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, _LONGEST_PAUSE_SECONDS)
        return False

    def tell_to_stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()

    def stop(self) -> int:
        """Wait for one that was told to; its exit code."""
        try:
            return max(0, self._process.wait(timeout=60))
        except subprocess.TimeoutExpired:
            self._process.kill()
            return 1


def _for_one(arguments: Sequence[str]) -> list[str]:
    """The same arguments without --workers."""
    kept: list[str] = []
    skip = False
    for word in arguments:
        if skip:
            skip = False
        elif word == "--workers":
            skip = True
        elif not word.startswith("--workers="):
            kept.append(word)
    return kept
