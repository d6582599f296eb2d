"""One HTTP request, complete, as the parser hands it over."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
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


class LowercaseNames(dict[bytes, bytes]):
    """Remembers the lower-case form of each header name as clients spell it.

    A lookup is several times cheaper than ``lower()``, and SDKs spell each name one way. The memory is
    bounded, because anyone can invent header names.
    """

    CAPACITY = 1000
    LONGEST = 64

    def __missing__(self, name: bytes) -> bytes:
        lowered = name.lower()
        if len(self) < self.CAPACITY and len(name) <= self.LONGEST:
            self[name] = lowered
        return lowered
