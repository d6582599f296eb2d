"""The transport protocols: DynamoDB's operations by name, with requests in DynamoDB JSON.

The embedded engine and the HTTP client both have this form, so no layer above knows which one it
calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypedDict, Unpack


class CallOptions(TypedDict, total=False):
    """The options of one call.

    ``idempotent`` (default True): the request may be sent again when the first reply is lost.
    Otherwise the call raises OutcomeUnknown. ``deadline_seconds``: the time for all attempts
    together. The embedded engine answers at once, loses no reply, and ignores both.
    """

    idempotent: bool
    deadline_seconds: float | None


class Transport(Protocol):
    @property
    def parallel(self) -> bool:
        """Whether several calls at once, from several threads, are quicker than one by one."""
        ...

    def call(
        self, operation: str, request: Mapping[str, Any], **options: Unpack[CallOptions]
    ) -> dict[str, Any]:
        """Return the reply, or raise the error of ``stator.errors`` that it holds."""
        ...

    def close(self) -> None: ...


class AsyncTransport(Protocol):
    async def call(
        self, operation: str, request: Mapping[str, Any], **options: Unpack[CallOptions]
    ) -> dict[str, Any]: ...

    async def close(self) -> None: ...
