"""One transport for two AWS services, DynamoDB and DynamoDB Streams, each with its own endpoint.

The Streams client is opened at its first call: most programs never read a stream.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Unpack

from stator.client.async_client import AsyncClient
from stator.client.sync_client import Client
from stator.model.service import STREAMS_OPERATIONS
from stator.transport import CallOptions


class ServiceRouter:
    def __init__(self, tables: Client, open_streams: Callable[[], Client]) -> None:
        self.tables = tables
        self._open_streams = open_streams
        self._streams: Client | None = None
        self._lock = threading.Lock()

    @property
    def address(self) -> str:
        return self.tables.address

    @property
    def parallel(self) -> bool:
        return self.tables.parallel

    def call(
        self, operation: str, request: Mapping[str, Any], **options: Unpack[CallOptions]
    ) -> dict[str, Any]:
        client = self.tables if operation not in STREAMS_OPERATIONS else self.streams()
        return client.call(operation, request, **options)

    def streams(self) -> Client:
        with self._lock:
            if self._streams is None:
                self._streams = self._open_streams()
            return self._streams

    def close(self) -> None:
        self.tables.close()
        if self._streams is not None:
            self._streams.close()


class AsyncServiceRouter:
    def __init__(self, tables: AsyncClient, open_streams: Callable[[], AsyncClient]) -> None:
        self.tables = tables
        self._open_streams = open_streams
        self._streams: AsyncClient | None = None

    @property
    def address(self) -> str:
        return self.tables.address

    async def call(
        self, operation: str, request: Mapping[str, Any], **options: Unpack[CallOptions]
    ) -> dict[str, Any]:
        client = self.tables
        if operation in STREAMS_OPERATIONS:
            client = self._streams = self._streams or self._open_streams()
        return await client.call(operation, request, **options)

    async def close(self) -> None:
        await self.tables.close()
        if self._streams is not None:
            await self._streams.close()
