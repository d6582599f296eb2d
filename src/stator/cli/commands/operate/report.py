"""``stator report``: a month of tables, what it cost, and what to change."""

from __future__ import annotations

import json
import time
from enum import StrEnum
from typing import Annotated

import typer

from stator.cli.capacity.capacity_options import (
    AddressRegionOption,
    CapacityAtOption,
    LiveServices,
    TimezoneOption,
    region_prices,
    table_names,
)
from stator.cli.capacity.report_view import report_lines, report_markdown
from stator.cli.design_file import load_design
from stator.cli.options import DesignArgument, PrefixOption, PricesOption, ProfileOption
from stator.cli.output import print_parts, rich_console
from stator.cli.progress_bar import ProgressBar
from stator.cli.stop_signal import INTERRUPTED
from stator.design.cost.prices import RegionPrices
from stator.design.plan.own_table import own_table
from stator.errors import ConfigurationError
from stator.ops.capacity.advice import LEAST_DAYS, CapacityAdvice, advise
from stator.ops.capacity.cloudwatch import CloudWatchMetrics
from stator.ops.capacity.history import live_history
from stator.ops.capacity.live_table import LiveTable, is_there
from stator.ops.capacity.options import OptionSearch
from stator.ops.report.month import Month
from stator.ops.report.month_report import MonthReport, suggested_changes
from stator.ops.report.month_use import MonthSpan, month_use
from stator.ops.report.pattern_use import pattern_use


class ReportFormat(StrEnum):
    text = "text"
    json = "json"
    markdown = "markdown"


def command(
    target: DesignArgument = None,
    at: CapacityAtOption = None,
    month: Annotated[
        str | None,
        typer.Option(
            metavar="YYYY-MM",
            help="The month, in UTC. By default the present one, up to the last whole hour.",
            show_default=False,
        ),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A table, instead of a design's tables. May be repeated."
        ),
    ] = None,
    prometheus: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A Prometheus server that scrapes the programs' metrics: adds the access "
            "patterns. For example http://localhost:9090.",
            show_default=False,
        ),
    ] = None,
    advice: Annotated[
        bool,
        typer.Option(
            "--advice/--no-advice",
            help="Replay the last 14 days to say what to change, as stator advise does.",
        ),
    ] = True,
    timezone: TimezoneOption = "UTC",
    prefix: PrefixOption = "",
    region: AddressRegionOption = None,
    profile: ProfileOption = None,
    prices: PricesOption = None,
    output_format: Annotated[
        ReportFormat, typer.Option("--format", help="How to print the report.")
    ] = ReportFormat.text,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON; short for --format json.")
    ] = False,
) -> None:
    """Report a month of tables: what was used, what it cost, and what to change.

    Use and capacity come from CloudWatch, hour by hour, for each table and index. Access patterns
    are in it with --prometheus. Nothing changes.

    Example: stator report shop.py --at aws://eu-west-1 --month 2026-10

    Example: stator report --table orders --at aws://eu-west-1 --format markdown
    """
    if not at:
        raise typer.BadParameter("name an address with --at: aws://region or http://host:port")
    now = time.time()
    span = MonthSpan.of(Month.at(now) if month is None else Month.parse(month), now)
    services = LiveServices.at(at, region, profile)
    known = region_prices(prices, region, services)
    source = CloudWatchMetrics(services.cloudwatch)
    names = table_names(target, table, prefix)
    if not table:
        own = own_table(load_design(target).name, prefix).name
        names += [own] if is_there(services.dynamodb, own) else []
    lives = services.describe(names)
    places = tuple(place for each in lives for place in month_use(source, each, span, known))
    patterns = () if prometheus is None else pattern_use(prometheus, places, span)
    found, notes = _advice(source, lives, known, timezone, now) if advice else (None, [])
    report = MonthReport(
        span, known, places, patterns, suggested_changes(places, found), tuple(notes)
    )
    if json_output or output_format is ReportFormat.json:
        typer.echo(json.dumps(report.to_data(), indent=2, ensure_ascii=False))
    elif output_format is ReportFormat.markdown:
        typer.echo(report_markdown(report), nl=False)
    else:
        print_parts(rich_console(), *report_lines(report))


def _advice(
    source: CloudWatchMetrics,
    lives: list[LiveTable],
    prices: RegionPrices,
    timezone: str,
    now: float,
) -> tuple[CapacityAdvice | None, list[str]]:
    """Return advice on the tables with enough history, and the names of those with too little."""
    searches, notes = [], []
    for live in lives:
        try:
            history = live_history(source, live, now)
        except ConfigurationError as error:
            notes.append(f"no advice: {error.message}")
            continue
        if history.days < LEAST_DAYS:
            notes.append(f"no advice on {live.name}: it has less than a day of history")
            continue
        searches.append(
            OptionSearch(history, prices, timezone, warm=live.warm, table_class=live.table_class)
        )
    if not searches:
        return None, notes
    try:
        with ProgressBar("replaying", after_seconds=1.0) as bar:
            found = advise(searches, progress=bar.show)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    return found, notes + [note for each in found.tables for note in each.notes]
