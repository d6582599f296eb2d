"""``stator plan``: what a design becomes, what it costs, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from stator.cli.design_file import load_design_file, plan_of
from stator.cli.plan_view import show, to_data
from stator.design.lock import compare, read_lock, write_lock
from stator.design.plan import Plan


def command(
    target: Annotated[
        str | None, typer.Argument(metavar="[TARGET]", help="shop.py, shop.py:shop or package.module:shop.")
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Freeze the plan in <name>.design.json, beside the design.")
    ] = False,
    table: Annotated[bool, typer.Option("--table", help="One row for each pattern, without the reasons.")] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Show the keys, indexes and requests of a design, with what they cost and why.

    Without TARGET: the design in the current folder.

    Example: stator plan shop.py --write
    """
    file = load_design_file(target)
    plan = plan_of(file.design)
    if json_output:
        typer.echo(json.dumps(to_data(plan), indent=2, ensure_ascii=False))
    else:
        show(plan, file.design, Console(highlight=False), as_table=table)
    if write:
        _freeze(file.lock, plan)
    elif not json_output:
        _compare(file.lock, plan)


def _freeze(path: Path, plan: Plan) -> None:
    """Notes go to stderr: what was frozen, and what that means for data under the old lock."""
    old = read_lock(path)
    for change in compare(old, plan) if old is not None else ():
        style = {"orphans": "red", "backfill": "yellow"}.get(change.risk, "green")
        typer.echo(f"{typer.style(change.risk, fg=style)}: {change.subject}: {change.what}; {change.do}", err=True)
    written = write_lock(path, plan)
    what = "wrote" if written else "nothing new for"
    typer.echo(f"{what} {_shown(path)}" + ("; commit it" if written else ""), err=True)


def _compare(path: Path, plan: Plan) -> None:
    old = read_lock(path)
    if old is None:
        note = f"not frozen yet: stator plan --write makes {path.name}, which you commit"
    elif compare(old, plan):
        note = f"{_shown(path)} says otherwise: stator check tells what that means"
    else:
        note = f"{_shown(path)} says the same"
    typer.echo(f"{typer.style('lock:', fg='cyan')} {note}", err=True)


def _shown(path: Path) -> str:
    full = path.resolve()
    return str(full.relative_to(Path.cwd())) if full.is_relative_to(Path.cwd()) else str(path)
