"""HTTP/1.1 itself: framing, keep-alive, pipelining, refusals."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import socket
import tracemalloc
import zlib

import orjson
import pytest

from stator.server import BackgroundServer, ServerLimits

from .conftest import Serve
from .fake_engine import FakeEngine
from .memory_connection import feed
from .wire import WireClient, request_bytes

SMALL = ServerLimits(body_bytes=1000, head_bytes=8000)


def test_a_connection_serves_many_requests(client: WireClient) -> None:
    assert [client.ask(str(n)).json for n in range(5)] == [{"echo": n} for n in range(5)]


def test_connection_close_is_honoured(client: WireClient) -> None:
    reply = client.ask(headers={"Connection": "close"})
    assert (reply.status, reply.headers["connection"]) == (200, "close")
    assert client.is_closed()


def test_http_1_0_closes_unless_asked_to_stay(server: BackgroundServer) -> None:
    with WireClient(server.port) as client:
        assert client.ask(version="1.0").status == 200
        assert client.is_closed()
    with WireClient(server.port) as client:
        assert client.ask(version="1.0", headers={"Connection": "keep-alive"}).status == 200
        assert client.ask().status == 200


def test_requests_may_arrive_byte_by_byte(client: WireClient) -> None:
    for byte in request_bytes('{"a":1}'):
        client.send(bytes([byte]))
    assert client.read().json == {"echo": {"a": 1}}


def test_a_chunked_body_is_put_together(client: WireClient) -> None:
    client.send(request_bytes(b"", length=False, headers={"Transfer-Encoding": "chunked"}))
    client.send(b'4\r\n{"a"\r\n3;extension\r\n:1}\r\n0\r\n\r\n')
    assert client.read().json == {"echo": {"a": 1}}


def test_a_trailer_does_not_pass_for_a_header(client: WireClient) -> None:
    client.send(
        request_bytes(b"", operation=None, length=False, headers={"Transfer-Encoding": "chunked"})
        + b"2\r\n{}\r\n0\r\nX-Amz-Target: DynamoDB_20120810.GetItem\r\n\r\n"
    )
    assert client.read().json == {"__type": "com.amazon.coral.service#UnknownOperationException"}


def test_a_client_that_expects_100_is_told_to_continue(client: WireClient) -> None:
    whole = request_bytes('{"a":1}', headers={"Expect": "100-continue"})
    client.send(whole[:-7])
    assert client.read().status == 100
    client.send(whole[-7:])
    assert client.read().json == {"echo": {"a": 1}}


def test_an_upgrade_is_declined_and_the_request_answered(client: WireClient) -> None:
    upgrade: dict[str, str | None] = {"Connection": "Upgrade", "Upgrade": "h2c"}
    client.send(
        request_bytes("1", headers=upgrade)
        + request_bytes("2", headers=upgrade)
        + request_bytes("3")
    )
    assert [client.read().json for _ in range(3)] == [{"echo": 1}, {"echo": 2}, {"echo": 3}]


def test_an_upgrade_is_declined_before_the_body_has_arrived(client: WireClient) -> None:
    whole = request_bytes('{"a":1}', headers={"Connection": "Upgrade", "Upgrade": "h2c"})
    for part in (whole[:-7], whole[-7:-3], whole[-3:]):
        client.send(part)
    assert client.read().json == {"echo": {"a": 1}}


def test_a_tunnel_is_not_opened(client: WireClient) -> None:
    client.send(b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\nwhatever")
    assert [client.read().status, client.read().status] == [404, 400]
    assert client.is_closed()


@pytest.mark.parametrize(
    "rubbish",
    [
        b"hello\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n",
    ],
)
def test_bad_http_is_refused(client: WireClient, rubbish: bytes) -> None:
    client.send(rubbish)
    reply = client.read()
    assert (reply.status, reply.headers["connection"], reply.body) == (400, "close", b"")
    assert client.is_closed()


def test_bad_http_behind_a_good_request_does_not_overtake_it(
    client: WireClient, engine: FakeEngine
) -> None:
    client.send(request_bytes("1", operation="PutItem") + b"rubbish\r\n\r\n")
    engine.settle(*engine.await_commits(1))
    assert client.read().json == {"echo": 1}
    assert client.read().status == 400
    assert client.is_closed()


def test_a_body_at_the_limit_passes_and_one_byte_more_is_413(
    serve: Serve, engine: FakeEngine
) -> None:
    port = serve(engine, limits=SMALL).port
    at_the_limit = orjson.dumps("x" * 998)
    with WireClient(port) as client:
        assert client.ask(at_the_limit).status == 200
        reply = client.ask(at_the_limit + b" ")
        assert (reply.status, reply.body) == (413, b"")
        assert reply.headers["transfer-encoding"] == "chunked"
        assert client.is_closed()
    assert len(engine.calls) == 1


def test_a_chunked_body_over_the_limit_is_413_though_more_is_still_sent(
    serve: Serve, engine: FakeEngine
) -> None:
    with WireClient(serve(engine, limits=SMALL).port) as client:
        client.send(request_bytes(b"", length=False, headers={"Transfer-Encoding": "chunked"}))
        for _ in range(100):
            client.send(b"400\r\n" + b"x" * 1024 + b"\r\n")
        assert client.read().status == 413
    assert engine.calls == []


def test_a_client_that_expects_100_learns_at_once_that_its_body_is_too_large(
    serve: Serve, engine: FakeEngine
) -> None:
    with WireClient(serve(engine, limits=SMALL).port) as client:
        client.send(
            request_bytes(b"", headers={"Content-Length": "1001", "Expect": "100-continue"})
        )
        assert client.read().status == 413


def test_a_head_without_end_is_refused(serve: Serve, engine: FakeEngine) -> None:
    with WireClient(serve(engine, limits=SMALL).port) as client:
        client.send(b"POST / HTTP/1.1\r\n")
        refused = False
        for number in range(100_000):
            try:
                client.send(b"X-Header-%d: %s\r\n" % (number, b"x" * 1000))
            except (BrokenPipeError, ConnectionResetError):
                refused = True
                break
            client.sock.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                refused = client.sock.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 431"
            client.sock.settimeout(30)
            if refused:
                break
        assert refused


@pytest.mark.parametrize("in_pieces", [False, True])
def test_a_head_over_the_limit_is_refused(
    serve: Serve, engine: FakeEngine, in_pieces: bool
) -> None:
    with WireClient(serve(engine, limits=SMALL).port) as client:
        request = request_bytes("1", headers={"X-Long": "x" * SMALL.head_bytes})
        for piece in (request[:100], request[100:]) if in_pieces else (request,):
            client.send(piece)
        assert client.read().status == 431
        assert client.is_closed()
    assert engine.calls == []


def test_trailers_without_end_are_refused() -> None:
    head = request_bytes(b"", length=False, headers={"Transfer-Encoding": "chunked"})
    trailers = (b"X-%d: y\r\n" % number for number in range(1000))
    written = feed([head, b"2\r\n{}\r\n0\r\n", *trailers]).written
    assert written.startswith(b"HTTP/1.1 431 ")
    one_without_end = itertools.repeat(b"y" * 100, 100)
    written = feed([head, b"2\r\n{}\r\n0\r\nX: ", *one_without_end]).written
    assert written.startswith(b"HTTP/1.1 431 ")


def test_a_few_trailers_are_ignored() -> None:
    head = request_bytes(b"", length=False, headers={"Transfer-Encoding": "chunked"})
    written = feed([head, b"2\r\n{}\r\n0\r\n", b"X-Amz-Target: other\r\n", b"\r\n"]).written
    assert written.startswith(b"HTTP/1.1 200 ")


def test_a_body_of_tiny_chunks_takes_no_more_memory_than_a_whole_one(
    serve: Serve, engine: FakeEngine
) -> None:
    body = orjson.dumps("x" * 2_000_000)
    chunks = b"".join(b"2\r\n%b\r\n" % body[at : at + 2] for at in range(0, len(body), 2))
    with WireClient(serve(engine).port) as client:
        tracemalloc.start()
        try:
            client.send(request_bytes(b"", length=False, headers={"Transfer-Encoding": "chunked"}))
            client.send(chunks + b"0\r\n\r\n")
            assert client.read().json == {"echo": "x" * 2_000_000}
            assert tracemalloc.get_traced_memory()[1] < 20 * len(body)
        finally:
            tracemalloc.stop()


def test_bodies_that_arrive_together_are_bounded(serve: Serve, engine: FakeEngine) -> None:
    limits = ServerLimits(body_bytes=1_000_000, arriving_bytes=2_500_000)
    port = serve(engine, limits=limits).port
    with contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(WireClient(port)) for _ in range(4)]
        for client in waiting:
            client.send(request_bytes(b"", headers={"Content-Length": "1000000"}))
            client.send(b"x" * 900_000)
            with WireClient(port) as other:  # it is answered after the server has read all that
                assert other.ask("1").json == {"echo": 1}
        refused = waiting[2:]
        assert [client.read().status for client in refused] == [503, 503]
        for client in waiting[:2]:
            client.send(b'"' + b"x" * 99_999)
            assert client.read().status in (200, 400)


def test_a_deflated_request_is_unpacked(client: WireClient) -> None:
    body = zlib.compress(b'{"a":1}')
    assert client.ask(body, headers={"Content-Encoding": "deflate"}).json == {"echo": {"a": 1}}
    assert client.ask(body + b"junk", headers={"Content-Encoding": "deflate"}).status == 200


def test_a_gzipped_request_is_unpacked(client: WireClient, engine: FakeEngine) -> None:
    reply = client.ask(gzip.compress(b'{"a":1}'), headers={"Content-Encoding": "gzip"})
    assert reply.json == {"echo": {"a": 1}}
    assert engine.calls[0][1] == b'{"a":1}'


def test_a_request_may_be_gzipped_in_pieces(client: WireClient) -> None:
    pieces = gzip.compress(b'{"a"') + gzip.compress(b":1}")
    assert client.ask(pieces, headers={"Content-Encoding": "gzip"}).json == {"echo": {"a": 1}}
    assert client.ask(pieces + b"junk", headers={"Content-Encoding": "gzip"}).json == {
        "echo": {"a": 1}
    }


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", b"not gzip"),
        ("gzip", b""),
        ("gzip", gzip.compress(b"{}", mtime=0)[:-1]),
        ("gzip", gzip.compress(b"{}", mtime=0) * 2 + gzip.compress(b"{}", mtime=0)[:-9]),
        ("deflate", b"{}"),
        ("deflate", b""),
        ("deflate", zlib.compress(b"{}")[:-1]),
        ("br", b"{}"),
    ],
)
def test_a_body_that_cannot_be_unpacked_is_an_internal_error(
    client: WireClient, engine: FakeEngine, encoding: str, body: bytes
) -> None:
    reply = client.ask(body, headers={"Content-Encoding": encoding})
    assert (reply.status, reply.json["__type"].partition("#")[2]) == (500, "InternalServerError")
    assert engine.calls == []


def test_a_zip_bomb_is_413(serve: Serve, engine: FakeEngine) -> None:
    with WireClient(serve(engine, limits=SMALL).port) as client:
        bomb = gzip.compress(b"[" + b" " * 100_000 + b"]")
        assert client.ask(bomb, headers={"Content-Encoding": "gzip"}).status == 413
    assert engine.calls == []


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip", "gzip"),
        ("deflate", "deflate"),
        ("deflate, gzip;q=1.0", "deflate"),
        ("identity", None),
        ("gzip;q=0", None),
        (None, None),
    ],
)
def test_a_large_reply_is_compressed_for_who_accepts_it(
    server: BackgroundServer, engine: FakeEngine, accepted: str | None, encoding: str | None
) -> None:
    engine.page = orjson.dumps({"Items": ["x" * 10] * 1000})
    with WireClient(server.port) as client:
        reply = client.ask(operation="Scan", headers={"Accept-Encoding": accepted})
        assert reply.headers.get("content-encoding") == encoding
        assert reply.body == engine.page
        assert (len(reply.raw) < len(engine.page)) is (encoding is not None)
        reply.check_crc32()


@pytest.mark.parametrize(("size", "encoding"), [(4095, None), (4096, "gzip")])
def test_a_reply_is_compressed_from_4_kilobytes_on(
    server: BackgroundServer, engine: FakeEngine, size: int, encoding: str | None
) -> None:
    engine.page = b'"' + b"x" * (size - 2) + b'"'
    with WireClient(server.port) as client:
        reply = client.ask(operation="Scan", headers={"Accept-Encoding": "gzip"})
        assert (reply.headers.get("content-encoding"), reply.body) == (encoding, engine.page)


def test_a_client_may_stop_sending_and_still_get_its_replies(
    client: WireClient, engine: FakeEngine
) -> None:
    client.send(request_bytes("1", operation="PutItem"))
    commits = engine.await_commits(1)
    client.send(b"POST / HTTP/1.1")  # the beginning of a request that never comes
    client.sock.shutdown(socket.SHUT_WR)
    engine.settle(*commits)
    assert client.read().json == {"echo": 1}
    assert client.is_closed()
