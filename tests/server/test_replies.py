"""What every reply carries, and that the body reaches the engine as it came."""

from __future__ import annotations

import re

import pytest

from stator.model.scope import Scope
from stator.server.http.reply import Outcome, ReplyRenderer, RequestIds, http_date

from .fake_engine import FakeEngine
from .wire import WireClient


def test_a_reply_has_the_headers_of_aws(client: WireClient) -> None:
    reply = client.ask('{"a":1}')
    assert reply.status == 200
    assert reply.json == {"echo": {"a": 1}}
    assert reply.headers["server"] == "Server"
    assert reply.headers["content-type"] == "application/x-amz-json-1.0"
    assert reply.headers["connection"] == "keep-alive"
    assert reply.headers["content-length"] == str(len(reply.raw))
    assert re.fullmatch("[0-9A-Z]{52}", reply.headers["x-amzn-requestid"])
    assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", reply.headers["date"])
    reply.check_crc32()


def test_the_engine_gets_operation_body_and_scope(client: WireClient, engine: FakeEngine) -> None:
    client.ask('{ "spaces":  "kept" }', operation="ListTables")
    assert engine.calls == [("ListTables", b'{ "spaces":  "kept" }', Scope())]


def test_the_reply_speaks_the_content_type_of_the_request(client: WireClient) -> None:
    reply = client.ask(headers={"Content-Type": "application/json; charset=utf-8"})
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"


def test_an_empty_body_and_a_body_that_is_not_json_reach_the_engine(
    client: WireClient, engine: FakeEngine
) -> None:
    assert client.ask(b"").json == {"__type": "com.amazon.coral.service#SerializationException"}
    assert client.ask(b"hi").json == {"__type": "com.amazon.coral.service#SerializationException"}
    assert [body for _, body, _ in engine.calls] == [b"", b"hi"]


def test_a_defect_in_the_engine_is_a_500_and_the_server_goes_on(client: WireClient) -> None:
    reply = client.ask(operation="DeleteTable")
    assert reply.status == 500
    assert reply.json["__type"] == "com.amazonaws.dynamodb.v20120810#InternalServerError"
    assert client.ask().status == 200


def test_header_names_are_read_in_any_case(client: WireClient) -> None:
    reply = client.ask(operation=None, headers={"x-aMz-tArGeT": "DynamoDB_20120810.GetItem"})
    assert reply.status == 200


def test_request_ids_differ() -> None:
    ids = RequestIds()
    made = [ids.next_id() for _ in range(5000)]
    assert len(set(made)) == 5000
    assert all(re.fullmatch(rb"[A-Z0-9]{52}", made_id) for made_id in made)


def test_the_date_is_in_http_form() -> None:
    assert http_date(784111777) == b"Sun, 06 Nov 1994 08:49:37 GMT"


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (200, b"OK"),
        (400, b"Bad Request"),
        (404, b"Not Found"),
        (413, b"Request Entity Too Large"),
        (431, b"Request Header Fields Too Large"),
        (500, b"Internal Server Error"),
        (503, b"Service Unavailable"),
    ],
)
def test_the_status_line_names_the_reason(status: int, reason: bytes) -> None:
    reply = ReplyRenderer(0.0).render(Outcome(status, b""), keep_alive=True)
    assert reply.startswith(b"HTTP/1.1 %d %b\r\n" % (status, reason))
