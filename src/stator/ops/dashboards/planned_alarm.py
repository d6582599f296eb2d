"""The model of an alarm: a condition for Prometheus, one for CloudWatch, and a runbook."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from stator.ops.dashboards.panels import CloudQuery

Severity = Literal["page", "ticket"]


@dataclass(frozen=True, slots=True)
class PrometheusCondition:
    """The alarm fires if ``expression`` has had a result for ``for_minutes``."""

    expression: str
    for_minutes: int


@dataclass(frozen=True, slots=True)
class CloudWatchCondition:
    """The alarm fires if ``datapoints`` of the last ``periods`` periods are above ``threshold``.

    ``threshold`` None compares with the band that CloudWatch learns from the past.
    """

    query: CloudQuery
    threshold: float | None
    periods: int
    datapoints: int


@dataclass(frozen=True, slots=True)
class PlannedAlarm:
    """An alarm for a design, one of its patterns, or one of its tables and indexes.

    ``runbook`` names the page of docs/runbooks that says what to do; alarms of one kind share it.
    ``about`` is the pattern, table or index; it is empty for the whole design. ``severity`` "page"
    means now, and "ticket" on the next working day.
    """

    runbook: str
    about: str
    summary: str
    severity: Severity
    prometheus: PrometheusCondition | None = None
    cloudwatch: CloudWatchCondition | None = None

    @property
    def kind(self) -> str:
        """The name of the alarms of one kind in Prometheus, such as StatorHotKey."""
        return "Stator" + "".join(word.capitalize() for word in self.runbook.split("-"))

    def to_data(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "about": self.about,
            "summary": self.summary,
            "severity": self.severity,
            "runbook": self.runbook,
            "prometheus": None if self.prometheus is None else self.prometheus.expression,
            "cloudwatch": None
            if self.cloudwatch is None
            else [metric.name for metric in self.cloudwatch.query.metrics],
        }
