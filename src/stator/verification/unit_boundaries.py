"""Unit boundaries: how many units a call would take if all items were 1 % smaller or larger.

DynamoDB rounds up, so one more byte can cost one more unit. A write of 1,024 bytes takes one unit
and a write of 1,025 bytes two. So an estimate of the size that is wrong by one byte can be wrong by
a factor of two in units. The report does not count such an estimate as a failure, but says that the
item lies on a boundary.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from stator.design.plan.plan import IndexPlan, Plan, TablePlan
from stator.model.limits import READ_UNIT_BYTES, WRITE_UNIT_BYTES
from stator.model.values import Item, item_size

NEAR: Final = 0.01
"""Sizes that differ by this share are taken for the same."""
_MOST_ITEMS: Final = 300
"""The most items of an entity whose sizes are averaged."""


@dataclass(slots=True)
class StoredSizes:
    """The mean sizes of an entity's items, and of their entries in each index.

    ``places`` maps a place (a table, or an index as ``table / index``) and an entity to the bytes
    and the number of the entity's items in that place.
    """

    plan: Plan
    places: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)

    def add(self, table: str, entity: str, item: Item) -> None:
        planned = self.plan.table(table)
        if self.places.get((table, entity), (0, 0))[1] >= _MOST_ITEMS:
            return
        self._add(table, entity, item_size(item))
        for index in planned.indexes:
            if {*index.partition, *index.sort} <= item.keys():
                self._add(f"{table} / {index.name}", entity, _entry_bytes(item, planned, index))

    def _add(self, place: str, entity: str, size_bytes: int) -> None:
        total, count = self.places.get((place, entity), (0, 0))
        self.places[place, entity] = total + size_bytes, count + 1

    def mean(self, place: str, entity: str | None = None) -> float:
        """Return the mean size of the items in a place, or of those of one entity.

        Returns 0 if there are none.
        """
        found = [
            each
            for (where, name), each in self.places.items()
            if where == place and entity in (None, name)
        ]
        count = sum(number for _, number in found)
        return sum(total for total, _ in found) / count if count else 0.0

    def of_tables(self) -> dict[str, float]:
        """Return the mean size of an entity's items, by the name of the entity."""
        tables = {each.name for each in self.plan.tables}
        return {
            name: total / count
            for (place, name), (total, count) in self.places.items()
            if place in tables
        }


def _entry_bytes(item: Item, table: TablePlan, index: IndexPlan) -> int:
    if index.projection == "ALL":
        return item_size(item)
    names = {table.partition, table.sort, *index.partition, *index.sort, *index.included}
    return item_size({name: value for name, value in item.items() if name in names})


@dataclass(frozen=True, slots=True)
class PageRead:
    """One answer that was billed for ``items`` items together: a page, or a single item."""

    place: str
    items: int
    units: float


def nearby_read_units(
    reads: Iterable[PageRead], sizes: StoredSizes, *, consistent: bool
) -> tuple[float, float]:
    """Return the units that these answers take if all items are 1 % smaller, or 1 % larger."""
    each, low, high = 1.0 if consistent else 0.5, 0.0, 0.0
    for read in reads:
        size_bytes = read.items * sizes.mean(read.place)
        smaller, larger = (
            each * math.ceil(size_bytes * factor / READ_UNIT_BYTES)
            for factor in (1 - NEAR, 1 + NEAR)
        )
        low += min(read.units, smaller) if size_bytes else read.units
        high += max(read.units, larger) if size_bytes else read.units
    return low, high


def nearby_write_units(units: Mapping[str, float], sizes: StoredSizes) -> tuple[float, float]:
    """Return the write units of some calls if all items are 1 % smaller, or 1 % larger.

    ``units`` has the units by place. If a place holds several entities, each counts by the number
    of its items in that place.
    """
    low, high = 0.0, 0.0
    for place, measured in units.items():
        means = [
            (total / count, count)
            for (where, _), (total, count) in sizes.places.items()
            if where == place
        ]
        now, smaller, larger = (
            sum(count * math.ceil(mean * factor / WRITE_UNIT_BYTES) for mean, count in means)
            for factor in (1.0, 1 - NEAR, 1 + NEAR)
        )
        low += measured * (smaller / now if now else 1.0)
        high += measured * (larger / now if now else 1.0)
    return low, high
