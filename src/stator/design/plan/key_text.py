"""Key text: values written so that their text sorts as the values do.

DynamoDB sorts a string key by its UTF-8 bytes, so every value must be written in a form that sorts
correctly: ``9`` before ``10``, -5 before 3, January before May. The parts of a key follow one
another, separated by ``#``:

    ORDER#2026-03-01T10:00:00.000000Z#o-17

Invariants, each with a property test:

- *Order*: ``encode(a) < encode(b)`` exactly when ``a < b``. Of two tuples joined with ``#``, the
  smaller sorts first.
- *No separator inside*: every character of an encoded value is above ``#``. In a str, each
  character up to ``$`` is written as ``$`` and two hex digits (``a#b`` is ``a$23b``). This keeps
  the order, because all escapes lie between ``#`` and ``%`` and sort among themselves.
- *Prefixes*: the start of a str is written as the start of its text, so ``begins_with`` on a key
  is ``begins_with`` on the value.
- *Bounds*: among keys with the same text before a part, those whose part is exactly v lie between
  ``v`` and ``v$``. No others do, because ``$`` never ends an escape.
- *Injective and decodable*: two values never share a text.

| type | text | example |
|---|---|---|
| str | escaped as above | ``a b`` -> ``a$20b`` |
| int | length letter, count of digits, digits (below) | ``42`` -> ``a242``, ``-42`` -> ``Z757`` |
| Decimal, float | sign, exponent as an int, digits without trailing zeros | ``1.5`` -> ``pa1115`` |
| datetime | UTC, microseconds, 27 characters | ``2026-03-01T10:00:00.000000Z`` |
| date, time, UUID | ISO text | ``2026-03-01`` |
| bool | ``0`` or ``1`` | |
| bytes | hex | |

The length letter of an int says how many digits the count of digits has: from ``a`` up for positive
numbers, from ``Z`` down for negative ones, whose digits are also complemented (9 minus each digit).

A derived part of a field (``month_of(Order.placed_at)``) is written as the start of the field's
text: ``2026-03``. The name of its encoding has two halves, as in ``datetime.month`` and
``str.prefix5``. The second half is the derived part. The first half is the encoding of the field.
If a pattern's argument holds a finer derived part, the first half is that part: ``day.month`` is
the month of a day.

An Enum or a Literal is written as its value. ``inverted`` text sorts in reverse, for newest-first
prefixes: numbers are negated, the digits of times complemented (``2026`` is ``7973``). Text without
a fixed width cannot be inverted.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from stator.design.entities.custom_codecs import stored_form
from stator.design.entities.derived_parts import (
    TIME_LENGTHS,
    example_of,
    part_of_argument,
    part_of_value,
)
from stator.design.entities.shapes import Choice, Coded, Epoch, Maybe, Scalar, Shape, is_packed
from stator.design.entities.wire import WrongValue, encode_time
from stator.errors import DesignError

SEPARATOR: Final = "#"
AFTER: Final = "$"
"""The end of a range of keys that start with a value, written after that value.

``USER#u1$`` sorts after every key that starts with ``USER#u1#``, and before ``USER#u10``.
"""

_TURNED: Final = str.maketrans("0123456789", "9876543210")
_TURNED_HEX: Final = str.maketrans("0123456789abcdef", "fedcba9876543210")
_ESCAPES: Final = {code: f"${code:02X}" for code in range(ord("$") + 1)}


def escape(text: str) -> str:
    """Escape every character up to and including ``$``, which includes the separator ``#``."""
    return text.translate(_ESCAPES)


def unescape(text: str) -> str:
    first, *rest = text.split("$")
    return first + "".join(chr(int(part[:2], 16)) + part[2:] for part in rest)


# --- numbers --------------------------------------------------------------------------------------


def _encode_int(value: int) -> str:
    digits = str(abs(value))
    count = str(len(digits))
    if value >= 0:
        return chr(ord("a") + len(count) - 1) + count + digits
    return chr(ord("Z") - len(count) + 1) + (count + digits).translate(_TURNED)


