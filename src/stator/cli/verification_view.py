"""Shows the report of ``stator plan --verify``: a row for each pattern, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stator.cli.output import print_parts
from stator.cli.tables.name_cell import NameCell
from stator.model.quantities import amount, duration, plural
from stator.verification import VerificationReport, VerificationRow

_WIDE: Final = 92
"""Narrower tables have one blank between columns, which leaves room for names of 20 letters."""


def show_report(report: VerificationReport, console: Console) -> None:
    """Print a report: a row for each pattern, details of wrong estimates, and the guesses."""
    parts = (
        _heading(report),
        *_tables(report, console.width),
        *_on_boundary(report),
        *_wrong(report),
        *_contradictions(report),
        *_guesses(report),
        _end(report),
    )
    print_parts(console, *parts)


def _heading(report: VerificationReport) -> Text:
    return Text.assemble(
        (report.design, "bold"),
        f"  {plural(len(report.rows), 'pattern')} measured on the embedded engine, with "
        f"{plural(report.items_stored, 'item')}, in {duration(report.seconds)}",
    )


def _tables(report: VerificationReport, width: int) -> Iterator[RenderableType]:
    for kind, title in (("read", "Reads"), ("write", "Writes")):
        rows = [row for row in report.rows if row.kind == kind]
        if rows:
            yield Text.assemble("\n", (title, "bold cyan"))
            yield Padding(_table(rows, width, is_read=kind == "read"), (0, 0, 0, 2))
    if any(row.extrapolated for row in report.rows):
        yield Text("* more items than the budget: measured at two sizes and extrapolated", "dim")


def _table(rows: list[VerificationRow], width: int, *, is_read: bool) -> Table:
    padding = (0, 1 if width < _WIDE else 2, 0, 0)
    table = Table(box=None, pad_edge=False, padding=padding, header_style="dim")
    table.add_column("pattern", max_width=26)
    unit = rows[0].unit
    names = [f"est. {unit}", f"{unit}", "off"]
    names += ["read", "returned", "pages"] if is_read else ["RCU"]
    for name in (*names, "requests", "engine ms"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        style = "yellow" if row.is_on_boundary else "" if row.ok else "red"
        mark = "*" if row.extrapolated else ""
        counts = (
            (amount(row.items_read), amount(row.items_returned), amount(row.pages))
            if is_read
            else (amount(row.read_units),)
        )
        table.add_row(
            NameCell(row.pattern, "bold"),
            amount(row.estimated_units),
            f"{amount(row.measured_units)}{mark}",
            Text(_off(row), style),
            *counts,
            amount(row.requests),
            f"{row.milliseconds:.1f}",
        )
    return table


def _off(row: VerificationRow) -> str:
    if row.measured_units == 0:
        return "=" if row.ok else "all"
    if abs(row.off) < 0.005:
        return "="
    if row.off > 9:
        return f"{row.off + 1:,.0f} times"
    return f"{row.off:+.0%}"


def _on_boundary(report: VerificationReport) -> Iterator[RenderableType]:
    for row in report.on_boundary:
        yield Text.assemble(
            "\n",
            ("boundary  ", "bold yellow"),
            (row.pattern, "bold"),
            f": the plan says {amount(row.estimated_units)} {row.unit} a call, and the engine "
            f"consumed {amount(row.measured_units)}",
        )
        assert row.nearby_units is not None
        low, high = row.nearby_units
        unit_size = "4 KB" if row.kind == "read" else "1 KB"
        near = f"within 1 % of a {unit_size} boundary"
        lines = [
            f"{near}: {each.entity} has {each.measured:,.0f} bytes measured, "
            f"{each.estimated:,.0f} in the plan"
            for each in row.sizes
        ]
        lines.append(
            f"with items 1 % smaller or larger, a call takes {amount(low)} to {amount(high)} "
            f"{row.unit}"
        )
        for line in lines:
            yield Padding(Text(line), (0, 0, 0, 10))


def _contradictions(report: VerificationReport) -> Iterator[RenderableType]:
    """Yield the notes of rows whose estimate holds: declarations that contradict each other."""
    for row in report.rows:
        if row.ok:
            for note in row.notes:
                yield Text.assemble(
                    "\n", ("note  ", "bold yellow"), (row.pattern, "bold"), f": {note}"
                )


def _wrong(report: VerificationReport) -> Iterator[RenderableType]:
    for row in report.failed:
        yield Text.assemble(
            "\n",
            ("wrong  ", "bold red"),
            (row.pattern, "bold"),
            f": the plan says {amount(row.estimated_units)} {row.unit} a call, and the engine "
            f"consumed {amount(row.measured_units)}",
        )
        for line in _details(row):
            yield Padding(Text(line), (0, 0, 0, 7))


def _details(row: VerificationRow) -> Iterator[str]:
    for place in row.places:
        yield f"{place.place}: {amount(place.estimated)} and {amount(place.measured)}"
    yield from row.notes
    for guess in row.guesses:
        yield f"guessed: {guess}"
    if not row.guesses and not row.notes:
        yield "nothing was guessed, so the estimate is wrong: please report it with the design"


def _guesses(report: VerificationReport) -> Iterator[RenderableType]:
    shown = {guess for row in report.failed for guess in row.guesses}
    others = [guess for guess in report.guesses if guess not in shown]
    if others:
        yield Text.assemble("\n", ("Guessed", "bold cyan"), " and therefore not verified")
        for guess in others:
            yield Padding(Text(guess, "dim"), (0, 0, 0, 2))


def _end(report: VerificationReport) -> Text:
    if report.ok:
        but = ", but for unit boundaries" if report.on_boundary else ""
        return Text(f"\nno estimate is off by more than a quarter{but}", "green")
    count = len(report.failed)
    noun = "estimate is" if count == 1 else "estimates are"
    return Text(f"\n{count} {noun} off by more than a quarter", "red")
