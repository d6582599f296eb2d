"""``stator diff``: compares a design with live tables."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from stator.cli.design_file import load_design, plan_of
from stator.cli.live_tables import LiveTables
from stator.cli.options import DesignArgument, PrefixOption, ProfileOption, RegionOption
from stator.cli.output import say, styled
from stator.design.plan.drift import Difference, drift
from stator.design.plan.own_table import needs_own_table, own_table
from stator.model.quantities import plural

_COLOURS = {"missing": "red", "different": "yellow", "extra": "cyan"}


def command(
    target: DesignArgument = None,
    live: Annotated[
        str,
        typer.Option(
            "--at",
            "--live",
            metavar="ADDRESS",
            help="Where the tables are: http://host:port or aws://region.",
        ),
    ] = "http://localhost:8000",
    prefix: PrefixOption = "",
    with_patterns: Annotated[
        bool,
        typer.Option(
            "--with-patterns", help="Include the table NAME-stator even if no field is unique()."
        ),
    ] = False,
    region: RegionOption = None,
    profile: ProfileOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the differences as JSON.")] = False,
) -> None:
    """Compare a design with live tables.

    Exit code 1 means that there are differences.

    Example: stator diff shop.py --at aws://eu-west-1 --prefix prod-
    """
    design = load_design(target)
    plan = plan_of(design)
    tables = LiveTables(live, region=region, profile=profile)
    is_needed = with_patterns or needs_own_table(design.entities, plan)
    beside = [own_table(design.name)] if is_needed else []
    names = [table.name for table in (*plan.tables, *beside)]
    described = {name: tables.describe_fully(prefix + name) for name in names}
    found = drift(plan, described, beside, design.settings)
    for missing in tables.unread:
        say(f"note: not compared: {missing}", err=True)
    if as_json:
        typer.echo(json.dumps({"address": live, "differences": [asdict(each) for each in found]}))
    else:
        _show(plan.name, [prefix + name for name in names], live, prefix, found)
    raise typer.Exit(1 if found else 0)


def _show(design: str, names: list[str], live: str, prefix: str, found: list[Difference]) -> None:
    if not found:
        say(f"{', '.join(names)} at {live}: no differences from the design")
        return
    for each in found:
        mark = styled(f"{each.severity:>9}", _COLOURS[each.severity], bold=True)
        say(f"{mark}  {prefix}{each.where}: {each.message}", indent=11)
        say(f"{'':>9}  -> {each.remedy}", indent=14)
    say(f"{plural(len(found), 'difference')} between {design} and {live}")
