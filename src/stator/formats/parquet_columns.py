"""Column types of Parquet files: the narrowest type that keeps every value of a column.

A column of numbers is int64 if all of them are integers in its range. Otherwise it is double if
that loses nothing, else decimal128 or decimal256 if the digits fit, else text. An attribute whose
values have several types, or are maps or lists, is JSON text.

``ColumnFacts`` collects what decides the type of a column. All files of an export must have the
same types, so an export collects the facts of all its items before it writes the first file.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from stator.formats.extras import pyarrow
from stator.formats.plain import cell_text
from stator.model.values import Item, Value

_INT64: Final = 1 << 63
_EXACT_FLOAT: Final = 1 << 53
"""Above this a float does not hold every whole number."""
_DECIMAL128_DIGITS: Final = 38
_DECIMAL256_DIGITS: Final = 76


class Unfit(Exception):
    """A value that a column's type cannot hold without loss. ``column`` is the column's name."""

    def __init__(self, column: str = "") -> None:
        super().__init__(column)
        self.column = column


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The type of a column, and how an attribute value becomes a cell of it.

    ``cell`` raises Unfit for a value that the type does not hold exactly. ``absent`` is the cell of
    an item without the attribute.
    """

    arrow: Any
    cell: Callable[[Value], Any]
    absent: Any = None

    def cells(self, values: Iterable[Value | None]) -> list[Any]:
        cell, absent = self.cell, self.absent
        return [
            absent if value is None else None if "NULL" in value else cell(value)
            for value in values
        ]


@dataclass(slots=True)
class ColumnFacts:
    """What the values of a column have in common.

    ``digits`` counts the digits before the decimal point of the largest number, ``scale`` the
    digits after it of the most precise one.
    """

    kinds: set[str] = field(default_factory=set)
    is_whole: bool = True
    is_double: bool = True
    digits: int = 1
    scale: int = 0

    def add(self, value: Value) -> None:
        [(kind, content)] = value.items()
        self.kinds.add(kind)
        if kind == "N":
            self._add_number(content)

    def _add_number(self, text: str) -> None:
        number = Decimal(text)
        _, figures, exponent = number.as_tuple()
        assert isinstance(exponent, int)
        self.scale = max(self.scale, -exponent)
        self.digits = max(self.digits, len(figures) + exponent)
        if self.is_whole and not _is_int64(number):
            self.is_whole = False
        if self.is_double and not (abs(number) < _EXACT_FLOAT and _is_float(number)):
            self.is_double = False

    def to_data(self) -> dict[str, Any]:
        return {
            "kinds": sorted(self.kinds),
            "is_whole": self.is_whole,
            "is_double": self.is_double,
            "digits": self.digits,
            "scale": self.scale,
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> ColumnFacts:
        return cls(**{**data, "kinds": set(data["kinds"])})

    def merged(self, other: ColumnFacts) -> ColumnFacts:
        return ColumnFacts(
            self.kinds | other.kinds,
            self.is_whole and other.is_whole,
            self.is_double and other.is_double,
            max(self.digits, other.digits),
            max(self.scale, other.scale),
        )

    @property
    def type(self) -> ColumnType:
        """The narrowest type that holds every value."""
        arrow = pyarrow()
        match sorted(self.kinds - {"NULL"}):
            case ["S"] | []:
                return text_column()
            case ["BOOL"]:
                return ColumnType(arrow.bool_(), lambda value: content_of(value, "BOOL"))
            case ["N"] if self.is_whole:
                return ColumnType(arrow.int64(), whole)
            case ["N"] if self.is_double:
                return ColumnType(arrow.float64(), double)
            case ["N"]:
                return self.decimal
            case ["B"]:
                return ColumnType(arrow.binary(), binary)
            case ["SS"]:
                return ColumnType(
                    arrow.list_(arrow.string()), lambda value: content_of(value, "SS")
                )
        return ColumnType(arrow.string(), cell_text)

    @property
    def decimal(self) -> ColumnType:
        """The type for decimal numbers: the first of decimal128, decimal256 and text that fits."""
        arrow, digits = pyarrow(), self.digits + self.scale
        if digits <= _DECIMAL128_DIGITS:
            return ColumnType(arrow.decimal128(_DECIMAL128_DIGITS, self.scale), exact)
        if digits <= _DECIMAL256_DIGITS:
            return ColumnType(arrow.decimal256(_DECIMAL256_DIGITS, self.scale), exact)
        return ColumnType(arrow.string(), lambda value: str(content_of(value, "N")))


def add_facts(facts: dict[str, ColumnFacts], items: Iterable[Item]) -> None:
    """Update ``facts``, the facts of each column, with the attribute values of more items."""
    for item in items:
        for name, value in item.items():
            known = facts.get(name)
            if known is None:
                known = facts[name] = ColumnFacts()
            known.add(value)


def merged_facts(
    one: Mapping[str, ColumnFacts], other: Mapping[str, ColumnFacts]
) -> dict[str, ColumnFacts]:
    """Return the facts of each column for two sets of items taken together.

    ``one`` and ``other`` hold the facts of each set.
    """
    merged = {
        name: found.merged(one[name]) if name in one else found for name, found in other.items()
    }
    return {**one, **merged}


def inferred_types(
    facts: Mapping[str, ColumnFacts], first: Iterable[str] = ()
) -> dict[str, ColumnType]:
    """Return the type of each column: columns in ``first`` come first, the others by name."""
    leading = [name for name in first if name in facts]
    ordered = [*leading, *sorted(facts.keys() - set(leading))]
    return {name: facts[name].type for name in ordered}


# -- cells


def content_of(value: Value, kind: str) -> Any:
    """Return the content of an attribute value: ``({"S": "a"}, "S")`` -> ``"a"``.

    Raises Unfit if the value has another DynamoDB type than ``kind``.
    """
    try:
        return value[kind]
    except KeyError:
        raise Unfit from None


def text_column() -> ColumnType:
    return ColumnType(pyarrow().string(), lambda value: content_of(value, "S"))


def whole(value: Value) -> int:
    number = Decimal(content_of(value, "N"))
    if not _is_int64(number):
        raise Unfit
    return int(number)


def double(value: Value) -> float:
    number = Decimal(content_of(value, "N"))
    if not _is_float(number):
        raise Unfit
    return float(number)


def exact(value: Value) -> Decimal:
    return Decimal(content_of(value, "N"))


def binary(value: Value) -> bytes:
    return b64decode(content_of(value, "B"))


def _is_int64(number: Decimal) -> bool:
    return -_INT64 <= number < _INT64 and number == number.to_integral_value()


def _is_float(number: Decimal) -> bool:
    """Whether a float can hold this number: 0.1 is printed as 0.1 again, so no digit is lost."""
    return Decimal(repr(float(number))) == number
