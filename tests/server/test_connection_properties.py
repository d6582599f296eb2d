"""However the network cuts a stream into pieces, and whatever is in it, a connection holds."""

from __future__ import annotations

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from .memory_connection import feed, without_request_ids
from .wire import request_bytes

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


EXPECTED = without_request_ids(feed([STREAM]).written)


def test_the_stream_has_all_its_replies() -> None:
    assert (
        re.findall(rb"HTTP/1.1 (\d+)", EXPECTED)
        == [b"200", b"200", b"200", b"200", b"200", b"100"] + [b"200"] * 2
    )
    assert re.findall(rb'"echo":(\d+)', EXPECTED) == [b"2", b"44", b"5", b"6", b"7"]


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_how_a_stream_is_cut_makes_no_difference(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[start:end] for start, end in itertools.pairwise(edges)]
    transport = feed(pieces)
    assert transport.closed
    assert without_request_ids(transport.written) == EXPECTED


@given(
    st.lists(
        st.one_of(st.binary(max_size=40), st.sampled_from([STREAM[:150], STREAM[150:400]])),
        max_size=8,
    )
)
def test_rubbish_is_answered_at_most_once_and_never_raises(pieces: list[bytes]) -> None:
    written = feed(pieces).written
    refusals = re.findall(rb"HTTP/1.1 (400|413|431) .*\r\n(?:.*\r\n)*?Connection: close", written)
    assert len(refusals) <= 1
