"""``stator load``: loads files into a table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from stator.addresses import Address
from stator.cli.bulk_commands import (
    FAILED_ROWS,
    WaitNotice,
    check_locked_keys,
    open_target,
    resumable,
    show_failed,
)
from stator.cli.checks.data_folder import check_exists
from stator.cli.checks.unused_options import refuse_unused
from stator.cli.options import (
    BetweenOption,
    MetricsPortOption,
    ProfileOption,
    RestartOption,
    ResumeOption,
)
from stator.cli.output import say, styled
from stator.cli.progress_bar import ProgressBar
from stator.formats.dynamodb_json import KINDS
from stator.model.quantities import cents, duration, plural, size
from stator.pipeline.bulk.load.estimate import LoadEstimate, estimate
from stator.pipeline.bulk.load.inputs import FORMATS
from stator.pipeline.bulk.load.load import LoadOptions, LoadPlan, LoadProgress, LoadReport
from stator.pipeline.bulk.load.metrics import LoadMetrics
from stator.pipeline.bulk.targets import BulkTarget

_WOULD_FAIL = 1
_MEMORY = "memory"


def command(
    context: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES...",
            help="Files, folders, quoted globs, s3://bucket/prefix, or - for stdin.",
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            "--at",
            metavar="ADDRESS",
            help="Where the table is: a folder, http://host:port or aws://region.",
        ),
    ],
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="The table to load into.")
    ] = None,
    entity: Annotated[
        str | None,
        typer.Option(
            metavar="DESIGN:ENTITY",
            help="The entity to load, for example design.py:Order. Types and keys come from the "
            "design.",
        ),
    ] = None,
    prefix: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="With --entity: text before the table names of the design, for example prod-.",
        ),
    ] = "",
    blobs: Annotated[
        str | None,
        typer.Option(
            metavar="STORE",
            help="With --entity: the folder or s3://... that receives offloaded large() values.",
        ),
    ] = None,
    new_keys: Annotated[
        bool,
        typer.Option(
            "--new-keys",
            help="With --entity: load although the design has other keys than its lock file.",
        ),
    ] = False,
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="|".join(FORMATS),
            help="The format. By default, from the file extensions.",
        ),
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(
            metavar="CHARACTER",
            help="The delimiter of CSV. By default, a comma, and a tab for .tsv.",
            show_default=False,
        ),
    ] = None,
    fields: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="FIELD=ATTRIBUTE",
            help="Rename a field; FIELD= drops it. May be repeated.",
        ),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="ATTRIBUTE=TYPE",
            help=f"Set a type: {', '.join(KINDS[:-1])} or {KINDS[-1]}. May be repeated.",
        ),
    ] = None,
    flatten: Annotated[
        bool,
        typer.Option(
            "--flatten", help="Turn nested JSON objects into dotted names such as address.city."
        ),
    ] = False,
    create: Annotated[
        bool,
        typer.Option(
            "--create",
            help="Create the missing tables of the design, or a table with the key of --key.",
        ),
    ] = False,
    key: Annotated[
        list[str] | None,
        typer.Option(
            "--key",
            metavar="ATTRIBUTE=TYPE",
            help="With --create and --table: the partition key, then the sort key; S, N or B.",
        ),
    ] = None,
    condition: Annotated[
        str | None,
        typer.Option(
            metavar="EXPRESSION",
            help="Write a row only if this condition holds. :name stands for the row's value of "
            '"name". Slower than a plain load. Up to 25 rows share a request.',
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=1,
            metavar="WCU",
            help="Maximum write units a second. By default, as many as the table accepts.",
        ),
    ] = None,
    writers: Annotated[
        int | None,
        typer.Option(min=1, max=64, metavar="N", help="Write requests in flight at once."),
    ] = None,
    shuffle: Annotated[
        int,
        typer.Option(
            min=1, metavar="ROWS", help="Rows held in memory and written in random order."
        ),
    ] = 20_000,
    journal: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The journal that --resume continues from. By default, next to the first file.",
        ),
    ] = None,
    resume: ResumeOption = False,
    restart: RestartOption = False,
    dead_letters: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write rows that fail to this file, with the reasons, as JSON lines.",
        ),
    ] = None,
    max_errors: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Stop when more than this many rows fail."),
    ] = None,
    between: BetweenOption = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Write nothing; check every row; estimate units, price and time."
        ),
    ] = False,
    region: Annotated[
        str | None,
        typer.Option(
            metavar="REGION",
            help="The region for an http address, and for the prices of --dry-run.",
        ),
    ] = None,
    profile: ProfileOption = None,
    metrics_port: MetricsPortOption = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Load CSV, JSON, Parquet or Arrow files into a table, from disk or S3.

    JSON files hold JSON lines or DynamoDB JSON, and files may be compressed. Rows that cannot be
    written go to the dead letters and do not stop the rest; --format dead-letters loads them once
    they are corrected.

    Exit codes: 0 all rows are loaded; 1 an error, or with --dry-run rows that would fail; 2 wrong
    usage; 3 the load is done, and rows failed; 130 interrupted. After 3, the same command with
    --resume loads nothing and says so.

    Example: stator load 'orders/*.parquet' --to http://localhost:8000 --table orders

    Example: stator load orders.csv.gz --to aws://eu-west-1 --entity shop.py:Order --rate 2000
    --dead-letters bad.jsonl

    Example: stator load events.jsonl --to http://localhost:8000 --table events --create --key id=S
    --flatten --resume
    """
    if format_name is not None and format_name not in FORMATS:
        raise typer.BadParameter(
            f"--format {format_name} is unknown; choose one of {', '.join(FORMATS)}"
        )
    if entity is None:
        refuse_unused(context, "without --entity", "prefix", "blobs", "new_keys")
    else:
        if not new_keys:
            check_locked_keys(entity, "--new-keys")
        refuse_unused(context, "with --entity, whose design has the types", "types")
    options = LoadOptions(
        format=format_name,
        delimiter=delimiter,
        map=tuple(fields or ()),
        types=tuple(types or ()),
        condition=condition,
        rate=rate,
        writers=writers,
        window_rows=shuffle,
        journal=journal,
        resume=resume,
        restart=restart,
        dead_letters=dead_letters,
        max_errors=max_errors,
        create=create,
        key=tuple(key or ()),
        flatten=flatten,
        between=between,
    )

    def opened(address: str) -> BulkTarget:
        return open_target(
            address, table, entity, prefix=prefix, blobs=blobs, region=region, profile=profile
        )

    asked, to = to, _checked_target(to, files, options, opened, writes=not dry_run)
    with opened(to) as target:
        plan = LoadPlan(files, target, options)
        if not json_output:
            _show_types(plan, asked)
        if dry_run:
            found = estimate(plan, region or "us-east-1")
            _show_estimate(found, as_json=json_output)
            if not found.ok:
                raise typer.Exit(_WOULD_FAIL)
            return
        notice = WaitNotice(between)
        metrics = LoadMetrics(target.table)
        if metrics_port is not None:
            served = metrics.serve(metrics_port)
            typer.echo(f"serving metrics on http://localhost:{served}/metrics", err=True)
        with resumable() as done, ProgressBar(f"load {target.table}") as bar:

            def watch(progress: LoadProgress) -> None:
                done.done = _done(progress)
                metrics.note(progress)
                bar.show(progress.share, notice.facts(progress.waits_until, _facts(progress)))

            report = plan.run(watch)
    _show_report(report, as_json=json_output)
    if not report.ok:
        raise typer.Exit(FAILED_ROWS)


