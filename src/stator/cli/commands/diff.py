"""``stator diff``: the design against real tables."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from stator.cli.design_file import load_design, plan_of
from stator.cli.live_tables import LiveTables
from stator.design.plan.drift import Difference, drift
from stator.design.plan.own_table import needs_own_table, own_table

_COLOURS = {"missing": "red", "different": "yellow", "extra": "cyan"}


def command(
    target: Annotated[
        str | None,
        typer.Argument(
            help="The design: shop.py, shop.py:shop, package.module:shop; or this folder's."
        ),
    ] = None,
    live: Annotated[
        str,
        typer.Option(
            metavar="URL", help="Where the tables are: http://localhost:8000 or aws://eu-west-1."
        ),
    ] = "http://localhost:8000",
    prefix: Annotated[
        str, typer.Option(help="What the real tables' names have before the design's.")
    ] = "",
    with_patterns: Annotated[
        bool,
        typer.Option("--with-patterns", help="Look at NAME-stator even if no field is unique()."),
    ] = False,
    region: Annotated[str | None, typer.Option(help="Region, for an http address.")] = None,
    profile: Annotated[str | None, typer.Option(help="Profile of ~/.aws/config.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """The difference between the design and real tables.

    Ends with 1 when there is one.

    Example: stator diff shop.py --live aws://eu-west-1 --prefix prod-
    """
    design = load_design(target)
    plan = plan_of(design)
    tables = LiveTables(live, region=region, profile=profile)
    beside = [own_table(design.name)] if with_patterns or needs_own_table(design.entities) else []
    names = [table.name for table in (*plan.tables, *beside)]
    found = drift(plan, {name: tables.describe(prefix + name) for name in names}, beside)
    if as_json:
        typer.echo(json.dumps({"address": live, "differences": [asdict(each) for each in found]}))
    else:
        _show(plan.name, [prefix + name for name in names], live, prefix, found)
    raise typer.Exit(1 if found else 0)


def _show(design: str, names: list[str], live: str, prefix: str, found: list[Difference]) -> None:
    if not found:
        typer.echo(f"{', '.join(names)} at {live}: as the design wants it")
        return
    for each in found:
        mark = typer.style(f"{each.severity:>9}", fg=_COLOURS[each.severity], bold=True)
        typer.echo(f"{mark}  {prefix}{each.where}: {each.message}")
        typer.echo(f"{'':>9}  -> {each.remedy}")
    plural = "difference" if len(found) == 1 else "differences"
    typer.echo(f"{len(found)} {plural} between {design} and {live}")
