"""Counts the requests of a server for Prometheus, by operation and table.

The meter stands between the server and the engine, so a server without ``--metrics-port`` does
nothing for it.
"""

from __future__ import annotations

import re
import time
from typing import Any, Final

import orjson

from stator.metrics.catalogue import SERVER_REQUESTS, SERVER_SECONDS, SERVER_THROTTLES
from stator.metrics.endpoint import registered
from stator.metrics.label_cap import LabelCap
from stator.model.companion_service import CompanionService
from stator.model.scope import Scope
from stator.server.protocols import Backend, BackendReply, DurableCallback

# A table's name stands in TableName, or as an ARN. Names have no characters that JSON escapes. Of
# a batch or a transaction, the first table's name is taken: reading all would cost a parse.
_TABLE: Final = re.compile(
    rb'"TableName"\s*:\s*"(?:arn:[^"]*:table/)?([A-Za-z0-9_.-]{1,255})'
    rb'|"RequestItems"\s*:\s*\{\s*"(?:arn:[^"]*:table/)?([A-Za-z0-9_.-]{1,255})'
)


class MeteredBackend:
    """A backend that counts the requests of another one in a registry of prometheus-client."""

    def __init__(self, backend: Backend, registry: Any) -> None:
        self._backend = backend
        self._requests = registered(SERVER_REQUESTS, registry)
        self._seconds = registered(SERVER_SECONDS, registry)
        self._throttles = registered(SERVER_THROTTLES, registry)
        self._tables = LabelCap()

    def submit(self, operation: str, body: bytes, scope: Scope) -> BackendReply:
        started = time.perf_counter()
        reply = self._backend.submit(operation, body, scope)
        seconds = time.perf_counter() - started
        found = _TABLE.search(body)
        name = b"" if found is None else found[1] or found[2]
        table = self._tables.capped(name.decode())
        result = "ok"
        if reply.status != 200:
            error = orjson.loads(reply.body)
            result = str(error.get("__type", reply.status)).rpartition("#")[2]
            for each in error.get("ThrottlingReasons") or ():
                self._throttles.labels(table, str(each.get("reason"))).inc()
        self._requests.labels(operation, table, result).inc()
        self._seconds.labels(operation, table).observe(seconds)
        return reply

    def when_durable(self, commit: int, callback: DurableCallback) -> None:
        self._backend.when_durable(commit, callback)

    def operations(self) -> frozenset[str]:
        return self._backend.operations()

    def companion_services(self) -> tuple[CompanionService, ...]:
        return self._backend.companion_services()

    def call_companion(
        self, service: str, operation: str, request: dict[str, Any], *, account: str, region: str
    ) -> dict[str, Any]:
        return self._backend.call_companion(
            service, operation, request, account=account, region=region
        )
