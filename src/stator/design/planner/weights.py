"""The few prices the planner weighs designs with: us-east-1, on-demand, Standard class, since November 2024.

Only their relation matters here: a write costs five reads, and a gigabyte kept for a month two million reads. What a design costs in
a region and a billing mode of your own is another question, with a price file of its own.
"""

from __future__ import annotations

from typing import Final

READ_UNIT_DOLLARS: Final = 0.125 / 1_000_000
WRITE_UNIT_DOLLARS: Final = 0.625 / 1_000_000
STORAGE_BYTE_DOLLARS: Final = 0.25 / 1024**3
"""One byte for a month."""
INDEX_DOLLARS: Final = 0.10
"""Nothing AWS charges: what an index is to its owner, in alarms, backfills and one more thing to understand. Ties go to fewer."""

INDIRECT_DOLLARS: Final = 0.05
"""Nor this: a base key that cannot be computed from the identity, so that whoever has only that must look the key up."""
CONCENTRATED_DOLLARS: Final = 0.05
FEW_VALUES: Final = 100.0
"""Nor this: a partition key with so few values cannot spread its traffic, however little there is today."""
FILTERED_DOLLARS: Final = 0.05
"""Nor this: a read that filters what a key could have found. It is as cheap as the estimates say, and a key is so whatever they say."""
