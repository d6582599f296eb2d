"""Pages of ListExports and ListImports. A token is the last ARN of a page, in hexadecimal: ListImports takes no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from stator.engine.recovery.registry import Kept
from stator.errors import ValidationFailed

_MOST = 25
_WIDTH = 8
_SHORTEST = 56  # bytes; the service model wants 112 digits at least

T = TypeVar("T", bound=Kept)


def page_of(
    kept: list[T], limit: int | None, token: str | None, place: Callable[[str], Any] = str
) -> tuple[list[T], str | None]:
    """The next of these, ordered by the ``place`` of their ARNs, and the token of the page after, if there is one."""
    left = sorted(kept, key=lambda each: place(each.arn))
    if token is not None:
        after = place(_decode(token))
        left = [each for each in left if place(each.arn) > after]
    page = left[: limit or _MOST]
    return page, _encode(page[-1].arn) if len(page) < len(left) else None


def _encode(arn: str) -> str:
    raw = arn.encode()
    size = max(_SHORTEST, -(-len(raw) // _WIDTH) * _WIDTH)
    return raw.ljust(size, b"\0").hex()


def _decode(token: str) -> str:
    try:
        arn = bytes.fromhex(token).rstrip(b"\0").decode()
    except ValueError:
        arn = ""
    if not arn.startswith("arn:"):
        raise ValidationFailed("Invalid NextToken")
    return arn
