"""Shows the report of a month in a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stator.cli.tables.name_cell import NameCell
from stator.model.quantities import amount, cents, dollars, size
from stator.ops.report.month_report import MonthReport, SuggestedChange
from stator.ops.report.month_use import DimensionMonth, PlaceMonth

_USE: tuple[str, ...] = (
    "table or index", "read units", "write units", "busiest hour", "refused", "storage", "$",
)  # fmt: skip
_PATTERNS: tuple[str, ...] = ("pattern", "table or index", "read units", "write units", "$")


def report_lines(found: MonthReport) -> Iterator[RenderableType]:
    """Yield the report for a terminal."""
    yield Text.assemble((f"{found.span.month}", "bold"), f"  {_total(found)}")
    yield _grid(_USE, (_use_row(each) for each in found.places))
    if found.patterns:
        yield Text("\nBy access pattern", "bold cyan")
        yield _grid(_PATTERNS, _pattern_rows(found))
    yield Text("\nWhat to change", "bold cyan")
    if not found.changes:
        yield Text("  nothing")
    for change in found.changes:
        yield Padding(Text(f"- {_change(change)}"), (0, 0, 0, 2))
    for note in found.notes:
        yield Text(f"note: {note}", "yellow")
    yield Text(f"\n{_foot(found)}", "dim")


def report_markdown(found: MonthReport) -> str:
    """Return the report as Markdown."""
    lines = [f"# Tables in {found.span.month}", "", f"{_total(found)}.", ""]
    lines += _markdown_table(_USE, [_use_row(each) for each in found.places])
    if found.patterns:
        lines += ["", "## By access pattern", ""]
        lines += _markdown_table(_PATTERNS, list(_pattern_rows(found)))
    lines += ["", "## What to change", ""]
    lines += [f"- {_change(each)}" for each in found.changes] or ["Nothing."]
    lines += ["", *(f"- Note: {each}" for each in found.notes)]
    return "\n".join([*lines, "", _foot(found), ""])


def _total(found: MonthReport) -> str:
    if found.span.is_whole:
        return f"${cents(found.dollars)}"
    days, whole = found.span.hours / 24, found.span.month.hours // 24
    return (
        f"${cents(found.dollars)} in {amount(days)} of {whole} days; at this rate "
        f"${cents(found.whole_dollars)} for the month"
    )


def _use_row(place: PlaceMonth) -> tuple[str, ...]:
    refused = ", ".join(f"{count:,} {reason}" for reason, count in place.throttles.items())
    return (
        place.name,
        _units(place.reads),
        _units(place.writes),
        f"{amount(place.reads.busiest)}/{amount(place.writes.busiest)} a second",
        refused or "-",
        size(place.size_bytes),
        cents(place.dollars),
    )


def _units(use: DimensionMonth) -> str:
    """Return the units used, and what share that is of the provisioned ones."""
    if not use.unit_hours:
        return f"{use.units:,.0f}"
    return f"{use.units:,.0f} ({use.units / (use.unit_hours * 3600):.0%} of capacity)"


def _pattern_rows(found: MonthReport) -> Iterator[tuple[str, ...]]:
    for each in found.patterns:
        place = each.table if each.index is None else f"{each.table}/{each.index}"
        yield (
            each.pattern, place, f"{each.read_units:,.0f}", f"{each.write_units:,.0f}",
            cents(each.dollars),
        )  # fmt: skip


def _change(change: SuggestedChange) -> str:
    where = f"{change.table}: " if change.table else ""
    saves = ""
    if change.saves is not None:
        money = dollars(abs(change.saves))
        saves = f" Saves {money} a month." if change.saves >= 0 else f" Costs {money} a month more."
    command = f" See `{change.command}`." if change.command else ""
    return f"{where}{change.text}{saves}{command}"


def _foot(found: MonthReport) -> str:
    return (
        f"Months and hours of UTC. Prices of {found.prices.region}, {found.prices.as_of}; storage "
        "at its present size; backups, streams, transfer and the free tier are left out."
    )


def _grid(titles: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in titles:
        is_text = title in ("table or index", "pattern", "refused")
        table.add_column(title, justify="left" if is_text else "right")
    for first, *rest in rows:
        table.add_row(NameCell(first), *(Text(each) for each in rest))
    return table


def _markdown_table(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return [
        f"| {' | '.join(titles)} |",
        f"|{'---|' * len(titles)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
