"""``read_whole`` agrees with the parser, and accepts the requests of real clients."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.server.http.request import HttpRequest, read_whole

from .memory_connection import feed, without_request_ids
from .wire import AUTHORIZATION, request_bytes

BODY = b'{"TableName":"t"}'
HEAD_BYTES = 2000
BODY_BYTES = 1000

# Heads as the clients send them, but for the Content-Length.
CLIENTS = {
    "boto3": (
        "Host: localhost:8000\r\n"
        "Accept-Encoding: identity\r\n"
        "X-Amz-Target: DynamoDB_20120810.GetItem\r\n"
        "Content-Type: application/x-amz-json-1.0\r\n"
        "User-Agent: Boto3/1.43.0 md/Botocore#1.43.0 ua/2.1 os/linux#6.1 md/arch#x86_64 "
        "lang/python#3.11.7\r\n"
        f"X-Amz-Date: 20260101T000000Z\r\nAuthorization: {AUTHORIZATION}\r\n"
        "amz-sdk-invocation-id: 3c5a0d4e-8a2f-4d5e-9f4b-0a1b2c3d4e5f\r\n"
        "amz-sdk-request: attempt=1\r\n"
    ),
    "go": (
        "Host: localhost:8000\r\n"
        "User-Agent: aws-sdk-go-v2/1.30.0 os/linux lang/go#1.22 md/GOOS#linux\r\n"
        "Accept-Encoding: identity\r\n"
        "Amz-Sdk-Invocation-Id: 3c5a0d4e\r\n"
        "Amz-Sdk-Request: attempt=1; max=3\r\n"
        f"Authorization: {AUTHORIZATION}\r\nContent-Type: application/x-amz-json-1.0\r\n"
        "X-Amz-Date: 20260101T000000Z\r\nX-Amz-Target: DynamoDB_20120810.GetItem\r\n"
    ),
    "java": (
        "Host: localhost:8000\r\n"
        "amz-sdk-invocation-id: 3c5a0d4e\r\n"
        "amz-sdk-request: attempt=1; max=9\r\n"
        f"Authorization: {AUTHORIZATION}\r\nContent-Type: application/x-amz-json-1.0\r\n"
        "User-Agent: aws-sdk-java/2.29.0 md/io#sync md/http#Apache ua/2.1\r\n"
        "X-Amz-Date: 20260101T000000Z\r\n"
        "X-Amz-Target: DynamoDB_20120810.GetItem\r\nConnection: Keep-Alive\r\n"
    ),
    "javascript": (
        "content-type: application/x-amz-json-1.0\r\nx-amz-target: DynamoDB_20120810.GetItem\r\n"
        "host: localhost:8000\r\n"
        "x-amz-user-agent: aws-sdk-js/3.700.0\r\n"
        "x-amz-date: 20260101T000000Z\r\n"
        f"authorization: {AUTHORIZATION}\r\nConnection: keep-alive\r\n"
    ),
}

UNUSUAL = {
    "another method": request_bytes(BODY, method="GET"),
    "another path": request_bytes(BODY, path="/x"),
    "HTTP/1.0": request_bytes(BODY, version="1.0"),
    "no length": request_bytes(b"", length=False),
    "a length with a sign": request_bytes(BODY, headers={"Content-Length": f"+{len(BODY)}"}),
    "a length with a zero in front": request_bytes(
        BODY, headers={"Content-Length": f"0{len(BODY)}"}
    ),
    "a shorter length": request_bytes(BODY, headers={"Content-Length": "3"}),
    "two lengths": request_bytes(BODY, headers={"content-length": str(len(BODY))}),
    "chunks": request_bytes(BODY, headers={"Transfer-Encoding": "chunked"}),
    "an expectation": request_bytes(BODY, headers={"Expect": "100-continue"}),
    "an upgrade": request_bytes(BODY, headers={"Upgrade": "h2c"}),
    "the end of the connection": request_bytes(BODY, headers={"Connection": "close"}),
    "a name twice": request_bytes(BODY, headers={"host": "elsewhere"}),
    "a name with a space": request_bytes(BODY, headers={"X-Amz-Target ": "x"}),
    "no name": request_bytes(BODY, headers={"": "x"}),
    "no value": request_bytes(BODY, headers={"X-Empty": ""}),
    "a folded line": request_bytes(BODY).replace(b"Host: localhost", b"Host: local\r\n host"),
    "a control character": request_bytes(BODY, headers={"X-Odd": "a\0b"}),
    "a bare carriage return": request_bytes(BODY, headers={"X-Odd": "a\rb"}),
    "bare line feeds": request_bytes(BODY).replace(b"\r\n", b"\n"),
    "a space behind a value": request_bytes(BODY, headers={"X-Odd": "a "}),
    "a head without end": request_bytes(b"", headers={"X-Last": "0"})[:-3],
    "too many lines": request_bytes(BODY, headers={f"X-{number}": "x" for number in range(100)}),
    "a body over the limit": request_bytes(b"x" * (BODY_BYTES + 1)),
    "the beginning of a second request": request_bytes(BODY) + b"P",
    "a missing end": request_bytes(BODY)[:-1],
    "nothing": b"",
    "a head over the limit": request_bytes(BODY, headers={"X-Long": "x" * HEAD_BYTES}),
}


def test_a_usual_request_is_taken_apart() -> None:
    assert read_whole(request_bytes(BODY), HEAD_BYTES, BODY_BYTES) == HttpRequest(
        b"POST",
        b"/",
        {
            b"host": b"localhost",
            b"content-type": b"application/x-amz-json-1.0",
            b"x-amz-target": b"DynamoDB_20120810.GetItem",
            b"x-amz-date": b"20260101T000000Z",
            b"authorization": AUTHORIZATION.encode(),
            b"content-length": str(len(BODY)).encode(),
        },
        BODY,
        True,
    )


@pytest.mark.parametrize("head", CLIENTS.values(), ids=CLIENTS.keys())
@pytest.mark.parametrize("body", [BODY, b"{}", b'{\r\n"TableName":\n"t"\n}'])
def test_the_requests_of_clients_are_usual(head: str, body: bytes) -> None:
    data = f"POST / HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    for _ in range(2):  # the second time, most lines are known
        request = read_whole(data, HEAD_BYTES, BODY_BYTES)
        assert request is not None
        assert request.body == body
        assert request.headers[b"authorization"] == AUTHORIZATION.encode()
        assert request.headers[b"x-amz-target"] == b"DynamoDB_20120810.GetItem"


@pytest.mark.parametrize("data", UNUSUAL.values(), ids=UNUSUAL.keys())
def test_what_is_unusual_is_left_to_the_parser(data: bytes) -> None:
    assert read_whole(data, HEAD_BYTES, BODY_BYTES) is None


def test_any_number_of_different_lines_can_come() -> None:
    for number in range(10_000):
        request = read_whole(
            request_bytes(BODY, headers={"User-Agent": f"agent {number}"}), HEAD_BYTES, BODY_BYTES
        )
        assert request is not None
        assert request.headers[b"user-agent"] == b"agent %d" % number


def by_the_parser(data: bytes) -> list[bytes]:
    """In two pieces: a request that does not come whole is the parser's."""
    return [data[:1], data[1:]]


