"""Shows what scales at a table: units, bounds, targets and schedules."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from stator.ops.capacity.capacity_state import CapacityState
from stator.ops.capacity.use_series import Dimension


def scaling_lines(
    state: CapacityState, dimensions: tuple[Dimension, ...]
) -> Iterator[RenderableType]:
    """Yield a table's units and scaling, a line for each dimension and scheduled action."""
    mode = "provisioned" if state.is_provisioned else "on-demand"
    yield Text.assemble((state.table, "bold"), f"  {mode}")
    if not state.is_provisioned and not state.scaling:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("  scales", "units", "min", "max", "target"):
        table.add_column(title, justify="left" if title == "  scales" else "right", no_wrap=True)
    table.add_column("schedule")
    for each in dimensions:
        units = state.units.get(each)
        scaled = state.scaling.get(each)
        shown = "-" if units is None else f"{units:,}"
        if scaled is None:
            table.add_row(f"  {each}", shown, "-", "-", "-", Text("does not scale", "dim"))
            continue
        target = "-" if scaled.tracking is None else f"{scaled.tracking.target_percent:g} %"
        schedule = "\n".join(
            f"{action.schedule} {_bounds(action.least, action.most)} {action.timezone}"
            for action in scaled.actions
        )
        bounds = scaled.bounds
        table.add_row(f"  {each}", shown, f"{bounds.least:,}", f"{bounds.most:,}", target, schedule)
    yield table


def _bounds(least: int | None, most: int | None) -> str:
    named = (("min", least), ("max", most))
    return " ".join(f"{name}={value}" for name, value in named if value is not None)
