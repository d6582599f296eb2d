"""Options that ``stator dashboards`` and ``stator alarms`` share, and the design they watch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stator.cli.design_file import load_design, plan_of
from stator.cli.output import write_text
from stator.design.export.source import ExportSource
from stator.ops.dashboards.monitored_design import DEFAULT_SLOW_SECONDS, MonitoredDesign

BudgetOption = Annotated[
    float | None,
    typer.Option(
        min=0.01,
        metavar="DOLLARS",
        help="A month's budget for capacity. By default, half as much again as the plan costs.",
        show_default=False,
    ),
]
SlowOption = Annotated[
    float,
    typer.Option(
        min=0.001, metavar="SECONDS", help="A request that takes longer than this is slow."
    ),
]
PatternTablesOption = Annotated[
    bool,
    typer.Option(
        "--with-patterns",
        help="Include the table NAME-stator even if no field is unique(). Pattern objects, "
        "transaction tokens, workers and views store their items there.",
    ),
]
SLOW_SECONDS = DEFAULT_SLOW_SECONDS


def monitored(
    target: str | None,
    *,
    prefix: str,
    budget: float | None,
    slow: float,
    with_patterns: bool,
) -> MonitoredDesign:
    """Return the design that ``target`` names, with the limits to watch it by."""
    design = load_design(target)
    source = ExportSource(design, plan_of(design), with_patterns)
    return MonitoredDesign(source, prefix, budget, slow)


def show_text(text: str, out: Path | None) -> None:
    """Print a text, or write it to a file and say so."""
    if out is None:
        typer.echo(text, nl=False)
        return
    write_text(out, text)
    typer.echo(f"wrote {out}", err=True)
