"""The few prices with which the planner ranks layouts and prices one-off writes.

These are AWS's prices in us-east-1 (on-demand, Standard class) since November 2024. The bill, in
any region and billing mode, is computed in ``stator.design.cost`` from a price file.
"""

from __future__ import annotations

from typing import Final

READ_UNIT_DOLLARS: Final = 0.125 / 1_000_000
WRITE_UNIT_DOLLARS: Final = 0.625 / 1_000_000
STORAGE_BYTE_DOLLARS: Final = 0.25 / 1024**3
"""The price of storing one byte for a month."""
