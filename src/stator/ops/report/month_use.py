"""What a table and its indexes used in a month, and what that cost, from points of an hour.

CloudWatch keeps hours for 455 days. An hour with provisioned units is billed by the most units that
were in force in it, any other hour by its requests. So a month in which a table was switched adds
up, too. Storage is billed at the table's present size: CloudWatch has no sizes of the past.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stator.design.cost.charges import on_demand, provisioned, storage, total
from stator.design.cost.prices import RegionPrices
from stator.errors import ConfigurationError
from stator.ops.capacity.live_table import LiveTable
from stator.ops.capacity.metric_source import MetricQuery, MetricSource
from stator.ops.capacity.use_series import KINDS, Dimension
from stator.ops.live.table_use import THROTTLE_REASONS
from stator.ops.report.month import KEPT_DAYS, Month

_HOUR = 3600
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class DimensionMonth:
    """The reads or writes of a table or index in a month.

    ``busiest`` are the units a second of the busiest hour. ``unit_hours`` are the provisioned units
    times the hours in which they were paid, 0 while on-demand.
    """

    dimension: Dimension
    units: float
    busiest: float
    unit_hours: float
    dollars: float


@dataclass(frozen=True, slots=True)
class PlaceMonth:
    """A table or an index in a month. ``throttles`` are refusals by reason."""

    table: str
    index: str | None
    reads: DimensionMonth
    writes: DimensionMonth
    size_bytes: float
    storage_dollars: float
    throttles: dict[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The table, or the table and the index: ``orders/GSI1``."""
        return self.table if self.index is None else f"{self.table}/{self.index}"

    @property
    def dollars(self) -> float:
        """Throughput and storage together."""
        return self.reads.dollars + self.writes.dollars + self.storage_dollars

    def of(self, kind: str) -> DimensionMonth:
        """Return the reads or the writes."""
        return self.reads if kind == "read" else self.writes

    def to_data(self) -> dict[str, Any]:
        """Return the use as JSON-ready data."""
        return {
            "table": self.table,
            "index": self.index,
            **{
                f"{each.dimension.kind}s": {
                    "units": each.units,
                    "busiest_hour_units_a_second": round(each.busiest, 3),
                    "provisioned_unit_hours": each.unit_hours,
                    "dollars": round(each.dollars, 4),
                }
                for each in (self.reads, self.writes)
            },
            "size_bytes": self.size_bytes,
            "storage_dollars": round(self.storage_dollars, 4),
            "throttles": self.throttles,
            "dollars": round(self.dollars, 4),
        }


@dataclass(frozen=True, slots=True)
class MonthSpan:
    """The part of a month that a report covers, in whole hours since the epoch."""

    month: Month
    start: int
    end: int

    @classmethod
    def of(cls, month: Month, now: float) -> MonthSpan:
        """Return a whole month, or the hours of the present month that are over.

        Raises ConfigurationError for a month that has not begun or that CloudWatch has forgotten.
        """
        end = min(month.end, int(now) // _HOUR * _HOUR)
        if end <= month.start:
            raise ConfigurationError(
                f"{month} has not begun, or only just", hint="name an earlier month"
            )
        if month.start < now - KEPT_DAYS * _DAY:
            raise ConfigurationError(
                f"{month} is longer ago than the {KEPT_DAYS} days for which CloudWatch keeps hours",
                hint="name a later month",
            )
        return cls(month, month.start, end)

    @property
    def hours(self) -> int:
        """How many hours the report covers."""
        return (self.end - self.start) // _HOUR

    @property
    def is_whole(self) -> bool:
        """Whether the month is over."""
        return self.end == self.month.end


def month_use(
    source: MetricSource, table: LiveTable, span: MonthSpan, prices: RegionPrices
) -> tuple[PlaceMonth, ...]:
    """Return the use of a table and of its indexes."""
    places = (None, *table.indexes)
    queries = {place: _queries(table.name, place) for place in places}
    flat = [query for each in queries.values() for query in each]
    values = dict(zip(flat, source.read(flat, span.start, span.end)))
    return tuple(_place(table, place, values, span, prices) for place in places)


def _queries(table: str, index: str | None) -> list[MetricQuery]:
    found = []
    for kind in ("Read", "Write"):
        found += [
            MetricQuery(f"Consumed{kind}CapacityUnits", table, index, "Sum", _HOUR),
            MetricQuery(f"Provisioned{kind}CapacityUnits", table, index, "Maximum", _HOUR),
        ]
    return found + [MetricQuery(name, table, index, "Sum", _HOUR) for name in THROTTLE_REASONS]


def _place(
    table: LiveTable,
    index: str | None,
    values: Mapping[MetricQuery, Mapping[int, float]],
    span: MonthSpan,
    prices: RegionPrices,
) -> PlaceMonth:
    reads, writes = (
        _dimension(table, Dimension(index, kind), values, span, prices) for kind in KINDS
    )
    throttles = {
        words: int(events)
        for name, words in THROTTLE_REASONS.items()
        if (events := sum(values[MetricQuery(name, table.name, index, "Sum", _HOUR)].values()))
    }
    size = table.sizes.get(index, 0.0)
    whole = float(total(storage(prices, size, table_class=table.table_class)))
    begun = max(span.start, min(span.end, int(table.created_at)))
    share = (span.end - begun) / _HOUR / span.month.hours
    return PlaceMonth(table.name, index, reads, writes, size, whole * share, throttles)


def _dimension(
    table: LiveTable,
    dimension: Dimension,
    values: Mapping[MetricQuery, Mapping[int, float]],
    span: MonthSpan,
    prices: RegionPrices,
) -> DimensionMonth:
    word = dimension.kind.capitalize()
    consumed = values[
        MetricQuery(f"Consumed{word}CapacityUnits", table.name, dimension.index, "Sum", _HOUR)
    ]
    capacity: Mapping[int, float] = values[
        MetricQuery(
            f"Provisioned{word}CapacityUnits", table.name, dimension.index, "Maximum", _HOUR
        )
    ]
    if not capacity and dimension in table.units:  # an endpoint without that metric
        begun = max(span.start, int(table.created_at) // _HOUR * _HOUR)
        capacity = dict.fromkeys(range(begun, span.end, _HOUR), float(table.units[dimension]))
    unit_hours = sum(capacity.values())
    billed = sum(units for at, units in consumed.items() if at not in capacity)
    is_read = dimension.kind == "read"
    held = provisioned(
        prices,
        read_capacity=unit_hours if is_read else 0,
        write_capacity=0 if is_read else unit_hours,
        hours=1,
        table_class=table.table_class,
    )
    asked = on_demand(
        prices,
        read_units=billed if is_read else 0,
        write_units=0 if is_read else billed,
        table_class=table.table_class,
    )
    return DimensionMonth(
        dimension,
        sum(consumed.values()),
        max(consumed.values(), default=0.0) / _HOUR,
        unit_hours,
        float(total(held)) + float(total(asked)),
    )
