"""The usual request, read without the parser.

An SDK's request comes in one piece and has nothing in it that bears on HTTP itself: ``POST /``, a Content-Length, no
other framing. Its head is then a list of lines, most of which were in the request before, and those are remembered
taken apart. Whatever is the least unusual is None here and left to the parser, which also knows what to refuse:
this module accepts less than the parser does, never more.
"""

from __future__ import annotations

import re
from typing import Final

from stator.server.http.request import LowercaseNames, Request

_REQUEST_LINE: Final = b"POST / HTTP/1.1\r"
_BLANK_LINE: Final = b"\r"
_HEAD_END: Final = b"\r\n\r\n"
_MOST_LINES: Final = 64
_TOKEN: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Every byte that may stand in a value is itself here, and a control character becomes a space.
_PRINTED: Final = bytes(
    byte if byte == 0x09 or (byte >= 0x20 and byte != 0x7F) else 0x20 for byte in range(256)
)
_FRAMING: Final = frozenset({b"transfer-encoding", b"expect", b"upgrade", b"proxy-connection"})
# What a client sends again and again. Of the rest (signatures, ids) every line is new.
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
_REMEMBERED: Final = 4000  # bounds, because anyone can invent lines
_LONGEST_BYTES: Final = 500


class HeaderLine:
    """A line of the head, taken apart. ``name`` is in lower case."""

    __slots__ = ("name", "value")

    def __init__(self, name: bytes, value: bytes) -> None:
        self.name = name
        self.value = value


_known: Final[dict[bytes, HeaderLine]] = {}
_lowercase: Final = LowercaseNames()


def read_whole(data: bytes, limit_bytes: int) -> Request | None:
    """The request that ``data`` is, if it is a usual one, all of it, with a body within the limit, and nothing more."""
    end = data.find(_HEAD_END) + len(_HEAD_END)
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
            known = _take_apart(line)
            if known is None:
                return None
        headers[known.name] = known.value
    else:
        return None
    body = data[read_bytes:]
    is_whole = headers.get(b"content-length") == b"%d" % len(body) and len(body) <= limit_bytes
    if not is_whole or len(headers) != at - 1:  # fewer headers than lines: a name came twice
        return None
    return Request(b"POST", b"/", headers, body, True)


def _take_apart(line: bytes) -> HeaderLine | None:
    name, _, rest = line.partition(b": ")
    lowercase = _lowercase.get(name) or _checked_name(name)
    value = rest.strip()
    if not lowercase or not value or len(rest) - len(value) != 1 or not rest.endswith(b"\r"):
        return None
    if value.translate(_PRINTED) != value or not _is_usual(lowercase, value):
        return None
    known = HeaderLine(lowercase, value)
    if lowercase in _REPEATED and len(line) <= _LONGEST_BYTES:
        _remember(line, known)
    return known


def _checked_name(name: bytes) -> bytes:
    return b"" if _TOKEN.fullmatch(name) is None else _lowercase[name]


def _is_usual(name: bytes, value: bytes) -> bool:
    if name == b"connection":
        return value.lower() == b"keep-alive"
    return name not in _FRAMING


def _remember(line: bytes, known: HeaderLine) -> None:
    if len(_known) >= _REMEMBERED:
        _known.clear()
    _known[line] = known
