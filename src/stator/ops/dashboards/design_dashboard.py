"""Builds the dashboard of a design: an overview, a row for each pattern and each table, streams."""

from __future__ import annotations

from typing import Final

from stator.design.plan.plan import PatternPlan, TablePlan
from stator.design.unit_prices import READ_UNIT_DOLLARS, WRITE_UNIT_DOLLARS
from stator.ops.dashboards.monitored_design import (
    KINDS,
    MonitoredDesign,
    MonitoredPlace,
    requests_per_call,
)
from stator.ops.dashboards.panels import (
    CloudMetric,
    CloudQuery,
    DesignDashboard,
    Panel,
    PanelRow,
    PanelSeries,
    ReferenceLine,
)

MONTH_SECONDS: Final = 30 * 24 * 3600
WINDOW: Final = "$__rate_interval"
"""Grafana's variable for the time over which to take a rate."""
THROTTLE_METRICS: Final = tuple(
    f"{kind}{limit}ThrottleEvents"
    for kind in ("Read", "Write")
    for limit in (
        "KeyRangeThroughput",
        "ProvisionedThroughput",
        "MaxOnDemandThroughput",
        "AccountLimit",
    )
)
EXPECTED_RESULTS: Final = (
    "ok|ConditionalCheckFailedException|TransactionCanceledException|ItemCollectionSizeLimit.*"
)
"""Results of requests that programs expect: a condition that does not hold is an answer."""


def design_dashboard(design: MonitoredDesign) -> DesignDashboard:
    return DesignDashboard(
        design.name,
        (
            PanelRow("Overview", _overview(design)),
            *(
                PanelRow(f"Pattern {each.name}", _of_pattern(design, each))
                for each in design.patterns
            ),
            *(
                PanelRow(f"Table {design.table_name(each)}", _of_table(design, each))
                for each in design.tables
            ),
            PanelRow("Streams", _streams()),
        ),
    )


def rate(metric: str, matcher: str, by: str = "", window: str = WINDOW) -> str:
    """Return the PromQL of a counter's rate, summed, or summed by labels."""
    grouped = f" by ({by}) " if by else ""
    return f"sum{grouped}(rate({metric}{{{matcher}}}[{window}]))"


