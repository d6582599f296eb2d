"""A complete HTTP request, and the fast reader for the usual kind of request.

The requests of an SDK arrive in one piece and contain nothing special: ``POST /``, a Content-Length
and no other framing. ``read_whole`` splits the head into lines. Most lines are the same as in the
previous request, so their parsed form is cached. For anything unusual ``read_whole`` returns None,
and the HTTP parser takes over, which also refuses bad requests. ``read_whole`` accepts less than
the parser does, never more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_CAPACITY: Final = 1000  # header names remembered
_LONGEST_NAME_BYTES: Final = 64  # longer names are not


@dataclass(slots=True, init=False)
class HttpRequest:
    """A complete HTTP request.

    ``headers`` has lower-case names. If a name is sent twice, the last value counts, both for
    routing and for the signature. So no request can be signed with one value and run with another.
    The class is not frozen, because a frozen dataclass costs four times as much to build.
    """

    method: bytes
    url: bytes
    headers: dict[bytes, bytes]
    body: bytes
    keep_alive: bool

    def __init__(
        self, method: bytes, url: bytes, headers: dict[bytes, bytes], body: bytes, keep_alive: bool
    ) -> None:
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.keep_alive = keep_alive


class LowercaseNames(dict[bytes, bytes]):
    """A cache of header names in lower case, by the spelling that clients use.

    A lookup is several times cheaper than ``lower()``, and an SDK always spells a name the same
    way. The cache is bounded, because anyone can invent header names.
    """

    def __missing__(self, name: bytes) -> bytes:
        lowered = name.lower()
        if len(self) < _CAPACITY and len(name) <= _LONGEST_NAME_BYTES:
            self[name] = lowered
        return lowered


_REQUEST_LINE: Final = b"POST / HTTP/1.1\r"
_BLANK_LINE: Final = b"\r"
_HEAD_END: Final = b"\r\n\r\n"
_MOST_LINES: Final = 64
_TOKEN: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Maps each byte that is allowed in a value to itself, and each control character to a space.
_PRINTED: Final = bytes(
    byte if byte == 0x09 or (byte >= 0x20 and byte != 0x7F) else 0x20 for byte in range(256)
)
_FRAMING: Final = frozenset({b"transfer-encoding", b"expect", b"upgrade", b"proxy-connection"})
# Headers whose lines clients repeat. Every line of the others (signatures, ids) is new.
_REPEATED: Final = frozenset(
    {
        b"accept",
        b"accept-encoding",
        b"connection",
        b"content-length",
        b"content-type",
        b"host",
        b"user-agent",
        b"x-amz-date",
        b"x-amz-target",
        b"x-amz-user-agent",
    }
)
_CACHED_LINES: Final = 4000  # bounds, because anyone can invent lines
_LONGEST_LINE_BYTES: Final = 500


class HeaderLine:
    """A parsed header line; ``name`` is in lower case."""

    __slots__ = ("name", "value")

    def __init__(self, name: bytes, value: bytes) -> None:
        self.name = name
        self.value = value


_known: Final[dict[bytes, HeaderLine]] = {}
_lowercase: Final = LowercaseNames()


def read_whole(data: bytes, head_bytes: int, body_bytes: int) -> HttpRequest | None:
    """Return the request if ``data`` is exactly one usual request within the limits, else None."""
    end = data.find(_HEAD_END, 0, head_bytes) + len(_HEAD_END)
    if end < len(_HEAD_END):
        return None
    lines = data[:end].split(b"\n", _MOST_LINES)
    if lines[0] != _REQUEST_LINE:
        return None
    headers: dict[bytes, bytes] = {}
    read_bytes = len(_REQUEST_LINE) + 1
    for at in range(1, len(lines)):
        line = lines[at]
        read_bytes += len(line) + 1
        known = _known.get(line)
        if known is None:
            if line == _BLANK_LINE:
                break
            known = _parse_line(line)
            if known is None:
                return None
        headers[known.name] = known.value
    else:
        return None
    body = data[read_bytes:]
    is_whole = headers.get(b"content-length") == b"%d" % len(body) and len(body) <= body_bytes
    if not is_whole or len(headers) != at - 1:  # fewer headers than lines: a name is repeated
        return None
    return HttpRequest(b"POST", b"/", headers, body, True)


def _parse_line(line: bytes) -> HeaderLine | None:
    name, _, rest = line.partition(b": ")
    lowercase = _lowercase.get(name) or _checked_name(name)
    value = rest.strip()
    if not lowercase or not value or len(rest) - len(value) != 1 or not rest.endswith(b"\r"):
        return None
    if value.translate(_PRINTED) != value or not _is_usual(lowercase, value):
        return None
    known = HeaderLine(lowercase, value)
    if lowercase in _REPEATED and len(line) <= _LONGEST_LINE_BYTES:
        _remember(line, known)
    return known


def _checked_name(name: bytes) -> bytes:
    return b"" if _TOKEN.fullmatch(name) is None else _lowercase[name]


def _is_usual(name: bytes, value: bytes) -> bool:
    if name == b"connection":
        return value.lower() == b"keep-alive"
    return name not in _FRAMING


def _remember(line: bytes, known: HeaderLine) -> None:
    if len(_known) >= _CACHED_LINES:
        _known.clear()
    _known[line] = known
