"""What the connections of one server share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from stator.server.dispatcher import Dispatcher
from stator.server.limits import ServerLimits
from stator.server.reply import ReplyRenderer
from stator.server.settlement import Settlement


class SweptConnection(Protocol):
    def close_if_overdue(self, now: float) -> None: ...

    def finish(self) -> None: ...

    def abort(self) -> None: ...


class ServerContext:
    """``now`` is the loop's time at the last sweep: coarse on purpose, reading it costs nothing."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        renderer: ReplyRenderer,
        settlement: Settlement,
        limits: ServerLimits,
        now: float,
    ) -> None:
        self.dispatcher = dispatcher
        self.renderer = renderer
        self.settlement = settlement
        self.limits = limits
        self.now = now
        self.stopping = False
        self.connections: set[SweptConnection] = set()
        self._nobody_left: asyncio.Event = asyncio.Event()

    def joined(self, connection: SweptConnection) -> None:
        self.connections.add(connection)

    def left(self, connection: SweptConnection) -> None:
        self.connections.discard(connection)
        if self.stopping and not self.connections:
            self._nobody_left.set()

    def sweep(self, now: float) -> None:
        """Close the connections whose time is up. One pass per second, instead of a timer per request."""
        self.now = now
        self._each(lambda connection: connection.close_if_overdue(now))

    async def drain(self, timeout_seconds: float) -> None:
        """Let every connection finish what it has begun; cut off those that do not in time."""
        self.stopping = True
        self._each(lambda connection: connection.finish())
        if not self.connections:
            return
        try:
            await asyncio.wait_for(self._nobody_left.wait(), timeout_seconds)
        except TimeoutError:
            self._each(lambda connection: connection.abort())

    def _each(self, action: Callable[[SweptConnection], None]) -> None:
        for connection in tuple(self.connections):
            action(connection)
