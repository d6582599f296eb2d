"""Cursors: where a page begins or ends, as text that a client can hand back.

A cursor holds the position in each request of the pattern, and is bound to the pattern and its
arguments by a MAC. It is URL-safe base64 of JSON: ``[returned, *positions]`` for the page that
follows, ``["backward", returned, *positions]`` for the page before. With your own key
(``connect(..., cursor_key=...)``) nobody else can create or change a cursor. Without a key, the MAC
only detects corrupted cursors and cursors from a different query. A cursor contains keys of items:
do not put secrets into keys.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, Literal, NamedTuple

import orjson

from stator.errors import CursorRefused
from stator.model.values import Item

Position = Item | Literal["start", "end"]
_MAC_BYTES = 16
_OPEN_KEY = b"stator cursor"
_BACKWARD = "backward"


class CursorBody(NamedTuple):
    """The content of a cursor.

    ``returned`` counts the items before the cursor, because a pattern may have its own limit.
    """

    positions: list[Position]
    returned: int
    backward: bool


def make_cursor(
    positions: list[Position],
    pattern: str,
    arguments: dict[str, Any],
    key: bytes | None,
    returned: int = 0,
    *,
    backward: bool = False,
) -> str:
    """Return a signed cursor to the next page, or with ``backward`` to the page before."""
    head = [_BACKWARD, returned] if backward else [returned]
    body = orjson.dumps([*head, *positions])
    return urlsafe_b64encode(_mac(body, pattern, arguments, key) + body).rstrip(b"=").decode()


def read_cursor(
    cursor: str, pattern: str, arguments: dict[str, Any], key: bytes | None
) -> CursorBody:
    try:
        raw = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
    except (ValueError, AttributeError):
        raise CursorRefused(
            "this text is not a cursor", hint="pass the cursor of an earlier page, unchanged"
        ) from None
    mac, body = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
    if not hmac.compare_digest(mac, _mac(body, pattern, arguments, key)):
        raise CursorRefused(
            f"the cursor does not belong to {pattern} with these arguments, or it was changed",
            hint="pass the same arguments as for the earlier page, and its cursor unchanged",
        )
    first, *rest = orjson.loads(body)
    if first == _BACKWARD:
        returned, *positions = rest
        return CursorBody(positions, returned, backward=True)
    return CursorBody(rest, first, backward=False)


def _mac(body: bytes, pattern: str, arguments: dict[str, Any], key: bytes | None) -> bytes:
    bound_to = f"{pattern}\0{sorted(arguments.items())!r}\0".encode()
    return hmac.digest(key or _OPEN_KEY, hashlib.sha256(bound_to).digest() + body, "sha256")[
        :_MAC_BYTES
    ]
