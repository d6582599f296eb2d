"""``stator advise``: what capacity to buy for tables, from their own history."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from stator.cli.capacity.advice_page import advice_page
from stator.cli.capacity.advice_view import show_advice
from stator.cli.capacity.capacity_options import (
    RECORDS,
    AddressRegionOption,
    CapacityAtOption,
    DaysOption,
    HistoryOption,
    LiveServices,
    RecordsOption,
    TimezoneOption,
    UndoOption,
    chosen_histories,
    region_prices,
    table_names,
)
from stator.cli.capacity.change_run import carry_out, staged, staged_undo
from stator.cli.capacity.change_view import change_lines
from stator.cli.options import DesignArgument, PrefixOption, PricesOption, ProfileOption
from stator.cli.output import print_parts, rich_console, write_text
from stator.cli.progress_bar import ProgressBar
from stator.cli.stop_signal import INTERRUPTED
from stator.ops.capacity.advice import CapacityAdvice, TableAdvice, advise
from stator.ops.capacity.history import last_days
from stator.ops.capacity.history_file import read_history
from stator.ops.capacity.live_table import LiveTable
from stator.ops.capacity.options import OptionSearch
from stator.ops.capacity.planned_state import planned_state
from stator.ops.capacity.scaling_registry import capacity_state
from stator.ops.capacity.staged_change import StagedChange
from stator.ops.capacity.use_series import Dimension, TableHistory

_OLD_SECONDS: Final = 3600.0


def command(
    target: DesignArgument = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A table, instead of a design's tables. May be repeated."
        ),
    ] = None,
    at: CapacityAtOption = None,
    days: DaysOption = 14.0,
    history: HistoryOption = None,
    prefix: PrefixOption = "",
    region: AddressRegionOption = None,
    profile: ProfileOption = None,
    prices: PricesOption = None,
    timezone: TimezoneOption = "UTC",
    most_throttled: Annotated[
        float,
        typer.Option(
            metavar="PERCENT",
            min=0.0,
            max=100.0,
            help="The share of units that a recommended option may refuse at worst.",
        ),
    ] = 0.01,
    fixed: Annotated[
        str | None,
        typer.Option(
            metavar="READS,WRITES",
            help="Also try fixed units of the table: 200,50.",
            show_default=False,
        ),
    ] = None,
    years: Annotated[
        int,
        typer.Option(
            min=1, max=3, metavar="N", help="The term of reserved capacity: 1 or 3 years."
        ),
    ] = 1,
    option: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Stage this option instead of the recommended one.",
            show_default=False,
        ),
    ] = None,
    calls: Annotated[
        bool, typer.Option("--calls", help="Show the calls that --apply would make.")
    ] = False,
    apply: Annotated[
        bool, typer.Option("--apply", help="Make the calls that change the tables.")
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write an HTML page, too.", dir_okay=False),
    ] = None,
    records: RecordsOption = RECORDS,
    undo: UndoOption = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the advice as JSON.")] = False,
) -> None:
    """Say what capacity to buy for tables, from their history.

    Every minute of the history is replayed over on-demand, fixed units and auto scaling, with what
    DynamoDB would have refused beside each price. Nothing changes without --apply.

    Example: stator advise shop.py --at aws://eu-west-1

    Example: stator advise --history november.csv --timezone Europe/Zurich

    Example: stator advise --table orders --at aws://eu-west-1 --calls
    """
    if years == 2:
        raise typer.BadParameter("--years 2 is not offered by AWS; use 1 or 3")
    if at is None and (apply or calls or undo or history is None):
        raise typer.BadParameter("name an address with --at, or a file with --history")
    services = None if at is None else LiveServices.at(at, region, profile)
    if undo is not None:
        assert services is not None
        undoing = [staged_undo(services, undo, records)]
        if json_output:
            _print_json({"changes": [each.to_data() for each in undoing]})
        else:
            _show_changes(undoing, apply=True)
        carry_out(services, undoing, records)
        return
    lives = _live_tables(services, target, table, prefix)
    histories = _histories(services, lives, history, table, days)
    search = OptionSearch(
        histories[0],
        region_prices(prices, region, services),
        timezone,
        most_throttled / 100.0,
        fixed=_fixed_units(fixed),
    )
    searches = [_search(search, each, lives.get(each.table)) for each in histories]
    try:
        with ProgressBar("replaying", after_seconds=1.0) as bar:
            found = advise(searches, years=1 if years == 1 else 3, option=option, progress=bar.show)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    found = replace(found, tables=tuple(_with_age(each, lives) for each in found.tables))
    if page is not None:
        write_text(page, advice_page(found))
        typer.echo(f"wrote {page}", err=True)
    changes: list[StagedChange] = []
    if services is not None and (apply or calls):
        changes = _changes(services, found, lives, records)
    if json_output:
        staged_data = {"changes": [each.to_data() for each in changes]} if changes else {}
        _print_json(found.to_data() | staged_data)
    else:
        show_advice(found, rich_console())
        if changes:
            _show_changes(changes, apply=apply)
    if services is not None and apply:
        carry_out(services, changes, records)


def _live_tables(
    services: LiveServices | None, target: str | None, tables: list[str] | None, prefix: str
) -> dict[str, LiveTable]:
    if services is None:
        return {}
    found = services.describe(table_names(target, tables, prefix))
    return {each.name: each for each in found}


def _histories(
    services: LiveServices | None,
    lives: dict[str, LiveTable],
    file: Path | None,
    tables: list[str] | None,
    days: float,
) -> Sequence[TableHistory]:
    if services is not None:
        return services.histories(list(lives.values()), file, days)
    assert file is not None
    return [last_days(each, days) for each in chosen_histories(read_history(file), tables, file)]


def _search(search: OptionSearch, history: TableHistory, live: LiveTable | None) -> OptionSearch:
    if live is None:
        return replace(search, history=history)
    return replace(
        search,
        history=history,
        warm=live.warm,
        table_class=live.table_class,
        is_provisioned_now=live.is_provisioned,
    )


def _fixed_units(text: str | None) -> dict[Dimension, int]:
    if text is None:
        return {}
    parts = text.split(",")
    if len(parts) != 2 or not all(part.isdigit() and int(part) > 0 for part in parts):
        raise typer.BadParameter(f"--fixed {text}: write two numbers of units, such as 200,50")
    return {Dimension(None, "read"): int(parts[0]), Dimension(None, "write"): int(parts[1])}


def _with_age(advice: TableAdvice, lives: dict[str, LiveTable]) -> TableAdvice:
    """Add a note to advice on a live table whose history ended long ago."""
    end = advice.history.end
    if advice.table not in lives or time.time() - end < _OLD_SECONDS:
        return advice
    said = datetime.fromtimestamp(end, UTC).strftime("%Y-%m-%d %H:%M UTC")
    note = f"the history ends on {said}: what {advice.table} has and uses now is not in it"
    return replace(advice, notes=(*advice.notes, note))


def _print_json(data: dict[str, Any]) -> None:
    typer.echo(json.dumps(data, indent=2, ensure_ascii=False))


def _show_changes(changes: list[StagedChange], *, apply: bool) -> None:
    hint = "" if apply else "nothing has changed; --apply makes these calls"
    print_parts(rich_console(), *change_lines(changes, hint))


def _changes(
    services: LiveServices, found: CapacityAdvice, lives: dict[str, LiveTable], records: Path
) -> list[StagedChange]:
    changes = []
    for advice in found.tables:
        live = lives[advice.table]
        before = capacity_state(services.scaling, live)
        after = planned_state(advice.recommended, before, advice.history)
        changes.append(staged(services, live, after, records))
    return changes