def _split_int(text: str) -> tuple[int, str]:
    """Split encoded text into the int at its start and the text after it."""
    negative = text[0] <= "Z"
    width = ord("Z") - ord(text[0]) + 1 if negative else ord(text[0]) - ord("a") + 1
    count = int(text[1 : 1 + width].translate(_TURNED) if negative else text[1 : 1 + width])
    end = 1 + width + count
    digits = text[1 + width : end]
    return (-int(digits.translate(_TURNED)) if negative else int(digits)), text[end:]


def _encode_decimal(value: Decimal) -> str:
    if not value:
        return "m"
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).lstrip("0")
    point = len(text) + exponent
    text = text.rstrip("0")
    if not sign:
        return "p" + _encode_int(point) + text
    return "d" + _encode_int(-point) + text.translate(_TURNED) + "~"


def _decode_decimal(text: str) -> Decimal:
    if text == "m":
        return Decimal(0)
    point, digits = _split_int(text[1:])
    if text[0] == "p":
        return Decimal((0, tuple(map(int, digits)), point - len(digits)))
    digits = digits[:-1].translate(_TURNED)
    return Decimal((1, tuple(map(int, digits)), -point - len(digits)))


# --- one encoding per type ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Encoding:
    """How values of one type are written in a key.

    ``native`` is the DynamoDB type (S, N or B) whose own order is already right for these values,
    or None.
    """

    name: str
    python: type
    write: Callable[[Any], str]
    read: Callable[[str], Any]
    native: str | None
    turn: Callable[[Any], str] | None = None
    turn_back: Callable[[str], Any] | None = None
    step: Callable[[Any, int], Any] | None = None
    """A function that returns the next value above (1) or below (-1) a value.

    None if the values of the type have no next value.
    """


def _text(value: Any) -> str:
    return escape(_typed(value, str))


def _typed(value: Any, *types: type) -> Any:
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise _wrong(value, types[0].__name__)
    return value


def _wrong(value: object, wanted: str) -> DesignError:
    is_plain = isinstance(value, (str, bytes, int, float, Decimal, date, time, UUID))
    shown = f"{type(value).__name__} {value!r:.60}" if is_plain else type(value).__name__
    shown = "None" if value is None else shown
    return DesignError(
        f"a key needs {wanted} here, not {shown}", hint="pass a value of the field's type"
    )


def _finite(value: Any) -> Decimal:
    number = (
        Decimal(repr(value))
        if isinstance(_typed(value, Decimal, float, int), float)
        else Decimal(value)
    )
    if not number.is_finite():
        raise _wrong(value, "a finite number")
    return number


def _moment(value: Any) -> str:
    try:
        return encode_time(_typed(value, datetime))
    except WrongValue:
        raise _wrong(value, "a datetime with a time zone") from None


def _epoch(value: Any) -> int:
    moment: datetime = _typed(value, datetime)
    if moment.tzinfo is None:
        raise _wrong(value, "a datetime with a time zone")
    return math.ceil(moment.timestamp())


