"""Compression in both directions: gzip in requests, gzip or deflate in replies, as AWS has them.

Requests are decompressed with a bound, since a kilobyte can be made to unfold into a gigabyte. Replies
are compressed at the fastest level: the server has one thread, and JSON shrinks well even so.
"""

from __future__ import annotations

import zlib

from stator.errors import InternalServerError, RequestTooLarge
from stator.server.http.reply import Outcome
from stator.server.http.request import Request

_GZIP = 16 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b"
_FASTEST = 1
# What a reply can be encoded as, the one AWS prefers first.
_WINDOW_BITS = {b"gzip": _GZIP, b"deflate": zlib.MAX_WBITS}


def decode_body(body: bytes, encoding: bytes, limit_bytes: int) -> bytes:
    """The body without its Content-Encoding. AWS takes one it cannot undo for a fault of its own."""
    name = encoding.strip().lower()
    if name in (b"", b"identity"):
        return body
    if name != b"gzip":
        raise InternalServerError
    return _gunzip(body, limit_bytes)


def _gunzip(body: bytes, limit_bytes: int) -> bytes:
    """One gzip stream after another; what follows the last and is none is ignored."""
    plain = b""
    while not plain or body.startswith(_GZIP_MAGIC):
        decoder = zlib.decompressobj(_GZIP)
        try:
            plain += decoder.decompress(body, limit_bytes + 1 - len(plain))
        except zlib.error as damaged:
            raise InternalServerError from damaged
        if len(plain) > limit_bytes:
            raise RequestTooLarge(f"the body is over {limit_bytes} bytes once decompressed")
        if not decoder.eof:
            raise InternalServerError
        body = decoder.unused_data
        if not body:
            break
    return plain


def compress_if_accepted(outcome: Outcome, request: Request) -> Outcome:
    """The same answer with a compressed body, if the client can read one."""
    encoding = best_encoding(request.headers.get(b"accept-encoding", b""))
    if encoding is None:
        return outcome
    extra = outcome.extra + b"Content-Encoding: %b\r\n" % encoding
    return Outcome(
        outcome.status,
        _compress(outcome.body, encoding),
        outcome.commit,
        outcome.content_type,
        extra,
    )


def best_encoding(accept_encoding: bytes) -> bytes | None:
    """gzip, deflate or neither, by the header's qualities; of two alike, the one it names first.

    ``*`` stands for those it does not name. What AWS makes of malformed offers is in ``_quality``.
    """
    qualities: dict[bytes, float] = {}
    for offer in accept_encoding.lower().split(b","):
        name, *parameters = (part.strip() for part in offer.split(b";"))
        qualities[name] = max(_quality(parameters), qualities.get(name, 0.0))
    anything = qualities.get(b"*", 0.0)
    named = [name for name in qualities if name in _WINDOW_BITS]
    offered = [*named, *(name for name in _WINDOW_BITS if name not in qualities)]
    best = max(offered, key=lambda name: qualities.get(name, anything))
    return best if qualities.get(best, anything) > 0 else None


def _quality(parameters: list[bytes]) -> float:
    """The first ``q`` counts; without one, or with one that is no number, it is 1, as for any larger number."""
    for parameter in parameters:
        name, _, value = parameter.partition(b"=")
        if name.strip() == b"q":
            try:
                return min(float(value), 1.0)
            except ValueError:
                return 1.0
    return 1.0


def _compress(body: bytes, encoding: bytes) -> bytes:
    encoder = zlib.compressobj(_FASTEST, zlib.DEFLATED, _WINDOW_BITS[encoding])
    return encoder.compress(body) + encoder.flush()
