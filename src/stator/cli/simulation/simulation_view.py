"""Shows a simulation in a terminal: patterns, why calls are refused, and heat over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stator.cli.output import print_parts
from stator.design.simulation import (
    HeatedPlace,
    HeatRow,
    KeyHeat,
    LoadTime,
    PatternHeat,
    Simulation,
    SplitRecord,
)
from stator.model.quantities import amount, duration, plural

_LEVELS: Final = "·▁▂▃▄▅▆▇█"
"""Nothing, seven steps up to the limit of a partition, and more than it serves."""
_MOST_ROWS: Final = 8
_SHOWN_HEAT: Final = 0.75
"""A table whose partitions all stay below this share of their limits gets one line."""
_NOTABLE: Final = 0.005
"""A smaller share of refused units does not show in a heat map."""


def show_simulation(found: Simulation, console: Console) -> None:
    """Print a simulation."""
    print_parts(
        console,
        _heading(found),
        Text(""),
        _patterns(found),
        *([Text("")] if found.notes else []),
        *(Text(f"note: {each}", "dim") for each in found.notes),
        *_refusals(found),
        *(_load(each) for each in found.loads),
        *_places(found),
    )


def _heading(found: Simulation) -> Text:
    refused = sum(each.healthy_after_minutes is None for each in found.patterns)
    count = len(found.patterns)
    verdicts = [f"{refused} of {plural(count, 'pattern')} not served"] if refused else []
    if found.never_called:
        verdicts.append(f"never called: {', '.join(found.never_called)}")
    return Text.assemble(
        (found.design, "bold"),
        f"  {_length(found.minutes)} of traffic: ",
        ("; ".join(verdicts), "bold red")
        if verdicts
        else ("every pattern is served in the end", "bold green"),
    )


def _patterns(found: Simulation) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", expand=True)
    table.add_column("pattern", overflow="fold", style="bold")
    for title in ("a second", "refused", "healthy"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("hottest key", overflow="ellipsis", no_wrap=True, ratio=1)
    table.add_column("of limit", justify="right", no_wrap=True)
    for each in found.patterns:
        is_refused = each.first_refused_minute is not None
        key = each.hottest
        table.add_row(
            Text(each.name),
            amount(each.calls_per_second),
            Text(_share(each.refused_share), "red" if is_refused else "green"),
            _healthy(each),
            "" if key is None else key.key,
            "" if key is None else Text(_share(key.units / key.limit), _heat_style(key)),
        )
    return table


def _heat_style(key: KeyHeat) -> str:
    return "red" if key.units > key.limit else ""


def _healthy(pattern: PatternHeat) -> Text:
    if pattern.calls == 0:
        return Text("not called", "red")
    if pattern.first_refused_minute is None:
        return Text("always", "green")
    after = pattern.healthy_after_minutes
    return Text("never", "red") if after is None else Text(f"{after:g} min", "yellow")


def _refusals(found: Simulation) -> Iterator[RenderableType]:
    refused = [each for each in found.patterns if each.first_refused_minute is not None]
    if not refused:
        return
    yield Text("\nWhy calls are refused", "bold cyan")
    for (key, advice, _), same in groupby(refused, key=_why):
        patterns = list(same)
        yield Text(f"  {', '.join(each.name for each in patterns)}", "bold")
        rows: list[tuple[str | Text, str | Text]] = [
            (Text("why" if at == 0 else "", "dim"), f"{reason} {_share(share)}")
            for at, (reason, share) in enumerate(patterns[0].reasons.items())
        ]
        if key is not None and key.units > key.limit / 2:
            where = key.table if key.index is None else f"{key.table}/{key.index}"
            units = f"{amount(key.units)} {key.kind} units a second of {key.limit:,.0f}"
            rows.append((Text("key", "dim"), f"{key.key} of {where}: {units}"))
        if advice:
            checked = patterns[0].cure is not None and patterns[0].cure.is_verified
            ending = " (simulated: healthy)" if checked else ""
            rows.append((Text("cure", "dim"), advice + ending))
        yield _grid(rows)


def _why(pattern: PatternHeat) -> tuple[KeyHeat | None, str, tuple[str, ...]]:
    return pattern.hottest, pattern.advice, tuple(pattern.reasons)


def _grid(rows: Sequence[tuple[str | Text, str | Text]]) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", ratio=1)
    for row in rows:
        table.add_row(*row)
    return Padding(table, (0, 0, 0, 4))


def _load(load: LoadTime) -> Text:
    least = f"{duration(load.least_seconds)} if nothing were refused"
    if load.seconds is None:
        done = f"{amount(load.done)} of {amount(load.items)} items are put in the end; "
        return Text(f"\nThe load of {load.entity} is not done: {done}{least}.")
    took = f"took {duration(load.seconds)}; it takes {least}"
    return Text(f"\nThe load of {amount(load.items)} items of {load.entity} {took}.")


# --- partitions -----------------------------------------------------------------------------------


def _places(found: Simulation) -> Iterator[RenderableType]:
    yield Text("\nPartitions", "bold cyan")
    for place in found.places:
        hottest = max((max(row.heat, default=0.0) for row in place.rows), default=0.0)
        yield Text.assemble(
            "  ", (place.name, "bold"), f"  {place.capacity}, ", _counts(place),
            f", up to {_share(hottest)} busy",
        )  # fmt: skip
        yield from (Text(f"    {line}", "dim") for line in _splits(place.splits))
        if hottest >= _SHOWN_HEAT:
            yield from _map(place, found)


def _counts(place: HeatedPlace) -> str:
    before, after = place.partitions_before, place.partitions_after
    return plural(before, "partition") if before == after else f"{before} to {after} partitions"


def _splits(splits: Sequence[SplitRecord]) -> Iterator[str]:
    """Yield lines about partitions that were split, and about hot ones that were not.

    Consecutive records with the same minute and reason share one line.
    """
    for (minute, why, is_split), same in groupby(
        splits, key=lambda each: (each.minute, each.why, each.is_split)
    ):
        records = list(same)
        if is_split:
            yield f"{minute:g} min: split for {why}, {records[-1].partitions} partitions"
        else:
            yield f"{minute:g} min: hot, but not split: {_KEPT[why]}"


_KEPT: Final = {
    "one key": "one key takes the load",
    "sequential": "its keys arrive in rising order",
    "local index": "a local index keeps item collections whole",
}


def _map(place: HeatedPlace, found: Simulation) -> Iterator[RenderableType]:
    """Yield a row for each of the hottest partitions, and a time axis below them."""
    ranked = sorted(range(len(place.rows)), key=lambda at: -max(place.rows[at].heat, default=0))
    shown = sorted(ranked[:_MOST_ROWS])
    for at in shown:
        row = place.rows[at]
        line = Text(f"    {at + 1:>4} ")
        for level, style in _cells(row):
            line.append(level, style)
        line.append(f" {_share(max(row.heat, default=0.0)):>5}", "dim")
        yield line
    columns = len(place.rows[0].heat)
    end = _length(found.minutes)
    yield Text(f"         {'0':<{max(1, columns - len(end))}}{end}", "dim")
    if len(place.rows) > len(shown):
        yield Text(
            f"         and {plural(len(place.rows) - len(shown), 'cooler partition')}", "dim"
        )


def _cells(row: HeatRow) -> Iterator[tuple[str, str]]:
    for heat, refused in zip(row.heat, row.refused):
        if refused > _NOTABLE or heat > 1:
            yield _LEVELS[-1], "red"
        elif heat <= 0:
            yield _LEVELS[0], "dim"
        else:
            level = min(len(_LEVELS) - 2, 1 + int(heat * (len(_LEVELS) - 2)))
            yield _LEVELS[level], "yellow" if heat > 0.75 else "green"


def _length(minutes: float) -> str:
    hours, rest = divmod(minutes, 60)
    return f"{minutes:g} minutes" if rest or hours == 1 else f"{hours:g} hours"


def _share(share: float) -> str:
    """Return a share in percent, with a decimal where a whole number would hide it."""
    if 0 < share < 0.001:
        return "<0.1%"
    return f"{share:.1%}" if 0 < share < 0.1 else f"{share:.0%}"
