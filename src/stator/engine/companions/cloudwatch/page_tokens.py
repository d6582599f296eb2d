"""Pages of a list, and the tokens that lead to the next page.

A token holds the position and a fingerprint of the request, so it fits only the same request. It
stays valid when the engine restarts.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any, Final, TypeVar

import orjson

from stator.errors import CompanionRefused

INVALID_TOKEN: Final = "InvalidNextToken"  # noqa: S105 - the name of an error
Entry = TypeVar("Entry")


def page_of(
    entries: list[Entry], request: dict[str, Any], size: int, *, code: str = INVALID_TOKEN
) -> tuple[list[Entry], dict[str, str]]:
    """Return a page of at most ``size`` entries, and a NextToken if there are more.

    Raises CompanionRefused with ``code`` if the request's token belongs to another request.
    """
    identity = _fingerprint(request)
    at = 0 if "NextToken" not in request else _position(request["NextToken"], identity, code)
    following = at + size
    more = {"NextToken": _token(following, identity)} if following < len(entries) else {}
    return entries[at:following], more


def _fingerprint(request: dict[str, Any]) -> str:
    rest = {
        name: value
        for name, value in request.items()
        if name not in ("NextToken", "MaxRecords", "MaxDatapoints")
    }
    return hashlib.sha256(orjson.dumps(rest, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def _token(position: int, identity: str) -> str:
    return base64.urlsafe_b64encode(f"1|{position}|{identity}".encode()).decode()


def _position(token: str, identity: str, code: str) -> int:
    try:
        version, position, other = base64.urlsafe_b64decode(token).decode().split("|")
        at = int(position)
    except ValueError:
        raise CompanionRefused(code, f"The token {token[:100]} is not valid.") from None
    if version != "1" or other != identity or at < 0:
        raise CompanionRefused(code, "The token belongs to another request.")
    return at
