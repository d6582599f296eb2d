"""Replies wait for their commits, in order, and clients that run ahead are held back."""

from __future__ import annotations

import orjson
import pytest

from stator.errors import StorageFull
from stator.model.scope import Scope
from stator.server import BackgroundServer, ServerLimits

from .conftest import Serve
from .fake_engine import FakeEngine, FakeReply
from .wire import WireClient, request_bytes


def test_pipelined_replies_leave_in_the_order_of_their_requests(
    client: WireClient, engine: FakeEngine
) -> None:
    client.send(request_bytes("1", operation="PutItem") + request_bytes("2", operation="GetItem"))
    engine.await_commits(1)
    client.send(request_bytes("3", operation="PutItem") + request_bytes("4", operation="GetItem"))
    first, third = engine.await_commits(1)
    engine.settle(third)
    engine.settle(first)
    assert [client.read().json["echo"] for _ in range(4)] == [1, 2, 3, 4]


def test_the_writes_of_one_turn_wait_together_for_the_newest(
    client: WireClient, engine: FakeEngine
) -> None:
    client.send(b"".join(request_bytes(str(number), operation="PutItem") for number in range(5)))
    assert engine.await_commits(1) == [5]
    engine.settle(5)
    assert [client.read().json["echo"] for _ in range(5)] == list(range(5))


def test_a_reply_does_not_leave_before_its_commit_is_durable(
    server: BackgroundServer, engine: FakeEngine
) -> None:
    with WireClient(server.port) as writer, WireClient(server.port) as reader:
        writer.send(request_bytes("1", operation="PutItem"))
        commits = engine.await_commits(1)
        assert reader.ask("2").json == {"echo": 2}  # a whole round trip of somebody else
        writer.sock.setblocking(False)
        with pytest.raises(BlockingIOError):
            writer.sock.recv(1)
        writer.sock.settimeout(30)
        engine.settle(*commits)
        assert writer.read().json == {"echo": 1}


def test_a_commit_that_is_durable_at_once_is_answered_at_once(serve: Serve) -> None:
    engine = FakeEngine(durable_at_once=True)
    with WireClient(serve(engine).port) as client:
        assert client.ask("1", operation="PutItem").json == {"echo": 1}


def test_a_write_that_cannot_be_made_durable_is_a_500(
    client: WireClient, engine: FakeEngine
) -> None:
    client.send(request_bytes("1", operation="PutItem"))
    engine.settle(*engine.await_commits(1), reason=StorageFull("/data", "no space left"))
    reply = client.read()
    assert reply.status == 500
    assert reply.json["__type"] == "com.amazonaws.dynamodb.v20120810#InternalServerError"
    reply.check_crc32()
    assert client.ask().status == 200


def test_a_failed_write_is_readable_where_its_reply_would_have_been_gzipped(
    client: WireClient, engine: FakeEngine
) -> None:
    body = orjson.dumps("x" * 5000)
    client.send(request_bytes(body, operation="PutItem", headers={"Accept-Encoding": "gzip"}))
    engine.settle(*engine.await_commits(1), reason=StorageFull("/data", "no space left"))
    assert client.read().json["__type"].endswith("#InternalServerError")


def test_a_client_that_left_does_not_disturb_the_commit(
    server: BackgroundServer, engine: FakeEngine
) -> None:
    with WireClient(server.port) as client:
        client.send(request_bytes("1", operation="PutItem"))
        commits = engine.await_commits(1)
    engine.settle(*commits)
    with WireClient(server.port) as client:
        assert client.ask().status == 200


def test_only_so_many_requests_run_ahead_of_their_replies(serve: Serve, engine: FakeEngine) -> None:
    server = serve(engine, limits=ServerLimits(pipelined_requests=3))
    with WireClient(server.port) as client:
        client.send(b"".join(request_bytes(str(n), operation="PutItem") for n in range(10)))
        engine.await_commits(1)
        with WireClient(server.port) as other:
            other.ask()  # the server has had time to run more, had it wanted to
        assert [operation for operation, *_ in engine.calls] == ["PutItem"] * 3 + ["GetItem"]
        engine.settle_always()
        assert [client.read().json["echo"] for _ in range(10)] == list(range(10))


@pytest.mark.parametrize("durable_at_once", [True, False])
def test_thousands_of_pipelined_requests_are_all_answered_in_order(
    serve: Serve, durable_at_once: bool
) -> None:
    engine = FakeEngine(durable_at_once=True)
    operation = "PutItem" if durable_at_once else "GetItem"
    with WireClient(serve(engine, limits=ServerLimits(pipelined_requests=2)).port) as client:
        client.send(b"".join(request_bytes(str(n), operation=operation) for n in range(3000)))
        assert [client.read().json["echo"] for _ in range(3000)] == list(range(3000))


def test_a_client_that_does_not_read_is_not_served_further(
    serve: Serve, engine: FakeEngine
) -> None:
    """Replies nobody reads must not pile up: what was asked stays asked until there is room."""
    engine.page = orjson.dumps("x" * 1_000_000)
    server = serve(engine)
    with WireClient(server.port) as greedy, WireClient(server.port) as other:
        greedy.send(request_bytes(operation="Scan") * 100)
        assert other.ask().status == 200
        assert len(engine.calls) < 50
        assert [greedy.read().body == engine.page for _ in range(100)] == [True] * 100


def test_commits_of_many_connections_are_settled_from_one_thread(
    server: BackgroundServer, engine: FakeEngine
) -> None:
    clients = [WireClient(server.port) for _ in range(20)]
    for number, client in enumerate(clients):
        client.send(request_bytes(str(number), operation="PutItem"))
    engine.await_commits(1)
    engine.settle_always()
    assert [client.read().json["echo"] for client in clients] == list(range(20))
    for client in clients:
        client.__exit__(None, None, None)


def test_a_full_disk_is_logged_once_and_answered_each_time(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    class Full(FakeEngine):
        def submit(self, operation: str, body: bytes, scope: Scope) -> FakeReply:
            raise StorageFull("data", "No space left on device")

    with WireClient(serve(Full()).port) as client:
        replies = [client.ask("{}", operation="PutItem") for _ in range(100)]
    assert {reply.status for reply in replies} == {500}
    assert len(caplog.records) == 1
    assert "no space left" in caplog.text and "free at least 40 MB" in caplog.text
