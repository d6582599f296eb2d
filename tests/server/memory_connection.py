"""A connection without a network: pieces of a stream in, what was written out."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable

from stator.clock import SystemClock
from stator.server.auth.authenticator import Authenticator
from stator.server.dispatcher import Dispatcher
from stator.server.http.connection import Connection
from stator.server.http.context import ServerContext
from stator.server.http.limits import ServerLimits
from stator.server.http.reply import ReplyRenderer
from stator.server.http.settlement import Settlement

from .fake_engine import FakeEngine

LIMITS = ServerLimits(body_bytes=500, head_bytes=2000, pipelined_requests=10)


class MemoryTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closed
        self.written += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def can_write_eof(self) -> bool:
        return False

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class Turns:
    """As much of an event loop as a settlement needs: ``call_soon`` runs at the end of the turn."""

    def __init__(self) -> None:
        self._soon: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._soon.append(callback)

    def end_turn(self) -> None:
        while self._soon:
            self._soon.pop(0)()


def feed(pieces: Iterable[bytes]) -> MemoryTransport:
    """Hand the pieces to a fresh connection; every write is durable at once."""
    engine = FakeEngine(durable_at_once=True)
    authenticator = Authenticator(None, SystemClock())
    loop = Turns()
    context = ServerContext(
        dispatcher=Dispatcher(engine, authenticator, LIMITS, "us-east-1"),
        renderer=ReplyRenderer(0.0),
        settlement=Settlement(engine, loop),  # type: ignore[arg-type]  # it needs only call_soon
        limits=LIMITS,
        now=0.0,
        call_soon=lambda write: write(),
    )
    transport = MemoryTransport()
    connection = Connection(context)
    connection.connection_made(transport)
    for piece in pieces:
        connection.data_received(piece)
        loop.end_turn()
    return transport


def without_request_ids(written: bytes) -> bytes:
    return re.sub(rb"x-amzn-RequestId: \w+", b"", written)
