"""``stator dashboards``: writes a design's dashboard for a monitoring tool."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from stator.cli.options import DesignArgument, OutOption, PrefixOption
from stator.cli.watch.monitored_options import (
    SLOW_SECONDS,
    BudgetOption,
    PatternTablesOption,
    SlowOption,
    monitored,
    show_text,
)
from stator.model.scope import DEFAULT_REGION
from stator.ops.dashboards.cloudwatch_body import cloudwatch_body
from stator.ops.dashboards.design_dashboard import design_dashboard
from stator.ops.dashboards.grafana import grafana_json


class DashboardTool(StrEnum):
    grafana = "grafana"
    cloudwatch = "cloudwatch"


def command(
    tool: Annotated[
        DashboardTool,
        typer.Argument(
            metavar="TOOL", help=f"One of {', '.join(DashboardTool)}.", show_default=False
        ),
    ],
    target: DesignArgument = None,
    out: OutOption = None,
    prefix: PrefixOption = "",
    budget: BudgetOption = None,
    slow: SlowOption = SLOW_SECONDS,
    with_patterns: PatternTablesOption = False,
    region: Annotated[
        str, typer.Option(metavar="REGION", help="With cloudwatch: the region of the tables.")
    ] = DEFAULT_REGION,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print the panels and their lines as JSON instead.")
    ] = False,
) -> None:
    """Write a design's dashboard for Grafana (with Prometheus) or CloudWatch.

    Each pattern has a row with its requests against the declared rate, its units against the
    plan's, latency and throttles. Each table has its units against the capacity, its indexes, busy
    keys and item sizes.

    Example: stator dashboards grafana shop.py --out shop.grafana.json

    Example: stator dashboards cloudwatch shop.py --prefix prod- --region eu-west-1
    """
    design = monitored(target, prefix=prefix, budget=budget, slow=slow, with_patterns=with_patterns)
    dashboard = design_dashboard(design)
    if json_output:
        text = json.dumps(dashboard.to_data(), indent=2) + "\n"
    elif tool is DashboardTool.grafana:
        text = grafana_json(dashboard)
    else:
        text = cloudwatch_body(dashboard, region)
    show_text(text, out)
