"""Processes of pattern objects in one loop, which goes on with one of them at random.

Every call is a step of its own, so calls of several processes interleave in any order, and so do
the parts of a ``Gather``. A process can be killed between two steps. Everything is chosen by one
seed, under a virtual clock.
"""

from __future__ import annotations

import random
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from stator.clock import VirtualClock
from stator.errors import StatorError
from stator.tables.work import BlockingCall, Call, Gather, Pause
from stator.transport import Transport


@dataclass
class _Thread:
    """A piece of work, and the Gather that waits for it, if any."""

    work: Generator[Any, Any, Any]
    wake_at: float = 0.0
    wish: Any = None
    parent: _Gathering | None = None
    at: int = 0


@dataclass
class _Gathering:
    thread: _Thread
    results: list[Any]
    left: int


@dataclass
class Process:
    name: str
    threads: list[_Thread] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        return not self.threads


class Schedule:
    """``call_seconds`` is the longest time that passes with one step."""

    def __init__(
        self, transport: Transport, clock: VirtualClock, seed: int, call_seconds: float = 0.004
    ) -> None:
        self.transport = transport
        self.clock = clock
        self.chance = random.Random(seed)
        self.processes: list[Process] = []
        self._call_seconds = call_seconds

    def start(self, name: str, work: Generator[Any, Any, Any]) -> Process:
        process = Process(name, [_Thread(work)])
        self.processes.append(process)
        return process

    def kill(self, process: Process) -> None:
        """Nothing more of a process happens, not even a finally."""
        process.threads.clear()

    def step(self) -> bool:
        """Let one process go on. Returns False if none is left."""
        self.processes = [each for each in self.processes if not each.is_over]
        threads = [
            (process, thread)
            for process in self.processes
            for thread in process.threads
            if not isinstance(thread.wish, _Gathering)
        ]
        if not threads:
            return False
        self.clock.advance(self.chance.random() * self._call_seconds)
        now = self.clock.now()
        ready = [each for each in threads if each[1].wake_at <= now]
        if not ready:
            self.clock.advance(min(thread.wake_at for _, thread in threads) - now)
            return True
        process, thread = self.chance.choice(ready)
        self._go_on(process, thread)
        return True

    def _go_on(self, process: Process, thread: _Thread) -> None:
        answer: Any = None
        error: BaseException | None = None
        wish, thread.wish = thread.wish, None
        if isinstance(wish, Call):
            options = wish.options(None)
            try:
                answer = self.transport.call(wish.operation, wish.request, **options)
            except StatorError as raised:
                error = raised
        elif isinstance(wish, BlockingCall):
            answer = wish.function()
        self._resume(process, thread, answer, error)

    def _resume(
        self, process: Process, thread: _Thread, answer: Any, error: BaseException | None
    ) -> None:
        try:
            wish = thread.work.throw(error) if error is not None else thread.work.send(answer)
        except StopIteration as done:
            self._ended(process, thread, done.value)
            return
        except StatorError as failed:
            if thread.parent is None:
                raise
            self._ended(process, thread, failed)
            return
        thread.wish = wish
        if isinstance(wish, Pause):
            thread.wake_at = self.clock.now() + wish.seconds
        elif isinstance(wish, Gather):
            gathering = _Gathering(thread, [None] * len(wish.parts), len(wish.parts))
            thread.wish = gathering
            for at, part in enumerate(wish.parts):
                work = _called(part) if isinstance(part, Call) else part
                process.threads.append(_Thread(work, parent=gathering, at=at))
            if not wish.parts:
                self._resume(process, thread, [], None)

    def _ended(self, process: Process, thread: _Thread, result: Any) -> None:
        process.threads.remove(thread)
        gathering = thread.parent
        if gathering is None:
            return
        gathering.results[thread.at] = result
        gathering.left -= 1
        if not gathering.left:
            gathering.thread.wish = None
            self._resume(process, gathering.thread, gathering.results, None)


def _called(call: Call) -> Generator[Any, Any, Any]:
    return (yield call)
