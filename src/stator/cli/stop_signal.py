"""Graceful shutdown: SIGINT and SIGTERM for a command that finishes its current work first."""

from __future__ import annotations

import signal
from queue import Empty, SimpleQueue
from typing import Final

INTERRUPTED: Final = 130
"""The exit code shells expect after Ctrl-C: 128 plus the number of SIGINT."""


class StopSignal:
    """Remembers SIGINT and SIGTERM so that a command can finish its current work before it exits.

    Any number of signals may arrive. A signal handler interrupts the main thread at any point,
    including inside a wait or inside another handler. ``threading.Event`` would deadlock there,
    because the interrupted code may hold its lock. ``SimpleQueue.put`` is reentrant.
    """

    def __init__(self) -> None:
        self._signals: SimpleQueue[int] = SimpleQueue()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda received, _: self._signals.put(received))

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait for a signal, without limit by default. Returns whether one arrived."""
        try:
            self._signals.get(timeout=timeout_seconds)
        except Empty:
            return False
        return True
