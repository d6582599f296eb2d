"""``stator simulate``: a design's traffic on its planned keys, and where it is throttled."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stator.cli.design_file import load_design, plan_of
from stator.cli.options import DesignArgument
from stator.cli.output import rich_console, say, write_text
from stator.cli.progress_bar import ProgressBar
from stator.cli.simulation import traffic_options as texts
from stator.cli.simulation.simulation_view import show_simulation
from stator.cli.stop_signal import INTERRUPTED
from stator.design.documents import heat_page
from stator.design.simulation import MeasuredTraffic, TrafficShape, simulate


class TrafficProfile(StrEnum):
    flat = "flat"
    day = "day"
    office = "office"


def command(
    target: DesignArgument = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="The length of the run. By default an hour, or the measured time with --replay, "
            "or a day with --profile, with windows, or with a spike after the hour.",
            show_default=False,
        ),
    ] = None,
    start: Annotated[
        str, typer.Option(metavar="HH:MM", help="The time of day at which the run starts.")
    ] = "00:00",
    profile: Annotated[
        TrafficProfile,
        typer.Option(help="How the rates vary over the day; the average stays as declared."),
    ] = TrafficProfile.flat,
    spike: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN=FACTORx@HH:MM+TIME",
            help=f"Call a pattern more often for a while: {texts.SPIKE_EXAMPLE}. May be repeated.",
        ),
    ] = None,
    window: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN=HH:MM-HH:MM",
            help=f"Call a pattern only in these hours: {texts.WINDOW_EXAMPLE}. May be repeated.",
        ),
    ] = None,
    launch: Annotated[
        str | None,
        typer.Option(
            metavar="FACTORx+TIME",
            help=f"Start at zero and rise to a multiple of the rates: {texts.LAUNCH_EXAMPLE}.",
        ),
    ] = None,
    load: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ENTITY=ITEMS@RATE",
            help="Add a bulk load of so many items at so many a second, in the order of the keys: "
            f"{texts.LOAD_EXAMPLE}. May be repeated.",
        ),
    ] = None,
    shuffle: Annotated[
        bool, typer.Option("--shuffle", help="With --load: put the items in random order.")
    ] = False,
    hot: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN=SHARE",
            help=f"Let a share of a pattern's calls be about one key: {texts.HOT_EXAMPLE}. "
            "May be repeated.",
        ),
    ] = None,
    zipf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN=EXPONENT",
            help=f"Let a pattern's keys follow Zipf's law: {texts.ZIPF_EXAMPLE}. May be repeated.",
        ),
    ] = None,
    shards: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ENTITY=N",
            help="Simulate other keys: each partition key of the entity spread over N shards. "
            "May be repeated.",
        ),
    ] = None,
    warm: Annotated[
        str | None,
        typer.Option(
            metavar="READS,WRITES",
            help=f"The warm throughput of each table and index: {texts.UNITS_EXAMPLE}.",
        ),
    ] = None,
    maximum: Annotated[
        str | None,
        typer.Option(
            metavar="READS,WRITES",
            help=f"The on-demand maximum of each table and index: {texts.UNITS_EXAMPLE}.",
        ),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Replay measured traffic instead of the declared rates: CSV or JSON lines with "
            "time, pattern, values of keys and count.",
            dir_okay=False,
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="Decides where keys fall. Equal seeds give equal results."
        ),
    ] = 0,
    page: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write an HTML page, too.", dir_okay=False),
    ] = None,
    fail: Annotated[
        bool,
        typer.Option(
            "--fail",
            help="Exit with 1 if calls are still refused at the end, or a pattern is never called.",
        ),
    ] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Simulate how a design's tables take its traffic, and where they throttle.

    The run starts with new tables that hold the declared volumes. It shows which patterns' calls
    are refused and DynamoDB's reason, the hottest keys, and when partitions split. For a hot key,
    it shows how many shards would cure it.

    Example: stator simulate shop.py

    Example: stator simulate --spike place_order=10x@00:10+5m --launch 5x+15m

    Example: stator simulate --load Order=1000000@5000 --shuffle --html heat.html
    """
    if shuffle and not load:
        raise typer.BadParameter("--shuffle needs --load")
    if replay is not None and (spike or window or launch or hot or zipf or profile != "flat"):
        raise typer.BadParameter(
            "--replay takes rates and keys from the file; leave out --profile, --spike, --window, "
            "--launch, --hot and --zipf"
        )
    traffic = TrafficShape(
        minutes=minutes,
        start=texts.time_of_day("--start", start),
        profile=profile.value,
        spikes=texts.spikes(spike),
        windows=texts.windows(window),
        launch=texts.launch(launch),
        loads=texts.loads(load, is_shuffled=shuffle),
        hot=texts.hot_keys(hot),
        zipf=texts.zipf_keys(zipf),
        shards=texts.shards(shards),
        warm=texts.units("--warm", warm),
        maximum=texts.units("--maximum", maximum),
        seed=seed,
    )
    design = load_design(target)
    plan = plan_of(design)
    measured = None if replay is None else MeasuredTraffic.from_file(replay)
    try:
        with ProgressBar("simulating", after_seconds=1.0) as bar:
            found = simulate(
                design,
                traffic,
                plan=plan,
                measured=measured,
                progress=lambda done, of: bar.show(done / of, f"minute {done // 60:,}"),
            )
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    if json_output:
        typer.echo(json.dumps(found.to_data(), indent=2, ensure_ascii=False))
    else:
        show_simulation(found, rich_console())
    if page is not None:
        write_text(page, heat_page(found))
        say(f"wrote {page}", err=True)
    if fail and not found.ok:
        raise typer.Exit(1)
