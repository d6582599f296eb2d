"""However the network cuts a stream into pieces, and whatever is in it, a connection holds."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from stator.clock import SystemClock
from stator.server.authentication import Authenticator
from stator.server.connection import Connection
from stator.server.context import ServerContext
from stator.server.dispatcher import Dispatcher
from stator.server.limits import ServerLimits
from stator.server.reply import ReplyRenderer
from stator.server.settlement import Settlement

from .fake_engine import FakeEngine
from .wire import request_bytes

LIMITS = ServerLimits(body_bytes=500, head_bytes=2000, pipelined_requests=10)
STREAM = (
    request_bytes('{"a":1}')
    + request_bytes("2", operation="PutItem")
    + request_bytes(b"", method="GET")
    + request_bytes(b"", length=False, headers={"Transfer-Encoding": "chunked"})
    + b"1\r\n4\r\n1;x=y\r\n4\r\n0\r\n\r\n"
    + request_bytes("5", headers={"Connection": "Upgrade", "Upgrade": "h2c"})
    + request_bytes("6", headers={"Expect": "100-continue"})
    + request_bytes("7", headers={"Connection": "close"})
    + b"nobody reads this"
)


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
    """As much of an event loop as a settlement needs: what is called soon is called at the end of the turn."""

    def __init__(self) -> None:
        self._soon: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._soon.append(callback)

    def end_turn(self) -> None:
        while self._soon:
            self._soon.pop(0)()


def feed(pieces: list[bytes]) -> MemoryTransport:
    """Hand the pieces to a fresh connection; every write is durable at once."""
    engine = FakeEngine(durable_at_once=True)
    authenticator = Authenticator(None, SystemClock())
    loop = Turns()
    context = ServerContext(
        dispatcher=Dispatcher(engine, authenticator, LIMITS, "us-east-1"),
        renderer=ReplyRenderer(0.0),
        settlement=Settlement(engine, loop),  # type: ignore[arg-type]
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


EXPECTED = without_request_ids(feed([STREAM]).written)


def test_the_stream_has_all_its_replies() -> None:
    assert re.findall(rb"HTTP/1.1 (\d+)", EXPECTED) == [b"200", b"200", b"200", b"200", b"200", b"100"] + [b"200"] * 2
    assert re.findall(rb'"echo":(\d+)', EXPECTED) == [b"2", b"44", b"5", b"6", b"7"]


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_how_a_stream_is_cut_makes_no_difference(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[start:end] for start, end in itertools.pairwise(edges)]
    transport = feed(pieces)
    assert transport.closed
    assert without_request_ids(transport.written) == EXPECTED


@given(st.lists(st.one_of(st.binary(max_size=40), st.sampled_from([STREAM[:150], STREAM[150:400]])), max_size=8))
def test_rubbish_is_answered_at_most_once_and_never_raises(pieces: list[bytes]) -> None:
    written = feed(pieces).written
    refusals = re.findall(rb"HTTP/1.1 (400|413|431) .*\r\n(?:.*\r\n)*?Connection: close", written)
    assert len(refusals) <= 1
