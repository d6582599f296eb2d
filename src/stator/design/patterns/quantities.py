"""Quantities that a user declares: rates, volumes, sizes. They are finite and not negative."""

from __future__ import annotations

import math
from typing import Any

from stator.errors import DesignError


def check_quantity(what: str, number: Any) -> None:
    """Raise DesignError unless a declared quantity is a finite number that is not negative."""
    is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
    if not is_number or not 0 <= number < math.inf:
        raise DesignError(
            f"{what} is {number!r}, which is not a quantity",
            hint="use a number, 0 or more; a rough estimate is enough",
        )
