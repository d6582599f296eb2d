"""The price of a replayed month: throughput by the minute and storage, in dollars.

A history is scaled to a month of 730 hours. Provisioned capacity is billed by the hour, at the
most units that were in force in it. All prices are those of ``stator.design.cost``.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from stator.design.cost.charges import MONTH_HOURS, on_demand, provisioned, storage, total
from stator.design.cost.prices import RegionPrices
from stator.ops.capacity.policies import TableClass
from stator.ops.capacity.replay import DimensionReplay, Replay
from stator.ops.capacity.use_series import TableHistory

_HOUR_MINUTES = 60


@dataclass(frozen=True, slots=True)
class MonthlyBill:
    """The dollars of a month: throughput by the name of each dimension, and storage."""

    throughput: dict[str, float]
    storage: float

    @property
    def total(self) -> float:
        """Throughput and storage together, in dollars a month."""
        return sum(self.throughput.values()) + self.storage


def monthly_bill(
    history: TableHistory,
    found: Replay,
    prices: RegionPrices,
    table_class: TableClass = "standard",
) -> MonthlyBill:
    """Return what a replay would cost a month."""
    month = float(MONTH_HOURS) / (history.minutes / _HOUR_MINUTES)
    stored = storage(prices, history.size_bytes, table_class=table_class)
    return MonthlyBill(
        {
            str(each.dimension): _throughput(each, prices, table_class, month)
            for each in found.dimensions
        },
        float(total(stored)),
    )


def _throughput(
    found: DimensionReplay, prices: RegionPrices, table_class: TableClass, month: float
) -> float:
    is_read = found.dimension.kind == "read"
    if found.capacity:
        hours = Decimal(unit_hours(found) * month)
        return float(
            total(
                provisioned(
                    prices,
                    read_capacity=hours if is_read else 0,
                    write_capacity=0 if is_read else hours,
                    hours=1,
                    table_class=table_class,
                )
            )
        )
    units = Decimal(found.served_units * month)
    return float(
        total(
            on_demand(
                prices,
                read_units=units if is_read else 0,
                write_units=0 if is_read else units,
                table_class=table_class,
            )
        )
    )


def unit_hours(found: DimensionReplay) -> float:
    """Return the units billed over the history, in units times hours."""
    return sum(units * share for units, share in found.hours)
