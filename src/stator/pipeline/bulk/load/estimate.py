"""The estimate of a load: items and bytes, the cost of writing them, and the time at a rate.

Each row is also checked as DynamoDB would check it: an embedded engine in memory has a table with
the same keys and indexes, and a conditional put that never applies goes through every check of the
service. A row that the service would reject (an empty key, a key of the wrong type, an item that
is too large) therefore fails here as it would fail in the load.
"""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

import orjson

from stator.design.capacity_units import write_units
from stator.design.cost.charges import on_demand, total
from stator.design.cost.prices import prices
from stator.engine import Engine
from stator.errors import ConditionFailed, StatorError
from stator.model.values import Item, normalise_item
from stator.pipeline.bulk.job.governor import START_UNITS
from stator.pipeline.bulk.job.pending_rows import Block, DeadLetter
from stator.pipeline.bulk.load.load import LoadPlan
from stator.pipeline.bulk.table_creation import like_creation

_SHOWN_LETTERS = 5


@dataclass(frozen=True, slots=True)
class LoadEstimate:
    """What a load would write and cost.

    ``write_units`` counts the table alone; indexes add more. ``seconds`` is the time at ``rate``.
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

    @property
    def ok(self) -> bool:
        return not self.failed

    def to_data(self) -> dict[str, Any]:
        return asdict(self) | {"dollars": float(self.dollars)}


class RowCheck:
    """Checks items as the service would, and stores none. Must be closed."""

    def __init__(self, description: dict[str, Any], table: str) -> None:
        self._engine = Engine.open()
        self._engine.call("CreateTable", like_creation(description, table))
        self._table = table
        self._key = description["KeySchema"][0]["AttributeName"]

    def check(self, item: Item) -> None:
        """Raise the error with which DynamoDB would reject the item."""
        request = {
            "TableName": self._table,
            "Item": item,
            "ConditionExpression": "attribute_exists(#key)",  # the table is empty: never true
            "ExpressionAttributeNames": {"#key": self._key},
        }
        with suppress(ConditionFailed):
            self._engine.call("PutItem", request)

    def close(self) -> None:
        self._engine.close()


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

    items = size = units = 0
    with closing(RowCheck(plan.description, plan.target.table)) as rows:
        for block, entries, _ in plan.entries(dead):
            for entry in entries:
                item = orjson.loads(entry.item)
                try:
                    rows.check(item)
                    own = normalise_item(item)
                except StatorError as error:
                    dead(block, entry.row, None, error.message)
                    continue
                items, size, units = items + 1, size + own, units + write_units(own)
    rate = plan.options.rate or START_UNITS
    dollars = total(on_demand(prices(region), write_units=units))
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
    )
