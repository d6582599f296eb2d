"""Slow clients, idle ones, and the end of the server. Time is pushed on, never waited for."""

from __future__ import annotations

import asyncio
import socket
import threading

import orjson
import pytest

from stator.server import BackgroundServer, ServerLimits, ServerOptions

from .conftest import Serve
from .fake_engine import FakeEngine
from .wire import WireClient, request_bytes

NO_SWEEP = ServerLimits(sweep_seconds=3600.0)  # the tests sweep themselves


def sweep_after(server: BackgroundServer, seconds: float) -> None:
    """Let the server believe that ``seconds`` have passed."""
    done = threading.Event()

    def sweep() -> None:
        server.server.context.sweep(server.server.context.now + seconds)
        done.set()

    server.call_soon(sweep)
    assert done.wait(30)


@pytest.fixture
def server(serve: Serve, engine: FakeEngine) -> BackgroundServer:
    return serve(engine, limits=NO_SWEEP)


def test_an_idle_connection_is_kept_for_a_while_and_then_closed(
    server: BackgroundServer, client: WireClient
) -> None:
    client.ask()
    sweep_after(server, NO_SWEEP.idle_seconds - 1)
    assert client.ask().status == 200
    sweep_after(server, NO_SWEEP.idle_seconds + 1)
    assert client.is_closed()


def test_a_request_that_does_not_come_to_an_end_is_cut_off(
    server: BackgroundServer, client: WireClient
) -> None:
    client.ask()
    client.send(request_bytes()[:-1])
    with WireClient(server.port) as other:
        other.ask()  # by now the server has read the first part
    sweep_after(server, NO_SWEEP.request_seconds - 1)
    client.send(b"}")
    assert client.read().status == 200
    client.send(b"POST / HT")
    with WireClient(server.port) as other:
        other.ask()
    sweep_after(server, NO_SWEEP.request_seconds + 1)
    assert client.is_closed()


def test_a_client_waiting_for_durability_is_not_cut_off(
    server: BackgroundServer, client: WireClient, engine: FakeEngine
) -> None:
    client.send(request_bytes("1", operation="PutItem"))
    commits = engine.await_commits(1)
    sweep_after(server, 1_000_000)
    engine.settle(*commits)
    assert client.read().json == {"echo": 1}


def test_a_client_that_does_not_read_its_reply_is_cut_off(
    server: BackgroundServer, engine: FakeEngine
) -> None:
    engine.page = orjson.dumps("x" * 16_000_000)
    with WireClient(server.port) as greedy, WireClient(server.port) as other:
        greedy.send(request_bytes(operation="Scan"))
        other.ask()
        sweep_after(server, 0)
        sweep_after(server, NO_SWEEP.write_seconds + 1)
        received = 0
        while piece := _receive(greedy):
            received += len(piece)
        assert received < len(engine.page)


def _receive(client: WireClient) -> bytes:
    try:
        return client.sock.recv(1 << 20)
    except ConnectionResetError:
        return b""


def test_a_refused_client_is_not_listened_to_for_ever(
    server: BackgroundServer, client: WireClient
) -> None:
    client.send(b"rubbish\r\n\r\n")
    assert client.read().status == 400
    assert len(server.server.context.connections) == 1
    sweep_after(server, NO_SWEEP.linger_seconds + 1)
    assert client.is_closed()


def test_stopping_closes_idle_connections_and_the_door(serve: Serve, engine: FakeEngine) -> None:
    server = serve(engine)
    with WireClient(server.port) as client:
        client.ask()
        port = server.port
        server.stop()
        assert client.is_closed()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=30)


def test_stopping_lets_requests_in_flight_finish(serve: Serve, engine: FakeEngine) -> None:
    server = serve(engine)
    with WireClient(server.port) as waiting, WireClient(server.port) as sending:
        waiting.send(request_bytes("1", operation="PutItem"))
        commits = engine.await_commits(1)
        sending.send(request_bytes("2")[:-1])
        with WireClient(server.port) as other:
            other.ask()
        stopping = threading.Event()
        server.call_soon(
            server._stop.set
        )  # stop() would wait here for what only this thread can finish
        server.call_soon(lambda: server.call_soon(stopping.set))
        assert stopping.wait(30)
        sending.send(b"2")
        reply = sending.read()
        assert (reply.json, reply.headers["connection"]) == ({"echo": 2}, "close")
        assert sending.is_closed()
        engine.settle(*commits)
        assert waiting.read().json == {"echo": 1}
        assert waiting.is_closed()
    server.stop()


HALVES = [
    request_bytes("1")[:20],
    request_bytes("1")[: request_bytes("1").index(b"\r\n\r\n")],
    request_bytes('{"a":1}')[:-3],
    request_bytes(b"", length=False, headers={"Transfer-Encoding": "chunked"}) + b"5\r\nab",
]


@pytest.mark.parametrize("half", HALVES)
def test_stopping_does_not_wait_for_half_a_request(
    serve: Serve, engine: FakeEngine, half: bytes
) -> None:
    server = serve(engine, limits=ServerLimits(shutdown_arrival_seconds=0.0))
    with WireClient(server.port) as client, WireClient(server.port) as other:
        client.send(half)
        other.ask()
        asyncio.run_coroutine_threadsafe(server.server.stop(3600.0), server._loop).result(30)
        assert client.is_closed()


@pytest.mark.parametrize("half", HALVES)
def test_stopping_answers_the_request_before_half_a_request(
    serve: Serve, engine: FakeEngine, half: bytes
) -> None:
    server = serve(engine, limits=ServerLimits(shutdown_arrival_seconds=0.0))
    with WireClient(server.port) as client, WireClient(server.port) as other:
        client.send(request_bytes("1", operation="PutItem"))
        commits = engine.await_commits(1)
        client.send(half)
        other.ask()
        stopped = asyncio.run_coroutine_threadsafe(server.server.stop(3600.0), server._loop)
        other.is_closed()
        engine.settle(*commits)
        assert client.read().json == {"echo": 1}
        stopped.result(30)
        assert client.is_closed()


def test_stopping_does_not_wait_after_a_refusal(serve: Serve, engine: FakeEngine) -> None:
    server = serve(engine)
    with WireClient(server.port) as client, WireClient(server.port) as other:
        client.send(request_bytes("1", operation="PutItem"))
        commits = engine.await_commits(1)
        client.send(b"this is not HTTP\r\n\r\n")
        other.ask()
        stopped = asyncio.run_coroutine_threadsafe(server.server.stop(3600.0), server._loop)
        other.is_closed()
        engine.settle(*commits)
        assert client.read().json == {"echo": 1}
        assert client.read().status == 400
        stopped.result(30)


def test_stopping_has_a_deadline(engine: FakeEngine) -> None:
    server = BackgroundServer(engine, ServerOptions(port=0, stop_seconds=0.0))
    server.start()
    with WireClient(server.port) as client:
        client.send(request_bytes("1", operation="PutItem"))
        commits = engine.await_commits(1)
        server.stop()
        assert client.is_closed()
    engine.settle(*commits)  # too late for anybody, and harmless


def test_a_port_in_use_is_the_systems_error(server: BackgroundServer, engine: FakeEngine) -> None:
    with pytest.raises(OSError, match="address already in use"):
        BackgroundServer(engine, ServerOptions(port=server.port)).start()
