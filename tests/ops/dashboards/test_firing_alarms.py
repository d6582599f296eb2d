"""Every rule fires on series that mean what it says, and none on the planned traffic."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from stator import ProvisionedCapacity
from stator.ops.dashboards.design_alarms import design_alarms
from stator.ops.dashboards.monitored_design import MonitoredDesign, requests_per_call
from stator.ops.dashboards.planned_alarm import PlannedAlarm
from stator.ops.dashboards.prometheus_rules import prometheus_rules

from ...design.export.sources import sources
from ...prometheus_server import needs_prometheus, promtool
from .watched_shop import watched

pytestmark = needs_prometheus
WEEK_MINUTES = 7 * 24 * 60
WEEK_STEP = 10
"""Minutes between the samples of a week: with one a minute, promtool takes minutes itself."""


def series(name: str, values: str, **labels: str) -> dict[str, str]:
    inside = ",".join(f"{label}={json.dumps(value)}" for label, value in labels.items())
    return {"series": f"{name}{{{inside}}}", "values": values}


def requests(design: MonitoredDesign, values: str, **labels: str) -> dict[str, str]:
    known = {"table": table(design), "operation": "Query", "pattern": "p", "entity": "E"}
    return series("stator_requests_total", values, **(known | {"result": "ok"} | labels))


def table(design: MonitoredDesign) -> str:
    return design.table_name(design.tables[0])


Case = tuple[list[dict[str, str]], dict[str, str], int]


def case(design: MonitoredDesign, alarm: PlannedAlarm) -> Case:
    """Series that make a rule fire, the labels of the alert that come from them, and the minute."""
    name = table(design)
    refused = {"table": name, "pattern": "p"}
    group = {"group": "billing"}
    match alarm.runbook:
        case "hot-key" | "no-capacity" | "account-limit":
            reason, index = {
                "hot-key": ("TableWriteKeyRangeThroughputExceeded", ""),
                "no-capacity": ("IndexReadProvisionedThroughputExceeded", "GSI1"),
                "account-limit": ("TableReadAccountLimitExceeded", ""),
            }[alarm.runbook]
            found = series(
                "stator_throttles_total", "0+10x60", **refused, index=index, reason=reason
            )
            return [found], {"table": name} | ({"index": index} if index else {}), 30
        case "slow-requests":
            slow = f"{design.slow_seconds:g}"
            labels = {"table": name, "operation": "Query", "pattern": "p"}
            counted = [(slow, "0+1x60"), ("5", "0+600x60"), ("+Inf", "0+600x60")]
            return (
                [
                    series("stator_request_seconds_bucket", values, **labels, le=le)
                    for le, values in counted
                ],
                {"pattern": "p"},
                30,
            )
        case "service-errors":
            failing = requests(design, "0+10x60", result="InternalServerError")
            return [failing], {"table": name}, 30
        case "failed-requests":
            return (
                [
                    requests(design, "0+90x60"),
                    requests(design, "0+10x60", result="ValidationException"),
                ],
                {"pattern": "p"},
                40,
            )
        case "large-items":
            counted = [("102400.0", "0+1x120"), ("409600.0", "0+100x120"), ("+Inf", "0+100x120")]
            where = {"table": name, "entity": "E"}
            return (
                [series("stator_item_bytes_bucket", each, **where, le=le) for le, each in counted],
                where,
                100,
            )
        case "unusual-traffic":
            steps = WEEK_MINUTES // WEEK_STEP  # two requests a second, and then ten
            values = f"0+1200x{steps} {steps * 1200}+6000x20"
            return [requests(design, values)], {"table": name}, WEEK_MINUTES + 10 * WEEK_STEP
        case "cost-above-budget":
            used = {"table": name, "index": "", "pattern": "p", "entity": "E"}
            values = f"0+{design.budget * 100:.0f}x200"
            return [series("stator_write_units_total", values, **used)], {}, 120
        case "capacity-used":
            place, kind = alarm.about.split(" ")
            name, _, index = place.partition("/")
            used = {"table": name, "index": index, "pattern": "p", "entity": "E"}
            return [series(f"stator_{kind}_units_total", "0+24000x60", **used)], {}, 30
        case "traffic-above-plan":
            pattern = design.source.plan.pattern(alarm.about)
            rate = 3 * 60 * pattern.requests_per_second * requests_per_call(pattern)
            return [requests(design, f"0+{rate:g}x120", pattern=pattern.name)], {}, 60
        case "units-above-plan":
            pattern = design.source.plan.pattern(alarm.about)
            units = 2 * 60 * pattern.units_per_call / requests_per_call(pattern)
            used = {"table": name, "index": "", "pattern": pattern.name, "entity": "E"}
            return (
                [
                    requests(design, "0+60x200", pattern=pattern.name),
                    series(f"stator_{pattern.kind}_units_total", f"0+{units:g}x200", **used),
                ],
                {},
                120,
            )
        case "stream-lag":
            return [series("stator_stream_lag_seconds", "900x60", **group)], group, 30
        case "stream-trim":
            return [series("stator_stream_trim_seconds", "3600x60", **group)], group, 30
        case "workers-silent":
            return [series("stator_stream_handled_total", "1x30 _x90", **group)], group, 80
        case "parked-changes":
            return [series("stator_stream_parked_total", "0 0 0 3x20", **group)], group, 5
        case "changes-lost":
            return [series("stator_stream_lost_total", "0 0 0 1x20", **group)], group, 5
    raise AssertionError(f"no series for {alarm.runbook}: write the case")


def checked(
    folder: Path,
    design: MonitoredDesign,
    alarms: Sequence[PlannedAlarm],
    tests: Callable[[Sequence[PlannedAlarm]], list[dict[str, Any]]],
    step: int = 1,
) -> None:
    """Let promtool check the rules of alarms, and run tests of each kind of alarm with its rules.

    promtool evaluates every rule of a file for every test, so the rules of each kind have a file.
    """
    kinds: dict[str, list[PlannedAlarm]] = {}
    for alarm in alarms:
        kinds.setdefault(alarm.kind, []).append(alarm)
    for kind, those in kinds.items():
        rules = prometheus_rules(design.name, those, "docs/runbooks")
        (folder / f"{kind}.rules.json").write_text(rules)
        described = {
            "rule_files": [f"{kind}.rules.json"],
            "evaluation_interval": f"{step}m",
            "tests": tests(those),
        }
        (folder / f"{kind}.tests.json").write_text(json.dumps(described))
    every = prometheus_rules(design.name, alarms, "docs/runbooks")
    (folder / "rules.json").write_text(every)
    files = [f"{kind}.tests.json" for kind in kinds]
    for command in (["check", "rules", "rules.json"], ["test", "rules", *files]):
        ran = subprocess.run(
            [promtool(), *command], cwd=folder, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr


DESIGNS = {
    "on-demand": lambda: watched(),
    "provisioned": lambda: watched(ProvisionedCapacity(100, 50)),
    "dots": lambda: MonitoredDesign(sources()["games"], prefix="prod."),
    "tables": lambda: MonitoredDesign(sources()["shop-tables"]),
}


def firing(design: MonitoredDesign, alarm: PlannedAlarm, step: int = 1) -> dict[str, Any]:
    """promtool's test that a rule is quiet at first, and fires on the series of its case."""
    given, labels, minutes = case(design, alarm)
    rules = prometheus_rules(design.name, [alarm], "docs/runbooks")
    [rule] = json.loads(rules)["groups"][0]["rules"]
    alert = {"exp_labels": rule["labels"] | labels, "exp_annotations": rule["annotations"]}
    return {
        "name": f"{alarm.kind} {alarm.about}",
        "interval": f"{step}m",
        "input_series": given,
        "alert_rule_test": [
            {"eval_time": "0m", "alertname": alarm.kind, "exp_alerts": []},
            {"eval_time": f"{minutes}m", "alertname": alarm.kind, "exp_alerts": [alert]},
        ],
    }


