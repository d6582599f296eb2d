"""Types with a codec of their own: stored as another type, such as a text or a number.

    register_codec(Money, encode=str, decode=Money.parse, stored=str)

This module registers ``timedelta``, paths, IP addresses and time zones. ``model_libraries`` has the
codecs of pydantic's own types.
"""

from __future__ import annotations

import ipaddress
import pathlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeVar
from zoneinfo import ZoneInfo

from stator.errors import DesignError

T = TypeVar("T")
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class CustomCodec:
    """How values of one type are stored. A ``secret`` value is never shown, and never in a key."""

    python: Any
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    stored: Any
    secret: bool = False


_REGISTERED: dict[Any, CustomCodec] = {}
_MICROSECOND: Final = timedelta(microseconds=1)


def register_codec(
    type_: type[T],
    *,
    encode: Callable[[T], S],
    decode: Callable[[S], T],
    stored: type[S],
    secret: bool = False,
) -> None:
    """Store values of a type as values of another type, which Stator can store.

    ``encode`` returns the stored value, and ``decode`` the original. A key can contain the type if
    it can contain ``stored``; keys then sort by the stored values. A ``secret`` value is not shown
    in errors, and no key can contain it. Register a type before the first design that uses it.
    """
    if not isinstance(type_, type):
        raise DesignError(
            f"{type_!r} is not a class", hint="register_codec(Money, encode=..., decode=...)"
        )
    _REGISTERED[type_] = CustomCodec(type_, encode, decode, stored, secret)


def codec_for(annotation: Any) -> CustomCodec | None:
    """Return the registered codec of exactly this type, or None."""
    return _REGISTERED.get(annotation)


def stored_form(value: Any) -> Any:
    """Return the stored form of a value, or the value itself if its type has no codec."""
    for base in type(value).__mro__:
        if base in _REGISTERED:
            return _REGISTERED[base].encode(value)
    return value


register_codec(
    timedelta,
    encode=lambda value: value // _MICROSECOND,
    decode=lambda stored: timedelta(microseconds=stored),
    stored=int,
)
for _type in (
    pathlib.PurePath, pathlib.Path, pathlib.PurePosixPath, pathlib.PureWindowsPath,
    ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network,
    ZoneInfo,
):  # fmt: skip
    register_codec(_type, encode=str, decode=_type, stored=str)
