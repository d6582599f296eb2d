"""The item of about 1 KB with which clients are compared, as a Stator entity."""

from __future__ import annotations

from dataclasses import field
from datetime import UTC, datetime
from decimal import Decimal

from stator import Design, Entity, Query, find, ident, read

MOMENT = datetime(2026, 11, 16, 10, tzinfo=UTC)
NOTE = "x" * 640


class Item(Entity):
    item_id: str = ident()
    customer: str
    placed_at: datetime
    status: str
    total: Decimal
    quantity: int
    paid: bool
    note: str
    tags: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)


@read(rps=10)
def item(item_id: str) -> Query[Item]:
    return find(Item).where(Item.item_id == item_id)


design = Design("bench", [Item], [item])


def make(number: int) -> Item:
    return Item(
        item_id=str(number),
        customer="customer-42",
        placed_at=MOMENT,
        status="shipped",
        total=Decimal("129.95"),
        quantity=3,
        paid=True,
        note=NOTE,
        tags={"gift", "priority"},
        lines=["sku-1", "sku-2", "sku-3"],
    )
