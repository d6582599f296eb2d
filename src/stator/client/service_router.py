"""AWS has two services under DynamoDB's name, at two endpoints: tables, and streams. These look like one.

The client of the second is made at its first call: most programs never read a stream.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from stator.client.async_client import AsyncClient
from stator.client.sync_client import Client
from stator.model.service import STREAMS_OPERATIONS


class TwoServices:
    def __init__(self, tables: Client, open_streams: Callable[[], Client]) -> None:
        self.tables = tables
        self._open_streams = open_streams
        self._streams: Client | None = None
        self._lock = threading.Lock()

    @property
    def parallel(self) -> bool:
        return self.tables.parallel

    def call(
        self,
        operation: str,
        request: Mapping[str, Any],
        *,
        idempotent: bool = True,
        deadline_seconds: float | None = None,
    ) -> dict[str, Any]:
        client = self.tables if operation not in STREAMS_OPERATIONS else self.streams()
        return client.call(
            operation, request, idempotent=idempotent, deadline_seconds=deadline_seconds
        )

    def streams(self) -> Client:
        with self._lock:
            if self._streams is None:
                self._streams = self._open_streams()
            return self._streams

    def close(self) -> None:
        self.tables.close()
        if self._streams is not None:
            self._streams.close()


class AsyncTwoServices:
    def __init__(self, tables: AsyncClient, open_streams: Callable[[], AsyncClient]) -> None:
        self.tables = tables
        self._open_streams = open_streams
        self._streams: AsyncClient | None = None

    async def call(
        self,
        operation: str,
        request: Mapping[str, Any],
        *,
        idempotent: bool = True,
        deadline_seconds: float | None = None,
    ) -> dict[str, Any]:
        client = self.tables
        if operation in STREAMS_OPERATIONS:
            client = self._streams = self._streams or self._open_streams()
        return await client.call(
            operation, request, idempotent=idempotent, deadline_seconds=deadline_seconds
        )

    async def close(self) -> None:
        await self.tables.close()
        if self._streams is not None:
            await self._streams.close()
