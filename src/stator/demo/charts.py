"""SVG charts: lines over time with event marks, and bars. The page's style sheet colours them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

_WIDTH: Final = 1080
_HEIGHT: Final = 250
_LEFT: Final = 64
_RIGHT: Final = 16
_TOP: Final = 34
_BOTTOM: Final = 34


def _nice_top(value: float) -> float:
    """Return a round number to end an axis at: the next 1, 2, 2.5 or 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 1.0
    while power * 10 <= value:
        power *= 10
    while power > value:
        power /= 10
    return next((power * step for step in (1, 2, 2.5, 5, 10) if power * step >= value), power * 10)


def _number(value: float) -> str:
    if value >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    if value >= 10_000:
        return f"{value / 1000:g}k"
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:g}"


def _frame(title: str, top: float, unit: str, inner: list[str], width: int = _WIDTH) -> str:
    plot = _HEIGHT - _TOP - _BOTTOM
    lines = [
        f'<svg class="chart" viewBox="0 0 {width} {_HEIGHT}" role="img"',
        f' aria-label="{escape(title)}">',
        f'<text class="title" x="{_LEFT}" y="18">{escape(title)}</text>',
    ]
    for step in range(5):
        y = _TOP + plot * (1 - step / 4)
        lines.append(
            f'<line class="grid" x1="{_LEFT}" x2="{width - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        lines.append(
            f'<text class="tick" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">'
            f"{_number(top * step / 4)}{unit}</text>"
        )
    return "\n".join([*lines, *inner, "</svg>"])


def line_chart(
    title: str,
    series: Sequence[tuple[str, Sequence[tuple[float, float]]]],
    events: Sequence[tuple[float, str]] = (),
    unit: str = "",
) -> str:
    """Return an SVG chart of lines over time, in seconds.

    ``series`` has the name and the points (time, value) of each line. ``events`` has times with
    labels, which are marked.
    """
    points = [point for _, values in series for point in values]
    last = max((x for x, _ in points), default=1.0) or 1.0
    top = _nice_top(max((y for _, y in points), default=1.0))
    width, plot = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def place(x: float, y: float) -> str:
        return f"{_LEFT + width * x / last:.1f},{_TOP + plot * (1 - y / top):.1f}"

    inner = []
    for number, (at, text) in enumerate(events):
        x = _LEFT + width * min(at, last) / last
        anchor = "end" if x > _WIDTH * 0.8 else "start"
        shift = -5 if anchor == "end" else 5
        inner.append(
            f'<line class="event" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>'
        )
        y = _TOP + 12 + 15 * (number % 4)
        inner.append(
            f'<text class="event-text" x="{x + shift:.1f}" y="{y}" text-anchor="{anchor}">'
            f"{escape(text)}</text>"
        )
    for number, (name, values) in enumerate(series):
        path = " ".join(place(x, y) for x, y in values)
        inner.append(f'<polyline class="line-{number}" points="{path}"/>')
        x = _WIDTH - _RIGHT - 150 * (len(series) - number - 1)
        inner.append(
            f'<text class="legend-{number}" x="{x}" y="18" text-anchor="end">{escape(name)}</text>'
        )
    for step in range(6):
        x = _LEFT + width * step / 5
        inner.append(
            f'<text class="tick" x="{x:.1f}" y="{_HEIGHT - 10}" text-anchor="middle">'
            f"{last * step / 5:.0f} s</text>"
        )
    return _frame(title, top, unit, inner)


def bar_chart(
    title: str,
    bars: Sequence[tuple[str, float]],
    unit: str = "",
    marked: str = "",
    width: int = _WIDTH,
) -> str:
    """Return an SVG chart of bars with their names below.

    ``bars`` has a name and a value for each. Bars whose names begin with ``marked`` are
    highlighted.
    """
    top = _nice_top(max((value for _, value in bars), default=1.0))
    inside, plot = width - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    each = inside / max(len(bars), 1)
    inner = []
    for number, (name, value) in enumerate(bars):
        height = plot * value / top
        x = _LEFT + each * number
        kind = "column-hot" if marked and name.startswith(marked) else "column"
        inner.append(
            f'<rect class="{kind}" x="{x + each * 0.12:.1f}" y="{_TOP + plot - height:.1f}" '
            f'width="{each * 0.76:.1f}" height="{height:.1f}">'
            f"<title>{escape(name)}: {value:,.0f}{unit}</title></rect>"
        )
        if each > 64 or number % max(1, round(80 / each)) == 0:
            inner.append(
                f'<text class="tick" x="{x + each / 2:.1f}" y="{_HEIGHT - 10}" '
                f'text-anchor="middle">{escape(name)}</text>'
            )
    return _frame(title, top, unit, inner, width)


def blocks(values: Sequence[float], width: int = 60) -> str:
    """Return a chart of values for a terminal: one line of at most ``width`` block characters.

    If there are more values than characters, each character shows the largest of several adjacent
    values.
    """
    if not values:
        return ""
    step = max(1, -(-len(values) // width))
    grouped = [max(values[at : at + step]) for at in range(0, len(values), step)]
    top = max(grouped) or 1.0
    return "".join(" ▁▂▃▄▅▆▇█"[min(8, round(8 * value / top))] for value in grouped)
