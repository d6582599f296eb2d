"""Arguments and options that several commands share, as annotated types."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DesignArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[TARGET]",
        help="The design: shop.py, shop.py:shop or package.module:shop. "
        "By default, the design of the current folder.",
        show_default=False,
    ),
]
AppArgument = Annotated[
    str,
    typer.Argument(metavar="APP", help="The app: work.py, work.py:app or package.module:app."),
]

AtOption = Annotated[
    str,
    typer.Option(
        "--at",
        metavar="ADDRESS",
        help="Where the tables are: http://host:port, aws://region or a folder.",
    ),
]
PrefixOption = Annotated[
    str,
    typer.Option(
        metavar="TEXT", help="Text before the table names of the design, for example prod-."
    ),
]
PricesOption = Annotated[
    Path | None,
    typer.Option(
        "--prices",
        metavar="FILE",
        help="Your own price file, for other dates or contract prices.",
        show_default=False,
        dir_okay=False,
    ),
]
PriceRegionOption = Annotated[
    str, typer.Option(metavar="REGION", help="The AWS region for the prices.")
]
RegionOption = Annotated[
    str | None, typer.Option(metavar="REGION", help="The region for an http address.")
]
ProfileOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="The profile in ~/.aws/config.")
]

JournalOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The journal that --resume continues from."),
]
ResumeOption = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Continue where an earlier run stopped. Without a journal, start from the beginning.",
    ),
]
RestartOption = Annotated[
    bool,
    typer.Option("--restart", help="Discard the journal of an earlier run and start again."),
]
BetweenOption = Annotated[
    str | None,
    typer.Option(
        metavar="HH:MM-HH:MM",
        help="Work only in these hours, local time; 22:00-04:00 passes midnight.",
    ),
]
MetricsPortOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=65535,
        metavar="PORT",
        help="Serve Prometheus metrics on this port; 0 takes a free one.",
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write to this file instead of stdout.", dir_okay=False),
]
