"""How DynamoDB counts: capacity units of requests and bytes of storage. The search and the bills both count by this.

Counts are whole numbers (reads in half units), so they are the same whether sizes are floats, as in the search, or Decimals, as in a
bill. A read takes a unit for each 4 KB begun, a write one for each 1 KB begun, of the whole item; an eventually consistent read half, a
transactional read or write twice.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Final, Literal

from stator.model.limits import READ_UNIT_BYTES, WRITE_UNIT_BYTES

Number = int | float | Decimal
Consistency = Literal["eventual", "strong", "transactional"]

MONTH_HOURS: Final = 730
"""As in the AWS Pricing Calculator; a bill has 672 to 744."""
MONTH_SECONDS: Final = MONTH_HOURS * 3600
ITEM_OVERHEAD_BYTES: Final = 100
"""What storage is billed for beyond an item's own size, and again for each entry of an index ("DynamoDB item sizes and formats")."""

_HALVES: Final[dict[Consistency, int]] = {"eventual": 1, "strong": 2, "transactional": 4}


def _blocks(size_bytes: Number, block_bytes: int) -> int:
    """Blocks begun, at least one: reading or deleting what is not there is billed, too."""
    return max(1, math.ceil(size_bytes / block_bytes))


def half_read_units(size_bytes: Number, consistency: Consistency = "eventual") -> int:
    """Half units of one read: of an item, or of all that a Query or Scan reads together, before any filter."""
    return _blocks(size_bytes, READ_UNIT_BYTES) * _HALVES[consistency]


def read_units(size_bytes: float, *, consistent: bool) -> float:
    return half_read_units(size_bytes, "strong" if consistent else "eventual") / 2


def write_units(size_bytes: Number, *, transactional: bool = False) -> int:
    """Units of one write of the table itself; of an update or a replacement, the size is the larger of before and after."""
    return _blocks(size_bytes, WRITE_UNIT_BYTES) * (2 if transactional else 1)


def index_write_units(
    before_bytes: Number | None,
    after_bytes: Number | None,
    *,
    key_changes: bool = False,
    changes: bool = True,
) -> int:
    """Units that one write of the table costs in one index. Sizes are of the projected entry; None where there is none.

    A change of the index's key takes the old entry out and puts a new one in: both are paid. A write that changes nothing that is
    projected costs nothing. Transactions do not double it: that is the table's own writes only.
    """
    if before_bytes is None:
        return 0 if after_bytes is None else write_units(after_bytes)
    if after_bytes is None:
        return write_units(before_bytes)
    if key_changes:
        return write_units(before_bytes) + write_units(after_bytes)
    return max(write_units(before_bytes), write_units(after_bytes)) if changes else 0
