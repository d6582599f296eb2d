"""A dashboard as the body of CloudWatch's PutDashboard.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from stator.errors import ConfigurationError
from stator.ops.dashboards.panels import NAMESPACE, CloudQuery, DesignDashboard, Panel

_WIDTH: Final = 24
_WIDGET_WIDTH: Final = 8
_WIDGET_HEIGHT: Final = 6
MOST_METRICS: Final = 2500
"""CloudWatch's quota of metrics in all graphs of one dashboard."""


def cloudwatch_body(dashboard: DesignDashboard, region: str) -> str:
    """Return the body of a dashboard. Panels that CloudWatch has no data for are left out.

    Raises ConfigurationError if the dashboard would have more metrics than CloudWatch allows.
    """
    count = sum(
        len(each.cloudwatch.metrics)
        for row in dashboard.rows
        for panel in row.panels
        for each in panel.series
        if each.cloudwatch is not None
    )
    if count > MOST_METRICS:
        raise ConfigurationError(
            f"{dashboard.name} has {count:,} metrics, and a dashboard of CloudWatch at most "
            f"{MOST_METRICS:,}",
            hint="watch it with Grafana, or split the design",
        )
    return json.dumps({"widgets": list(_widgets(dashboard, region))}, indent=2) + "\n"


def _widgets(dashboard: DesignDashboard, region: str) -> Iterator[dict[str, Any]]:
    top = 0
    for row in dashboard.rows:
        panels = [panel for panel in row.panels if panel.has("cloudwatch")]
        if not panels:
            continue
        yield {
            "type": "text",
            "x": 0,
            "y": top,
            "width": _WIDTH,
            "height": 1,
            "properties": {"markdown": f"## {row.title}"},
        }
        top += 1
        for at, panel in enumerate(panels):
            left = at * _WIDGET_WIDTH % _WIDTH
            if at and left == 0:
                top += _WIDGET_HEIGHT
            yield {
                "type": "metric",
                "x": left,
                "y": top,
                "width": _WIDGET_WIDTH,
                "height": _WIDGET_HEIGHT,
                "properties": _properties(panel, region),
            }
        top += _WIDGET_HEIGHT


def _properties(panel: Panel, region: str) -> dict[str, Any]:
    metrics = [
        line
        for at, each in enumerate(panel.series, 1)
        if each.cloudwatch is not None
        for line in _lines(each.legend, each.cloudwatch, f"s{at}")
    ]
    properties: dict[str, Any] = {
        "title": panel.title,
        "view": "timeSeries",
        "region": region,
        "period": 60,
        "metrics": metrics,
        "yAxis": {"left": {"min": 0, "label": panel.about or panel.unit, "showUnits": False}},
    }
    if panel.lines:
        properties["annotations"] = {
            "horizontal": [{"label": line.legend, "value": line.value} for line in panel.lines]
        }
    return properties


def _lines(legend: str, query: CloudQuery, name: str) -> Iterator[list[Any]]:
    expression = query.renamed(name)
    for at, metric in enumerate(query.metrics, 1):
        where = [part for dimension in metric.dimensions for part in dimension]
        options: dict[str, Any] = {"stat": metric.statistic, "period": query.period_seconds}
        if expression is None:
            options["label"] = legend
        else:
            options |= {"id": f"{name}m{at}", "visible": False}
        yield [NAMESPACE, metric.name, *where, options]
    if expression is not None:
        yield [{"expression": expression, "label": legend, "id": name}]
