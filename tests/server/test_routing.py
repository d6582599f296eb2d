"""Everything that is answered before an operation runs, as AWS answers it."""

from __future__ import annotations

import pytest

from stator.server import BackgroundServer

from .conftest import Serve
from .fake_engine import FakeEngine
from .wire import WireClient

CORAL = "com.amazon.coral.service#"
NOT_FOUND = b"<UnknownOperationException/>\n"


def test_get_is_a_health_check(serve: Serve, engine: FakeEngine) -> None:
    with WireClient(serve(engine, region="eu-west-1").port) as client:
        reply = client.ask(b"", method="GET", headers={"Authorization": None})
    assert (reply.status, reply.body) == (200, b"healthy: dynamodb.eu-west-1.amazonaws.com ")
    reply.check_crc32()


@pytest.mark.parametrize("path", ["/abc", "/-", "/index.htm", "/health"])
def test_the_health_check_is_at_the_root_alone(client: WireClient, path: str) -> None:
    reply = client.ask(b"", method="GET", path=path)
    assert (reply.status, reply.body) == (404, NOT_FOUND)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_not_found(client: WireClient, method: str) -> None:
    reply = client.ask(b"", method=method)
    assert (reply.status, reply.body) == (404, NOT_FOUND)
    assert reply.headers["x-amz-crc32"] == "3552371480"


def test_head_has_no_body_and_the_connection_stays_in_step(client: WireClient) -> None:
    assert client.ask(b"", method="HEAD").status == 404
    assert client.ask().status == 200


@pytest.mark.parametrize("content_type", [None, "whatever", "application/x-amz-json-1.1"])
def test_a_body_of_another_type_is_not_found(client: WireClient, content_type: str | None) -> None:
    reply = client.ask("hi", headers={"Content-Type": content_type})
    assert (reply.status, reply.body) == (404, NOT_FOUND)


@pytest.mark.parametrize(
    "target",
    [
        None,
        "whatever",
        "DynamoDB_20120810.ListTable",
        "DynamoDB_20120810.",
        "DynamoDB_20120810.GetRecords",
        "DynamoDBStreams_20120810.GetItem",
    ],
)
def test_an_unknown_target_is_an_unknown_operation(client: WireClient, target: str | None) -> None:
    reply = client.ask(operation=None, headers={"X-Amz-Target": target})
    assert (reply.status, reply.json) == (400, {"__type": CORAL + "UnknownOperationException"})
    assert reply.headers["x-amz-crc32"] == "1368724161"


def test_stream_operations_have_their_own_prefix(client: WireClient, engine: FakeEngine) -> None:
    target = {"X-Amz-Target": "DynamoDBStreams_20120810.GetRecords"}
    assert client.ask(operation=None, headers=target).status == 200
    assert engine.calls[0][0] == "GetRecords"


def test_a_body_that_is_not_json_comes_before_target_and_caller(client: WireClient) -> None:
    for headers in ({"X-Amz-Target": "whatever"}, {"Authorization": None}):
        reply = client.ask("hi", headers=headers)
        assert (reply.status, reply.json) == (400, {"__type": CORAL + "SerializationException"})
        assert reply.headers["x-amz-crc32"] == "3948637019"


def test_the_path_does_not_matter(client: WireClient) -> None:
    assert client.ask(path="/some/where").status == 200


def test_an_origin_is_allowed_on_every_kind_of_reply(client: WireClient) -> None:
    origin: dict[str, str | None] = {"Origin": "https://example.com"}
    replies = [
        client.ask(headers=origin),
        client.ask(operation=None, headers=origin),
        client.ask(b"", method="GET", headers=origin),
        client.ask(b"", method="PUT", headers=origin),
    ]
    assert [reply.headers["access-control-allow-origin"] for reply in replies] == ["*"] * 4
    assert all(
        "x-amzn-RequestId" in reply.headers["access-control-expose-headers"] for reply in replies
    )
    assert "access-control-allow-origin" not in client.ask().headers


def test_a_preflight_is_granted_what_it_asks_for(client: WireClient) -> None:
    reply = client.ask(
        b"",
        method="OPTIONS",
        headers={
            "Origin": "https://example.com",
            "Access-Control-Request-Headers": "a, b, c",
            "Access-Control-Request-Method": "POST",
        },
    )
    assert (reply.status, reply.body) == (200, b"")
    assert reply.headers["access-control-allow-origin"] == "*"
    assert reply.headers["access-control-allow-headers"] == "a, b, c"
    assert reply.headers["access-control-allow-methods"] == "POST"
    assert reply.headers["access-control-max-age"] == "172800"


def test_a_url_tells_where_to_reach_the_server(server: BackgroundServer) -> None:
    assert server.url == f"http://127.0.0.1:{server.port}"


def test_an_operation_of_aws_that_is_not_served_is_named(client: WireClient) -> None:
    target = {"X-Amz-Target": "DynamoDB_20120810.PutResourcePolicy"}
    reply = client.ask(operation=None, headers=target)
    assert reply.json == {
        "__type": CORAL + "UnknownOperationException",
        "Message": "Stator does not support the operation PutResourcePolicy.",
    }
