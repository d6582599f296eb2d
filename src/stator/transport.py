"""The seam between what asks and what answers: DynamoDB's operations by name, in DynamoDB JSON.

The embedded engine and the HTTP client both look like this, so that nothing above knows which of them it talks to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Transport(Protocol):
    @property
    def parallel(self) -> bool:
        """Whether several calls at once, from several threads, are quicker than one after the other."""
        ...

    def call(
        self,
        operation: str,
        request: Mapping[str, Any],
        *,
        idempotent: bool = True,
        deadline_seconds: float | None = None,
    ) -> dict[str, Any]:
        """The answer; raises the error of ``stator.errors`` that stands for a refusal.

        What is not ``idempotent`` is not sent again when nobody knows whether it was carried out.
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
