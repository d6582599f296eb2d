"""What the server's context asks of a connection.

In a module of its own because it is never compiled: compiled, a Protocol would accept only its declared subclasses.
"""

from __future__ import annotations

from typing import Protocol


class SweptConnection(Protocol):
    def close_if_overdue(self, now: float) -> None: ...

    def finish(self) -> None: ...

    def abort(self) -> None: ...
