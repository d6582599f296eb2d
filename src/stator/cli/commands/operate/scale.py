"""``stator scale``: auto scaling of provisioned tables, and schedules that raise units in time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from stator.cli.capacity.capacity_options import (
    RECORDS,
    DaysOption,
    HistoryOption,
    LiveServices,
    RecordsOption,
    TimezoneOption,
    UndoOption,
    table_names,
)
from stator.cli.capacity.change_run import carry_out, staged, staged_undo
from stator.cli.capacity.change_view import change_lines
from stator.cli.capacity.scaling_view import scaling_lines
from stator.cli.options import AtOption, PrefixOption, ProfileOption, RegionOption
from stator.cli.output import print_parts, rich_console, say, styled
from stator.model.scaling.capacity_window import WINDOW_EXAMPLE, CapacityWindow
from stator.model.scaling.target_tracking import target_warning
from stator.ops.capacity.capacity_state import CapacityState
from stator.ops.capacity.live_table import LiveTable
from stator.ops.capacity.scaling_registry import capacity_state
from stator.ops.capacity.scaling_request import (
    ScalingRequest,
    scaled_state,
    unscaled_state,
)
from stator.ops.capacity.staged_change import StagedChange
from stator.ops.capacity.use_series import KINDS, Dimension, Kind, TableHistory


def command(
    target_name: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A table by its name, or a design for all its tables: shop.py or shop.py:shop.",
        ),
    ],
    at: AtOption,
    target: Annotated[
        float | None,
        typer.Option(
            metavar="PERCENT",
            help="The share of the units to keep in use. 70 by default when scaling begins.",
            show_default=False,
        ),
    ] = None,
    least: Annotated[
        int | None,
        typer.Option(
            "--min",
            metavar="UNITS",
            min=1,
            help="Scaling goes down to this, also at night.",
            show_default=False,
        ),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(
            "--max",
            metavar="UNITS",
            min=1,
            help="Scaling goes up to this, and your bill no further.",
            show_default=False,
        ),
    ] = None,
    schedule: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WINDOW",
            help=f"Other bounds in a part of the week: '{WINDOW_EXAMPLE}'. 'load 22:00-23:00 "
            "min=500' opens ten minutes before a load --between; 'auto' takes the schedule from "
            "the history, and the bounds that --min and --max do not give; 'none' removes it. It "
            "replaces the schedule of before. May be repeated.",
        ),
    ] = None,
    timezone: TimezoneOption = "UTC",
    index: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Scale this index instead of the table. May be repeated."
        ),
    ] = None,
    all_indexes: Annotated[
        bool, typer.Option("--all-indexes", help="Scale the table and every global index.")
    ] = False,
    kind: Annotated[
        str, typer.Option(metavar="KIND", help="What scales: both, read or write.")
    ] = "both",
    history: HistoryOption = None,
    days: DaysOption = 14.0,
    remove: Annotated[
        bool, typer.Option("--remove", help="Stop scaling. The units stay as they are.")
    ] = False,
    apply: Annotated[
        bool, typer.Option("--apply", help="Make the calls that change the scaling.")
    ] = False,
    records: RecordsOption = RECORDS,
    undo: UndoOption = None,
    prefix: PrefixOption = "",
    region: RegionOption = None,
    profile: ProfileOption = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Show, change or remove the auto scaling of tables and indexes.

    Without options, it shows what scales. With options, it shows the calls; --apply makes them.

    Example: stator scale orders --at aws://eu-west-1

    Example: stator scale orders --at aws://eu-west-1 --target 70 --min 40 --max 400

    Example: stator scale orders --at aws://eu-west-1 --schedule 'weekdays 17:50-22:30 min=160'
    """
    kinds = _kinds(kind)
    request = _request(target, least, most, schedule, timezone)
    if remove and not request.is_empty:
        raise typer.BadParameter("--remove ends scaling; leave out --target, --min and the like")
    if index and all_indexes:
        raise typer.BadParameter("name indexes with --index, or all with --all-indexes, not both")
    services = LiveServices.at(at, region, profile)
    if undo is not None:
        changes = [staged_undo(services, undo, records)]
        _finish(services, changes, records, json_output, apply=True)
        return
    lives = services.describe(_names(target_name, prefix))
    chosen = {each.name: _dimensions(each, index, all_indexes, kinds) for each in lives}
    if request.is_empty and not remove:
        _show(services, lives, json_output)
        return
    if target is not None and (warning := target_warning(target)):
        say(styled("warning: ", "yellow", bold=True) + warning, err=True)
    histories: dict[str, TableHistory] = {}
    if request.from_week:
        histories = {each.table: each for each in services.histories(lives, history, days)}
    changes = []
    for live in lives:
        before = capacity_state(services.scaling, live)
        after = (
            unscaled_state(before, chosen[live.name])
            if remove
            else scaled_state(before, chosen[live.name], request, histories.get(live.name))
        )
        changes.append(staged(services, live, after, records))
    _finish(services, changes, records, json_output, apply=apply)


def _kinds(text: str) -> tuple[Kind, ...]:
    if text == "both":
        return KINDS
    for kind in KINDS:
        if kind == text:
            return (kind,)
    raise typer.BadParameter(f"--kind {text}: write both, read or write")


def _request(
    target: float | None,
    least: int | None,
    most: int | None,
    schedule: list[str] | None,
    timezone: str,
) -> ScalingRequest:
    words = schedule or []
    if len(words) > 1 and {"auto", "none"} & set(words):
        raise typer.BadParameter("--schedule auto and --schedule none stand alone")
    is_auto = words == ["auto"]
    windows = None
    if words and not is_auto:
        windows = () if words == ["none"] else tuple(CapacityWindow.parse(each) for each in words)
    return ScalingRequest(target, least, most, windows, is_auto, timezone)


def _names(target: str, prefix: str) -> list[str]:
    """Return table names: of a design if the target looks like one, otherwise the target itself."""
    if ":" in target or Path(target).suffix == ".py":
        return table_names(target, None, prefix)
    return [f"{prefix}{target}"]


def _dimensions(
    live: LiveTable, indexes: list[str] | None, all_indexes: bool, kinds: tuple[Kind, ...]
) -> tuple[Dimension, ...]:
    places: tuple[str | None, ...] = tuple(indexes) if indexes else (None,)
    if all_indexes:
        places = (None, *live.indexes)
    return tuple(Dimension(place, kind) for place in places for kind in kinds)


def _show(services: LiveServices, lives: list[LiveTable], as_json: bool) -> None:
    states: list[CapacityState] = [capacity_state(services.scaling, each) for each in lives]
    if as_json:
        typer.echo(json.dumps([each.to_data() for each in states], indent=2))
        return
    for live, state in zip(lives, states):
        print_parts(rich_console(), *scaling_lines(state, live.dimensions))


def _finish(
    services: LiveServices,
    changes: list[StagedChange],
    records: Path,
    as_json: bool,
    *,
    apply: bool,
) -> None:
    if as_json:
        typer.echo(json.dumps([each.to_data() for each in changes], indent=2, ensure_ascii=False))
    else:
        hint = "" if apply else "nothing has changed; --apply makes these calls"
        print_parts(rich_console(), *change_lines(changes, hint))
    if apply:
        carry_out(services, changes, records)
