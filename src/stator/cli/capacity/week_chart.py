"""A chart of a week in a terminal: units used, and the capacity of an option above them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from rich.text import Text

from stator.model.quantities import amount
from stator.model.scaling.scheduled_action import zone
from stator.ops.capacity.options import CapacityOption
from stator.ops.capacity.use_series import MINUTE, Dimension, TableHistory

_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_HEIGHT: Final = 6
_COLUMNS: Final = 56
_WEEK_MINUTES: Final = 7 * 24 * 60
_LABEL: Final = 9


def busiest(history: TableHistory) -> Dimension:
    """Return the dimension whose busiest minute has the most units."""
    return max(history.series, key=lambda each: max(each.consumed, default=0.0)).dimension


def week_chart(
    history: TableHistory, option: CapacityOption, dimension: Dimension, timezone: str
) -> Iterator[Text]:
    """Yield the lines of a chart of the history's last week. Each column is three hours.

    A block is as high as the mean use; a line above is the mean capacity, if there is any.
    """
    found = option.replays[0].of(dimension)
    first = max(0, history.minutes - _WEEK_MINUTES)
    used = _columns([units / MINUTE for units in history.of(dimension).demand()], first)
    capacity = _columns([float(units) for units in found.capacity], first)
    top = max([*used, *capacity, 1.0])
    yield Text.assemble(
        f"  {dimension}, units a second", (f"  █ used{'  ─ capacity' if capacity else ''}", "dim")
    )
    for row in range(_HEIGHT, 0, -1):
        label = amount(top * row / _HEIGHT) if row in (_HEIGHT, _HEIGHT // 2) else ""
        line = Text(f"{label:>{_LABEL - 1}} ", "dim")
        for at, units in enumerate(used):
            held = capacity[at] if capacity else -1.0
            line.append(*_cell(units / top, held / top, row))
        yield line
    yield Text(" " * _LABEL + _days(history.start + first * MINUTE, len(used), timezone), "dim")


def _cell(used: float, capacity: float, row: int) -> tuple[str, str]:
    """Return the character and style of a column in a row; rows count from 1 at the bottom."""
    filled = used * _HEIGHT - (row - 1)
    level = round(min(1.0, max(0.0, filled)) * (len(_BLOCKS) - 1))
    if level > 0:
        return _BLOCKS[level], "green"
    if row - 1 < capacity * _HEIGHT <= row:
        return "─", "cyan"
    return " ", ""


def _columns(values: Sequence[float], first: int) -> list[float]:
    width = _WEEK_MINUTES // _COLUMNS
    parts = [values[at : at + width] for at in range(first, len(values), width)]
    return [sum(part) / len(part) for part in parts]


def _days(start: int, columns: int, timezone: str) -> str:
    where = zone(timezone)
    seconds = _WEEK_MINUTES // _COLUMNS * MINUTE
    line = ""
    before = None
    for column in range(columns):
        day = datetime.fromtimestamp(start + column * seconds, where)
        if day.date() != before and len(line) <= column and column + 3 <= columns:
            line += day.strftime("%a") + " "
        before = day.date()
        line = line.ljust(column + 1)
    return line.rstrip()
