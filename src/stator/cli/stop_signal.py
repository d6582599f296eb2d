"""Graceful shutdown: SIGINT and SIGTERM for a command that finishes its current work first."""

from __future__ import annotations

import os
import signal
import time
from queue import Empty, SimpleQueue
from typing import Final

INTERRUPTED: Final = 130
"""The exit code shells expect after Ctrl-C: 128 plus the number of SIGINT."""


_SECOND_SIGNAL_SECONDS: Final = 1.0


class StopSignal:
    """Remembers SIGINT and SIGTERM so that a command can finish its current work before it exits.

    The first signal asks the command to stop. A signal a second or more later ends the process at
    once: the user or the supervisor does not want to wait for work that does not end. Signals that
    arrive together count as one, because a terminal and a parent process may both pass one on.

    Any number of signals may arrive. A signal handler interrupts the main thread at any point,
    including inside a wait or inside another handler. ``threading.Event`` could deadlock in a
    signal handler, because the interrupted code may hold its lock. ``SimpleQueue.put`` is
    reentrant.
    """

    def __init__(self) -> None:
        self._signals: SimpleQueue[int] = SimpleQueue()
        self._first_at: float | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda received, _: self._receive(received))

    def _receive(self, number: int) -> None:
        now = time.monotonic()
        if self._first_at is None:
            self._first_at = now
        elif now - self._first_at >= _SECOND_SIGNAL_SECONDS:
            os.write(2, b"error: a second signal ended the command before its work was done\n")
            os._exit(128 + number)
        self._signals.put(number)

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait for a signal, without limit by default. Returns whether one arrived."""
        try:
            self._signals.get(timeout=timeout_seconds)
        except Empty:
            return False
        return True