@pytest.mark.parametrize("name", DESIGNS)
def test_every_alarm_fires(name: str, tmp_path: Path) -> None:
    design = DESIGNS[name]()
    alarms = [each for each in design_alarms(design) if each.prometheus is not None]
    weekly = [each for each in alarms if "1w" in str(each.prometheus)]
    assert weekly
    by_minute = [each for each in alarms if each not in weekly]
    checked(tmp_path, design, by_minute, lambda some: [firing(design, each) for each in some])
    checked(
        tmp_path,
        design,
        weekly,
        lambda some: [firing(design, each, WEEK_STEP) for each in some],
        WEEK_STEP,
    )


@pytest.mark.parametrize("name", DESIGNS)
def test_the_planned_traffic_fires_nothing(name: str, tmp_path: Path) -> None:
    design = DESIGNS[name]()
    alarms = [each for each in design_alarms(design) if each.prometheus is not None]
    given = []
    for pattern in design.patterns:
        rate = 60 * pattern.requests_per_second * requests_per_call(pattern)
        units = 60 * pattern.requests_per_second * pattern.units_per_call
        used = {"table": table(design), "index": "", "pattern": pattern.name, "entity": "E"}
        given += [
            requests(design, f"0+{rate:g}x200", pattern=pattern.name),
            # A condition that does not hold is an answer, not a failure.
            requests(
                design,
                f"0+{rate / 10:g}x200",
                pattern=pattern.name,
                result="ConditionalCheckFailedException",
            ),
            series(f"stator_{pattern.kind}_units_total", f"0+{units:g}x200", **used),
        ]
    if name == "provisioned":  # the plan needs more than this capacity: only requests are planned
        given = [each for each in given if "_units_" not in each["series"]]
    given += [
        series("stator_stream_lag_seconds", "1x200", group="billing"),
        series("stator_stream_trim_seconds", "86000x200", group="billing"),
    ]

    def quiet(some: Sequence[PlannedAlarm]) -> list[dict[str, Any]]:
        found = [
            {"eval_time": f"{minutes}m", "alertname": some[0].kind, "exp_alerts": []}
            for minutes in (30, 180)
        ]
        return [{"interval": "1m", "input_series": given, "alert_rule_test": found}]

    checked(tmp_path, design, alarms, quiet)
