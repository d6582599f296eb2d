"""A transport with faults: before a call is carried out, or after it, when the reply is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from stator.tables.db import Db

Fault = Callable[[int, str, Mapping[str, Any]], None]


class FaultyTransport:
    """``before`` and ``after`` receive the call's number, operation and request, and may raise."""

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
    """Send the Db's further calls through a transport with faults."""
    inner = db.runner.transport
    made = FaultyTransport(
        inner.inner if isinstance(inner, FaultyTransport) else inner, before, after
    )
    db.runner.transport = made
    return made
