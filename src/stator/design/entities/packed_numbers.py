"""Packed numbers: a number or a list of numbers, stored as bytes of a fixed width.

    class Reading(Entity):
        reading_id: str = ident()
        samples: Annotated[list[float], packed("float32")]

DynamoDB stores a number as about half a byte for each decimal digit, plus one, and an element of a
list costs another byte. A list of 1,000 floats with 17 digits takes 11,000 bytes; packed as
float64 it takes 8,000, as float32 4,000. What is read back equals what was written, within the
precision of the kind.

The bytes are little-endian, one value after the other, without a header. DynamoDB sees them as
binary: it can compare packed values only for equality, and no key can hold them.
"""

from __future__ import annotations

import json
import math
import struct
import sys
from array import array
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from stator.errors import DesignError

PackedKind = Literal[
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"
]

# For each kind: the type code of ``array`` and ``struct``, and the digits of a typical large value.
_KINDS: Final[dict[str, tuple[str, int]]] = {
    "int8": ("b", 3), "int16": ("h", 5), "int32": ("i", 10), "int64": ("q", 19),
    "uint8": ("B", 3), "uint16": ("H", 5), "uint32": ("I", 10), "uint64": ("Q", 20),
    "float32": ("f", 8), "float64": ("d", 17),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Packing:
    """How a field is packed. ``packed`` creates it, for ``Annotated``."""

    kind: PackedKind

    @property
    def value_bytes(self) -> int:
        """The size of one value."""
        return struct.calcsize(f"<{_KINDS[self.kind][0]}")

    def saved_bytes(self, count: int) -> int:
        """Return the bytes that packing saves in a list of ``count`` values with all digits."""
        return self.number_bytes(count) - count * self.value_bytes

    def number_bytes(self, count: int) -> int:
        """Return the size of a list of ``count`` values if it is not packed.

        A list takes 3 bytes, and 1 more byte for each element. A number takes half a byte for each
        digit, plus 1 byte.
        """
        digits = _KINDS[self.kind][1]
        return 3 + count * ((digits + 1) // 2 + 2)

    def of_list(self, values: Sequence[Any]) -> bytes:
        self._refuse_bools(values)
        made = array(_KINDS[self.kind][0], values)
        if self.kind == "float32":
            self._refuse_overflow(values, made)
        if sys.byteorder == "big":
            made.byteswap()
        return made.tobytes()

    def _refuse_overflow(self, values: Sequence[Any], made: Sequence[float]) -> None:
        """Refuse finite numbers that ``array`` has turned into infinity."""
        if math.isinf(max(map(abs, made), default=0.0)):
            for given, packed in zip(values, made):
                if math.isinf(packed) and not math.isinf(given):
                    raise OverflowError(f"{given} is too large")

    def to_list(self, stored: bytes) -> list[Any]:
        made = array(_KINDS[self.kind][0])
        made.frombytes(stored)
        if sys.byteorder == "big":
            made.byteswap()
        return made.tolist()

    def of_number(self, value: Any) -> bytes:
        self._refuse_bools((value,))
        return struct.pack(f"<{_KINDS[self.kind][0]}", value)

    def to_number(self, stored: bytes) -> Any:
        [value] = struct.unpack(f"<{_KINDS[self.kind][0]}", stored)
        return value

    @staticmethod
    def _refuse_bools(values: Sequence[Any]) -> None:
        if bool in {*map(type, values)}:
            raise ValueError("True and False are not numbers")


@dataclass(frozen=True, slots=True)
class PackedType:
    """The type of a packed field: its packing, and what it holds."""

    packing: Packing
    container: type | None
    """list or tuple, or None for a single number."""
    number: type
    """int or float."""

    @property
    def __name__(self) -> str:  # the name of the type in documents and messages
        several = "" if self.container is None else "[]"
        return f"packed {self.packing.kind}{several}"

    @property
    def described(self) -> str:
        """The name of the type, with its size packed and unpacked.

        The sizes of a list are those of a list with 100 values.
        """
        packing = self.packing
        if self.container is None:
            plain = packing.number_bytes(1) - 4
            return f"{self.__name__}, {packing.value_bytes} B (up to {plain} B as a number)"
        count = 100
        packed_bytes = count * packing.value_bytes
        return (
            f"{self.__name__}, {packed_bytes} B for {count} values "
            f"(up to {packing.number_bytes(count)} B as numbers)"
        )

    def encode(self, value: Any) -> bytes:
        try:
            if self.container is None:
                return self.packing.of_number(value)
            if type(value) is not self.container:
                raise TypeError(f"expected a {self.container.__name__}, got {type(value).__name__}")
            values: Any = value
            return self.packing.of_list(values)
        except (struct.error, OverflowError, TypeError) as error:
            raise ValueError(f"the value does not fit {self.__name__}: {error}") from None

    def _from_text(self, text: str) -> Any:
        if text.startswith("["):
            return json.loads(text)
        # The base64 of 1, 2, 4 or 8 bytes ends with =, so it is never taken for a number.
        is_stored = self.container is not None or text.endswith("=")
        return b64decode(text, validate=True) if is_stored else text

    def decode(self, stored: bytes) -> Any:
        if self.container is None:
            return self.packing.to_number(stored)
        found = self.packing.to_list(stored)
        return found if self.container is list else tuple(found)

    def from_file(self, value: Any) -> Any:
        """Return the field's value for a number or a list of numbers in a file.

        The value may be JSON text, or the stored bytes, which are base64 in CSV and JSON.
        """
        if isinstance(value, str):
            value = self._from_text(value.strip())
        if isinstance(value, bytes):
            return self.decode(value)
        if self.container is None:
            return self.number(value)
        return self.container(self.number(each) for each in value)


def packed(kind: PackedKind) -> Packing:
    """Store a number, or a list or tuple of numbers, as bytes.

    Write it into the annotation of the field: ``Annotated[list[float], packed("float32")]``.
    ``kind`` is int8 to int64, uint8 to uint64, float32 or float64. float32 has about seven digits.
    """
    if kind not in get_args(PackedKind):
        raise DesignError(
            f"packed({kind!r}): there is no such kind", hint=f"use one of {', '.join(_KINDS)}"
        )
    return Packing(kind)
