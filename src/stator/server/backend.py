"""What the server needs from an engine: the one seam between HTTP and DynamoDB.

The server knows connections, headers and signatures; it does not know tables. Anything that can answer
``submit`` can stand behind it, which is how the tests drive it with a fake.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from stator.model.scope import Scope

DurableCallback = Callable[[BaseException | None], None]


class BackendReply(Protocol):
    @property
    def status(self) -> int:
        """The HTTP status: 200, or the error's."""
        ...

    @property
    def body(self) -> bytes:
        """JSON, already rendered; errors too."""
        ...

    @property
    def commit(self) -> int | None:
        """The commit that must be durable before this reply may leave; None: it may leave now."""
        ...


class Backend(Protocol):
    def submit(self, operation: str, body: bytes, scope: Scope) -> BackendReply:
        """Run one operation at once, without waiting for the disk."""
        ...

    def when_durable(self, commit: int, callback: DurableCallback) -> None:
        """Call back once ``commit`` is on disk, from any thread, perhaps before returning.

        The callback gets None, or the reason why the commit could not be made durable.
        """
        ...

    def operations(self) -> frozenset[str]:
        """The names of the operations that ``submit`` knows."""
        ...
