"""From the thread that makes writes durable back to the thread that owns the sockets.

A group commit settles many writes at once, on the engine's thread. Waking the event loop for each of
them would cost more than the writes; so they are put into a mailbox, and only the first letter in an
empty one wakes the loop, which then takes all there are.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from stator.server.backend import Backend

Settled = Callable[[BaseException | None], None]


class Settlement:
    """To be made on the event loop's own thread."""

    def __init__(self, backend: Backend, loop: asyncio.AbstractEventLoop) -> None:
        self._when_durable = backend.when_durable
        self._loop = loop
        self._loop_thread = threading.get_ident()
        self._mailbox: deque[tuple[Settled, BaseException | None]] = deque()
        self._awake = False

    def notify(self, commit: int, settled: Settled) -> None:
        """Call ``settled`` on the loop's thread once ``commit`` is durable, or cannot be."""
        try:
            self._when_durable(commit, partial(self._deliver, settled))
        except Exception as broken:  # whatever it is, the client gets a 500
            settled(broken)

    def _deliver(self, settled: Settled, reason: BaseException | None) -> None:
        if threading.get_ident() == self._loop_thread:
            settled(reason)
            return
        self._mailbox.append((settled, reason))
        if not self._awake:
            self._awake = True
            self._wake()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits for these replies any more
            self._loop.call_soon_threadsafe(self._empty_mailbox)

    def _empty_mailbox(self) -> None:
        # First this, then the letters: one that arrives in between wakes the loop once too often,
        # which is harmless; the other order could leave one lying.
        self._awake = False
        while self._mailbox:
            settled, reason = self._mailbox.popleft()
            settled(reason)
