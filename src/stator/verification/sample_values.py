"""Sample values of fields by number.

The same number always gives the same value. For texts, numbers and times, a larger number gives a
value that sorts later.

Numbers stand for values everywhere else in this package, so that a field with two million values
needs no list of them. Text has ``TEXT_BYTES`` characters, as identifiers usually have. If an item
size is declared, the fields that no pattern names are made longer or shorter.
"""

from __future__ import annotations

import random
import string
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from typing import Any, Final
from uuid import UUID

from stator.design.entities.packed_numbers import PackedType
from stator.design.entities.shapes import (
    Anything,
    Choice,
    Coded,
    Epoch,
    ListOf,
    MapOf,
    Maybe,
    Nested,
    OneOf,
    Scalar,
    SetOf,
    Shape,
    TypedMap,
)
from stator.errors import DesignError

TEXT_BYTES: Final = 24
LARGE_BYTES: Final = 4096
_ELEMENTS: Final = 5
_ELEMENT_VALUES: Final = 15
"""Elements of lists and sets are five of fifteen values, so that each is in a third of them."""
_FIRST: Final = datetime(2026, 1, 1, tzinfo=UTC)
_PERIOD: Final = timedelta(days=365)
_DAYS_FROM: Final = date(2024, 1, 1)
_MIX: Final = (
    0x9E3779B97F4A7C15F39CC0605CEDC835  # odd, so that multiplying mod 2**128 is one to one
)
_STORED: Final = (
    "1",
    1,
    "https://example.org/1",
    "192.0.2.7",
    "2001:db8::7",
    "192.0.2.0/24",
    "UTC",
)
_LETTERS: Final = string.ascii_letters + string.digits


@dataclass(frozen=True, slots=True)
class ValueDomain:
    """The values of one field: their shape, the word they start with, and how many there are."""

    shape: Shape
    word: str
    count: float
    text_bytes: int = TEXT_BYTES

    def value(self, number: int) -> Any:
        return make(self.shape, self.word, number, max(1.0, self.count), self.text_bytes)


def make(shape: Shape, word: str, number: int, count: float, text_bytes: int = TEXT_BYTES) -> Any:
    """Return a value of a shape: number ``number`` out of ``count``. Texts start with ``word``."""
    match shape:
        case Maybe(inside):
            return make(inside, word, number, count, text_bytes)
        case Choice(values, _, enum):
            chosen = values[number % len(values)]
            return chosen if enum is None else enum(chosen)
        case Scalar(python):
            return _scalar(python, word, number, count, text_bytes)
        case ListOf(elements, container, fixed):
            several = elements if fixed else elements * _ELEMENTS
            each = _part_bytes(text_bytes, len(several))
            return container(
                make(one, word, (number + at) % _ELEMENT_VALUES, _ELEMENT_VALUES, each)
                for at, one in enumerate(several)
            )
        case SetOf(element, frozen):
            found = [
                make(element, word, (number + at) % _ELEMENT_VALUES, _ELEMENT_VALUES)
                for at in range(_ELEMENTS)
            ]
            return frozenset(found) if frozen else set(found)
        case MapOf(inside):
            each = _part_bytes(text_bytes, _ELEMENTS)
            return {
                f"member-{at}": make(inside, word, number + at, count, each)
                for at in range(_ELEMENTS)
            }
        case Coded(PackedType(_, container, numeric)):
            one = numeric(number % 100)
            return one if container is None else container([one] * _ELEMENTS)
        case Coded():
            return _coded(shape, word, number, count)
        case OneOf(_, members):
            return make(members[number % len(members)][1], word, number, count)
        case Nested(cls, fields):
            return cls(**_members(fields, number, count, text_bytes))
        case TypedMap(_, fields):
            return _members(fields, number, count, text_bytes)
        case Anything():
            return _text(word, number, text_bytes)
    raise AssertionError(shape)


def _part_bytes(text_bytes: int, parts: int) -> int:
    """Return the size of each text in a value that holds ``parts`` texts.

    ``text_bytes`` is the size of all these texts together. But if it is ``TEXT_BYTES``, the
    default, each text gets that size.
    """
    return text_bytes if text_bytes == TEXT_BYTES else max(1, text_bytes // max(1, parts))


def _members(
    fields: tuple[tuple[str, Shape, bool], ...], number: int, count: float, text_bytes: int
) -> dict[str, Any]:
    texts = sum(holds_text(each) for _, each, _ in fields)
    return {
        name: make(
            each,
            name,
            number,
            count,
            _part_bytes(text_bytes, texts) if holds_text(each) else TEXT_BYTES,
        )
        for name, each, _ in fields
    }


def holds_text(shape: Shape) -> bool:
    """Whether values of a shape can be made longer or shorter."""
    match shape:
        case Maybe(inside) | MapOf(inside):
            return holds_text(inside)
        case ListOf(elements, _, fixed):
            return not fixed and holds_text(elements[0])
        case Nested(_, fields) | TypedMap(_, fields):
            return any(holds_text(each) for _, each, _ in fields)
        case Scalar(python):
            return python in (str, bytes)
        case Anything():
            return True
    return False


def _scalar(python: type, word: str, number: int, count: float, text_bytes: int) -> Any:
    if python is str:
        return _text(word, number, text_bytes)
    if python is int:
        return 100_000 + number
    if python is float:
        return number / 7  # as many digits as a computed number has
    if python is Decimal:
        return Decimal(number) / 100 + 10
    if python is bool:
        return bool(number % 2)
    if python is bytes:
        return _text(word, number, 64 if text_bytes == TEXT_BYTES else text_bytes).encode()
    if python in (datetime, Epoch):
        moment = _FIRST + _PERIOD * (number / count)
        return moment.replace(microsecond=0) if python is Epoch else moment
    if python is date:
        return _DAYS_FROM + timedelta(days=number)
    if python is time:
        return (datetime.min + timedelta(seconds=number % 86_400)).time()
    assert python is UUID
    return UUID(int=(number * _MIX) % 2**128)


def _text(word: str, number: int, length: int) -> str:
    """Return a text of this length: the word, the number, and letters to fill it up."""
    if length <= TEXT_BYTES:
        digits = str(number)
        if len(digits) >= length - 2:
            return digits.rjust(length, "0")
        return f"{word[: length - 2 - len(digits)]}-".ljust(length - len(digits), "0") + digits
    return _text(word, number, TEXT_BYTES) + filler(length - TEXT_BYTES, number)


def filler(length: int, seed: int) -> str:
    """Return letters that compress badly, the same for the same seed."""
    block = _block(seed % 64)
    return (block * (length // len(block) + 1))[:length]


@cache
def _block(seed: int) -> str:
    return "".join(random.Random(seed).choices(_LETTERS, k=8192))  # noqa: S311 - sample data


def _coded(shape: Coded, word: str, number: int, count: float) -> Any:
    for stored in (make(shape.stored, word, number, count), number + 1, *_STORED):
        try:
            return shape.decode(stored)
        except Exception:  # a user's function may raise anything  # noqa: S112
            continue
    raise DesignError(
        f"{word}: Stator cannot make a sample value of the type "
        f"{getattr(shape.python, '__name__', shape.python)}",
        hint="let the decode function of register_codec() accept '1' or 1",
    )
