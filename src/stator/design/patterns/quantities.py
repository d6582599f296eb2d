"""Quantities that a user declares: rates, volumes, sizes, times and shares.

They are finite, not negative, and not so large that costs and shards lose their meaning.
"""

from __future__ import annotations

import math
from typing import Any, Final

from stator.errors import DesignError

MOST: Final = 1e15
"""The largest quantity. It is far above any table, and products of a few of them stay exact enough
to be compared."""
MOST_A_SECOND: Final = 1e9
"""The highest rate, and the most items a call. All of Amazon takes fewer requests on its busiest
day: 151 million a second ("Prime Day 2025", AWS News Blog)."""


_WHOLE: Final = 10**20
"""A larger int is shown by its power of ten. Python cannot format ints of any length."""


def check_quantity(what: str, number: Any, *, most: float = MOST) -> None:
    """Raise DesignError unless a declared quantity is a number from 0 to ``most``."""
    is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
    if is_number and 0 <= number <= most:
        return
    if is_number and most < number < math.inf:
        raise DesignError(
            f"{what} is {shown_quantity(number)}, which is more than {most:,.0f}",
            hint=f"use a number up to {most:,.0f}",
        )
    raise DesignError(
        f"{what} is {shown_quantity(number)}, which is not a quantity",
        hint="use a number, 0 or more; a rough estimate is enough",
    )


def shown_quantity(number: Any) -> str:
    """Return a declared quantity as text for an error message. It may be any object."""
    if isinstance(number, int) and abs(number) > _WHOLE:
        return f"{'-' if number < 0 else ''}1e+{int(math.log10(abs(number)))}"
    return repr(number)
