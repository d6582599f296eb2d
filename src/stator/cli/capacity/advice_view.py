"""Shows capacity advice in a terminal: options of each table, the reason, a week, reservations."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Final

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stator.cli.capacity.week_chart import busiest, week_chart
from stator.cli.output import print_parts
from stator.model.quantities import amount, cents, dollars, plural
from stator.ops.capacity.advice import CapacityAdvice, TableAdvice, history_length
from stator.ops.capacity.options import CapacityOption, FigureRange
from stator.ops.capacity.reserved import ReservedBlocks

_BAD_SHARE: Final = 0.001


def show_advice(found: CapacityAdvice, console: Console) -> None:
    """Print the advice on every table."""
    parts: list[RenderableType] = []
    for table in found.tables:
        if parts:
            parts.append(Text(""))
        parts += _table(table, found.timezone)
    parts += _reserved(found.reserved)
    parts.append(
        Text(
            f"\nPrices of {found.prices.region}, {found.prices.as_of}, storage included. Ranges: "
            "AWS's delays at best and at worst.",
            "dim",
        )
    )
    print_parts(console, *parts)


def _table(advice: TableAdvice, timezone: str) -> Iterator[RenderableType]:
    now, days = advice.now, history_length(advice.history)
    yield Text.assemble(
        (advice.table, "bold"), f"  {now.name.removesuffix(' (now)')}, ",
        (f"${cents(now.dollars.middle)}", "bold"), f" a month, from {days} of history",
    )  # fmt: skip
    yield _options(advice, timezone)
    yield Text("")
    yield _grid(_remarks(advice, timezone))
    yield Text("")
    yield from week_chart(advice.history, advice.recommended, busiest(advice.history), timezone)


def _options(advice: TableAdvice, timezone: str) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", expand=True)
    table.add_column("  option", overflow="fold", ratio=1)
    table.add_column("$/month", justify="right", no_wrap=True)
    table.add_column("refused", justify="right", no_wrap=True)
    table.add_column("minutes", justify="right", no_wrap=True)
    table.add_column("note", no_wrap=True)
    for option in advice.options:
        style = "bold green" if option is advice.recommended else ""
        share = option.throttled_share
        colour = "green" if share.high <= 0 else "yellow" if share.high < _BAD_SHARE else "red"
        table.add_row(
            Text(f"  {option.name}", style),
            money(option),
            Text(refused_share(share), colour),
            span(option.throttled_minutes),
            Text(advice.note(option, timezone), style or "dim"),
        )
    return table


def _remarks(advice: TableAdvice, timezone: str) -> Iterator[tuple[str, Text]]:
    yield "why", Text(advice.reason)
    yield "if wrong", Text(str(advice.wrong))
    for dimension, schedule in advice.recommended.schedules:
        windows = "; ".join(schedule.windows())
        yield "schedule", Text(f"{dimension}: {windows}; else min {schedule.base} ({timezone})")
    for index in advice.unused:
        said = (
            f"{index.index} is written and never read; dropping it saves {dollars(index.dollars)}"
        )
        yield "unused", Text(said, "yellow")
    for note in advice.notes:
        yield "note", Text(note, "yellow")


def _grid(rows: Iterator[tuple[str, Text]]) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold", ratio=1)
    for row in rows:
        table.add_row(*row)
    return Padding(table, (0, 0, 0, 2))


def money(option: CapacityOption) -> str:
    """Return dollars, as a range if the ends are more than a hundredth apart."""
    found = option.dollars
    if found.high - found.low <= 0.01 * found.high:
        return cents(found.middle)
    return f"{cents(found.low)}-{cents(found.high)}"


def refused_share(share: FigureRange) -> str:
    """Return the refused share of units: ``0 %``, ``<0.01-0.3 %``."""
    low, high = _percent(share.low), _percent(share.high)
    return f"{high} %" if low == high else f"{low}-{high} %"


def _percent(share: float) -> str:
    return "0" if share <= 0 else "<0.01" if share < 0.0001 else f"{share * 100:.2g}"


def span(found: FigureRange) -> str:
    """Return a count, or its range."""
    low, high = amount(found.low), amount(found.high)
    return low if low == high else f"{low}-{high}"


def _reserved(found: tuple[ReservedBlocks, ...]) -> Iterator[RenderableType]:
    if not found:
        return
    yield Text("\nReserved capacity, over all tables together", "bold cyan")
    rows = [
        (
            f"{plural(each.blocks, 'block')} of {each.block_units} {each.kind} units",
            Text(
                f"{plural(each.years, 'year')}: saves ${cents(each.saves)} a month for "
                f"${cents(each.upfront)} now; pays if use lasts "
                f"{plural(max(1, ceil(each.pays_after_months)), 'month')}"
            ),
        )
        for each in found
    ]
    yield _grid(iter(rows))
