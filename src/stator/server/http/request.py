"""One HTTP request, complete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_CAPACITY: Final = 1000  # header names remembered
_LONGEST_BYTES: Final = 64  # longer names are not


@dataclass(slots=True, init=False)
class Request:
    """Not frozen: a frozen dataclass costs four times as much to build, and this is built per request.

    ``headers`` has lower-case names. Of a name sent twice the last value counts, for routing and for
    the signature alike, so no request can be signed as one thing and run as another.
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
    """Remembers the lower-case form of each header name as clients spell it.

    A lookup is several times cheaper than ``lower()``, and SDKs spell each name one way. The memory is
    bounded, because anyone can invent header names.
    """

    def __missing__(self, name: bytes) -> bytes:
        lowered = name.lower()
        if len(self) < _CAPACITY and len(name) <= _LONGEST_BYTES:
            self[name] = lowered
        return lowered
