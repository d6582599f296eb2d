"""Capacity units and stored bytes, as DynamoDB counts them. The search and the bill both use this.

A read takes one unit per 4 KB and a write one unit per 1 KB of the whole item, rounded up. An
eventually consistent read takes half as much; a transactional read or write takes twice as much.

Writes are counted in units and reads in half units, so that counts are whole numbers. The search
passes sizes as floats and the bill passes them as Decimals; both get the same counts.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Final, Literal

from stator.model.limits import READ_UNIT_BYTES, WRITE_UNIT_BYTES

Number = int | float | Decimal
Consistency = Literal["eventual", "strong", "transactional"]

MONTH_HOURS: Final = 730
"""Hours in a month, as the AWS Pricing Calculator counts. A month on a real bill has 672 to 744."""
MONTH_SECONDS: Final = MONTH_HOURS * 3600
ITEM_OVERHEAD_BYTES: Final = 100
"""Bytes of storage that AWS bills in addition to the size of each item and of each index entry.

Source: "DynamoDB item sizes and formats" in the Developer Guide.
"""

_HALVES: Final[dict[Consistency, int]] = {"eventual": 1, "strong": 2, "transactional": 4}


def _blocks(size_bytes: Number, block_bytes: int) -> int:
    """Return how many blocks of ``block_bytes`` the size fills, rounded up, and at least 1.

    Reading or deleting a missing item is billed as one block.
    """
    return max(1, math.ceil(size_bytes / block_bytes))


def half_read_units(size_bytes: Number, consistency: Consistency = "eventual") -> int:
    """Return the cost of one read, in halves of a read unit.

    ``size_bytes`` is the size of the item. For a Query or Scan, it is the total size of the items
    that are read, before any filter.
    """
    return _blocks(size_bytes, READ_UNIT_BYTES) * _HALVES[consistency]


def read_units(size_bytes: float, *, consistent: bool) -> float:
    return half_read_units(size_bytes, "strong" if consistent else "eventual") / 2


def write_units(size_bytes: Number, *, transactional: bool = False) -> int:
    """Return the cost of one write to the table, in write units.

    For an update, pass the larger of the old and the new size.
    """
    return _blocks(size_bytes, WRITE_UNIT_BYTES) * (2 if transactional else 1)


def index_write_units(
    before_bytes: Number | None,
    after_bytes: Number | None,
    *,
    key_changes: bool = False,
    changes: bool = True,
) -> int:
    """Return the write units that one write to the table costs in one index.

    ``before_bytes`` and ``after_bytes`` are the sizes of the index entry before and after the
    write. None means that the index has no entry for the item. ``key_changes`` means that the write
    changes the index's key: deleting the old entry and inserting the new one are both billed.
    ``changes=False`` means that no projected attribute changes, which costs nothing. Transactions
    double only the table's own writes, not the index's.
    """
    if before_bytes is None:
        return 0 if after_bytes is None else write_units(after_bytes)
    if after_bytes is None:
        return write_units(before_bytes)
    if key_changes:
        return write_units(before_bytes) + write_units(after_bytes)
    return max(write_units(before_bytes), write_units(after_bytes)) if changes else 0
