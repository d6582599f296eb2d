"""``stator copy``: copies a table into another table, on any DynamoDB endpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from stator.addresses import TransportOptions
from stator.cli.bulk_commands import WaitNotice, connection_options, resumable, show_failed
from stator.cli.checks.data_folder import check_exists
from stator.cli.options import BetweenOption, JournalOption, RestartOption, ResumeOption
from stator.cli.output import say
from stator.cli.progress_bar import ProgressBar
from stator.model.quantities import duration, plural
from stator.pipeline.bulk.copy import Copy, CopyOptions, CopyProgress, CopyReport, find_transform
from stator.pipeline.bulk.targets import BulkTarget


def command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FROM", help="The source: a folder, http://host:port or aws://region."
        ),
    ],
    to: Annotated[str, typer.Argument(metavar="TO", help="The destination, in the same forms.")],
    table: Annotated[str, typer.Option(metavar="NAME", help="The table to copy.")],
    to_table: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The table to copy into. By default, the same name.",
            show_default=False,
        ),
    ] = None,
    create: Annotated[
        bool,
        typer.Option(
            "--create",
            help="Create the destination table if it is missing, with the same keys and indexes.",
        ),
    ] = False,
    transform: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="A function that receives each item as DynamoDB JSON and returns an item, or None "
            "to drop it.",
        ),
    ] = None,
    read_rate: Annotated[
        float | None, typer.Option(min=1, metavar="RCU", help="Maximum read units a second.")
    ] = None,
    write_rate: Annotated[
        float | None, typer.Option(min=1, metavar="WCU", help="Maximum write units a second.")
    ] = None,
    segments: Annotated[
        int, typer.Option(min=1, max=1000, metavar="N", help="Segments of the parallel Scan.")
    ] = 8,
    writers: Annotated[
        int | None,
        typer.Option(min=1, max=64, metavar="N", help="Write requests in flight at once."),
    ] = None,
    journal: JournalOption = None,
    resume: ResumeOption = False,
    restart: RestartOption = False,
    dead_letters: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write items that fail to this file, with the reasons, as JSON lines.",
        ),
    ] = None,
    max_errors: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Stop when more than this many items fail."),
    ] = None,
    between: BetweenOption = None,
    verify: Annotated[
        bool, typer.Option(help="Scan the destination at the end and compare counts and checksums.")
    ] = True,
    region: Annotated[
        str | None, typer.Option(metavar="REGION", help="The region for http addresses.")
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The profile in ~/.aws/config, for both sides."),
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Copy a table into another table, on any DynamoDB endpoint.

    A parallel Scan feeds parallel writers, and the result is verified at the end. Exit code 1
    means that items failed.

    Example: stator copy aws://eu-west-1 http://localhost:8000 --table orders --create

    Example: stator copy ./shop.db aws://eu-west-1 --table orders --to-table orders-2
    --write-rate 2000 --between 01:00-05:00 --resume
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
        between=between,
    )
    connecting = connection_options(region, profile)
    check_exists(source)
    if not create:
        check_exists(to, "check the path, or create the folder and the table with --create")
    function = None if transform is None else find_transform(transform)
    with (
        BulkTarget.open(source, table, options=connecting) as origin,
        _target(source, to, origin, to_table or table, connecting) as target,
    ):
        job = Copy(origin, target, options, transform=function, transform_name=transform)
        notice = WaitNotice(between)
        with resumable() as done, ProgressBar(f"copy {table}") as bar:

            def watch(progress: CopyProgress) -> None:
                done.done = f"{plural(progress.counts.written, 'item')} written"
                bar.show(progress.share, notice.facts(progress.waits_until, _facts(progress)))

            report = job.run(watch)
    _show(report, to_table or table, as_json=json_output)
    if not report.ok:
        raise typer.Exit(1)


def _target(
    source: str, to: str, origin: BulkTarget, table: str, connecting: TransportOptions
) -> BulkTarget:
    """Open the destination. If it is at the source's address, use the source's connection."""
    if to == source:
        return BulkTarget(origin.transport, table, address=to, owned=False)
    return BulkTarget.open(to, table, options=connecting)


def _facts(progress: CopyProgress) -> str:
    counts = progress.counts
    parts = [
        f"{counts.written:,} items",
        f"{progress.per_second:,.0f}/s",
        f"{progress.reading.measured:,.0f} RCU/s",
        f"{progress.writing.measured:,.0f} WCU/s",
    ]
    return "  ".join(parts + ([f"{counts.failed:,} failed"] if counts.failed else []))


def _show(report: CopyReport, table: str, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(report.to_data()))
        return
    dropped = f", {report.dropped:,} dropped" if report.dropped else ""
    say(
        f"{report.written:,} of {report.read:,} items copied to {table}{dropped}: "
        f"{duration(report.seconds)}, {report.per_second:,.0f}/s, {report.write_units:,.0f} WCU"
    )
    words = {
        None: "not verified",
        True: "verified",
        False: "not verified: the destination had other items before",
    }
    say(f"checksum {report.checksum}, {words[report.verified]}")
    if report.failed:
        show_failed(plural(report.failed, "item"), report.dead_letters)
