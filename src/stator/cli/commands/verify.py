"""``stator verify``: reads everything in a data folder and checks its parts against each other."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from stator.cli.output import say, styled
from stator.cli.progress_bar import ProgressBar
from stator.engine.verification import Verification, verify_folder
from stator.model.quantities import plural


def command(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The data folder of `stator serve --data`.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Read a data folder and check its parts against each other.

    Items, indexes, counts, expiry lists, stream records and backups are checked. No process may
    have the folder open. Exit code 1 means that something is wrong.

    Example: stator verify stator-data
    """
    with ProgressBar("verifying") as bar:
        found = verify_folder(str(folder), bar.show)
    if as_json:
        typer.echo(json.dumps({"folder": str(folder), **asdict(found)}))
    else:
        _show(folder, found)
    raise typer.Exit(1 if found.faults else 0)


def _show(folder: Path, found: Verification) -> None:
    say(
        f"{folder}: {plural(found.tables, 'table')}, {plural(found.items, 'item')}, "
        f"{plural(found.index_entries, 'index entry')}, "
        f"{plural(found.stream_records, 'stream record')}, {plural(found.backups, 'backup')}"
    )
    for fault in found.faults:
        times = f" ({fault.count} times)" if fault.count > 1 else ""
        wrong = styled("wrong  ", "red", bold=True)
        say(f"{wrong}{fault.where}: {fault.problem}{times}", indent=7)
        for example in fault.examples:
            say(f"       for example {example}", indent=9)
    if found.faults:
        say(f"{plural(len(found.faults), 'fault')} found; restore the folder from a backup")
    else:
        say("everything agrees")
