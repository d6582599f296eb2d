"""``stator views``: what an app's views are, and building them anew."""

from __future__ import annotations

import json
import sys
import time
from contextlib import nullcontext
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from stator.cli.app_file import load_app
from stator.errors import ConfigurationError
from stator.pipeline.views.keeper import Keeper
from stator.pipeline.views.projection import Projection
from stator.pipeline.views.rebuild.rebuild import Rebuild, RebuildOptions, Rebuilt, rebuild_together
from stator.pipeline.views.view import View
from stator.pipeline.workers.app import StreamApp
from stator.tables.connection import connect
from stator.tables.db import Db


class ViewsAction(StrEnum):
    list = "list"
    rebuild = "rebuild"


def command(
    action: Annotated[
        ViewsAction, typer.Argument(help="Show them, or build some anew from their tables.")
    ],
    target: Annotated[
        str, typer.Argument(metavar="APP", help="work.py, work.py:app or package.module:app.")
    ],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[VIEW]...", help="Which, by name.")
    ] = None,
    at: Annotated[
        str,
        typer.Option(
            "--at", metavar="ADDRESS", help="http://host:port, aws://region, or a folder."
        ),
    ] = "",
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    work: Annotated[
        bool,
        typer.Option(
            "--work", help="Work here meanwhile: for an app whose workers are not running."
        ),
    ] = False,
    grace: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar="SECONDS",
            help="How long the old items are left before they are deleted.",
        ),
    ] = 15.0,
    settle: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar="SECONDS",
            help="How late the stream may show a change. The embedded engine's is never late.",
        ),
    ] = 2.0,
    prefix: Annotated[str, typer.Option(help="What the tables' names begin with.")] = "",
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """The views of an app: list them, or build them anew from their tables.

    A view is built beside the one in use, while workers go on and readers read, and then takes its place: for a table that had items before its view, and after
    its declaration was changed. The app's workers have to be running, or give --work.

    Example: stator views rebuild summaries.py:app isp_hours --at http://localhost:8000
    """
    if not at:
        raise typer.BadParameter("say where: --at http://localhost:8000")
    app = load_app(target)
    views = [each for each in app.subscribers if isinstance(each, (View, Projection))]
    with connect(app.design, at, prefix=prefix) as db:
        if action is ViewsAction.list:
            _show([_facts(db, view) for view in views], as_json=json_output)
            return
        chosen = _chosen(views, names or [], everything=everything, app=app)
        with app.start(db) if work else nullcontext():
            options = RebuildOptions(settle_seconds=settle, grace_seconds=grace)
            results = _rebuilt(db, chosen, options, as_json=json_output)
    if json_output:
        typer.echo(json.dumps({name: asdict(each) for name, each in results.items()}))


def _chosen(views: list[Any], names: list[str], *, everything: bool, app: StreamApp) -> list[Any]:
    if everything:
        return views
    if not names:
        raise ConfigurationError(
            "which?", hint="name views as `stator views list` shows them, or give --all"
        )
    known = {view.name: view for view in views}
    for name in names:
        if name not in known:
            raise ConfigurationError(
                f"{app.name} has no view {name}",
                hint=f"it has {', '.join(known)}" if known else "app.add(...) adds one",
            )
    return [known[name] for name in names]


def _rebuilt(
    db: Db, views: list[Any], options: RebuildOptions, *, as_json: bool
) -> dict[str, Rebuilt]:
    """Together: a table that several are of is read once."""
    shown = {view.name: _Shown(view.name, quiet=as_json) for view in views}
    builds = [Rebuild(view.kept(db.context), options, shown[view.name].show) for view in views]
    results = dict(zip(shown, db.run(rebuild_together(builds)), strict=True))
    for name, result in results.items():
        shown[name].done(result)
    return results


class _Shown:
    """Progress on a terminal, and a line at the end."""

    def __init__(self, name: str, *, quiet: bool) -> None:
        self._name = name
        self._quiet = quiet
        self._is_terminal = sys.stderr.isatty() and not quiet
        self._next = time.monotonic() + 1.0

    def show(self, rebuilt: Rebuilt) -> None:
        if self._is_terminal and time.monotonic() >= self._next:
            self._next = time.monotonic() + 0.2
            typer.echo(f"\r{self._name}: {rebuilt.scanned:,} items read", nl=False, err=True)

    def done(self, rebuilt: Rebuilt) -> None:
        if self._quiet:
            return
        line = f"{self._name}: generation {rebuilt.generation}, of {rebuilt.scanned:,} items in {rebuilt.groups:,} groups"
        if rebuilt.changed:
            line += f"; {rebuilt.changed:,} changed meanwhile"
        if rebuilt.unreadable:
            line += f"; {rebuilt.unreadable:,} could not be read, and are left out"
        typer.echo(("\r" if self._is_terminal else "") + line, err=True)


def _facts(db: Db, view: Keeper) -> dict[str, Any]:
    kept = view.kept(db.context)
    head = db.run(kept.heads.load())
    declared = kept.source.declared
    return {
        "name": view.name,
        "kind": "projection" if isinstance(view, Projection) else "view",
        "of": kept.source.of.name,
        "by": [field.name for field in declared.by],
        "bucket": None if declared.bucket is None else declared.bucket[1],
        "metrics": [] if isinstance(view, Projection) else list(declared.metrics),
        "generation": None if head is None else head.generation,
        "building": None if head is None else head.building,
    }


def _show(views: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(views, indent=2))
        return
    if not views:
        typer.echo("the app has no views")
        return
    table = Table(box=None, pad_edge=False)
    for title in ("name", "of", "by", "tells", "generation"):
        table.add_column(title, overflow="fold")
    for each in views:
        by = ", ".join([*each["by"], *([each["bucket"]] if each["bucket"] else [])])
        state = "not kept yet" if each["generation"] is None else str(each["generation"])
        if each["building"] is not None:
            state += f" ({each['building']} is being built)"
        table.add_row(
            each["name"],
            each["of"],
            by or "everything",
            ", ".join(each["metrics"]) or "copies",
            state,
        )
    Console(highlight=False).print(table)
