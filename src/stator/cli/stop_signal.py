"""Ctrl-C and SIGTERM, for a command that has something to finish first."""

from __future__ import annotations

import signal
from queue import Empty, SimpleQueue


class Told:
    """Whether the process was told to stop, once or a hundred times.

    A handler runs in the midst of whatever the main thread does, even of waiting for it, or of another handler. An Event's lock may be held by just that, and then nobody ever
    gets it; a SimpleQueue may be put into from anywhere.
    """

    def __init__(self) -> None:
        self._signals: SimpleQueue[int] = SimpleQueue()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda received, _: self._signals.put(received))

    def within(self, seconds: float | None) -> bool:
        """Wait for it, so long at most; None is for ever."""
        try:
            self._signals.get(timeout=seconds)
        except Empty:
            return False
        return True
