"""``stator views``: lists or rebuilds an app's views."""

from __future__ import annotations

import json
import sys
import time
from contextlib import nullcontext
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.table import Table

from stator.addresses import Address
from stator.cli.app_file import MISSING_AT, app_connection, load_app
from stator.cli.checks.unused_options import refuse_unused
from stator.cli.options import AppArgument, AtOption, PrefixOption
from stator.cli.output import print_parts, rich_console, say
from stator.cli.tables.name_cell import NameCell
from stator.errors import ConfigurationError
from stator.model.quantities import plural
from stator.pipeline.views.projection import Projection
from stator.pipeline.views.rebuild.rebuild import (
    Rebuild,
    RebuildOptions,
    RebuildReport,
    rebuild_together,
    release_all,
)
from stator.pipeline.views.updater import ViewUpdater
from stator.pipeline.views.view import View
from stator.pipeline.workers.app import StreamApp
from stator.tables.db import Db


class ViewsAction(StrEnum):
    list = "list"
    rebuild = "rebuild"


def command(
    context: typer.Context,
    action: Annotated[
        ViewsAction,
        typer.Argument(
            metavar="list|rebuild", help="List the views, or rebuild some from their tables."
        ),
    ],
    target: AppArgument,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[VIEW]...", help="The views to rebuild.")
    ] = None,
    at: AtOption = "",
    everything: Annotated[bool, typer.Option("--all", help="Rebuild every view.")] = False,
    work: Annotated[
        bool,
        typer.Option(
            "--work", help="Run a worker in this process, for an app whose workers are not running."
        ),
    ] = False,
    grace: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar="SECONDS",
            help="Time before the items of the old generation are deleted.",
        ),
    ] = 15.0,
    settle: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar="SECONDS",
            help="Longest delay of a change in the stream. The embedded engine has none.",
        ),
    ] = 2.0,
    prefix: PrefixOption = "",
    json_output: Annotated[
        bool, typer.Option("--json", help="Print the views or the results as JSON.")
    ] = False,
) -> None:
    """List an app's views, or rebuild them while they are in use.

    Rebuild a view whose table held items before the view was added, or whose declaration changed.
    The new generation is built alongside the one in use while workers and readers continue, and
    then replaces it. The app's workers must be running; if they are not, use --work. On a data
    folder always use it, because only one process can open a folder.

    Example: stator views rebuild summaries.py:app isp_hours --at http://localhost:8000
    """
    if not at:
        raise typer.BadParameter(MISSING_AT)
    if action is ViewsAction.list:
        unused = ("names", "everything", "work", "grace", "settle")
        refuse_unused(context, "on `stator views list`, which lists every view", *unused)
    if everything:
        refuse_unused(context, "together with --all, which rebuilds every view", "names")
    app = load_app(target)
    views = [each for each in app.subscribers if isinstance(each, (View, Projection))]
    with app_connection(app, at, prefix) as db:
        if action is ViewsAction.list:
            _show([_facts(db, view) for view in views], as_json=json_output)
            return
        chosen = _chosen(views, names or [], everything=everything, app=app)
        if not work and Address.parse(at).is_embedded:
            raise ConfigurationError(
                f"only one process can open the folder {at}, so no worker runs beside this command",
                hint="add --work: the rebuild then runs a worker in its own process",
            )
        options = RebuildOptions(settle_seconds=settle, grace_seconds=grace)
        with app.start(db) if work else nullcontext():
            results = _rebuilt(db, chosen, options, work=work, as_json=json_output)
    if json_output:
        typer.echo(json.dumps({name: _report(each) for name, each in results.items()}))


def _report(rebuilt: RebuildReport) -> dict[str, Any]:
    return {name: value for name, value in asdict(rebuilt).items() if name != "phase"}


