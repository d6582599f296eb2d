"""A design with a batch: a pattern that runs for two hours of the day, and one that always does."""

from __future__ import annotations

from typing import Any

from stator import Design, Entity, Query, creates, find, ident, read, write
from stator.design.export.source import ExportSource
from stator.ops.dashboards.monitored_design import MonitoredDesign


class Bill(Entity):
    bill_id: str = ident()
    cents: int


@write(rps=2400, between=("02:00", "04:00"))
def bill() -> Any:
    return creates(Bill)


@read(rps=40)
def bill_of(bill_id: str) -> Query[Bill]:
    return find(Bill).where(Bill.bill_id == bill_id)


def windowed() -> MonitoredDesign:
    design = Design("bills", [Bill], [bill, bill_of], volumes={Bill: 1_000_000})
    return MonitoredDesign(ExportSource(design, design.plan()))
