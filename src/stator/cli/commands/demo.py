"""``stator demo``: the router fleet, from a design to a recount."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from stator.cli.output import write_text


def command(
    scale: Annotated[
        int,
        typer.Option(min=10_000, metavar="TESTS", help="How many tests the month of history has."),
    ] = 1_000_000,
    seconds: Annotated[float, typer.Option(min=4.0, help="How long the live part lasts.")] = 10.0,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep the data, the alerts, the archive and the report in this folder.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where the report goes, a page for the browser.")
    ] = Path("fleet-report.html"),
) -> None:
    """A fleet of home routers: designed, loaded, streamed, killed, spread, aged out and recounted, on the embedded engine.

    With a million tests it takes about a minute on two cores, most of it for loading and summing up; --scale 50000 takes a third of that.

    It runs a server and workers of its own on this machine, and removes what it made but for the report. The exit code is 1 if the recount finds
    anything missing.

    Example: stator demo --scale 200000 --seconds 10
    """
    from stator.demo.acts import Demo, Scale
    from stator.demo.page import render
    from stator.demo.terminal import show

    console = Console(highlight=False)
    folder = Path(tempfile.mkdtemp(prefix="stator-demo-")) if keep is None else keep
    folder.mkdir(parents=True, exist_ok=True)
    try:
        story = Demo(Scale(tests=scale, seconds=seconds), folder, console).run()
        show(story, console)
        path = out if keep is None else folder / out.name
        write_text(path, render(story))
        console.print(f"\nThe same with charts: [bold]{path}[/]")
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    if not story.is_whole:
        sys.exit(1)
