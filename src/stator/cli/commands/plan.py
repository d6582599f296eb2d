"""``stator plan``: what a design becomes, what it costs, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from stator.cli.design_file import DesignFile, load_design_file, plan_of
from stator.cli.plan_view import show, to_data
from stator.design.plan.lock import compare, read_lock, write_lock
from stator.design.plan.plan import Plan
from stator.design.planner.planner import plan as fresh_plan
from stator.errors import ConfigurationError


def command(
    target: Annotated[
        str | None,
        typer.Argument(metavar="[TARGET]", help="shop.py, shop.py:shop or package.module:shop."),
    ] = None,
    write: Annotated[
        bool,
        typer.Option("--write", help="Freeze the plan in <name>.design.json, beside the design."),
    ] = False,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help="Plan as if there were no lock file: the cheapest design, whatever is there.",
        ),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="With --write: also where items would stay under keys that nobody computes.",
        ),
    ] = False,
    table: Annotated[
        bool, typer.Option("--table", help="One row for each pattern, without the reasons.")
    ] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Show the keys, indexes and requests of a design, with what they cost and why.

    Without TARGET: the design in the current folder. Where <name>.design.json stands beside it, what that has fixed is kept,
    unless a change is worth moving the data.

    Example: stator plan shop.py --write
    """
    if force and not write:
        raise typer.BadParameter("--force is about --write")
    file = load_design_file(target, fresh=fresh)
    plan = plan_of(file.design)
    if json_output:
        typer.echo(json.dumps(to_data(plan), indent=2, ensure_ascii=False))
    else:
        show(plan, file.design, Console(highlight=False), as_table=table)
    if write:
        _freeze(file.lock, plan, force=force)
    elif not json_output:
        _compare(file, plan, fresh=fresh)


def _freeze(path: Path, plan: Plan, *, force: bool) -> None:
    """Notes go to stderr: what was frozen, and what that means for data under the old lock."""
    old = read_lock(path)
    changes = compare(old, plan) if old is not None else []
    for change in changes:
        style = {"orphans": "red", "backfill": "yellow"}.get(change.risk, "green")
        typer.echo(
            f"{typer.style(change.risk, fg=style)}: {change.subject}: {change.what}; {change.do}",
            err=True,
        )
    if any(change.risk == "orphans" for change in changes) and not force:
        raise ConfigurationError(
            f"{_shown(path)} stays as it is: items that are there would not be found under the new plan",
            hint="do what is said above first, or write it with --force if there is no data yet",
        )
    written = write_lock(path, plan)
    what = "wrote" if written else "nothing new for"
    typer.echo(f"{what} {_shown(path)}" + ("; commit it" if written else ""), err=True)


def _compare(file: DesignFile, plan: Plan, *, fresh: bool) -> None:
    path, old = file.lock, read_lock(file.lock)
    if old is None:
        note = f"not frozen yet: stator plan --write makes {path.name}, which you commit"
    elif compare(old, plan):
        note = f"{_shown(path)} says otherwise: stator check tells what that means"
    else:
        note = f"{_shown(path)} says the same"
    typer.echo(f"{typer.style('lock:', fg='cyan')} {note}", err=True)
    saved = (
        0.0
        if old is None or fresh
        else plan.dollars_per_month - fresh_plan(file.design).dollars_per_month
    )
    if saved >= 0.01:
        kept = f"keeping to it costs ${saved:,.2f} a month more than stator plan --fresh, and moving the data more than that"
        typer.echo(f"{typer.style('lock:', fg='cyan')} {kept}", err=True)


def _shown(path: Path) -> str:
    full = path.resolve()
    return str(full.relative_to(Path.cwd())) if full.is_relative_to(Path.cwd()) else str(path)