def quantile(share: float, metric: str, matcher: str, by: str = "", window: str = WINDOW) -> str:
    """Return the PromQL of a quantile of a histogram."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, {rate(f'{metric}_bucket', matcher, labels, window)})"


def dollars_per_month(design: MonitoredDesign, window: str = WINDOW) -> str:
    """Return the PromQL of the on-demand price of the units that are used now."""
    reads = rate("stator_read_units_total", design.calls, window=window)
    writes = rate("stator_write_units_total", design.calls, window=window)
    # A program that only reads has no series of writes, and a sum with nothing would be nothing.
    return (
        f"(({reads} or vector(0)) * {READ_UNIT_DOLLARS:.10f} + "
        f"({writes} or vector(0)) * {WRITE_UNIT_DOLLARS:.10f}) * {MONTH_SECONDS}"
    )


def _overview(design: MonitoredDesign) -> tuple[Panel, ...]:
    calls = design.calls
    results = rate("stator_requests_total", calls, "result")
    tables = [design.table_name(each) for each in design.tables]
    return (
        Panel(
            "Requests by result",
            "requests/s",
            (PanelSeries("{{result}}", results),),
            about="ok, or the error that ended a request",
        ),
        Panel(
            "Throttles by reason",
            "count",
            (
                PanelSeries(
                    "{{reason}}",
                    f"sum by (reason) (increase(stator_throttles_total{{{calls}}}[{WINDOW}]))",
                ),
                *(
                    PanelSeries(
                        f"{name} {metric}",
                        None,
                        CloudQuery((CloudMetric(metric, (("TableName", name),)),)),
                    )
                    for name in tables
                    for metric in THROTTLE_METRICS
                ),
            ),
        ),
        Panel(
            "Cost of the capacity in use",
            "dollars/month",
            (PanelSeries("on-demand price of this rate", dollars_per_month(design)),),
            (
                ReferenceLine("planned", design.source.plan.dollars_per_month),
                ReferenceLine("budget", design.budget),
            ),
        ),
        Panel(
            "Errors of DynamoDB",
            "count",
            tuple(
                PanelSeries(
                    f"{design.table_name(table)} {operation}",
                    None,
                    CloudQuery(
                        (
                            CloudMetric(
                                "SystemErrors",
                                (("TableName", design.table_name(table)), ("Operation", operation)),
                            ),
                        )
                    ),
                )
                for table in design.tables
                for operation in operations_on(design, table)
            ),
        ),
    )


def operations_on(design: MonitoredDesign, table: TablePlan) -> list[str]:
    """Return the operations that the patterns run on a table."""
    found = {
        pattern.operation if pattern.transaction else step.operation
        for pattern in design.patterns
        for step in pattern.steps
        if step.table == table.name
    }
    return sorted(found or {"GetItem", "PutItem"})


def _of_pattern(design: MonitoredDesign, pattern: PatternPlan) -> tuple[Panel, ...]:
    calls = design.calls_of(pattern)
    metric = f"stator_{pattern.kind}_units_total"
    declared = design.call_rate(pattern) * requests_per_call(pattern)
    planned = design.call_rate(pattern) * pattern.units_per_call
    each_call = pattern.units_per_call / requests_per_call(pattern)
    requests = rate("stator_requests_total", calls)
    return (
        Panel(
            "Requests",
            "requests/s",
            (PanelSeries("requests", requests),),
            (ReferenceLine("declared", declared),),
        ),
        Panel(
            f"{pattern.kind.capitalize()} units",
            "units/s",
            (PanelSeries("{{index}}", rate(metric, calls, "index")),),
            (ReferenceLine("planned", planned),),
        ),
        Panel(
            "Units a request",
            "count",
            (PanelSeries("units", f"{rate(metric, calls)} / {requests}"),),
            (ReferenceLine("planned", each_call),),
        ),
        Panel(
            "Latency",
            "seconds",
            tuple(
                PanelSeries(label, quantile(share, "stator_request_seconds", calls))
                for label, share in (("p50", 0.5), ("p99", 0.99))
            ),
            (ReferenceLine("slow", design.slow_seconds),),
        ),
        Panel(
            "Throttles by reason",
            "count",
            (
                PanelSeries(
                    "{{reason}}",
                    f"sum by (reason) (increase(stator_throttles_total{{{calls}}}[{WINDOW}])) "
                    "or vector(0)",
                ),
            ),
        ),
    )


def _of_table(design: MonitoredDesign, table: TablePlan) -> tuple[Panel, ...]:
    name = design.table_name(table)
    matcher = f'table="{name}"'
    places = design.places(table)
    latency = tuple(
        PanelSeries(
            operation,
            None,
            CloudQuery(
                (
                    CloudMetric(
                        "SuccessfulRequestLatency",
                        (("TableName", name), ("Operation", operation)),
                        "p99",
                    ),
                )
            ),
        )
        for operation in operations_on(design, table)
    )
    sizes = tuple(
        PanelSeries(
            f"{label} {{{{entity}}}}", quantile(share, "stator_item_bytes", matcher, "entity")
        )
        for label, share in (("p50", 0.5), ("p99", 0.99))
    )
    ttl = CloudQuery((CloudMetric("TimeToLiveDeletedItemCount", (("TableName", name),)),))
    return (
        *(_units(place, kind) for place in places for kind in KINDS),
        Panel(
            "Busiest keys",
            "units/s",
            (PanelSeries("{{key}}", f"topk(10, stator_hot_key_units_per_second{{{matcher}}})"),),
        ),
        Panel("Item size", "bytes", sizes),
        Panel("Latency on the server, p99", "count", latency, about="milliseconds"),
        *(
            [Panel("Expired items", "count", (PanelSeries("deleted", None, ttl),))]
            if table.ttl
            else []
        ),
    )


def _units(place: MonitoredPlace, kind: str) -> Panel:
    assert kind in KINDS
    word = kind.capitalize()
    metrics = [CloudMetric(f"Consumed{word}CapacityUnits", place.dimensions)]
    series = [
        PanelSeries(
            "consumed",
            rate(
                f"stator_{kind}_units_total",
                f'table="{place.table}",index="{place.index or ""}"',
            )
            + " or vector(0)",
            CloudQuery(tuple(metrics), "m1/PERIOD(m1)"),
        )
    ]
    lines = [ReferenceLine("planned", place.planned_units[kind])]
    capacity = place.units(kind)
    if capacity is not None:
        lines.append(ReferenceLine("capacity", float(capacity)))
        provisioned = CloudMetric(f"Provisioned{word}CapacityUnits", place.dimensions, "Average")
        series.append(PanelSeries("provisioned", None, CloudQuery((provisioned,), None, 300)))
    throttles = CloudMetric(f"{word}ThrottleEvents", place.dimensions)
    series.append(PanelSeries("throttled", None, CloudQuery((throttles,), "m1/PERIOD(m1)")))
    return Panel(
        f"{word} units of {place.index or 'the table'}", "units/s", tuple(series), tuple(lines)
    )


def _streams() -> tuple[Panel, ...]:
    return (
        Panel(
            "Behind",
            "seconds",
            (PanelSeries("{{group}}", "max by (group) (stator_stream_lag_seconds)"),),
        ),
        Panel(
            "Until trimmed",
            "seconds",
            (PanelSeries("{{group}}", "min by (group) (stator_stream_trim_seconds)"),),
            (ReferenceLine("alarm", 6 * 3600.0),),
        ),
        Panel(
            "Changes",
            "requests/s",
            tuple(
                PanelSeries(
                    f"{word} {{{{group}}}}", rate(f"stator_stream_{word}_total", "", "group")
                )
                for word in ("handled", "retried", "parked")
            ),
        ),
    )
