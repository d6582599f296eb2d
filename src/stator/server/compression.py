"""gzip in both directions.

Requests are decompressed with a bound, since a kilobyte can be made to unfold into a gigabyte. Replies
are compressed at the fastest level: the server has one thread, and JSON shrinks well even so.
"""

from __future__ import annotations

import zlib

from stator.errors import RequestTooLarge, SerializationFailed
from stator.server.reply import Outcome
from stator.server.request import Request

_GZIP = 16 + zlib.MAX_WBITS
_FASTEST = 1


def decode_body(body: bytes, encoding: bytes, limit_bytes: int) -> bytes:
    """The body without its Content-Encoding; an encoding nobody asked for is an unreadable body."""
    name = encoding.strip().lower()
    if name in (b"", b"identity"):
        return body
    if name not in (b"gzip", b"x-gzip"):
        raise SerializationFailed()
    return _gunzip(body, limit_bytes)


def _gunzip(body: bytes, limit_bytes: int) -> bytes:
    decoder = zlib.decompressobj(_GZIP)
    try:
        plain = decoder.decompress(body, limit_bytes + 1)
    except zlib.error as damaged:
        raise SerializationFailed() from damaged
    if len(plain) > limit_bytes:
        raise RequestTooLarge(f"the body is over {limit_bytes} bytes once decompressed")
    if not decoder.eof:
        raise SerializationFailed()
    return plain


def gzip_if_accepted(outcome: Outcome, request: Request) -> Outcome:
    """The same answer with a compressed body, if the client can read one."""
    if not accepts_gzip(request.headers.get(b"accept-encoding", b"")):
        return outcome
    extra = outcome.extra + b"Content-Encoding: gzip\r\n"
    return Outcome(outcome.status, _gzip(outcome.body), outcome.commit, outcome.content_type, extra)


def accepts_gzip(accept_encoding: bytes) -> bool:
    """Whether the header allows gzip; ``gzip;q=0`` is a way to refuse it."""
    for offer in accept_encoding.lower().split(b","):
        name, _, parameters = offer.partition(b";")
        if name.strip() in (b"gzip", b"x-gzip"):
            return parameters.replace(b" ", b"") not in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000")
    return False


def _gzip(body: bytes) -> bytes:
    encoder = zlib.compressobj(_FASTEST, zlib.DEFLATED, _GZIP)
    return encoder.compress(body) + encoder.flush()
