"""Compression as AWS offers it: gzip or deflate, in requests and in replies.

Decompression of requests is bounded, since a kilobyte can expand to a gigabyte. It takes time in
proportion to the bytes that go in and come out. Replies are compressed at the fastest level: the
server has one thread, and JSON shrinks well even at that level.
"""

from __future__ import annotations

import zlib

from stator.errors import InternalServerError, RequestTooLarge
from stator.server.http.reply import Outcome
from stator.server.http.request import HttpRequest

_GZIP = 16 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b"
_FASTEST = 1
_FIRST_FEED_BYTES = 512
_LARGEST_FEED_BYTES = 64 * 1024
# Clients send one gzip member. A body of more than this many is refused like a damaged one.
_MOST_MEMBERS = 1000
# The encodings of a reply, in AWS's order of preference.
_WINDOW_BITS = {b"gzip": _GZIP, b"deflate": zlib.MAX_WBITS}


def decode_body(body: bytes, encoding: bytes, limit_bytes: int) -> bytes:
    """Return a body with its Content-Encoding undone.

    Raises InternalServerError for a damaged body or an unknown encoding, because AWS answers with
    status 500. Raises RequestTooLarge if the result has more than ``limit_bytes``. Several gzip
    members in a row are one body; a deflate body (in zlib's format) is one stream. Other bytes at
    the end are ignored. Scylla's tests, which run on AWS, show this behaviour.
    """
    name = encoding.strip().lower()
    if name in (b"", b"identity"):
        return body
    if name == b"gzip":
        return _gunzip(body, limit_bytes)
    if name == b"deflate":
        plain, _ = _inflate(body, 0, zlib.MAX_WBITS, limit_bytes)
        return plain
    raise InternalServerError


def _gunzip(body: bytes, limit_bytes: int) -> bytes:
    members: list[bytes] = []
    size_bytes = at = 0
    while not members or body.startswith(_GZIP_MAGIC, at):
        if len(members) == _MOST_MEMBERS:
            raise InternalServerError
        plain, at = _inflate(body, at, _GZIP, limit_bytes - size_bytes)
        members.append(plain)
        size_bytes += len(plain)
    return b"".join(members)


def _inflate(body: bytes, at: int, window_bits: int, limit_bytes: int) -> tuple[bytes, int]:
    """Decompress one stream that starts at ``at``. Return its content and where it ends.

    The decoder copies all of its input that follows the stream. It is therefore fed in pieces, the
    first of them small. Otherwise a body of many short streams would be copied once per stream.
    """
    decoder = zlib.decompressobj(window_bits)
    pieces: list[bytes] = []
    left, step = limit_bytes + 1, _FIRST_FEED_BYTES
    try:
        while not decoder.eof:
            fed = decoder.unconsumed_tail
            if not fed:
                fed = body[at : at + step]
                at += len(fed)
                step = min(2 * step, _LARGEST_FEED_BYTES)
            if not fed:
                raise InternalServerError  # the stream has no end
            piece = decoder.decompress(fed, left)
            pieces.append(piece)
            left -= len(piece)
            if left <= 0:
                raise RequestTooLarge(
                    "the decompressed body exceeds the limit of a request, which is 16 MiB on AWS"
                )
    except zlib.error as damaged:
        raise InternalServerError from damaged
    return b"".join(pieces), at - len(decoder.unused_data)


def compress_if_accepted(outcome: Outcome, request: HttpRequest) -> Outcome:
    """Return the outcome with its body compressed, or unchanged if no encoding is accepted."""
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
    """Return gzip or deflate, whichever the header prefers, or None if it accepts neither.

    On a tie, the encoding named first wins. ``*`` stands for the encodings that the header does not
    name. ``_quality`` reads malformed offers as AWS does.
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

    A ``q`` that is missing, not a number, or larger than 1 counts as 1.
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