def _chosen(views: list[Any], names: list[str], *, everything: bool, app: StreamApp) -> list[Any]:
    if everything and views:
        return views
    known = {view.name: view for view in views}
    if not names:
        raise ConfigurationError(
            f"app '{app.name}' has {plural(len(known), 'view')}; "
            + (f"name one: {', '.join(known)}" if known else "there is nothing to rebuild"),
            hint="or rebuild every view with --all" if known else "app.add(...) adds a view",
        )
    for name in names:
        if name not in known:
            raise ConfigurationError(
                f"app '{app.name}' has no view {name}",
                hint=f"name one of {', '.join(known)}" if known else "app.add(...) adds a view",
            )
    return [known[name] for name in names]


def _rebuilt(
    db: Db, views: list[Any], options: RebuildOptions, *, work: bool, as_json: bool
) -> dict[str, RebuildReport]:
    """Rebuild views and return their reports. A table that several views share is read once."""
    shown = {view.name: _RebuildDisplay(view.name, options, quiet=as_json) for view in views}
    builds = [
        Rebuild(view.in_database(db.context), options, shown[view.name].show, await_worker=work)
        for view in views
    ]
    try:
        reports = db.run(rebuild_together(builds))
    except KeyboardInterrupt:
        db.run(release_all(builds))
        raise
    results = dict(zip(shown, reports, strict=True))
    for name, result in results.items():
        shown[name].done(result)
    return results


class _RebuildDisplay:
    """Prints a line when the rebuild begins to wait for something, and one at the end.

    A terminal also shows the number of items read.
    """

    def __init__(self, name: str, options: RebuildOptions, *, quiet: bool) -> None:
        self._name = name
        self._options = options
        self._phase = ""
        self._quiet = quiet
        self._is_terminal = sys.stderr.isatty() and not quiet
        self._next = time.monotonic() + 1.0

    def show(self, rebuilt: RebuildReport) -> None:
        if rebuilt.phase != self._phase:
            self._phase = rebuilt.phase
            self._announce(rebuilt)
        if self._is_terminal and time.monotonic() >= self._next:
            self._next = time.monotonic() + 0.2
            typer.echo(f"\r{self._name}: {rebuilt.scanned:,} items read", nl=False, err=True)

    def _announce(self, rebuilt: RebuildReport) -> None:
        options, new = self._options, rebuilt.generation
        line = {
            "starting": f"waiting up to {options.wait_seconds:g} s until the workers write to"
            f" generation {new} as well",
            "reading": "reading the table",
            "settling": f"waiting {options.settle_seconds:g} s for late changes of the stream",
            "switched": f"readers use generation {new} now; the old one is deleted in"
            f" {options.grace_seconds:g} s, when no worker writes to it any more",
        }.get(rebuilt.phase)
        if line is not None and not self._quiet:
            say(f"{self._start}{self._name}: {line}", err=True, indent=4)

    @property
    def _start(self) -> str:
        """The text before a line.

        On a terminal, it erases the number of items that the line shows.
        """
        return "\r\x1b[K" if self._is_terminal else ""

    def done(self, rebuilt: RebuildReport) -> None:
        if self._quiet:
            return
        line = (
            f"{self._name}: generation {rebuilt.generation} has {plural(rebuilt.groups, 'group')}; "
            f"{plural(rebuilt.scanned, 'item')} of the table read"
        )
        if rebuilt.changed:
            line += f"; {rebuilt.changed:,} changed meanwhile"
        if rebuilt.unreadable:
            line += f"; {rebuilt.unreadable:,} items could not be read and are left out"
        say(self._start + line, err=True, indent=4)


def _facts(db: Db, view: ViewUpdater) -> dict[str, Any]:
    kept = view.in_database(db.context)
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
        say("the app has no views; app.add(...) adds one")
        return
    table = Table(box=None, pad_edge=False)
    for title in ("view", "of", "by", "metrics", "generation"):
        table.add_column(title, overflow="fold")
    for each in views:
        by = ", ".join([*each["by"], *([each["bucket"]] if each["bucket"] else [])])
        state = "none yet" if each["generation"] is None else str(each["generation"])
        if each["building"] is not None:
            state += f" (building {each['building']})"
        table.add_row(
            NameCell(each["name"]),
            NameCell(each["of"]),
            by or "everything",
            ", ".join(each["metrics"]) or "copies",
            state,
        )
    print_parts(rich_console(), table)
