"""Credentials for asyncio: botocore's blocking look-up runs in a thread, once for all callers."""

from __future__ import annotations

import asyncio

from stator.client.connections import not_sent, seconds_left
from stator.client.credentials import Credentials, CredentialSource


class AsyncCredentials:
    def __init__(self, source: CredentialSource) -> None:
        self._source = source
        self._request: asyncio.Future[Credentials] | None = None
        self._interim: Credentials | None = None

    def fresh(self) -> Credentials | None:
        return self._source.fresh()

    async def current(self, deadline: float | None = None) -> Credentials:
        """Return the credentials to sign with.

        Waits only if the present credentials are unusable. Raises DeadlineExceeded if the deadline
        passes first.
        """
        request = self._current_request()
        if self._interim is not None:
            return self._interim
        # One caller that gives up does not cancel the request for the others.
        await asyncio.wait((request,), timeout=seconds_left(deadline))
        if not request.done():
            raise not_sent("the deadline passed before credentials were found")
        return request.result()

    def _current_request(self) -> asyncio.Future[Credentials]:
        loop = asyncio.get_running_loop()
        request = self._request
        if request is None or request.done() or request.get_loop() is not loop:
            self._interim = self._source.interim()
            request = self._request = loop.run_in_executor(None, self._source.current)
            request.add_done_callback(_seen)
        return request


def _seen(request: asyncio.Future[Credentials]) -> None:
    """Mark the error of a credentials look-up as retrieved.

    If all callers gave up, asyncio would otherwise log that the error was never retrieved.
    """
    if not request.cancelled():
        request.exception()
