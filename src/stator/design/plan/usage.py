"""Usage: the units and the storage that a plan counts for each table and index.

The planner computes these quantities once. The plan's own dollars, the cost report and the
documents all multiply them by prices, so their totals agree. The units of reads are in the steps of
their patterns. All other quantities are in this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class UnitUse:
    """The units a second that one pattern takes in a table, or in one of its indexes.

    ``pattern`` is the name of a write pattern. Units that belong to no pattern have a label
    instead, such as ``writes of Order``.
    """

    kind: Literal["read", "write"]
    pattern: str
    entity: str
    table: str
    index: str | None
    units: float


@dataclass(frozen=True, slots=True)
class StoredItems:
    """The items of an entity in a table, or their entries in one of its indexes.

    ``is_guard`` marks the guards of unique values, which are in the table ``<design>-stator``.
    """

    entity: str
    table: str
    index: str | None
    count: float
    item_bytes: float
    is_guard: bool = False
