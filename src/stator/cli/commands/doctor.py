"""``stator doctor``: what is installed, compiled and reachable, and what to do about it."""

from __future__ import annotations

import json
from typing import Annotated, Final

import typer

from stator.cli.diagnosis import Check, State, diagnose
from stator.cli.output import say, styled

_MARKS: Final[dict[State, tuple[str, str]]] = {
    "ok": ("ok", "green"),
    "absent": ("--", "yellow"),
    "wrong": ("!!", "red"),
}


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
    Exit code 1 means that something is wrong; missing optional parts do not count.

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
    indent = width + 6
    for each in checks:
        mark, colour = _MARKS[each.state]
        start = f"{styled(mark, colour, bold=True)}  {each.subject:{width}}  "
        say(f"{start}{each.found}", indent=indent)
        if each.do:
            say(f"{'':{indent}}do: {each.do}", indent=indent + len("do: "))
