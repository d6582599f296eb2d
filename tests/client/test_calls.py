"""What the clients do with every kind of answer, and with none."""

from __future__ import annotations

import json
import time
import zlib
from typing import Any

import pytest

from stator.errors import (
    AccessDenied,
    ConditionFailed,
    DeadlineExceeded,
    InternalServerError,
    OutcomeUnknown,
    ReplyDamaged,
    ReplyLost,
    SerializationFailed,
    ServiceError,
    ThroughputExceeded,
    Unreachable,
    ValidationFailed,
)
from stator.transport import ResentReply

from .conftest import Asking
from .scripted import Connection, drop, ok, raw, refuse, scripted, stall

THROTTLED = "ProvisionedThroughputExceededException"


def test_an_answer_comes_back(ask: Asking) -> None:
    with scripted(ok({"Item": {"pk": {"S": "\u00e9"}}})) as server:
        client = ask(server.url)
        for _ in range(5):
            assert client.call("GetItem", {"TableName": "t"}) == {"Item": {"pk": {"S": "\u00e9"}}}
    assert server.connections == 1
    head, body = server.requests[0]
    assert json.loads(body) == {"TableName": "t"}
    assert head.startswith("POST / HTTP/1.1\r\nHost: 127.0.0.1:")
    assert "X-Amz-Target: DynamoDB_20120810.GetItem" in head


def test_streams_have_a_target_of_their_own(ask: Asking) -> None:
    with scripted(ok()) as server:
        ask(server.url).call("GetRecords", {"ShardIterator": "x"})
    assert "X-Amz-Target: DynamoDBStreams_20120810.GetRecords" in server.requests[0][0]


@pytest.mark.parametrize(
    "first",
    [
        refuse(THROTTLED),
        refuse("InternalServerError", status=500),
        drop,
        refuse("ThrottlingException"),
    ],
)
def test_what_may_pass_is_tried_again(ask: Asking, first: Any) -> None:
    with scripted(first, first, ok({"Count": 1})) as server:
        assert ask(server.url).call("Query", {}) == {"Count": 1}
    assert len(server.requests) == 3


def test_what_cannot_pass_is_not(ask: Asking) -> None:
    with (
        scripted(refuse("ValidationException", "bad")) as server,
        pytest.raises(ValidationFailed, match="bad"),
    ):
        ask(server.url).call("Query", {})
    assert len(server.requests) == 1


def test_facts_of_an_error_come_through(ask: Asking) -> None:
    reasons = [{"reason": "TableReadKeyRangeThroughputExceeded", "resource": "arn:t"}]
    with scripted(refuse(THROTTLED, ThrottlingReasons=reasons)) as server:
        with pytest.raises(ThroughputExceeded) as caught:
            ask(server.url, max_attempts=2).call("Query", {})
        assert caught.value.throttling_reasons == reasons
        assert len(server.requests) == 2
    with scripted(refuse("ConditionalCheckFailedException", Item={"a": {"S": "b"}})) as server:
        with pytest.raises(ConditionFailed) as failed:
            ask(server.url).call("PutItem", {})
        assert failed.value.item == {"a": {"S": "b"}}
        assert not failed.value.after_unknown


def test_a_write_that_would_count_twice_is_not_sent_twice(ask: Asking) -> None:
    for first in (drop, refuse("InternalServerError", status=500)):
        with scripted(first, ok()) as server:
            with pytest.raises(OutcomeUnknown) as caught:
                ask(server.url).call("UpdateItem", {}, idempotent=False)
            assert caught.value.__cause__ is not None
            assert len(server.requests) == 1
    with scripted(refuse(THROTTLED), ok({"a": 1})) as server:  # this one was surely not carried out
        assert ask(server.url).call("UpdateItem", {}, idempotent=False) == {"a": 1}


def test_a_failed_condition_after_a_lost_answer_says_so(ask: Asking) -> None:
    script = (drop, refuse("ConditionalCheckFailedException", Item={"a": {"S": "b"}}))
    with scripted(*script) as server, pytest.raises(ConditionFailed) as caught:
        ask(server.url).call("PutItem", {})
    assert caught.value.after_unknown


def test_a_damaged_answer_is_not_believed(ask: Asking) -> None:
    body = b'{"Count": 7}'
    damaged = (
        f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n"
        f"x-amz-crc32: {zlib.crc32(body) ^ 1}\r\n\r\n".encode()
        + body
    )
    with scripted(raw(damaged), ok({"Count": 8})) as server:
        assert ask(server.url).call("Query", {}) == {"Count": 8}
    with scripted(raw(damaged)) as server, pytest.raises(ReplyDamaged):
        ask(server.url, max_attempts=2).call("Query", {})


@pytest.mark.parametrize("pieces", [1, 7, 1000])
def test_an_answer_in_pieces(ask: Asking, pieces: int) -> None:
    body = json.dumps({"Items": [{"n": {"N": str(n)}} for n in range(20)]}).encode()
    plain = b"HTTP/1.1 200 OK\r\ncontent-LENGTH:%d\r\n\r\n%b" % (len(body), body)
    chunks = b"".join(
        b"%x;note=1\r\n%b\r\n" % (len(part), part)
        for part in (body[:10], body[10:300], body[300:])
        if part
    )
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    interim = b"HTTP/1.1 100 Continue\r\n\r\n" + plain
    until_closed = b"HTTP/1.1 200 OK\r\n\r\n" + body
    for data, close in ((plain, False), (chunked, False), (interim, False), (until_closed, True)):
        with scripted(raw(data, pieces=pieces, close=close)) as server:
            assert ask(server.url).call("Query", {}) == json.loads(body)


