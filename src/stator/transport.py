"""The transport protocols: call a DynamoDB operation by its name, with a request in DynamoDB JSON.

The embedded engine and the HTTP client both implement them, so no higher layer knows which of the
two it calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypedDict


class CallOptions(TypedDict, total=False):
    """The options of one call, for transports that pass them on as they are.

    ``idempotent`` (default True): the request may be sent again if its reply is lost. If it is
    False, a lost reply raises OutcomeUnknown. ``deadline_seconds``: the time for all attempts
    together. The embedded engine answers at once and loses no reply, so it ignores both.
    """

    idempotent: bool
    deadline_seconds: float | None


class Transport(Protocol):
    @property
    def parallel(self) -> bool:
        """Whether parallel calls from several threads are faster than one call after another."""
        ...

    def call(
        self,
        operation: str,
        request: Mapping[str, Any],
        *,
        idempotent: bool = True,
        deadline_seconds: float | None = None,
    ) -> dict[str, Any]:
        """Return the reply.

        Raises the error of ``stator.errors`` that an error reply stands for.
        """
        ...

    def close(self) -> None: ...


class AsyncTransport(Protocol):
    async def call(
        self,
        operation: str,
        request: Mapping[str, Any],
        *,
        idempotent: bool = True,
        deadline_seconds: float | None = None,
    ) -> dict[str, Any]: ...

    async def close(self) -> None: ...
