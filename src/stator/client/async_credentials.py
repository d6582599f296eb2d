"""Credentials for asyncio: botocore asks with blocking calls, so it does that in a thread, once for all calls that want them."""

from __future__ import annotations

import asyncio
import time

from stator.client.credentials import Credentials, CredentialSource
from stator.client.exchange import not_sent


class AsyncCredentials:
    def __init__(self, source: CredentialSource) -> None:
        self._source = source
        self._asking: asyncio.Future[Credentials] | None = None
        self._meanwhile: Credentials | None = None

    def fresh(self) -> Credentials | None:
        return self._source.fresh()

    async def current(self, until: float | None = None) -> Credentials:
        """Those to sign with. While what is held is good enough, nobody waits for what comes after it."""
        asking = self._under_way()
        if self._meanwhile is not None:
            return self._meanwhile
        left = None if until is None else max(0.0, until - time.monotonic())
        await asyncio.wait(
            (asking,), timeout=left
        )  # one caller that gives up does not end it for the others
        if not asking.done():
            raise not_sent("no credentials were there within the time given")
        return asking.result()

    def _under_way(self) -> asyncio.Future[Credentials]:
        loop = asyncio.get_running_loop()
        asking = self._asking
        if asking is None or asking.done() or asking.get_loop() is not loop:
            self._meanwhile = self._source.meanwhile()
            asking = self._asking = loop.run_in_executor(None, self._source.current)
            asking.add_done_callback(_seen)
        return asking


def _seen(asking: asyncio.Future[Credentials]) -> None:
    """An error is for those who wait, and nobody may be waiting."""
    if not asking.cancelled():
        asking.exception()
