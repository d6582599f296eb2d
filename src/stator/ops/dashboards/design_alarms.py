"""Builds the alarms of a design: limits, errors, streams, and the unusual.

Limits come from the plan: twice the declared rate, half as much again of the planned units. The
unusual is measured against the same hour of last week, or against the band that CloudWatch learns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stator.design.plan.plan import PatternPlan, TablePlan
from stator.ops.dashboards.design_dashboard import (
    EXPECTED_RESULTS,
    dollars_per_month,
    operations_on,
    quantile,
    rate,
)
from stator.ops.dashboards.monitored_design import (
    KINDS,
    MonitoredDesign,
    MonitoredPlace,
    requests_per_call,
)
from stator.ops.dashboards.panels import CloudMetric, CloudQuery
from stator.ops.dashboards.planned_alarm import (
    CloudWatchCondition,
    PlannedAlarm,
    PrometheusCondition,
)

RATE_FACTOR: Final = 2.0
UNITS_FACTOR: Final = 1.5
WEEK_FACTOR: Final = 3.0
CAPACITY_SHARE: Final = 0.8
FAILED_SHARE: Final = 0.01
LARGE_ITEM_BYTES: Final = 100 * 1024
TRIM_SECONDS: Final = 6 * 3600
LAG_SECONDS: Final = 300
LEAST_RATE: Final = 1.0
"""Below one request a second, a multiple of the usual rate says little."""

_SERVICE_ERRORS: Final = (
    "InternalServerError|ServiceUnavailable.*|ConnectionTrouble|ReplyLost|ReplyDamaged|"
    "OutcomeUnknown|DeadlineExceeded"
)
_SILENT: Final = (
    "group by (group) (stator_stream_handled_total offset 1h) "
    "unless group by (group) (stator_stream_lag_seconds)"
)
# Each limit: the runbook, the reasons in stator_throttles_total, those in CloudWatch, a summary.
_LIMITS: Final = (
    (
        "hot-key",
        ".*KeyRange.*",
        ("KeyRangeThroughput",),
        "one partition is asked for more than it can serve",
    ),
    (
        "no-capacity",
        ".*ProvisionedThroughput.*|.*MaxOnDemand.*|Unnamed|Unprocessed",
        ("ProvisionedThroughput", "MaxOnDemandThroughput"),
        "the capacity or the on-demand maximum is used up",
    ),
    (
        "account-limit",
        ".*AccountLimit.*",
        ("AccountLimit",),
        "the account's quota for a table or index is used up",
    ),
)


def design_alarms(design: MonitoredDesign) -> tuple[PlannedAlarm, ...]:
    """Return every alarm of a design, the widest first."""
    return (
        *_of_calls(design),
        *_of_streams(),
        *(alarm for each in design.patterns for alarm in _of_pattern(design, each)),
        *(alarm for each in design.tables for alarm in _of_table(design, each)),
    )


def _of_calls(design: MonitoredDesign) -> Iterator[PlannedAlarm]:
    calls = design.calls
    for runbook, reasons, _, summary in _LIMITS:
        matcher = f'{calls},reason=~"{reasons}"'
        refusals = f"sum by (table, index) (increase(stator_throttles_total{{{matcher}}}[5m]))"
        yield PlannedAlarm(
            runbook,
            "",
            f"Requests are refused: {summary}",
            "page",
            PrometheusCondition(f"{refusals} > 0", 2),
        )
    slow = quantile(0.99, "stator_request_seconds", calls, "pattern", "5m")
    yield PlannedAlarm(
        "slow-requests",
        "",
        f"One request in a hundred takes more than {design.slow_seconds:g} s",
        "ticket",
        PrometheusCondition(f"{slow} > {design.slow_seconds:g}", 10),
    )
    broken = rate("stator_requests_total", f'{calls},result=~"{_SERVICE_ERRORS}"', "table", "5m")
    yield PlannedAlarm(
        "service-errors",
        "",
        "DynamoDB fails or cannot be reached",
        "page",
        PrometheusCondition(f"{broken} > 0", 5),
    )
    failed = rate(
        "stator_requests_total", f'{calls},result!~"{EXPECTED_RESULTS}"', "pattern", "10m"
    )
    share = f"{failed} / {rate('stator_requests_total', calls, 'pattern', '10m')}"
    yield PlannedAlarm(
        "failed-requests",
        "",
        f"More than {FAILED_SHARE:.0%} of the requests of a pattern fail",
        "page",
        PrometheusCondition(f"{share} > {FAILED_SHARE}", 10),
    )
    sizes = quantile(0.99, "stator_item_bytes", calls, "table, entity", "1h")
    yield PlannedAlarm(
        "large-items",
        "",
        "One item in a hundred is larger than 100 KB; no item may have more than 400 KB",
        "ticket",
        PrometheusCondition(f"{sizes} > {LARGE_ITEM_BYTES}", 15),
    )
    now = rate("stator_requests_total", calls, "table", "30m")
    usual = f"sum by (table) (rate(stator_requests_total{{{calls}}}[30m] offset 1w))"
    yield PlannedAlarm(
        "unusual-traffic",
        "",
        f"Traffic is {WEEK_FACTOR:g} times that of the same time last week",
        "ticket",
        PrometheusCondition(f"{now} > {WEEK_FACTOR:g} * ({usual} > {LEAST_RATE:g})", 15),
    )
    if design.is_on_demand:
        # The budget is for the mean of a day, and the hour of a nightly batch is no such mean.
        window, of = ("1d", "the last day") if design.has_windows else ("1h", "the last hour")
        yield PlannedAlarm(
            "cost-above-budget",
            "",
            f"At the rate of {of}, capacity costs more than ${design.budget:,.2f} a month",
            "ticket",
            PrometheusCondition(f"{dollars_per_month(design, window)} > {design.budget:.4f}", 30),
        )


def _of_streams() -> Iterator[PlannedAlarm]:
    for runbook, summary, severity, expression, minutes in (
        (
            "stream-lag",
            "A worker group is more than five minutes behind",
            "ticket",
            f"max by (group) (stator_stream_lag_seconds) > {LAG_SECONDS}",
            10,
        ),
        (
            "stream-trim",
            "Changes that nobody has handled will leave the stream within six hours",
            "page",
            f"min by (group) (stator_stream_trim_seconds) < {TRIM_SECONDS}",
            5,
        ),
        (
            # An absent lag is worse than a long one, and no comparison sees it.
            "workers-silent",
            "A worker group that ran an hour ago reports no lag",
            "page",
            _SILENT,
            10,
        ),
        (
            "parked-changes",
            "A handler cannot handle some items; their changes are parked",
            "ticket",
            "sum by (group) (increase(stator_stream_parked_total[10m])) > 0",
            0,
        ),
        (
            "changes-lost",
            "Changes left the stream before they were handled",
            "page",
            "sum by (group) (increase(stator_stream_lost_total[1h])) > 0",
            0,
        ),
    ):
        condition = PrometheusCondition(expression, minutes)
        yield PlannedAlarm(
            runbook, "", summary, "page" if severity == "page" else "ticket", condition
        )


def _of_pattern(design: MonitoredDesign, pattern: PatternPlan) -> Iterator[PlannedAlarm]:
    calls = design.calls_of(pattern)
    requests = requests_per_call(pattern)
    declared = design.call_rate(pattern) * requests
    if declared > 0:
        now = rate("stator_requests_total", calls, window="15m")
        yield PlannedAlarm(
            "traffic-above-plan",
            pattern.name,
            f"{pattern.name} makes more than {RATE_FACTOR:g} times its declared "
            f"{declared:g} requests a second",
            "ticket",
            PrometheusCondition(f"{now} > {RATE_FACTOR * declared:g}", 15),
        )
    planned = pattern.units_per_call / requests
    if planned > 0:
        units = rate(f"stator_{pattern.kind}_units_total", calls, window="1h")
        of_request = f"{units} / {rate('stator_requests_total', calls, window='1h')}"
        word = "reads" if pattern.kind == "read" else "writes"
        yield PlannedAlarm(
            "units-above-plan",
            pattern.name,
            f"{pattern.name} {word} more than {UNITS_FACTOR:g} times the planned "
            f"{planned:.3g} units a request",
            "ticket",
            PrometheusCondition(f"{of_request} > {UNITS_FACTOR * planned:.6g}", 15),
        )


def _of_table(design: MonitoredDesign, table: TablePlan) -> Iterator[PlannedAlarm]:
    for place in design.places(table):
        yield from _of_place(place)
    name = design.table_name(table)
    for operation in operations_on(design, table):
        dimensions = (("TableName", name), ("Operation", operation))
        latency = CloudMetric("SuccessfulRequestLatency", dimensions, "p99")
        milliseconds = design.slow_seconds * 1000
        yield PlannedAlarm(
            "slow-requests",
            f"{name} {operation}",
            f"One {operation} of {name} in a hundred takes more than {milliseconds:g} ms",
            "ticket",
            cloudwatch=CloudWatchCondition(CloudQuery((latency,)), milliseconds, 10, 10),
        )
        errors = CloudMetric("SystemErrors", dimensions)
        yield PlannedAlarm(
            "service-errors",
            f"{name} {operation}",
            f"DynamoDB fails {operation} of {name}",
            "page",
            cloudwatch=CloudWatchCondition(CloudQuery((errors,)), 0, 5, 3),
        )


def _of_place(place: MonitoredPlace) -> Iterator[PlannedAlarm]:
    for runbook, _, limits, summary in _LIMITS:
        metrics = tuple(
            CloudMetric(f"{kind.capitalize()}{limit}ThrottleEvents", place.dimensions)
            for limit in limits
            for kind in KINDS
        )
        # A metric without an event has no data, and a sum with it would have none.
        expression = " + ".join(f"FILL(m{at}, 0)" for at in range(1, len(metrics) + 1))
        yield PlannedAlarm(
            runbook,
            place.name,
            f"Requests to {place.name} are refused: {summary}",
            "page",
            cloudwatch=CloudWatchCondition(CloudQuery(metrics, expression), 0, 5, 2),
        )
    for kind in KINDS:
        word = kind.capitalize()
        consumed = CloudMetric(f"Consumed{word}CapacityUnits", place.dimensions)
        capacity = place.units(kind)
        if capacity is not None:
            matcher = f'table="{place.table}",index="{place.index or ""}"'
            used = rate(f"stator_{kind}_units_total", matcher, window="5m")
            provisioned = CloudMetric(
                f"Provisioned{word}CapacityUnits", place.dimensions, "Average"
            )
            # Provisioned units arrive every five minutes.
            query = CloudQuery((consumed, provisioned), "(m1/PERIOD(m1))/m2", 300)
            yield PlannedAlarm(
                "capacity-used",
                f"{place.name} {kind}",
                f"{place.name} uses more than {CAPACITY_SHARE:.0%} of its {kind} capacity",
                "ticket",
                PrometheusCondition(f"{used} > {CAPACITY_SHARE * capacity:g}", 10),
                CloudWatchCondition(query, CAPACITY_SHARE, 2, 2),
            )
        yield PlannedAlarm(
            "unusual-traffic",
            f"{place.name} {kind}",
            f"{place.name} has unusually many {kind} units for this time of the week",
            "ticket",
            cloudwatch=CloudWatchCondition(CloudQuery((consumed,), None, 300), None, 6, 6),
        )
