"""``stator parked``: lists, retries or drops items whose changes could not be handled."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import typer
from rich.table import Table

from stator.cli.app_file import MISSING_AT, app_connection, load_app
from stator.cli.checks.unused_options import refuse_unused
from stator.cli.options import AppArgument, AtOption, PrefixOption
from stator.cli.output import print_parts, rich_console, say
from stator.cli.tables.name_cell import NameCell
from stator.errors import ConfigurationError
from stator.model.quantities import plural
from stator.pipeline.workers.handlers.parked_retry import ParkedRetry, RetryOutcome
from stator.pipeline.workers.handlers.parking import ParkedKey
from stator.tables.db import Db


class ParkedAction(StrEnum):
    list = "list"
    retry = "retry"
    drop = "drop"


def command(
    context: typer.Context,
    action: Annotated[
        ParkedAction,
        typer.Argument(
            metavar="list|retry|drop",
            help="List the parked items, handle their changes again, or drop them.",
        ),
    ],
    target: AppArgument,
    marks: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ITEM]...", help="Items, by the id or key that `list` shows."),
    ] = None,
    at: AtOption = "",
    everything: Annotated[
        bool, typer.Option("--all", help="Retry or drop every parked item.")
    ] = False,
    prefix: PrefixOption = "",
    json_output: Annotated[
        bool, typer.Option("--json", help="Print the items or the results as JSON.")
    ] = False,
) -> None:
    """List, retry or drop items whose changes could not be handled.

    An item whose change fails is set aside with its later changes, and workers retry it. Once its
    attempts are used up it is parked, but only for the handlers that failed. `retry` calls these
    handlers in this process with the changes in order, and releases the item once all changes are
    handled. Workers may run at the same time. Exit code 1 means that an item is still parked.

    Example: stator parked retry billing.py:app --all --at http://localhost:8000
    """
    if not at:
        raise typer.BadParameter(MISSING_AT)
    if action is ParkedAction.list:
        why = "on `stator parked list`, which lists every item"
        refuse_unused(context, why, "marks", "everything")
    if everything:
        refuse_unused(context, "together with --all, which names every item", "marks")
    app = load_app(target)
    with app_connection(app, at, prefix) as db:
        parked_retry = ParkedRetry(db.context, app)
        parked = db.run(parked_retry.parking.keys())
        if action is ParkedAction.list:
            _show(parked, as_json=json_output)
            return
        chosen = _chosen(parked, marks or [], everything=everything)
        results = [_apply(db, parked_retry, action, each) for each in chosen]
    _report([each for each in results if each is not None], action, as_json=json_output)


def _chosen(parked: list[ParkedKey], marks: list[str], *, everything: bool) -> list[ParkedKey]:
    if everything:
        return parked
    if not marks:
        raise ConfigurationError(
            f"no item was named; {plural(len(parked), 'item')} parked",
            hint="name items by the id that `stator parked list` shows, or use --all",
        )
    found = []
    for mark in marks:
        matching = [
            each
            for each in parked
            if mark in (each.mark, each.key) or each.mark.partition("#")[2].startswith(mark)
        ]
        if not matching:
            raise ConfigurationError(
                f"no parked item matches {mark}",
                hint="`stator parked list` shows the parked items",
            )
        found += matching
    return found


def _apply(
    db: Db, parked_retry: ParkedRetry, action: ParkedAction, parked: ParkedKey
) -> RetryOutcome | None:
    work = (
        parked_retry.retry(parked.mark)
        if action is ParkedAction.retry
        else parked_retry.drop(parked.mark)
    )
    return db.run(work)


def _show(parked: list[ParkedKey], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([asdict(each) for each in parked], indent=2))
        return
    if not parked:
        say("no items are parked")
        return
    table = Table(box=None, pad_edge=False)
    for title in ("item", "key", "changes", "since", "retry", "handler", "error"):
        table.add_column(title, overflow="fold")
    for each in parked:
        table.add_row(
            each.mark.partition("#")[2][:12],
            NameCell(each.key),
            str(each.count),
            _time(each.since),
            "parked" if each.retry_at is None else _time(each.retry_at),
            NameCell(each.handler),
            each.error,
        )
    print_parts(rich_console(), table)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _report(results: list[RetryOutcome], action: ParkedAction, *, as_json: bool) -> None:
    left = [each for each in results if each.error is not None]
    if as_json:
        typer.echo(
            json.dumps(
                [
                    {"item": asdict(each.parked), "changes": each.handled, "error": each.error}
                    for each in results
                ]
            )
        )
    else:
        verb = "handled" if action is ParkedAction.retry else "dropped"
        for each in results:
            state = (
                f"{plural(each.handled, 'change')} {verb}"
                if each.error is None
                else f"still parked: {each.error}"
            )
            say(f"{each.parked.key}: {state}")
        if not results:
            say("no items are parked")
    if left:
        sys.exit(1)
