"""Shows the layouts of a design side by side, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stator.cli.output import print_parts
from stator.cli.tables.name_cell import NameCell
from stator.design.planner.layout_options import LayoutOption, differences
from stator.model.quantities import about_dollars


def show_layouts(options: Iterable[LayoutOption], console: Console) -> None:
    """Print one row for each layout, and then what else differs between them."""
    options = tuple(options)
    table = Table(box=None, pad_edge=False, header_style="bold cyan")
    for title in ("layout", "a month", "tables", "indexes", "reads with several requests"):
        table.add_column(title, justify="right" if title in ("a month", "tables") else "left")
    for each in options:
        if each.plan is None:
            table.add_row(each.layout, "impossible", "", "", Text(each.refused, "yellow"))
            continue
        table.add_row(
            each.layout,
            Text(about_dollars(each.plan.dollars_per_month), "green"),
            str(each.tables),
            str(each.indexes),
            NameCell(", ".join(each.several_requests) or "none"),
        )
    parts: list[RenderableType] = [table]
    for each in options:
        parts.append(Text.assemble("\n", (each.layout, "bold")))
        money = _differences(options, each)
        parts += [Padding(Text("; ".join(money), "yellow"), (0, 0, 0, 2))] if money else []
        parts += [Padding(Text(line), (0, 0, 0, 2)) for line in each.consequences]
    print_parts(console, *parts)


def _differences(options: tuple[LayoutOption, ...], other: LayoutOption) -> tuple[str, ...]:
    """Return where the money of a layout differs from that of the design's own, in words."""
    own = options[0]
    if other is own or own.plan is None or other.plan is None:
        return ()
    return differences(own.plan, other.plan)


def layouts_data(options: Iterable[LayoutOption]) -> list[dict[str, Any]]:
    """Return the layouts as JSON data."""
    options = tuple(options)
    return [
        {
            "layout": each.layout,
            "dollars_per_month": None if each.plan is None else each.plan.dollars_per_month,
            "tables": each.tables,
            "indexes": each.indexes,
            "several_requests": list(each.several_requests),
            "refused": each.refused or None,
            "differences": list(_differences(options, each)),
            "consequences": list(each.consequences),
        }
        for each in options
    ]
