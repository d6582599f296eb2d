"""A backend the server's tests can steer: what it answers, and when a commit becomes durable."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from stator.model.companion_service import CompanionService
from stator.model.scope import Scope

Callback = Callable[[BaseException | None], None]
NOT_JSON = b'{"__type":"com.amazon.coral.service#SerializationException"}'


@dataclass
class FakeReply:
    status: int
    body: bytes
    commit: int | None = None


@dataclass
class FakeEngine:
    """GetItem echoes at once, PutItem echoes once ``settle`` made it durable, Scan answers
    ``page``, DescribeTable answers the scope, DeleteTable raises."""

    page: bytes = b"{}"
    durable_at_once: bool = False
    calls: list[tuple[str, bytes, Scope]] = field(default_factory=list)
    waiting: dict[int, Callback] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def operations(self) -> frozenset[str]:
        return frozenset(
            {
                "GetItem",
                "PutItem",
                "Scan",
                "DescribeTable",
                "DeleteTable",
                "ListTables",
                "GetRecords",
            }
        )

    def companion_services(self) -> tuple[CompanionService, ...]:
        return ()

    def call_companion(
        self, service: str, operation: str, request: dict[str, Any], *, account: str, region: str
    ) -> dict[str, Any]:
        raise AssertionError(f"no companion service is offered: {service}")

    def submit(self, operation: str, body: bytes, scope: Scope) -> FakeReply:
        self.calls.append((operation, body, scope))
        try:
            parsed = orjson.loads(body)
        except orjson.JSONDecodeError:
            return FakeReply(400, NOT_JSON)
        if operation == "DeleteTable":
            raise ZeroDivisionError("a defect in the engine")
        if operation == "Scan":
            return FakeReply(200, self.page)
        if operation == "DescribeTable":
            return FakeReply(200, orjson.dumps({"account": scope.account, "region": scope.region}))
        if operation == "PutItem":
            return FakeReply(200, orjson.dumps({"echo": parsed}), commit=len(self.calls))
        return FakeReply(200, orjson.dumps({"echo": parsed}))

    def when_durable(self, commit: int, callback: Callback) -> None:
        with self.lock:
            waits = not self.durable_at_once
            if waits:
                self.waiting[commit] = callback
                self.arrived.release()
        if not waits:
            callback(None)

    def settle(self, *commits: int, reason: BaseException | None = None) -> None:
        """Make commits durable, or fail them, on the test's thread and not the server's."""
        for commit in commits:
            self.waiting.pop(commit)(reason)

    def settle_always(self) -> None:
        """Make the waiting commits durable, and every later one at once."""
        with self.lock:
            self.durable_at_once = True
            waiting, self.waiting = self.waiting, {}
        for callback in waiting.values():
            callback(None)

    def await_commits(self, number: int) -> list[int]:
        """Wait until ``number`` further commits ask to become durable; return all waiting ones."""
        for _ in range(number):
            assert self.arrived.acquire(timeout=30)
        return sorted(self.waiting)
