"""``stator top``: shows the workers of an app."""

from __future__ import annotations

import json
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table

from stator.cli.app_file import MISSING_AT, app_connection, load_app
from stator.cli.options import AppArgument, AtOption, PrefixOption
from stator.cli.output import print_parts, rich_console
from stator.cli.tables.name_cell import NameCell
from stator.cli.watch.table_use_view import LiveUse, shown_tables
from stator.model.quantities import plural
from stator.pipeline.workers.group_state import GroupState, GroupWatch


def command(
    target: AppArgument,
    at: AtOption,
    once: Annotated[
        bool,
        typer.Option(
            "--once", help="Print the state once and exit, as it does without a terminal."
        ),
    ] = False,
    every: Annotated[
        float, typer.Option(min=0.5, metavar="SECONDS", help="Time between updates.")
    ] = 2.0,
    tables: Annotated[
        bool,
        typer.Option(
            "--tables",
            help="Show the units, throttles, cost and hottest keys of the tables, too, from "
            "CloudWatch.",
        ),
    ] = False,
    show_keys: Annotated[
        bool,
        typer.Option(
            "--show-keys", help="Name the hottest keys of --tables; by default it shows hashes."
        ),
    ] = False,
    prefix: PrefixOption = "",
    json_output: Annotated[
        bool, typer.Option("--json", help="Print the state once, as JSON.")
    ] = False,
) -> None:
    """Show an app's workers, their shards and how far behind they are.

    "until trimmed" is the time until the oldest unhandled change leaves the stream. A lag that
    cannot be read now is shown as "unknown".

    Exit code 1 means that changes were lost, or that a shard without a worker has unhandled
    changes or an unknown lag. A shard that waits for its parent does not count.

    With --tables, each table and index has a row with its units a second, capacity, refusals by
    reason, and the cost of an hour, over the last five minutes that CloudWatch knows. On AWS, each
    update then costs about $0.0001 a table or index. The hottest keys are those of Contributor
    Insights; where it is off, the command that turns it on is shown.

    Example: stator top billing.py:app --at aws://eu-west-1

    Example: stator top billing.py:app --at aws://eu-west-1 --tables --every 60
    """
    if not at:
        raise typer.BadParameter(MISSING_AT)
    if show_keys and not tables:
        raise typer.BadParameter("--show-keys names the keys of --tables")
    app = load_app(target)
    screen = rich_console(markup=True)
    with ExitStack() as opened:
        use = (
            opened.enter_context(LiveUse(app.design, at, prefix, show_keys=show_keys))
            if tables
            else None
        )
        db = opened.enter_context(app_connection(app, at, prefix))
        watch = GroupWatch(db.context, app.name)
        state = db.run(watch.look())
        if json_output:
            facts = _facts(app.name, state)
            if use is not None:
                live_tables = use.look()
                facts["tables"] = [asdict(place) for place in live_tables.places]
                facts["hottest_keys"] = [asdict(key) for key in live_tables.hottest.keys]
                facts["without_insights"] = [asdict(each) for each in live_tables.hottest.switches]
            typer.echo(json.dumps(facts, indent=2))
        elif once or not sys.stdout.isatty():
            print_parts(screen, _shown(app.name, state, use))
        else:
            with Live(_shown(app.name, state, use), console=screen, refresh_per_second=4) as live:
                try:
                    while True:
                        time.sleep(every)
                        state = db.run(watch.look())
                        live.update(_shown(app.name, state, use))
                except KeyboardInterrupt:
                    return
    if any(
        shard.lost or (shard.owner is None and not shard.waiting and shard.lag_seconds != 0.0)
        for shard in state.shards
    ):
        sys.exit(1)


def _facts(name: str, state: GroupState) -> dict[str, object]:
    return {
        "app": name,
        "workers": list(state.workers),
        "lag_seconds": None if state.lag_seconds is None else round(state.lag_seconds, 3),
        "set_aside_items": state.set_aside_items,
        "parked_items": state.parked_items,
        "parked_changes": state.parked_changes,
        "shards": [asdict(shard) | {"trim_seconds": shard.trim_seconds} for shard in state.shards],
    }


def _shown(name: str, state: GroupState, use: LiveUse | None) -> RenderableType:
    workers = _state_table(name, state)
    return workers if use is None else Group(workers, "", shown_tables(use.look()))


def _state_table(name: str, state: GroupState) -> Table:
    parked = (
        f", {plural(state.parked_items, 'item')} parked with "
        f"{plural(state.parked_changes, 'change')}"
        if state.parked_items
        else ""
    )
    workers = plural(len(state.workers), "worker")
    aside = (
        f", {plural(state.set_aside_items, 'item')} set aside to be retried"
        if state.set_aside_items
        else ""
    )
    title = f"{name}: {workers}, {_lag(state.lag_seconds)} behind{aside}{parked}"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in ("table", "shard", "worker", "behind", "until trimmed"):
        table.add_column(
            column, justify="right" if column in ("behind", "until trimmed") else "left"
        )
    for shard in state.shards:
        worker = shard.owner or ("waiting for its parent" if shard.waiting else "[red]none[/]")
        if shard.lost:
            worker = "[red]changes lost: trimmed unread[/]"
        lag, trim = shard.lag_seconds, shard.trim_seconds
        left = "" if not lag or trim is None else f"{trim / 3600:.1f} h"
        colour = "red" if lag is None or lag > 3600 else "yellow" if lag > 60 else "green"
        table.add_row(NameCell(shard.table), shard.shard, worker, f"[{colour}]{_lag(lag)}[/]", left)
    return table


def _lag(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{seconds:.1f} s"
