"""Cursors: where a page ended, as text that a client can hand back.

A cursor holds the place in each of the requests that the pattern takes, and a digest of the pattern and its arguments. It is URL-safe
base64 of JSON, closed with a MAC. With a key of your own (``connect(..., cursor_key=...)``) nobody else can make or change one; without,
the MAC only finds damage and cursors of other queries. What is inside are keys of items: do not put secrets into keys.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, Literal

import orjson

from stator.errors import CursorRefused
from stator.model.values import Item

Position = Item | Literal["start", "end"]
_MAC_BYTES = 16
_OPEN_KEY = b"stator cursor"


def make_cursor(
    positions: list[Position],
    pattern: str,
    arguments: dict[str, Any],
    key: bytes | None,
    given: int = 0,
) -> str:
    """``given`` is how many items the pages up to here had: a pattern may have a limit of its own."""
    body = orjson.dumps([given, *positions])
    return urlsafe_b64encode(_mac(body, pattern, arguments, key) + body).rstrip(b"=").decode()


def read_cursor(
    cursor: str, pattern: str, arguments: dict[str, Any], key: bytes | None
) -> tuple[list[Position], int]:
    try:
        raw = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
    except (ValueError, AttributeError):
        raise CursorRefused("this is not a cursor") from None
    mac, body = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
    if not hmac.compare_digest(mac, _mac(body, pattern, arguments, key)):
        raise CursorRefused(
            f"the cursor is not one of {pattern} with these arguments, or it was changed"
        )
    given, *positions = orjson.loads(body)
    return positions, given


def _mac(body: bytes, pattern: str, arguments: dict[str, Any], key: bytes | None) -> bytes:
    asked = f"{pattern}\0{sorted(arguments.items())!r}\0".encode()
    return hmac.digest(key or _OPEN_KEY, hashlib.sha256(asked).digest() + body, "sha256")[
        :_MAC_BYTES
    ]