def _from_epoch(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _day(value: Any) -> str:
    if isinstance(value, datetime):
        raise _wrong(value, "date")
    return str(_typed(value, date).isoformat())


def _clock(value: Any) -> str:
    if _typed(value, time).tzinfo is not None:
        raise _wrong(value, "a time without a zone")
    return str(value.isoformat(timespec="microseconds"))


def _turned(write: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: write(value).translate(_TURNED)


def _turned_back(read: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: read(text.translate(_TURNED))


_ENCODINGS: Final = {
    encoding.name: encoding
    for encoding in (
        Encoding("str", str, _text, unescape, "S"),
        Encoding(
            "int", int,
            lambda value: _encode_int(int(_typed(value, int))),
            lambda text: _split_int(text)[0], "N",
            lambda value: _encode_int(-int(_typed(value, int))),
            lambda text: -_split_int(text)[0],
            lambda value, by: value + by,
        ),
        Encoding(
            "decimal", Decimal,
            lambda value: _encode_decimal(_finite(value)), _decode_decimal, "N",
            lambda value: _encode_decimal(_finite(value).copy_negate()),
            lambda text: _decode_decimal(text).copy_negate(),
        ),
        Encoding(
            "float", float,
            lambda value: _encode_decimal(_finite(value)),
            lambda text: float(_decode_decimal(text)), "N",
            lambda value: _encode_decimal(_finite(value).copy_negate()),
            lambda text: -float(_decode_decimal(text)),
        ),
        Encoding(
            "bool", bool,
            lambda value: "1" if _typed(value, bool) else "0", lambda text: text == "1", None,
        ),
        Encoding(
            "bytes", bytes,
            lambda value: _typed(value, bytes, bytearray).hex(), bytes.fromhex, "B",
        ),
        Encoding(
            "datetime", datetime, _moment, datetime.fromisoformat, "S",
            _turned(_moment), _turned_back(datetime.fromisoformat),
            lambda value, by: value + timedelta(microseconds=by),
        ),
        Encoding(
            "epoch", Epoch,
            lambda value: _encode_int(_epoch(value)),
            lambda text: _from_epoch(_split_int(text)[0]), "N",
            lambda value: _encode_int(-_epoch(value)),
            lambda text: _from_epoch(-_split_int(text)[0]),
            lambda value, by: value + timedelta(seconds=by),
        ),
        Encoding(
            "date", date, _day, date.fromisoformat, "S",
            _turned(_day), _turned_back(date.fromisoformat),
            lambda value, by: value + timedelta(days=by),
        ),
        # A time with a zone is stored with its offset, so its text does not sort by time. Such a
        # time cannot be a key by itself.
        Encoding(
            "time", time, _clock, time.fromisoformat, None,
            _turned(_clock), _turned_back(time.fromisoformat),
        ),
        Encoding(
            "uuid", UUID, lambda value: str(_typed(value, UUID)), UUID, "S",
            lambda value: str(_typed(value, UUID)).translate(_TURNED_HEX),
            lambda text: UUID(text.translate(_TURNED_HEX)),
        ),
    )
}  # fmt: skip
_BY_TYPE: Final = {encoding.python: encoding for encoding in _ENCODINGS.values()}


_DERIVED_FROM: Final = {
    "datetime": tuple(TIME_LENGTHS), "date": ("year", "month"), "str": ("prefix",)
}  # fmt: skip
"""The derived parts that a field of each encoding has."""


def encoding_named(name: str) -> Encoding:
    return _ENCODINGS.get(name) or _part_encoding(name)


@lru_cache(maxsize=1024)
def _part_encoding(name: str) -> Encoding:
    """Return the encoding of a derived part, such as ``datetime.month``.

    The text of a time has a fixed width and needs no escapes, so its digits can be inverted.
    """
    given, _, part = name.partition(".")
    text = _part_text(given, part)
    if part not in TIME_LENGTHS:
        return Encoding(name, str, lambda value: escape(text(value)), unescape, None)
    return Encoding(
        name, str, text, str, None,
        lambda value: text(value).translate(_TURNED), lambda shown: shown.translate(_TURNED),
    )  # fmt: skip


def _part_text(given: str, part: str) -> Callable[[Any], str]:
    """Return a function that computes the text of the derived part ``part`` from a value.

    ``given`` says what kind of value it gets: a field's encoding, such as ``datetime``, or a finer
    derived part that an argument holds, such as ``day``.
    """
    compute = part_of_value if given in _DERIVED_FROM else part_of_argument
    return lambda value: compute(given, part, value)


def is_part(encoding: str) -> bool:
    """Whether an encoding, such as ``datetime.month``, writes a derived part of a field."""
    return "." in encoding


def part_text(encoding: str, value: Any) -> str:
    """Return the derived part of a value, as the stored field has it: without escapes for keys."""
    given, _, part = encoding.partition(".")
    return _part_text(given, part)(plain(value))


def part_encoding(field: Encoding, part: str) -> Encoding | None:
    """Return the encoding of a derived part, or None if the field has no such part."""
    parts = _DERIVED_FROM.get(field.name, ())
    return encoding_named(f"{field.name}.{part}") if part.startswith(parts) and parts else None


def encoding_of(shape: Shape) -> Encoding | None:
    """Return the encoding of a shape's values in a key, or None if a key cannot hold them."""
    if isinstance(shape, Maybe):
        return encoding_of(shape.inner)
    if isinstance(shape, Choice):
        return _BY_TYPE.get(shape.scalar.python)
    if isinstance(shape, Coded):
        return None if shape.secret or is_packed(shape) else encoding_of(shape.stored)
    return _BY_TYPE.get(shape.python) if isinstance(shape, Scalar) else None


def plain(value: Any) -> Any:
    """Return the value of an Enum member, or the stored form of a value with its own codec.

    Any other value is returned unchanged.
    """
    if type(value) in _BY_TYPE:
        return value
    return value.value if isinstance(value, Enum) else stored_form(value)


def encode(name: str, value: Any, *, inverted: bool = False) -> str:
    encoding = encoding_named(name)
    if not inverted:
        return encoding.write(plain(value))
    if encoding.turn is None:
        raise DesignError(
            f"a {name} cannot be written in inverted order",
            hint="read in the other direction instead",
        )
    return encoding.turn(plain(value))


def decode(name: str, text: str, *, inverted: bool = False) -> Any:
    """Return the value that a text encodes. ``name`` is the name of the encoding, such as ``int``.

    A decoded Decimal equals the original, but its trailing zeros are lost.
    """
    encoding = encoding_named(name)
    if not inverted:
        return encoding.read(text)
    if encoding.turn_back is None:
        raise DesignError(
            f"a {name} cannot be written in inverted order",
            hint="read in the other direction instead",
        )
    return encoding.turn_back(text)


def join(names: Sequence[str], values: Sequence[Any]) -> str:
    """Join several values into one text that sorts like their tuple.

    ``names`` has the name of each value's encoding, such as ``int``.
    """
    return SEPARATOR.join(encode(name, value) for name, value in zip(names, values, strict=True))


def split(names: Sequence[str], text: str) -> tuple[Any, ...]:
    return tuple(
        decode(name, part) for name, part in zip(names, text.split(SEPARATOR), strict=True)
    )


# --- to show --------------------------------------------------------------------------------------

_EXAMPLES: Final[dict[type, Any]] = {
    int: 7, float: 9.5, Decimal: Decimal("9.99"), bool: True, bytes: b"\x01",
    datetime: datetime(2026, 3, 1, 10, tzinfo=UTC), date: date(2026, 3, 1), time: time(10, 30),
    UUID: UUID("00000000-0000-4000-8000-000000000001"),
}  # fmt: skip


def example_argument(encoding: str, name: str, annotation: Any, at: int = 0) -> Any:
    """Return an example value for an argument that a key writes with this encoding.

    If the annotation is of another type, the encoding's own type is used. A larger ``at`` gives
    another value.
    """
    given = encoding.partition(".")[0]  # what the argument is: a whole value or a part of one
    if given not in _ENCODINGS:
        return example_of(given, name, annotation, at)
    wanted = encoding_named(given).python
    value = example(name, annotation, at)
    return value if type(plain(value)) is wanted else example(name, wanted, at)


def example(name: str, annotation: Any, at: int = 0) -> Any:
    """Return an example value for a field or argument of this name and type.

    With a larger ``at``, the example is a later date or a larger number.
    """
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return next(iter(annotation))
    options = typing.get_args(annotation)
    if typing.get_origin(annotation) is typing.Literal:
        return options[0]
    if options:
        return example(name, options[0], at)
    if annotation in (datetime, date):
        return _EXAMPLES[annotation] + timedelta(days=at)
    if annotation in (int, float, Decimal):
        return _EXAMPLES[annotation] + at
    return _EXAMPLES.get(annotation, f"{name.removesuffix('_id')}1")
