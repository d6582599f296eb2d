"""The estimate of a load: items and bytes, the cost of writing them, and the time at a rate.

Each row is written to a table with the same keys and indexes, on an embedded engine in memory, and
deleted again. The engine reports the units, index entries included. A row that DynamoDB would
reject (an empty key, a key of the wrong type, an item that is too large) fails here as it would
fail in the load. Every row counts as a new item. The guards of unique fields are added: they are
written with the item in a transaction, in which a write to the table costs twice as much.

A load with a condition pays for refusals, too. How many there are depends on the table, which is
not read. So the estimate also has the price of the worst case, in which the condition is false for
every row: nothing is written then, and every row pays its refused statements and a strong read.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

import orjson

from stator.design.cost.charges import on_demand, total
from stator.design.cost.prices import prices
from stator.design.plan.own_table import IDENTITY
from stator.engine import Engine
from stator.errors import StatorError
from stator.model.values import Item, normalise_item
from stator.pipeline.bulk.job.governor import START_UNITS
from stator.pipeline.bulk.job.pending_rows import Block, DeadLetter
from stator.pipeline.bulk.load.load import LoadPlan
from stator.pipeline.bulk.table_creation import like_creation
from stator.tables.schema.entity_map import EntityMap
from stator.tables.writes.guarded.price import price, refused_statements

_SHOWN_LETTERS = 5


@dataclass(frozen=True, slots=True)
class RefusedUnits:
    """The units of a load with a condition if the condition is false for every row."""

    write_units: int
    read_units: float
    dollars: Decimal

    def to_data(self) -> dict[str, Any]:
        return asdict(self) | {"dollars": float(self.dollars)}


@dataclass(frozen=True, slots=True)
class LoadEstimate:
    """What a load would write and cost.

    ``write_units`` counts new items with their ``indexes`` and guards. ``seconds`` is the time at
    ``rate``. ``refused`` is the price of a load whose condition is false for every row, and None
    for a load without a condition.
    """

    table: str
    items: int
    failed: int
    size_bytes: int
    write_units: int
    dollars: Decimal
    rate: float
    seconds: float
    region: str
    indexes: int
    first_failures: tuple[DeadLetter, ...]
    refused: RefusedUnits | None = None

    @property
    def ok(self) -> bool:
        return not self.failed

    def to_data(self) -> dict[str, Any]:
        return asdict(self) | {
            "dollars": float(self.dollars),
            "refused": None if self.refused is None else self.refused.to_data(),
        }


@dataclass(frozen=True, slots=True)
class RowUnits:
    """The write units of one item: for the table alone, and in total with its index entries."""

    table: int
    total: int


class RowCheck:
    """Checks items as DynamoDB would, and stores none. Close it after use."""

    def __init__(self, description: dict[str, Any], table: str) -> None:
        self._engine = Engine.open()
        self._engine.call("CreateTable", like_creation(description, table))
        self._table = table
        self._key = [each["AttributeName"] for each in description["KeySchema"]]

    def check(self, item: Item) -> RowUnits:
        """Return the write units of putting the item as a new item.

        Raises the error with which DynamoDB would reject the item.
        """
        request = {"TableName": self._table, "Item": item, "ReturnConsumedCapacity": "INDEXES"}
        reply = self._engine.call("PutItem", request)
        key = {name: item[name] for name in self._key}
        self._engine.call("DeleteItem", {"TableName": self._table, "Key": key})
        consumed = reply["ConsumedCapacity"]
        return RowUnits(int(consumed["Table"]["CapacityUnits"]), int(consumed["CapacityUnits"]))

    def close(self) -> None:
        self._engine.close()


def _with_guards(of: EntityMap | None, item: Item, units: RowUnits) -> int:
    """Return the write units of a new item together with the guards of its unique fields.

    An item with guards is written in a transaction. That doubles the units of the table and of the
    guards, which are smaller than 1 KB, but not the units of index entries.
    """
    guards = 0 if of is None else sum(name == IDENTITY or name in item for name in of.guarded)
    return units.total + (units.table + guards * 2 if guards else 0)


def estimate(plan: LoadPlan, region: str = "us-east-1") -> LoadEstimate:
    """Return what a load would write and cost. All input is read, and nothing is written.

    Rows that DynamoDB would reject count as failed.
    """
    failures: list[DeadLetter] = []
    failed = 0

    def dead(block: Block, row: int, content: Any, reason: str) -> None:
        nonlocal failed
        failed += 1
        if len(failures) < _SHOWN_LETTERS:
            failures.append(DeadLetter(block.source, block.first_row + row + 1, content, reason))

    items = size = units = refused_writes = 0
    refused_reads = 0.0
    of, key_names = plan.target.entity, tuple(plan.key.names)
    with closing(RowCheck(plan.description, plan.target.table)) as rows:
        for block, entries, _ in plan.entries(dead):
            for entry in entries:
                item = orjson.loads(entry.item)
                try:
                    if plan.condition is not None:
                        write = plan.condition.write(plan.target.table, key_names, None, entry.item)
                        one = price(write)
                        refused_writes += one.refused * refused_statements(write)
                        refused_reads += one.read
                    own_units = rows.check(item)
                    own = normalise_item(item)
                except StatorError as error:
                    dead(block, entry.row, None, error.message)
                    continue
                units += _with_guards(of, item, own_units)
                items, size = items + 1, size + own
    rate = plan.options.rate or START_UNITS
    dollars = total(on_demand(prices(region), write_units=units))
    refused = None
    if plan.condition is not None:
        charges = on_demand(prices(region), write_units=refused_writes, read_units=refused_reads)
        refused = RefusedUnits(refused_writes, refused_reads, total(charges))
    return LoadEstimate(
        plan.target.table,
        items,
        failed,
        size,
        units,
        dollars,
        rate,
        units / rate,
        region,
        plan.indexes,
        tuple(failures),
        refused,
    )
