"""``stator alarms``: writes a design's alarms for a monitoring tool."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
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
from stator.ops.dashboards.cloudformation_alarms import cloudformation_alarms
from stator.ops.dashboards.design_alarms import design_alarms
from stator.ops.dashboards.planned_alarm import PlannedAlarm
from stator.ops.dashboards.prometheus_rules import prometheus_rules
from stator.ops.dashboards.runbooks import RUNBOOKS
from stator.ops.dashboards.terraform_alarms import terraform_alarms


class AlarmTool(StrEnum):
    prometheus = "prometheus"
    cloudformation = "cloudformation"
    terraform = "terraform"


_WRITERS: dict[AlarmTool, Callable[[str, Iterable[PlannedAlarm], str], str]] = {
    AlarmTool.prometheus: prometheus_rules,
    AlarmTool.cloudformation: cloudformation_alarms,
    AlarmTool.terraform: terraform_alarms,
}


def command(
    tool: Annotated[
        AlarmTool,
        typer.Argument(metavar="TOOL", help=f"One of {', '.join(AlarmTool)}.", show_default=False),
    ],
    target: DesignArgument = None,
    out: OutOption = None,
    prefix: PrefixOption = "",
    budget: BudgetOption = None,
    slow: SlowOption = SLOW_SECONDS,
    with_patterns: PatternTablesOption = False,
    runbooks: Annotated[
        str,
        typer.Option(
            metavar="URL", help="The folder of the runbooks that alarms link: a path or an address."
        ),
    ] = RUNBOOKS,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print the alarms and their conditions as JSON instead.")
    ] = False,
) -> None:
    """Write a design's alarms: rules of Prometheus, or alarms of CloudWatch.

    Alarms compare with the plan (declared rates, units a request, capacity, budget), with last
    week, and with limits of DynamoDB. Each links the page of docs/runbooks that says what to do.

    Example: stator alarms prometheus shop.py --out shop.rules.json

    Example: stator alarms terraform shop.py --prefix prod- --out alarms.tf
    """
    design = monitored(target, prefix=prefix, budget=budget, slow=slow, with_patterns=with_patterns)
    alarms = design_alarms(design)
    if json_output:
        text = json.dumps([each.to_data() for each in alarms], indent=2) + "\n"
    else:
        text = _WRITERS[tool](design.name, alarms, runbooks)
    show_text(text, out)
