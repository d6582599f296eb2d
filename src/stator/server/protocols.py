"""The server's interfaces: the engine behind it, and the connections that its sweep checks.

The server knows connections, headers and signatures, but no tables. It can run in front of any
object with these methods; the tests use a fake. The protocols have their own module because it must
not be compiled: a compiled Protocol would accept only its declared subclasses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from stator.model.companion_service import CompanionService
from stator.model.scope import Scope

DurableCallback = Callable[[BaseException | None], None]


class BackendReply(Protocol):
    @property
    def status(self) -> int:
        """The HTTP status: 200, or the status of the error."""
        ...

    @property
    def body(self) -> bytes:
        """The body as JSON bytes, for errors as well."""
        ...

    @property
    def commit(self) -> int | None:
        """The commit that must be durable before the reply is sent, or None to send it now."""
        ...


class CompanionBackend(Protocol):
    def companion_services(self) -> tuple[CompanionService, ...]:
        """Return the services that ``call_companion`` answers."""
        ...

    def call_companion(
        self, service: str, operation: str, request: dict[str, Any], *, account: str, region: str
    ) -> dict[str, Any]:
        """Answer one request of a companion service. Raises CompanionRefused."""
        ...


class Backend(CompanionBackend, Protocol):
    def submit(self, operation: str, body: bytes, scope: Scope) -> BackendReply:
        """Run one operation now, and return its reply without waiting for the disk."""
        ...

    def when_durable(self, commit: int, callback: DurableCallback) -> None:
        """Call back once ``commit`` is durable.

        The callback receives None, or the error that prevents durability. It may run on any thread,
        and before this method returns.
        """
        ...

    def operations(self) -> frozenset[str]:
        """Return the names of the operations that ``submit`` accepts."""
        ...


class SweptConnection(Protocol):
    """The methods of a connection that ``ServerContext`` calls in its sweep and at shutdown."""

    def close_if_overdue(self, now: float) -> None: ...

    def finish(self) -> None:
        """Close now if no request has begun, otherwise after the last reply."""
        ...

    def stop_reading(self) -> None:
        """Give up an incomplete request. Complete requests are still answered."""
        ...

    def abort(self) -> None: ...
