"""The threads in which a Runner runs the parts of a ``Gather``.

They are daemon threads, unlike those of ``concurrent.futures``: the interpreter does not wait for
them when it exits. Otherwise Ctrl-C could not end a program while an endpoint does not answer: the
program would live on until every retry is over.

Usually nothing is cut off, because ``map`` returns when all parts are done. If ``map`` is
interrupted, parts that have not begun are dropped. A part that has begun stops before its next
request (``Gathering.is_abandoned``).
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

_JOIN_SECONDS = 2.0


class Gathering:
    """The parts of one ``Gather``, and their results."""

    __slots__ = ("_left", "_lock", "_over", "error", "function", "is_abandoned", "parts", "results")

    def __init__(self, function: Callable[[Any, Gathering], Any], parts: Sequence[Any]) -> None:
        self.function = function
        self.parts = parts
        self.results: list[Any] = [None] * len(parts)
        self.error: BaseException | None = None
        self.is_abandoned = False
        self._left = len(parts)
        self._lock = threading.Lock()
        self._over = threading.Event()

    def run(self, at: int) -> None:
        """Run part number ``at``. An error that the function raises ends the whole gathering."""
        if not self.is_abandoned:
            try:
                self.results[at] = self.function(self.parts[at], self)
            except BaseException as error:
                self.is_abandoned = True
                with self._lock:
                    self.error = self.error or error
                self._over.set()
        with self._lock:
            self._left -= 1
            if self._left == 0:
                self._over.set()

    def wait(self) -> list[Any]:
        """Wait for all parts, and return the results in their order.

        Raises the error that ended the gathering, if there was one.
        """
        try:
            self._over.wait()
        except BaseException:  # such as KeyboardInterrupt
            self.is_abandoned = True
            raise
        if self.error is not None:
            raise self.error
        return self.results


class Abandoned(BaseException):
    """Raised in a part of a Gather to end it, because the gathering was interrupted."""


_Queue = SimpleQueue[tuple[Gathering, int] | None]


class GatherThreads:
    """Up to ``limit`` threads, which start when they are first needed.

    A ``Gather`` inside one of these threads runs its parts in that thread: waiting for a free
    thread could deadlock.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._here = threading.local()
        self._start_over()

    def _start_over(self) -> None:
        self._process = os.getpid()
        self._queue: _Queue = SimpleQueue()
        self._threads: list[threading.Thread] = []
        # Threads of a pool that nobody closed end with it. They hold the queue, not the pool.
        weakref.finalize(self, _end, self._queue, self._threads).atexit = False

    def is_inside(self) -> bool:
        return getattr(self._here, "inside", False)

    def map(self, function: Callable[[Any, Gathering], Any], parts: Sequence[Any]) -> list[Any]:
        """Return the results of ``function(part, gathering)`` for all parts, in their order."""
        gathering = Gathering(function, parts)
        with self._lock:
            if self._process != os.getpid():  # a forked process inherits no threads
                self._start_over()
            for at in range(len(parts)):
                self._queue.put((gathering, at))
            while len(self._threads) < min(self._limit, self._queue.qsize()):
                thread = threading.Thread(
                    target=_work,
                    args=(self._queue, self._here),
                    name=f"stator_{len(self._threads)}",
                    daemon=True,
                )
                self._threads.append(thread)
                thread.start()
        return gathering.wait()

    def close(self) -> None:
        """End the threads. Waits a moment for those that are at work."""
        with self._lock:
            if self._process != os.getpid():
                return
            _end(self._queue, self._threads)
            threads, self._threads = list(self._threads), []
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(_JOIN_SECONDS / len(threads))


def _work(queue: _Queue, here: threading.local) -> None:
    here.inside = True
    while (task := queue.get()) is not None:
        gathering, at = task
        gathering.run(at)
        del task, gathering


def _end(queue: _Queue, threads: list[threading.Thread]) -> None:
    for _ in threads:
        queue.put(None)