def test_a_connection_that_is_to_be_closed_is_not_used_again(ask: Asking) -> None:
    with scripted(ok({}, "Connection: close")) as server:
        client = ask(server.url)
        client.call("Query", {})
        client.call("Query", {})
    assert server.connections == 2


def test_a_connection_that_died_while_idle_is_replaced(ask: Asking) -> None:
    def last_words(to: Any) -> None:
        ok({"n": 1})(to)
        drop(to)

    with scripted(last_words, ok({"n": 2})) as server:
        client = ask(server.url)
        assert client.call("Query", {}) == {"n": 1}
        time.sleep(1.1)
        assert client.call("UpdateItem", {}, idempotent=False) == {"n": 2}


def test_answers_that_are_not_dynamodbs(ask: Asking) -> None:
    forbidden = raw(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\n<html/>\r\n")
    with (
        scripted(forbidden) as server,
        pytest.raises(ServiceError, match="answered 403 without a DynamoDB error"),
    ):
        ask(server.url).call("Query", {})
    with scripted(
        raw(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"), ok({"n": 1})
    ) as server:
        assert ask(server.url).call("Query", {}) == {"n": 1}
    with (
        scripted(raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", close=True)) as server,
        pytest.raises((ReplyDamaged, ReplyLost)),
    ):
        ask(server.url, max_attempts=1).call("Query", {})
    with (
        scripted(refuse("AccessDeniedException", "not you")) as server,
        pytest.raises(AccessDenied),
    ):
        ask(server.url).call("Query", {})


def test_nobody_there(ask: Asking) -> None:
    with scripted(ok()) as server:
        gone = server.url
    with pytest.raises(Unreachable) as caught:
        ask(gone, max_attempts=2).call("Query", {})
    assert caught.value.hint


def test_an_answer_that_does_not_come(ask: Asking) -> None:
    with scripted(stall(0.5), ok({"n": 1})) as server:
        assert ask(server.url, read_timeout_seconds=0.1).call("Query", {}) == {"n": 1}
    with scripted(stall(0.5)) as server, pytest.raises(DeadlineExceeded):
        ask(server.url).call("Query", {}, deadline_seconds=0.15)
    with (
        scripted(refuse(THROTTLED)) as server,
        pytest.raises((DeadlineExceeded, ThroughputExceeded)),
    ):
        ask(server.url, max_attempts=50).call("Query", {}, deadline_seconds=0.3)


def test_a_wrong_clock_is_corrected(ask: Asking) -> None:
    from stator.clock import VirtualClock

    late = refuse(
        "InvalidSignatureException",
        "Signature expired: 20231114T221320Z is now earlier than ...",
        400,
        "Date: Mon, 16 Nov 2026 04:00:00 GMT",
    )
    with scripted(late, ok({"n": 1})) as server:
        client = ask(server.url, clock=VirtualClock(1_700_000_000.0))
        assert client.call("Query", {}) == {"n": 1}
        assert client.call("Query", {}) == {"n": 1}
    dates = [
        line
        for head, _ in server.requests
        for line in head.split("\r\n")
        if line.startswith("X-Amz-Date")
    ]
    assert [date[12:20] for date in dates] == ["20231114", "20261116", "20261116"]


def test_a_service_that_is_down_is_not_hammered(ask: Asking) -> None:
    from stator.clock import VirtualClock

    with scripted(refuse("InternalServerError", status=500)) as server:
        client = ask(server.url, clock=VirtualClock(), max_attempts=3, max_backoff_seconds=0.0001)
        for _ in range(150):
            with pytest.raises(InternalServerError):
                client.call("Query", {})
    assert len(server.requests) < 150 * 3 - 100  # the quota ran out on the way


def test_what_is_not_json_is_refused(ask: Asking) -> None:
    with scripted(ok()) as server, pytest.raises(SerializationFailed):
        ask(server.url).call("PutItem", {"Item": {"a": {"B": b"bytes"}}})
    assert server.requests == []


@pytest.mark.parametrize(
    ("first", "is_marked"),
    [(drop, True), (refuse("InternalServerError", status=500), True), (refuse(THROTTLED), False)],
)
def test_an_answer_after_a_lost_one_says_so(ask: Asking, first: Any, is_marked: bool) -> None:
    with scripted(first, refuse(THROTTLED), ok()) as server:
        answer = ask(server.url).call("PutItem", {"TableName": "t"})
    assert isinstance(answer, ResentReply) is is_marked
    assert answer == {}


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"<html>"])
def test_a_success_without_an_answer_is_not_believed(ask: Asking, body: bytes) -> None:
    def hollow(to: Connection) -> None:
        to.send(200, body)

    with scripted(hollow, refuse("ConditionalCheckFailedException")) as server:
        with pytest.raises(ConditionFailed) as failed:
            ask(server.url).call("PutItem", {"TableName": "t"})
        assert failed.value.after_unknown
    with (
        scripted(hollow) as server,
        pytest.raises(ReplyDamaged, match="UpdateItem is not a JSON object") as seen,
    ):
        ask(server.url, max_attempts=2).call("UpdateItem", {"TableName": "t"})
    assert seen.value.sent


def test_an_operation_without_output_may_answer_with_nothing(ask: Asking) -> None:
    with scripted(lambda to: to.send(200, b"")) as server:
        assert ask(server.url).call("TagResource", {"ResourceArn": "a"}) == {}
