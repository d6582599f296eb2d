"""CBOR (RFC 8949), as much of it as Smithy's protocol uses.

That is: integers, floats, byte and text strings, arrays, maps, booleans, null, and times as tag 1.
Indefinite lengths are read. Written floats have eight bytes.
"""

from __future__ import annotations

from struct import pack, unpack_from
from typing import Any, Final

_MOST_LEVELS: Final = 64
_BREAK: Final = object()
_FLOATS: Final = {25: (">e", 2), 26: (">f", 4), 27: (">d", 8)}
_SIMPLE: Final = {20: False, 21: True, 22: None, 23: None}


class EpochSeconds(float):
    """A time, which is written with tag 1."""


def encode(value: Any) -> bytes:
    """Return a value as CBOR."""
    out = bytearray()
    _encode(out, value)
    return bytes(out)


def _encode(out: bytearray, value: Any) -> None:
    if value is None:
        out.append(0xF6)
    elif isinstance(value, bool):
        out.append(0xF5 if value else 0xF4)
    elif isinstance(value, int):
        _head(out, *((0, value) if value >= 0 else (1, -1 - value)))
    elif isinstance(value, float):
        if isinstance(value, EpochSeconds):
            out.append(0xC1)
        out += b"\xfb" + pack(">d", value)
    elif isinstance(value, str):
        text = value.encode()
        _head(out, 3, len(text))
        out += text
    elif isinstance(value, bytes):
        _head(out, 2, len(value))
        out += value
    elif isinstance(value, dict):
        _head(out, 5, len(value))
        for key, member in value.items():
            _encode(out, key)
            _encode(out, member)
    else:
        _head(out, 4, len(value))
        for member in value:
            _encode(out, member)


def _head(out: bytearray, major: int, number: int) -> None:
    if number < 24:
        out.append(major << 5 | number)
        return
    for extra, form in ((24, ">B"), (25, ">H"), (26, ">I"), (27, ">Q")):
        if number < 1 << (8 << (extra - 24)):
            out.append(major << 5 | extra)
            out += pack(form, number)
            return
    raise ValueError(f"{number} is too large for CBOR")


def decode(data: bytes) -> Any:
    """Return the value of a CBOR text. Raises ValueError if it is malformed."""
    reader = _Reader(data)
    try:
        value = reader.value(0)
    except (IndexError, UnicodeDecodeError, TypeError) as error:
        raise ValueError("the CBOR ends early or is damaged") from error
    if value is _BREAK or reader.at != len(data):
        raise ValueError("the CBOR has more than one value")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def value(self, level: int) -> Any:
        if level > _MOST_LEVELS:
            raise ValueError("the CBOR is nested too deeply")
        first = self._data[self.at]
        self.at += 1
        major, extra = first >> 5, first & 31
        if major == 7:
            return self._simple(extra)
        length = None if extra == 31 else self._number(extra)
        if major < 2 and length is not None:
            return length if major == 0 else -1 - length
        if major in (2, 3):
            return self._text(major, length, level)
        if major == 4:
            return self._members(length, level)
        if major == 5:
            flat = self._members(None if length is None else 2 * length, level)
            if len(flat) % 2:
                raise ValueError("a CBOR map has a key without a value")
            return dict(zip(flat[::2], flat[1::2]))
        if major == 6 and length is not None:
            return self.value(level + 1)  # a time or a hint: the value is the content
        raise ValueError("the CBOR has a length that does not end")

    def _simple(self, extra: int) -> Any:
        if extra == 31:
            return _BREAK
        if extra in _SIMPLE:
            return _SIMPLE[extra]
        if extra not in _FLOATS:
            raise ValueError(f"the CBOR has a simple value {extra}")
        form, size = _FLOATS[extra]
        return unpack_from(form, self._take(size))[0]

    def _number(self, extra: int) -> int:
        if extra < 24:
            return extra
        if extra > 27:
            raise ValueError("the CBOR has a reserved length")
        return int.from_bytes(self._take(1 << (extra - 24)), "big")

    def _text(self, major: int, length: int | None, level: int) -> Any:
        if length is None:
            pieces = self._members(None, level)
            return b"".join(pieces) if major == 2 else "".join(pieces)
        content = self._take(length)
        return content if major == 2 else content.decode()

    def _members(self, length: int | None, level: int) -> list[Any]:
        members: list[Any] = []
        while length is None or len(members) < length:
            member = self.value(level + 1)
            if member is _BREAK:
                if length is None:
                    return members
                raise ValueError("the CBOR has a break inside of a fixed length")
            members.append(member)
        return members

    def _take(self, size: int) -> bytes:
        taken = self._data[self.at : self.at + size]
        if len(taken) < size:
            raise IndexError
        self.at += size
        return taken
