"""Consumed capacity: DynamoDB's arithmetic, and the form in which answers report it.

A write unit is 1 KB and a read unit 4 KB. An eventually consistent read costs half, a transaction
twice. A write is charged for the larger of the item before and after, and again in every index
whose entry it changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.engine.tables.table import Table
from stator.model.limits import READ_UNIT_BYTES, WRITE_UNIT_BYTES


def write_units(size_bytes: int) -> int:
    return max(1, -(-size_bytes // WRITE_UNIT_BYTES))


def read_units(size_bytes: int, consistent: bool) -> float:
    """Return the read units that one read of this many bytes costs.

    Reading nothing costs as much as the smallest read.
    """
    if size_bytes <= READ_UNIT_BYTES:  # most reads
        return 1.0 if consistent else 0.5
    units = -(-size_bytes // READ_UNIT_BYTES)
    return float(units) if consistent else units / 2


@dataclass(slots=True, init=False)
class Consumed:
    """The capacity that one request consumed on one table and its indexes."""

    table: float
    indexes: dict[str, float]

    def __init__(self, table: float = 0.0, indexes: dict[str, float] | None = None) -> None:
        self.table = table
        self.indexes = {} if indexes is None else indexes

    def add(self, other: Consumed) -> None:
        self.table += other.table
        for name, units in other.indexes.items():
            self.indexes[name] = self.indexes.get(name, 0.0) + units

    @property
    def total(self) -> float:
        return self.table + sum(self.indexes.values())


def report(
    table: Table, shown_name: str, consumed: Consumed, mode: str, *, kind: str | None = None
) -> dict[str, Any]:
    """Return one ConsumedCapacity entry, with ``shown_name`` as its TableName.

    ``mode`` is the request's ReturnConsumedCapacity, TOTAL or INDEXES. ``kind`` (Read or Write)
    adds the separate read or write units, which only transactions report.
    """
    entry: dict[str, Any] = {"TableName": shown_name, **_units(consumed.total, kind)}
    if mode != "INDEXES":
        return entry
    entry["Table"] = _units(consumed.table, kind)
    for member, indexes in (
        ("LocalSecondaryIndexes", table.local_indexes),
        ("GlobalSecondaryIndexes", table.global_indexes),
    ):
        used = {
            i.name: _units(consumed.indexes[i.name], kind)
            for i in indexes
            if i.name in consumed.indexes
        }
        if used:
            entry[member] = used
    return entry


def _units(units: float, kind: str | None) -> dict[str, float]:
    amounts = {"CapacityUnits": float(units)}
    if kind is not None:
        amounts[f"{kind}CapacityUnits"] = float(units)
    return amounts
