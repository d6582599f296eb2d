"""Renders HTTP replies as bytes, with the headers that AWS sends.

Every reply is rendered here. The part of the head that replies of one kind share is rendered once a
second, because the Date header changes no faster. The rest is appended in one piece.
"""

from __future__ import annotations

import secrets
import string
import zlib
from dataclasses import dataclass
from itertools import product
from time import gmtime, strftime
from typing import Final

AMZ_JSON = b"application/x-amz-json-1.0"
PLAIN_JSON = b"application/json"
NO_TYPE = b""

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_REASONS = {
    200: b"OK",
    400: b"Bad Request",
    404: b"Not Found",
    413: b"Request Entity Too Large",
    431: b"Request Header Fields Too Large",
    500: b"Internal Server Error",
    503: b"Service Unavailable",
}
_ALPHABET: Final = string.ascii_uppercase + string.digits
_ENDINGS: Final = ["".join(letters).encode() for letters in product(_ALPHABET, repeat=2)]
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(slots=True, init=False)
class Outcome:
    """An engine's reply plus what HTTP adds. ``extra`` holds complete header lines."""

    status: int
    body: bytes
    commit: int | None
    content_type: bytes
    extra: bytes

    def __init__(
        self,
        status: int,
        body: bytes,
        commit: int | None = None,
        content_type: bytes = NO_TYPE,
        extra: bytes = b"",
    ) -> None:
        self.status = status
        self.body = body
        self.commit = commit
        self.content_type = content_type
        self.extra = extra


class RequestIds:
    """Generates request ids in AWS's form: 52 capital letters and digits.

    An id is a random stem, a counter and an ending. The endings are precomputed and used in turn;
    the counter rises when all have been used.
    """

    def __init__(self) -> None:
        self._start = "".join(secrets.choice(_ALPHABET) for _ in range(34)).encode()
        self._round = secrets.randbits(60)
        self._stem = b""
        self._at = len(_ENDINGS)

    def next_id(self) -> bytes:
        if self._at == len(_ENDINGS):
            self._at = 0
            self._round += 1
            self._stem = b"%b%016X" % (self._start, self._round)
        ending = _ENDINGS[self._at]
        self._at += 1
        return self._stem + ending


def http_date(epoch_seconds: float) -> bytes:
    """Format the Date header.

    Day and month names come from tables here, because strftime's names depend on the locale.
    """
    moment = gmtime(epoch_seconds)
    day, month = _WEEKDAYS[moment.tm_wday], _MONTHS[moment.tm_mon - 1]
    return strftime(f"{day}, %d {month} %Y %H:%M:%S GMT", moment).encode()


class ReplyRenderer:
    def __init__(self, epoch_seconds: float) -> None:
        self._ids = RequestIds()
        self._heads: dict[tuple[int, bytes, bool], bytes] = {}
        self.set_time(epoch_seconds)

    def set_time(self, epoch_seconds: float) -> None:
        self._date = http_date(epoch_seconds)
        self._heads.clear()

    def render(self, outcome: Outcome, *, keep_alive: bool, without_body: bool = False) -> bytes:
        """Return the reply as bytes.

        The CRC covers the body as sent, compressed or not. AWS does the same, and its SDKs check
        it.
        """
        key = (outcome.status, outcome.content_type, keep_alive)
        head = self._heads.get(key) or self._remember_head(key)
        body = outcome.body
        return b"".join(
            (
                head,
                b"%d" % len(body),
                b"\r\nx-amzn-RequestId: ",
                self._ids.next_id(),
                b"\r\nx-amz-crc32: ",
                b"%d\r\n" % zlib.crc32(body),
                outcome.extra,
                b"\r\n",
                b"" if without_body else body,
            )
        )

    def render_too_large(self) -> bytes:
        """Return AWS's reply to a body over the limit: chunked, empty, without a request id."""
        head = self._shared_lines(413, NO_TYPE, False)
        return b"%bTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" % head

    def _remember_head(self, key: tuple[int, bytes, bool]) -> bytes:
        head = self._heads[key] = self._shared_lines(*key) + b"Content-Length: "
        return head

    def _shared_lines(self, status: int, content_type: bytes, keep_alive: bool) -> bytes:
        lines = [
            b"HTTP/1.1 %d %b" % (status, _REASONS.get(status, b"Status")),
            b"Server: Server",
            b"Date: " + self._date,
            b"Connection: " + (b"keep-alive" if keep_alive else b"close"),
        ]
        if content_type:
            lines.append(b"Content-Type: " + content_type)
        return b"\r\n".join(lines) + b"\r\n"
