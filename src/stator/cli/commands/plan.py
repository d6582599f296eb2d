"""``stator plan``: the keys, indexes and requests of a design, their cost and the reasons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from stator.cli.design_file import DesignFile, load_design_file, plan_of
from stator.cli.options import DesignArgument
from stator.cli.plan_view import show, to_data
from stator.design.plan.lock_file import compare, write_lock
from stator.design.plan.plan import Plan
from stator.design.planner.planner import plan as fresh_plan
from stator.errors import ConfigurationError
from stator.model.quantities import dollars


def command(
    target: DesignArgument = None,
    write: Annotated[
        bool,
        typer.Option("--write", help="Write the plan to the lock file <name>.design.json."),
    ] = False,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help="Ignore the lock file and plan the cheapest layout for an empty table.",
        ),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="With --write: accept changes that orphan stored items.",
        ),
    ] = False,
    table: Annotated[
        bool, typer.Option("--table", help="Print one row for each pattern, without the reasons.")
    ] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Show a design's keys, indexes and requests, with their cost and the reasons.

    If the lock file <name>.design.json is next to the design, its keys and indexes are kept,
    unless changing them pays for moving the data.

    Example: stator plan shop.py --write
    """
    if force and not write:
        raise typer.BadParameter("--force needs --write")
    file = load_design_file(target, fresh=fresh)
    plan = plan_of(file.design)
    if json_output:
        typer.echo(json.dumps(to_data(plan), indent=2, ensure_ascii=False))
    else:
        show(plan, file.design, Console(highlight=False), as_table=table)
    if write:
        _freeze(file, plan, force=force)
    elif not json_output:
        _compare(file, plan, fresh=fresh)


def _freeze(file: DesignFile, plan: Plan, *, force: bool) -> None:
    """Write the lock file, and say on stderr what its changes mean for stored data.

    Raises ConfigurationError instead if stored items would be orphaned, unless ``force`` is set.
    """
    path = file.lock
    changes = compare(file.frozen, plan) if file.frozen is not None else []
    for change in changes:
        style = {"orphans": "red", "backfill": "yellow"}.get(change.risk, "green")
        typer.echo(
            f"{typer.style(change.risk, fg=style)}: {change.subject}: {change.what}; {change.do}",
            err=True,
        )
    if any(change.risk == "orphans" for change in changes) and not force:
        raise ConfigurationError(
            f"{_shown(path)} was not written: the new plan would not find stored items",
            hint="move the data as described above first, or use --force if there is no data yet",
        )
    written = write_lock(path, plan)
    note = f"wrote {_shown(path)}; commit it" if written else f"{_shown(path)} is up to date"
    typer.echo(note, err=True)


def _compare(file: DesignFile, plan: Plan, *, fresh: bool) -> None:
    """Print on stderr whether the plan differs from the lock file.

    If a fresh plan would be cheaper, also print how much more it costs to keep to the lock file.
    """
    path, old = file.lock, file.frozen
    if old is None:
        note = f"there is no {path.name} yet; stator plan --write creates it for you to commit"
    elif compare(old, plan):
        note = f"{_shown(path)} differs; stator check says what that means"
    else:
        note = f"{_shown(path)} agrees"
    typer.echo(f"{typer.style('lock:', fg='cyan')} {note}", err=True)
    saved = (
        0.0
        if old is None or fresh
        else plan.dollars_per_month - fresh_plan(file.design).dollars_per_month
    )
    if saved >= 0.01:
        cost = (
            f"keeping to it costs {dollars(saved)} a month more than stator plan --fresh; "
            f"moving the data would cost more"
        )
        typer.echo(f"{typer.style('lock:', fg='cyan')} {cost}", err=True)


def _shown(path: Path) -> str:
    full = path.resolve()
    return str(full.relative_to(Path.cwd())) if full.is_relative_to(Path.cwd()) else str(path)
