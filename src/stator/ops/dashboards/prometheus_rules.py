"""Alarms as a rule file of Prometheus, in JSON, which is YAML.

https://prometheus.io/docs/prometheus/latest/configuration/alerting_rules/
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from stator.ops.dashboards.planned_alarm import PlannedAlarm
from stator.ops.dashboards.runbooks import runbook_address


def prometheus_rules(name: str, alarms: Iterable[PlannedAlarm], runbooks: str) -> str:
    """Return the text of a rule file for the design ``name``.

    Alarms that only CloudWatch can watch are left out. ``runbooks`` is the address of the folder
    with the runbooks.
    """
    rules = [_rule(alarm, name, runbooks) for alarm in alarms if alarm.prometheus is not None]
    return json.dumps({"groups": [{"name": f"stator-{name}", "rules": rules}]}, indent=2) + "\n"


def _rule(alarm: PlannedAlarm, name: str, runbooks: str) -> dict[str, Any]:
    assert alarm.prometheus is not None
    labels = {"severity": alarm.severity, "design": name}
    if alarm.about:
        labels["about"] = alarm.about
    return {
        "alert": alarm.kind,
        "expr": alarm.prometheus.expression,
        "for": f"{alarm.prometheus.for_minutes}m",
        "labels": labels,
        "annotations": {
            "summary": alarm.summary,
            "runbook_url": runbook_address(alarm.runbook, runbooks),
        },
    }
