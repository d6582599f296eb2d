"""The estimate of a load: items and bytes, the cost of writing them, and the time at a rate."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

import orjson

from stator.design.capacity_units import write_units
from stator.design.cost.charges import on_demand, total
from stator.design.cost.prices import prices
from stator.errors import StatorError
from stator.model.limits import ITEM_SIZE_BYTES
from stator.model.values import normalise_item
from stator.pipeline.bulk.job.governor import START_UNITS
from stator.pipeline.bulk.job.pending_rows import Block, DeadLetter
from stator.pipeline.bulk.load.load import LoadPlan

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

    def to_data(self) -> dict[str, Any]:
        return asdict(self) | {"dollars": float(self.dollars)}


def estimate(plan: LoadPlan, region: str = "us-east-1") -> LoadEstimate:
    """Read all input and write nothing. Rows that are too large count as failed."""
    failures: list[DeadLetter] = []
    failed = 0

    def dead(block: Block, row: int, content: Any, reason: str) -> None:
        nonlocal failed
        failed += 1
        if len(failures) < _SHOWN_LETTERS:
            failures.append(DeadLetter(block.source, block.first_row + row + 1, content, reason))

    items = size = units = 0
    for block, entries, _ in plan.entries(dead):
        for entry in entries:
            try:
                own = normalise_item(orjson.loads(entry.item))
            except StatorError as error:
                dead(block, entry.row, None, error.message)
                continue
            if own > ITEM_SIZE_BYTES:
                dead(
                    block,
                    entry.row,
                    None,
                    f"the item has {own:,} bytes; DynamoDB takes {ITEM_SIZE_BYTES:,}",
                )
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
