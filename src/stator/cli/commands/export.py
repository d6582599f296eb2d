"""``stator export``: a table, or an export that AWS made of one, into files."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from stator.addresses import TransportOptions
from stator.cli.bulk_commands import Bar, again, opened_target, resumable
from stator.cli.design_file import load_design_file
from stator.model.wording import duration, size
from stator.pipeline.bulk.export.export import Export, ExportOptions, ExportProgress, ExportReport
from stator.pipeline.bulk.export.parts import EXPORT_FORMATS
from stator.pipeline.bulk.export.sources import DEFAULT_SEGMENTS, snapshot_export, table_export
from stator.pipeline.bulk.targets import Target


def command(
    address: Annotated[
        str | None,
        typer.Argument(
            metavar="[ADDRESS]",
            help="A folder, http://host:port or aws://region.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        str,
        typer.Option(
            metavar="DIR|FILE|S3", help="A folder, a file such as orders.csv.gz, or s3://..."
        ),
    ] = "",
    table: Annotated[str | None, typer.Option(metavar="NAME", help="The table to export.")] = None,
    entity: Annotated[
        str | None,
        typer.Option(metavar="DESIGN:ENTITY", help="design.py:Order: the items of one entity."),
    ] = None,
    design: Annotated[
        str | None,
        typer.Option(metavar="DESIGN", help="With --table: a folder for each entity of design.py."),
    ] = None,
    prefix: Annotated[
        str, typer.Option(help="Stands before the names of the design's tables.")
    ] = "",
    snapshot: Annotated[
        str | None,
        typer.Option(
            "--from-snapshot",
            metavar="PATH",
            help="An export to S3 by AWS, in a folder or s3://...",
        ),
    ] = None,
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="|".join(EXPORT_FORMATS), help="Instead of by the file's name."
        ),
    ] = None,
    compression: Annotated[
        str | None, typer.Option(metavar="gzip|zstd", help="Of the files.")
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=1, metavar="RCU", help="Read units a second at most; else as the table gives."
        ),
    ] = None,
    segments: Annotated[
        int, typer.Option(min=1, max=1000, help="Of the parallel Scan.")
    ] = DEFAULT_SEGMENTS,
    readers: Annotated[int, typer.Option(min=1, max=64, help="Segments read at once.")] = 4,
    consistent: Annotated[
        bool, typer.Option("--consistent", help="Strongly consistent reads, at twice the units.")
    ] = False,
    journal: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to remember how far it is.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where an earlier run stopped.")
    ] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Forget an earlier run and begin anew.")
    ] = False,
    verify: Annotated[bool, typer.Option(help="Read back what was written.")] = True,
    region: Annotated[str | None, typer.Option(help="Region, for an http address.")] = None,
    profile: Annotated[str | None, typer.Option(help="Profile of ~/.aws/config.")] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Write a table to files: JSON lines, CSV, Parquet or DynamoDB JSON, with a manifest of counts and checksums.

    Example: stator export http://localhost:8000 --table orders --out orders/ --format parquet

    Example: stator export --from-snapshot s3://backups/AWSDynamoDB/01693685827463-2d8752fd --out orders.jsonl.gz
    """
    if format_name is not None and format_name not in EXPORT_FORMATS:
        raise typer.BadParameter(f"--format is one of {', '.join(EXPORT_FORMATS)}")
    if not out:
        raise typer.BadParameter("--out says where to: a folder, a file or s3://bucket/prefix")
    if (address is None) == (snapshot is None):
        raise typer.BadParameter("name the ADDRESS of the table, or --from-snapshot PATH")
    options = ExportOptions(
        format=format_name,
        compression=compression,
        readers=readers,
        journal=journal,
        resume=resume,
        restart=restart,
        verify=verify,
    )
    with ExitStack() as stack:
        if snapshot is not None:
            export = snapshot_export(snapshot, out, options)
        else:
            assert address is not None
            target = stack.enter_context(
                _target(address, table, entity, design, prefix, region, profile)
            )
            export = table_export(
                target, out, options, rate=rate, segments=segments, consistent=consistent
            )
        report = _run(export)
    _show(report, as_json=json_output)


def _target(
    address: str,
    table: str | None,
    entity: str | None,
    design: str | None,
    prefix: str,
    region: str | None,
    profile: str | None,
) -> Target:
    if design is None:
        return opened_target(address, table, entity, prefix=prefix, region=region, profile=profile)
    options: TransportOptions = {}
    if region is not None:
        options["region"] = region
    if profile is not None:
        options["profile"] = profile
    found = load_design_file(design).design
    return Target.open(address, table, design=found, prefix=prefix, options=options)


def _run(export: Export) -> ExportReport:
    with resumable(again()), Bar("export") as bar:
        return export.run(
            lambda progress: bar.show(
                progress.pieces_done / max(1, progress.pieces), _facts(progress)
            )
        )


def _facts(progress: ExportProgress) -> str:
    seconds = max(progress.seconds, 0.001)
    return f"{progress.items:,} items  {progress.items / seconds:,.0f}/s  {progress.units:,.0f} RCU"


def _show(report: ExportReport, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(report.to_data()))
        return
    rate = report.items / report.seconds if report.seconds else 0.0
    typer.echo(
        f"{report.items:,} items in {report.files} files, {size(report.size_bytes)}: {duration(report.seconds)}, {rate:,.0f}/s, "
        f"{report.consumed_units:,.0f} RCU"
    )
    typer.echo(
        f"checksum {report.checksum}, {'verified' if report.verified else 'not verified'}; {report.manifest}"
    )
