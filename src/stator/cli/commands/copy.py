"""``stator copy``: a table into another, here or anywhere else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from stator.addresses import TransportOptions
from stator.cli.bulk_commands import Bar, again, resumable
from stator.model.wording import duration
from stator.pipeline.bulk.copy import Copy, CopyOptions, CopyProgress, CopyReport, find_transform
from stator.pipeline.bulk.targets import Target


def command(
    source: Annotated[
        str, typer.Argument(metavar="FROM", help="A folder, http://host:port or aws://region.")
    ],
    to: Annotated[str, typer.Argument(metavar="TO", help="The same, or another.")],
    table: Annotated[str, typer.Option(metavar="NAME", help="The table to copy.")],
    to_table: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The table to copy into; else of the same name."),
    ] = None,
    create: Annotated[
        bool,
        typer.Option(
            "--create", help="Make the target, with the same keys and indexes, where there is none."
        ),
    ] = False,
    transform: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="Called with each item in DynamoDB JSON; gives one, or None.",
        ),
    ] = None,
    read_rate: Annotated[
        float | None, typer.Option(min=1, metavar="RCU", help="Read units a second at most.")
    ] = None,
    write_rate: Annotated[
        float | None, typer.Option(min=1, metavar="WCU", help="Write units a second at most.")
    ] = None,
    segments: Annotated[int, typer.Option(min=1, max=1000, help="Of the parallel Scan.")] = 8,
    writers: Annotated[
        int | None, typer.Option(min=1, max=64, help="Requests under way at once.")
    ] = None,
    journal: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to remember how far it is.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where an earlier run stopped.")
    ] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Forget an earlier run and begin anew.")
    ] = False,
    dead_letters: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Items that fail, as JSON lines with the reason."),
    ] = None,
    max_errors: Annotated[
        int | None, typer.Option(min=0, help="Stop when more items fail.")
    ] = None,
    verify: Annotated[
        bool, typer.Option(help="Scan the target at the end, and compare counts and checksums.")
    ] = True,
    region: Annotated[str | None, typer.Option(help="Region, for http addresses.")] = None,
    profile: Annotated[str | None, typer.Option(help="Profile of ~/.aws/config, for both.")] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Copy a table into another: a parallel Scan into parallel writers, verified at the end.

    Example: stator copy aws://eu-west-1 http://localhost:8000 --table orders --create

    Example: stator copy ./shop.db aws://eu-west-1 --table orders --to-table orders-2 --write-rate 2000
    """
    options = CopyOptions(
        read_rate=read_rate,
        write_rate=write_rate,
        segments=segments,
        writers=writers,
        create=create,
        verify=verify,
        journal=journal,
        resume=resume,
        restart=restart,
        dead_letters=dead_letters,
        max_errors=max_errors,
    )
    connecting: TransportOptions = {}
    if region is not None:
        connecting["region"] = region
    if profile is not None:
        connecting["profile"] = profile
    function = None if transform is None else find_transform(transform)
    with (
        Target.open(source, table, options=connecting) as origin,
        _target(source, to, origin, to_table or table, connecting) as target,
    ):
        job = Copy(origin, target, options, transform=function, transform_name=transform)
        with resumable(again()), Bar(f"copy {table}") as bar:
            report = job.run(lambda progress: bar.show(progress.share, _facts(progress)))
    _show(report, to_table or table, as_json=json_output)
    if not report.ok:
        raise typer.Exit(1)


def _target(
    source: str, to: str, origin: Target, table: str, connecting: TransportOptions
) -> Target:
    """A folder is opened once, also when it is copied within."""
    if to == source:
        return Target(origin.transport, table, address=to, owned=False)
    return Target.open(to, table, options=connecting)


def _facts(progress: CopyProgress) -> str:
    seconds = max(progress.seconds, 0.001)
    counts = progress.counts
    parts = [
        f"{counts.written:,} items",
        f"{counts.written / seconds:,.0f}/s",
        f"{progress.reading.measured:,.0f} RCU/s",
        f"{progress.writing.measured:,.0f} WCU/s",
    ]
    return "  ".join(parts + ([f"{counts.failed:,} failed"] if counts.failed else []))


def _show(report: CopyReport, table: str, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(report.to_data()))
        return
    rate = report.written / report.seconds if report.seconds else 0.0
    dropped = f", {report.dropped:,} dropped" if report.dropped else ""
    typer.echo(
        f"{report.written:,} of {report.read:,} items are in {table}{dropped}: {duration(report.seconds)}, {rate:,.0f}/s, "
        f"{report.write_units:,.0f} WCU"
    )
    words = {
        None: "not verified",
        True: "verified",
        False: "not verified: the target had items before",
    }
    typer.echo(f"checksum {report.checksum}, {words[report.verified]}")
    if report.failed:
        typer.echo(
            typer.style(
                f"{report.failed:,} items failed; --dead-letters FILE keeps them", fg="red"
            ),
            err=True,
        )
