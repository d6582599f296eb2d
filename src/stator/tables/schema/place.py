"""Tables that hold items of Stator's own, such as leases and counters, instead of entities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.design.plan.plan import TablePlan
from stator.model.values import Item


@dataclass(frozen=True, slots=True)
class Place:
    """A table for items that belong to no entity, and its key attributes.

    An example is the design's own table, ``<design>-stator``.
    """

    table: str
    partition: str
    sort: str
    ttl: str

    @classmethod
    def of(cls, table: TablePlan) -> Place:
        assert table.sort is not None
        assert table.ttl is not None
        return cls(table.name, table.partition, table.sort, table.ttl)

    def key(self, partition: str, sort: str) -> Item:
        return {self.partition: {"S": partition}, self.sort: {"S": sort}}

    def create_request(self) -> dict[str, Any]:
        attributes = ((self.partition, "S"), (self.sort, "S"))
        return TablePlan(self.table, self.partition, self.sort, attributes, (), ()).create_request()
