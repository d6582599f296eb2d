"""Sums with more digits than a DynamoDB Number, stored as several attributes that add up to them.

    s:total  1000000000000000000000000000000000000e3     s:total~1  0.5

A Number has 38 digits and goes up to 9.99e125 (AWS, "Supported data types"). Sums of numbers that
are far apart have more: 1e40 + 1 has 41.
"""

from __future__ import annotations

from decimal import Context as Arithmetic
from decimal import Decimal
from typing import Final

from stator.model.limits import NUMBER_DIGITS
from stator.model.values import Item

# DynamoDB's numbers go from 1e-130 to 1e126: this precision keeps their sums exact.
EXACT: Final = Arithmetic(prec=300)
_CUT: Final = "~"
_LARGEST: Final = Decimal("9.9e125")


def is_wide(value: int | Decimal) -> bool:
    return len(pieces(Decimal(value))) > 1


def pieces(value: Decimal) -> list[Decimal]:
    """Split a value into Numbers of at most 38 digits that add up to it. Most need only one."""
    found: list[Decimal] = []
    rest = EXACT.create_decimal(value)
    while abs(rest) > _LARGEST:
        found.append(_LARGEST.copy_sign(rest))
        rest = EXACT.subtract(rest, found[-1])
    while True:
        digits = EXACT.normalize(rest).as_tuple()
        extra = len(digits.digits) - NUMBER_DIGITS
        if extra <= 0:
            return [*found, rest] if rest or not found else found
        head = Decimal((digits.sign, digits.digits[:NUMBER_DIGITS], int(digits.exponent) + extra))
        found.append(head)
        rest = EXACT.subtract(rest, head)


def wide_attributes(name: str, value: int | Decimal) -> Item:
    return {
        name if at == 0 else f"{name}{_CUT}{at}": {"N": str(piece)}
        for at, piece in enumerate(pieces(Decimal(value)))
    }


def whole_name(attribute: str) -> str:
    """Return the name of the sum that an attribute is a piece of: ``s:total`` for ``s:total~1``."""
    return attribute.partition(_CUT)[0]


def wide_number(item: Item, name: str) -> Decimal:
    """Return the sum called ``name``: the total of its pieces in an item."""
    total = Decimal(0)
    for attribute, value in item.items():
        if whole_name(attribute) == name and "N" in value:
            total = EXACT.add(total, Decimal(value["N"]))
    return total
