"""``stator export``: writes a table, or an AWS export of one, to files."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Annotated

import typer

from stator.cli.bulk_commands import (
    WaitNotice,
    connection_options,
    open_target,
    resumable,
)
from stator.cli.checks.data_folder import check_exists
from stator.cli.checks.unused_options import refuse_unused
from stator.cli.design_file import load_design_file
from stator.cli.options import (
    BetweenOption,
    JournalOption,
    PrefixOption,
    ProfileOption,
    RegionOption,
    RestartOption,
    ResumeOption,
)
from stator.cli.output import say
from stator.cli.progress_bar import ProgressBar
from stator.model.quantities import duration, plural, size
from stator.pipeline.bulk.export.export import (
    ExportJob,
    ExportOptions,
    ExportProgress,
    ExportReport,
)
from stator.pipeline.bulk.export.parts import EXPORT_FORMATS
from stator.pipeline.bulk.export.sources import DEFAULT_SEGMENTS, snapshot_export, table_export
from stator.pipeline.bulk.targets import BulkTarget


def command(
    context: typer.Context,
    address: Annotated[
        str | None,
        typer.Argument(
            metavar="[ADDRESS]",
            help="Where the table is: a folder, http://host:port or aws://region.",
            show_default=False,
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="ADDRESS",
            help="Where the table is, as an option instead of the argument.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        str,
        typer.Option(
            metavar="DIR|FILE|S3",
            help="The destination: a folder, a file such as orders.csv.gz, or s3://bucket/prefix.",
        ),
    ] = "",
    table: Annotated[str | None, typer.Option(metavar="NAME", help="The table to export.")] = None,
    entity: Annotated[
        str | None,
        typer.Option(
            metavar="DESIGN:ENTITY", help="The entity to export, for example design.py:Order."
        ),
    ] = None,
    design: Annotated[
        str | None,
        typer.Option(
            metavar="DESIGN", help="With --table: write a folder for each entity of this design."
        ),
    ] = None,
    prefix: PrefixOption = "",
    blobs: Annotated[
        str | None,
        typer.Option(
            metavar="STORE",
            help="With --entity or --design: the folder or s3://... of offloaded large() values.",
        ),
    ] = None,
    snapshot: Annotated[
        str | None,
        typer.Option(
            "--from-snapshot",
            metavar="PATH",
            help="Read an AWS export to S3 instead of a table, from a folder or s3://...",
        ),
    ] = None,
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="|".join(EXPORT_FORMATS),
            help="The format. By default, from the file name.",
        ),
    ] = None,
    compression: Annotated[
        str | None,
        typer.Option(
            metavar="gzip|zstd",
            help="Compress the files. By default, as the extension of --out says.",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=1,
            metavar="RCU",
            help="Maximum read units a second. By default, as many as the table provides.",
        ),
    ] = None,
    segments: Annotated[
        int, typer.Option(min=1, max=1000, metavar="N", help="Segments of the parallel Scan.")
    ] = DEFAULT_SEGMENTS,
    readers: Annotated[
        int, typer.Option(min=1, max=64, metavar="N", help="Segments read at the same time.")
    ] = 4,
    consistent: Annotated[
        bool,
        typer.Option(
            "--consistent", help="Use strongly consistent reads, which cost twice as much."
        ),
    ] = False,
    journal: JournalOption = None,
    resume: ResumeOption = False,
    restart: RestartOption = False,
    between: BetweenOption = None,
    verify: Annotated[bool, typer.Option(help="Read the files back and compare checksums.")] = True,
    region: RegionOption = None,
    profile: ProfileOption = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Write a table, or an AWS export of one, to JSON, CSV or Parquet files.

    A manifest next to the files holds their counts and checksums.

    Example: stator export http://localhost:8000 --table orders --out orders/ --format parquet

    Example: stator export --from-snapshot s3://backups/AWSDynamoDB/01693685827463-2d8752fd
    --out orders.jsonl.gz
    """
    if format_name is not None and format_name not in EXPORT_FORMATS:
        raise typer.BadParameter(
            f"--format {format_name} is unknown; choose one of {', '.join(EXPORT_FORMATS)}"
        )
    if not out:
        raise typer.BadParameter("--out is missing; name a folder, a file or s3://bucket/prefix")
    if address is not None and at is not None:
        raise typer.BadParameter(f"the address is given twice: {address} and --at {at}; keep one")
    address = address or at
    if (address is None) == (snapshot is None):
        raise typer.BadParameter(
            "give either the ADDRESS of the table or --from-snapshot PATH"
            + ("" if address is None else ", not both")
        )
    if snapshot is not None:
        unused = ("table", "entity", "design", "prefix", "rate", "segments", "consistent")
        refuse_unused(context, "with --from-snapshot", *unused, "blobs", "region", "profile")
    elif design is not None:
        refuse_unused(context, "with --design, which goes with --table", "entity")
    elif entity is None:
        refuse_unused(context, "without --entity or --design", "prefix", "blobs")
    options = ExportOptions(
        format=format_name,
        compression=compression,
        readers=readers,
        journal=journal,
        resume=resume,
        restart=restart,
        verify=verify,
        between=between,
    )
    with ExitStack() as stack:
        if snapshot is not None:
            export = snapshot_export(snapshot, out, options)
        else:
            assert address is not None
            target = stack.enter_context(
                _target(address, table, entity, design, prefix, blobs, region, profile)
            )
            export = table_export(
                target, out, options, rate=rate, segments=segments, consistent=consistent
            )
        report = _run(export, between)
    _show(report, as_json=json_output)


def _target(
    address: str,
    table: str | None,
    entity: str | None,
    design: str | None,
    prefix: str,
    blobs: str | None,
    region: str | None,
    profile: str | None,
) -> BulkTarget:
    check_exists(address)
    if design is None:
        return open_target(
            address, table, entity, prefix=prefix, blobs=blobs, region=region, profile=profile
        )
    return BulkTarget.open(
        address,
        table,
        design=load_design_file(design).design,
        prefix=prefix,
        blobs=blobs,
        options=connection_options(region, profile),
    )


def _run(export: ExportJob, between: str | None) -> ExportReport:
    notice = WaitNotice(between)
    with resumable() as done, ProgressBar("export") as bar:

        def watch(progress: ExportProgress) -> None:
            done.done = f"{plural(progress.items, 'item')} read"
            bar.show(
                progress.pieces_done / max(1, progress.pieces),
                notice.facts(progress.waits_until, _facts(progress)),
            )

        return export.run(watch)


def _facts(progress: ExportProgress) -> str:
    rate = progress.per_second
    return f"{progress.items:,} items  {rate:,.0f}/s  {progress.units:,.0f} RCU"


def _show(report: ExportReport, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(report.to_data()))
        return
    if report.already_complete:
        say(
            f"{report.out} is complete since {report.finished_at}: {report.items:,} items in"
            f" {plural(report.files, 'file')}, {size(report.size_bytes)}; nothing was written"
        )
    else:
        _show_written(report)
    say(
        f"checksum {report.checksum}, {'verified' if report.verified else 'not verified'}; "
        f"manifest {report.manifest}"
    )


def _show_written(report: ExportReport) -> None:
    rate = report.per_second
    say(
        f"{report.items:,} items in {plural(report.files, 'file')}, {size(report.size_bytes)}: "
        f"{duration(report.seconds)}, {rate:,.0f}/s, {report.consumed_units:,.0f} RCU"
    )
