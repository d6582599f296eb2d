"""Tells the thread that owns the sockets when commits have become durable in storage.

The writes of one turn of the event loop wait together until the newest of their commits is durable.
Asking the storage once per write would wake its thread in the middle of the turn. That thread would
sync one write and then the rest, while both threads compete for the interpreter lock.

A group commit makes many writes durable at once, on the storage's thread. That thread puts the
waiting callbacks into a mailbox. Only the first entry in an empty mailbox wakes the event loop,
which then runs all of them.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from stator.server.protocols import Backend

Settled = Callable[[BaseException | None], None]


class Settlement:
    """Calls back on the event loop's thread once a commit is durable or has failed.

    Create it on that thread.
    """

    def __init__(self, backend: Backend, loop: asyncio.AbstractEventLoop) -> None:
        self._when_durable = backend.when_durable
        self._loop = loop
        self._loop_thread = threading.get_ident()
        self._turn: list[Settled] = []
        self._newest = 0
        self._mailbox: deque[tuple[list[Settled], BaseException | None]] = deque()
        self._awake = False

    def notify(self, commit: int, settled: Settled) -> None:
        """Call ``settled`` on the loop's thread once ``commit`` is durable or has failed."""
        if not self._turn:
            self._loop.call_soon(self._end_turn)
        self._turn.append(settled)
        self._newest = max(self._newest, commit)

    def _end_turn(self) -> None:
        turn, self._turn = self._turn, []
        try:
            self._when_durable(self._newest, partial(self._deliver, turn))
        except Exception as broken:  # whatever it is, the clients receive a 500
            _tell(turn, broken)

    def _deliver(self, turn: list[Settled], reason: BaseException | None) -> None:
        if threading.get_ident() == self._loop_thread:
            _tell(turn, reason)
            return
        self._mailbox.append((turn, reason))
        if not self._awake:
            self._awake = True
            self._wake()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop is closed, so no client waits for these replies
            self._loop.call_soon_threadsafe(self._empty_mailbox)

    def _empty_mailbox(self) -> None:
        # The flag is cleared first. An entry that arrives in between wakes the loop once too often,
        # which is harmless; in the other order it could be left behind.
        self._awake = False
        while self._mailbox:
            _tell(*self._mailbox.popleft())


def _tell(turn: list[Settled], reason: BaseException | None) -> None:
    for settled in turn:
        settled(reason)