def _checked_target(
    to: str,
    files: list[str],
    options: LoadOptions,
    opened: Callable[[str], BulkTarget],
    *,
    writes: bool,
) -> str:
    """Return the address to open for the load. Refuse a new folder if the load cannot start.

    Opening a new folder creates it, and neither a dry run nor a load that fails at its start may
    leave an empty folder behind. A load into a new folder is therefore planned in memory first, to
    find errors. For a dry run (``writes`` is false), the result is the address of the memory
    engine. Without --create, a new folder is allowed only with --entity, because the design says
    which tables to create.
    """
    if not Address.parse(to).is_new_folder:
        return to
    with opened(_MEMORY) as target:
        if target.entity is None and not options.create:
            check_exists(to, "check the path, or create the folder and the table with --create")
        if "-" not in files:  # stdin can be read only once
            LoadPlan(files, target, options)
    return to if writes else _MEMORY


def _show_types(plan: LoadPlan, address: str) -> None:
    target = plan.target
    files = plural(len(plan.inputs), "file") if len(plan.inputs) > 1 else plan.inputs[0].name
    where = f"{target.entity_name} in {target.table}" if target.entity_name else target.table
    say(f"{files} -> {where} at {address}", err=True)
    if plan.creation is not None:
        say(f"{target.table} does not exist yet and will be created", err=True)
    width = max((len(each.target) for each in plan.types), default=0)
    for each in plan.types:
        renamed = "" if each.source == each.target else f"  from {each.source}"
        start = f"  {each.target:<{width}}  {each.kind or 'by value':<8}  "
        say(f"{start}{each.why}{renamed}", err=True, indent=len(start))


