"""``stator demo``: simulates a fleet of home routers, and checks that no change is missing."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from stator.cli.output import rich_console, write_text


def command(
    scale: Annotated[
        int,
        typer.Option(min=10_000, metavar="TESTS", help="Number of tests in the month of history."),
    ] = 1_000_000,
    seconds: Annotated[
        float, typer.Option(min=4.0, metavar="SECONDS", help="Duration of the live part.")
    ] = 10.0,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep the data, the alerts, the archive and the report in this folder.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Write the report, an HTML page, to this file.")
    ] = Path("fleet-report.html"),
) -> None:
    """Simulate a fleet of home routers that test their connections and report the results.

    The demo plans a design, loads a month of tests, streams live changes, kills a worker, and lets
    items expire, on the embedded engine. One provider becomes a hot key, and the engine throttles
    it. Its feed reads the reason and spreads the provider's writes over more partitions. At the
    end the demo recounts everything.

    A million tests take about a minute on two cores, most of it for loading and summing up.
    --scale 50000 takes a third of that.

    The demo runs its own server and workers on this machine. Without --keep, it removes
    everything it created except the report. Exit code 1 means that the recount found something
    missing.

    Example: stator demo --scale 200000 --seconds 10
    """
    from stator.demo.acts import Demo, Scale
    from stator.demo.page import render
    from stator.demo.terminal import show

    screen = rich_console(markup=True)
    folder = Path(tempfile.mkdtemp(prefix="stator-demo-")) if keep is None else keep
    folder.mkdir(parents=True, exist_ok=True)
    try:
        story = Demo(Scale(tests=scale, seconds=seconds), folder, screen).run()
        show(story, screen)
        path = out if keep is None else folder / out.name
        write_text(path, render(story))
        screen.print(f"\nThe report, with charts: [bold]{path}[/]")
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    if not story.is_whole:
        sys.exit(1)
