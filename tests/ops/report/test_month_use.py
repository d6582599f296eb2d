"""The use and the cost of a month, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stator.design.cost.prices import prices
from stator.errors import ConfigurationError
from stator.ops.capacity.live_table import LiveTable
from stator.ops.capacity.metric_source import MemoryMetrics
from stator.ops.capacity.use_series import Dimension
from stator.ops.report.month import Month
from stator.ops.report.month_use import MonthSpan, PlaceMonth, month_use

US = prices("us-east-1")
MONTH = Month(2026, 11)
HOUR = 3600
SPAN = MonthSpan.of(MONTH, MONTH.end + 5 * HOUR)
ORDERS = LiveTable("orders", {}, ("GSI1",), sizes={None: 1024.0**3, "GSI1": 0.0})
REQUEST = float(US["write_request_unit"])
CAPACITY = float(US["write_capacity_hour"])


def used(
    metrics: MemoryMetrics, table: LiveTable = ORDERS, span: MonthSpan = SPAN
) -> dict[str, PlaceMonth]:
    return {each.name: each for each in month_use(metrics, table, span, US)}


def write(metrics: MemoryMetrics, hour: float, units: float, index: str | None = None) -> None:
    at = MONTH.start + int(hour * HOUR)
    metrics.put("ConsumedWriteCapacityUnits", "orders", index, at, units)


def test_requests_are_billed_and_so_are_indexes_by_themselves() -> None:
    metrics = MemoryMetrics()
    for hour in (0, 0.5, 719):
        write(metrics, hour, 7200)
    write(metrics, -1, 10**9)  # of the month before
    write(metrics, 720, 10**9)  # and after
    write(metrics, 3, 1000, "GSI1")
    found = used(metrics)
    orders = found["orders"]
    assert orders.writes.units == 21_600
    assert orders.writes.busiest == 4.0  # 14,400 in the first hour
    assert orders.writes.dollars == pytest.approx(21_600 * REQUEST)
    assert orders.reads.dollars == 0
    assert found["orders/GSI1"].dollars == pytest.approx(1000 * REQUEST)


def test_hours_with_provisioned_units_are_billed_by_them_and_the_others_by_requests() -> None:
    metrics = MemoryMetrics()
    for hour in range(10):
        write(metrics, hour, 3600)
    for hour in range(4):
        for minute, units in ((0, 5), (30, 8)):
            at = MONTH.start + hour * HOUR + minute * 60
            metrics.put("ProvisionedWriteCapacityUnits", "orders", None, at, units)
    found = used(metrics)["orders"].writes
    assert found.unit_hours == 4 * 8
    assert found.dollars == pytest.approx(4 * 8 * CAPACITY + 6 * 3600 * REQUEST)


def test_an_endpoint_without_that_metric_is_billed_by_the_present_units() -> None:
    writes = Dimension(None, "write")
    table = LiveTable("orders", {writes: 10}, created_at=MONTH.start + 700.5 * HOUR)
    found = used(MemoryMetrics(), table)["orders"].writes
    assert found.unit_hours == 20 * 10


def test_storage_is_billed_for_the_hours_of_the_table() -> None:
    whole = used(MemoryMetrics())["orders"]
    assert whole.storage_dollars == pytest.approx(float(US["storage_gb_month"]))
    late = replace(ORDERS, created_at=float(MONTH.start + 360 * HOUR))
    half = used(MemoryMetrics(), late)["orders"]
    assert half.storage_dollars == pytest.approx(whole.storage_dollars / 2)
    begun = MonthSpan.of(MONTH, MONTH.start + 72 * HOUR)
    tenth = used(MemoryMetrics(), span=begun)["orders"]
    assert tenth.storage_dollars == pytest.approx(whole.storage_dollars / 10)


def test_refusals_have_their_reasons() -> None:
    metrics = MemoryMetrics()
    for hour in (1, 2):
        at = MONTH.start + hour * HOUR
        metrics.put("WriteKeyRangeThroughputThrottleEvents", "orders", None, at, 6)
    metrics.put("ReadAccountLimitThrottleEvents", "orders", "GSI1", MONTH.start, 1)
    found = used(metrics)
    assert found["orders"].throttles == {"write hot key": 12}
    assert found["orders/GSI1"].throttles == {"read account": 1}


def test_the_present_month_ends_with_the_last_whole_hour() -> None:
    span = MonthSpan.of(MONTH, MONTH.start + 100 * HOUR + 1800)
    assert (span.hours, span.is_whole) == (100, False)
    assert SPAN.is_whole and SPAN.hours == 720


@pytest.mark.parametrize(
    ("now", "message"),
    [
        (MONTH.start - 1, "has not begun"),
        (MONTH.start + 1800, "has not begun, or only just"),
        (MONTH.start + 456 * 86_400, "the 455 days"),
    ],
)
def test_a_month_that_cannot_be_reported_is_refused(now: int, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        MonthSpan.of(MONTH, now)