def _done(progress: LoadProgress) -> str:
    failed = f", {progress.counts.failed:,} failed" if progress.counts.failed else ""
    return f"{plural(progress.counts.written, 'row')} written{failed}"


def _facts(progress: LoadProgress) -> str:
    counts = progress.counts
    parts = [
        f"{counts.written:,} items",
        f"{progress.per_second:,.0f}/s",
        f"{progress.pace.measured:,.0f} WCU/s",
    ]
    if counts.failed:
        parts.append(f"{counts.failed:,} failed")
    if progress.pace.throttled:
        parts.append(f"{progress.pace.throttled:,} throttled")
    return "  ".join(parts)


def _show_estimate(found: LoadEstimate, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(found.to_data()))
        return
    say(f"items     {found.items:,}")
    say(f"size      {size(found.size_bytes)}")
    more = f", with the entries in {plural(found.indexes, 'index')}" if found.indexes else ""
    say(f"units     {found.write_units:,} WCU{more}")
    say(f"price     ${cents(found.dollars)} on demand in {found.region}")
    say(f"time      {duration(found.seconds)} at {found.rate:,.0f} WCU/s")
    if found.refused is not None:
        units = f"{found.refused.write_units:,} WCU and {found.refused.read_units:,g} RCU"
        say(
            f"refused   {units}, ${cents(found.refused.dollars)}, "
            "if the condition is false for every row",
            indent=len("refused   "),
        )
    if found.failed:
        say(styled(_failure_summary(found), "red"), err=True)
        for letter in found.first_failures:
            say(f"  {letter.source}, row {letter.row:,}: {letter.reason}", err=True, indent=4)


def _failure_summary(found: LoadEstimate) -> str:
    rows, shown = plural(found.failed, "row"), len(found.first_failures)
    return f"{rows} would fail" + (f"; the first {shown}:" if found.failed > shown else ":")


def _show_report(report: LoadReport, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(report.to_data()))
        return
    if report.already_done:
        say(
            f"already done: {plural(report.written, 'row')} written into {report.table};"
            " --restart loads them again"
        )
        show_failed(plural(report.failed, "row"), report.dead_letters)
        return
    resumed = f", resumed at row {report.resumed_at_row:,}" if report.resumed_at_row else ""
    say(
        f"{report.written:,} of {report.read:,} rows loaded into {report.table}: "
        f"{duration(report.seconds)}, {report.per_second:,.0f}/s, "
        f"{report.consumed_units:,.0f} WCU{resumed}"
    )
    if report.failed:
        show_failed(plural(report.failed, "row"), report.dead_letters)