def answered(pieces: list[bytes]) -> tuple[bytes, bool]:
    transport = feed(pieces)
    return without_request_ids(transport.written), transport.closed


@pytest.mark.parametrize("data", UNUSUAL.values(), ids=UNUSUAL.keys())
def test_an_unusual_request_is_answered_alike_in_one_piece_and_in_two(data: bytes) -> None:
    assert answered([data]) == answered(by_the_parser(data))


NAMES = st.sampled_from(
    "Content-Type content-type X-Amz-Target X-Amz-Date Date Authorization Content-Length "
    "Content-Encoding Connection Proxy-Connection Transfer-Encoding Expect Upgrade Origin "
    "Accept-Encoding TE Trailer Keep-Alive X-Other".split()
)
VALUES = st.one_of(
    st.sampled_from(
        "close keep-alive Upgrade h2c chunked gzip identity 100-continue 0 1 2 17 02 "
        "application/json * x".split()
    ),
    st.sampled_from(
        [
            "",
            " ",
            "a b",
            " a",
            "a ",
            "a\tb",
            "\x80",
            "\x7f",
            "\0",
            "a\rb",
            "a\nb",
            "keep-alive, close",
        ]
    ),
)
CHANGED_HEADERS = st.dictionaries(NAMES, st.one_of(st.none(), VALUES), max_size=4)


@given(CHANGED_HEADERS, st.sampled_from([b"", b"{}", BODY, b"no JSON", b"[1,\r\n\r\n2]"]))
def test_whatever_the_headers_both_ways_answer_alike(
    headers: dict[str, str | None], body: bytes
) -> None:
    data = request_bytes(body, headers=headers)
    assert answered([data]) == answered(by_the_parser(data))


EDITS = st.lists(
    st.tuples(
        st.integers(0, len(request_bytes(BODY))),
        st.integers(0, 3),
        st.one_of(
            st.sampled_from([b"", b"\r", b"\n", b"\r\n", b"\r\n\r\n", b":", b" ", b"\t", b"0"]),
            st.binary(max_size=2),
        ),
    ),
    min_size=1,
    max_size=3,
)


@given(EDITS)
def test_a_damaged_request_is_answered_alike_both_ways(edits: list[tuple[int, int, bytes]]) -> None:
    data = request_bytes(BODY)
    for at, removed, inserted in edits:
        data = data[:at] + inserted + data[at + removed :]
    assert answered([data]) == answered(by_the_parser(data))


@given(st.lists(CHANGED_HEADERS, min_size=1, max_size=5))
def test_requests_one_after_the_other_are_answered_alike_whatever_way_each_takes(
    changes: list[dict[str, str | None]],
) -> None:
    requests = [
        request_bytes(f"[{number}]", headers=headers) for number, headers in enumerate(changes)
    ]
    stream = b"".join(requests)
    one_by_one = answered(requests)
    assert one_by_one == answered([stream])
    assert one_by_one == answered([stream[at : at + 1] for at in range(len(stream))])
