"""``stator doctor``: what is installed, compiled and reachable, and what to do about it."""

from __future__ import annotations

import json
import shutil
import textwrap
from typing import Annotated, Final

import typer

from stator.cli.diagnosis import Check, State, diagnose

_MARKS: Final[dict[State, tuple[str, str]]] = {
    "ok": ("ok", "green"),
    "absent": ("--", "yellow"),
    "wrong": ("!!", "red"),
}
_LEAST_COLUMNS: Final = 30


def command(
    address: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="ADDRESS",
            help="Also ask this address for its tables: http://..., aws://REGION or a folder.",
            show_default=False,
        ),
    ] = None,
    region: Annotated[
        str | None,
        typer.Option(metavar="REGION", help="The region for --at.", show_default=False),
    ] = None,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print the checks as a list in JSON.")
    ] = False,
) -> None:
    """Check the installation and say what to do.

    Shows versions, whether the compiled modules are in use, the extras, the limit of open files,
    AWS credentials and a local server. Nothing is sent to the network unless --at names an address.
    Exit code 1 means that something is wrong; what is only absent does not count.

    Example: stator doctor

    Example: stator doctor --at aws://eu-west-1
    """
    checks = diagnose(address, region)
    if json_output:
        typer.echo(json.dumps([each.to_data() for each in checks], indent=2))
    else:
        _show(checks)
    if any(each.state == "wrong" for each in checks):
        raise typer.Exit(1)


def _show(checks: list[Check]) -> None:
    width = max(len(each.subject) for each in checks)
    columns = max(_LEAST_COLUMNS, shutil.get_terminal_size().columns - width - 6)
    for each in checks:
        mark, colour = _MARKS[each.state]
        first, *more = textwrap.wrap(each.found, columns) or [""]
        typer.echo(f"{typer.style(mark, fg=colour, bold=True)}  {each.subject:{width}}  {first}")
        advice = textwrap.wrap(f"do: {each.do}", columns) if each.do else []
        for line in (*more, *advice):
            typer.echo(f"{'':{width + 6}}{line}")
