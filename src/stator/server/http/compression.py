"""Compression as AWS offers it: gzip in requests, gzip or deflate in replies.

Decompression of requests is bounded, since a kilobyte can expand to a gigabyte. Replies are
compressed at the fastest level: the server has one thread, and JSON shrinks well even at that
level.
"""

from __future__ import annotations

import zlib

from stator.errors import InternalServerError, RequestTooLarge
from stator.server.http.reply import Outcome
from stator.server.http.request import HttpRequest

_GZIP = 16 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b"
_FASTEST = 1
# The encodings of a reply, in AWS's order of preference.
_WINDOW_BITS = {b"gzip": _GZIP, b"deflate": zlib.MAX_WBITS}


def decode_body(body: bytes, encoding: bytes, limit_bytes: int) -> bytes:
    """Undo the Content-Encoding of a body.

    If it cannot be undone, AWS answers with status 500, as if the fault were its own.
    """
    name = encoding.strip().lower()
    if name in (b"", b"identity"):
        return body
    if name != b"gzip":
        raise InternalServerError
    return _gunzip(body, limit_bytes)


def _gunzip(body: bytes, limit_bytes: int) -> bytes:
    """Decompress all gzip streams in the body, one after another.

    Other bytes after them are ignored.
    """
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


def compress_if_accepted(outcome: Outcome, request: HttpRequest) -> Outcome:
    """Return the outcome with its body compressed, if the client accepts that."""
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
    """Choose gzip, deflate or neither by the qualities in the header.

    On a tie the first named wins.

    ``*`` stands for the encodings that the header does not name. ``_quality`` reads malformed
    offers as AWS does.
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
    """Return the first ``q`` of an offer.

    It counts as 1 if missing, not a number, or larger than 1.
    """
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
