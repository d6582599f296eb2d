"""A transport that fails as told: before a call is carried out, or after, when only its answer is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from stator.tables.db import Db


class Crash(Exception):
    """The process dies: nobody handles this."""


Fault = Callable[[int, str, Mapping[str, Any]], None]


class FaultyTransport:
    """``before`` and ``after`` see the number of the call, its operation and its request, and may raise."""

    def __init__(self, inner: Any, before: Fault | None = None, after: Fault | None = None) -> None:
        self.inner = inner
        self.before = before
        self.after = after
        self.calls = 0
        self._lock = threading.Lock()

    @property
    def parallel(self) -> bool:
        return False

    def call(self, operation: str, request: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        with self._lock:
            self.calls += 1
            number = self.calls
        if self.before is not None:
            self.before(number, operation, request)
        reply: dict[str, Any] = self.inner.call(operation, request, **options)
        if self.after is not None:
            self.after(number, operation, request)
        return reply

    def close(self) -> None:
        self.inner.close()


def with_faults(db: Db, before: Fault | None = None, after: Fault | None = None) -> FaultyTransport:
    """From now on, the Db's calls go through a transport that may fail."""
    inner = db.runner.transport
    made = FaultyTransport(inner.inner if isinstance(inner, FaultyTransport) else inner, before, after)
    db.runner.transport = made
    return made


def crash_at(number: int) -> Fault:
    def fault(at: int, operation: str, request: Mapping[str, Any]) -> None:
        if at == number:
            raise Crash(f"{operation}, call {number}")

    return fault


def crash_everywhere(db: Db, work: Callable[[], Any], then: Callable[[], None]) -> int:
    """Run ``work`` with a crash before, and after, its first call, its second, and so on until it comes through; each time, ``then``.

    ``then`` runs without faults, and brings things back to where ``work`` can begin anew. Gives how many crashes there were.
    """
    crashes = 0
    for side in ("before", "after"):
        number = 1
        while True:
            with_faults(db, **{side: crash_at(number)})
            try:
                work()
            except Crash:
                crashes += 1
                crashed = True
            else:
                crashed = False
            with_faults(db)
            then()
            if not crashed:
                break
            number += 1
    return crashes
