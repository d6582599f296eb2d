"""A dashboard as Grafana's JSON, with Prometheus as its data source.

The data source is a variable of the dashboard, so that the file can be imported anywhere. Plain
data: the SDK that Grafana publishes would be a dependency for the sake of a few dictionaries.
https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Final

from stator.ops.dashboards.panels import DesignDashboard, Panel, Unit

_SCHEMA: Final = 39
_WIDTH: Final = 24
_PANEL_WIDTH: Final = 8
_PANEL_HEIGHT: Final = 8
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_UNITS: Final[dict[Unit, str]] = {
    "requests/s": "reqps",
    "units/s": "short",
    "seconds": "s",
    "bytes": "bytes",
    "count": "short",
    "share": "percentunit",
    "dollars/month": "currencyUSD",
}


def grafana_json(dashboard: DesignDashboard) -> str:
    """Return the text of a file that Grafana imports. Panels that Prometheus lacks are left out."""
    data = {
        "title": f"{dashboard.name} on DynamoDB",
        "uid": hashlib.sha256(f"stator {dashboard.name}".encode()).hexdigest()[:12],
        "tags": ["stator", "dynamodb"],
        "schemaVersion": _SCHEMA,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "label": "Prometheus",
                    "type": "datasource",
                    "query": "prometheus",
                }
            ]
        },
        "panels": list(_panels(dashboard)),
    }
    return json.dumps(data, indent=2) + "\n"


def _panels(dashboard: DesignDashboard) -> Iterator[dict[str, Any]]:
    number, top = 0, 0
    for row in dashboard.rows:
        panels = [panel for panel in row.panels if panel.has("prometheus")]
        if not panels:
            continue
        number += 1
        position = {"h": 1, "w": _WIDTH, "x": 0, "y": top}
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "gridPos": position,
            "panels": [],
        }
        top += 1
        for at, panel in enumerate(panels):
            number += 1
            left = at * _PANEL_WIDTH % _WIDTH
            if at and left == 0:
                top += _PANEL_HEIGHT
            position = {"h": _PANEL_HEIGHT, "w": _PANEL_WIDTH, "x": left, "y": top}
            yield _panel(panel) | {"id": number, "gridPos": position}
        top += _PANEL_HEIGHT


def _panel(panel: Panel) -> dict[str, Any]:
    queries = [(each.prometheus, each.legend) for each in panel.series if each.prometheus]
    queries += [(f"vector({line.value:.10g})", line.legend) for line in panel.lines]
    dashed = [
        {
            "matcher": {"id": "byName", "options": line.legend},
            "properties": [
                {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [10, 10]}},
                {"id": "custom.fillOpacity", "value": 0},
            ],
        }
        for line in panel.lines
    ]
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "fieldConfig": {
            "defaults": {"unit": _UNITS[panel.unit], "min": 0, "custom": {"fillOpacity": 10}},
            "overrides": dashed,
        },
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}},
        "targets": [
            {
                "refId": f"Q{at}",
                "datasource": _SOURCE,
                "expr": expression,
                "legendFormat": legend,
                "range": True,
            }
            for at, (expression, legend) in enumerate(queries, 1)
        ],
    }
