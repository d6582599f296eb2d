"""The model of a dashboard: rows of panels, each with series for Prometheus and for CloudWatch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Literal

Unit = Literal["requests/s", "units/s", "seconds", "bytes", "count", "share", "dollars/month"]
NAMESPACE: Final = "AWS/DynamoDB"


@dataclass(frozen=True, slots=True)
class CloudMetric:
    """One metric of DynamoDB in CloudWatch, with the statistic to take of each period."""

    name: str
    dimensions: tuple[tuple[str, str], ...]
    statistic: str = "Sum"


@dataclass(frozen=True, slots=True)
class CloudQuery:
    """A series of CloudWatch: one metric, or metric math over several.

    ``expression`` calls the metrics m1, m2 and so on. ``period_seconds`` is the length of a period.
    """

    metrics: tuple[CloudMetric, ...]
    expression: str | None = None
    period_seconds: int = 60

    def renamed(self, prefix: str) -> str | None:
        """Return the expression with ``prefix`` before the names of its metrics."""
        if self.expression is None:
            return None
        return re.sub(r"\bm(\d+)\b", rf"{prefix}m\1", self.expression)


@dataclass(frozen=True, slots=True)
class PanelSeries:
    """A line of a panel, or several if the query returns several.

    ``legend`` may have labels in double braces, as Grafana writes them. A series of which one
    source knows nothing has None for it.
    """

    legend: str
    prometheus: str | None = None
    cloudwatch: CloudQuery | None = None


@dataclass(frozen=True, slots=True)
class ReferenceLine:
    """A level to compare with: the declared rate, the planned units, or the capacity."""

    legend: str
    value: float


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    unit: Unit
    series: tuple[PanelSeries, ...]
    lines: tuple[ReferenceLine, ...] = ()
    about: str = ""

    def has(self, source: Literal["prometheus", "cloudwatch"]) -> bool:
        """Whether a source has data for one of the series."""
        return any(getattr(each, source) is not None for each in self.series)


@dataclass(frozen=True, slots=True)
class PanelRow:
    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class DesignDashboard:
    """The dashboard of a design: its name, and rows of panels."""

    name: str
    rows: tuple[PanelRow, ...]

    def to_data(self) -> dict[str, Any]:
        """Return the dashboard as JSON data: each panel's title, unit and lines."""
        return {
            "name": self.name,
            "rows": [
                {
                    "title": row.title,
                    "panels": [
                        {
                            "title": panel.title,
                            "unit": panel.unit,
                            "prometheus": [
                                each.prometheus for each in panel.series if each.prometheus
                            ],
                            "cloudwatch": sorted(
                                {
                                    metric.name
                                    for each in panel.series
                                    if each.cloudwatch
                                    for metric in each.cloudwatch.metrics
                                }
                            ),
                            "lines": {line.legend: line.value for line in panel.lines},
                        }
                        for panel in row.panels
                    ],
                }
                for row in self.rows
            ],
        }
