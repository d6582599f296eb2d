"""The report of the demo in the terminal."""

from __future__ import annotations

from itertools import pairwise

from rich.console import Console
from rich.rule import Rule
from rich.table import Table

from stator.demo.charts import blocks
from stator.demo.live import HOT
from stator.demo.story import Story

_RULE = 80
"""The longest rule above the report, in columns."""


def show(story: Story, console: Console) -> None:
    console.print(Rule("[bold]The router fleet"), width=min(console.width, _RULE))
    _times(story, console)
    _heat(story, console)
    _summaries(story, console)
    verdict = (
        "[bold green]Nothing is missing[/]"
        if story.is_whole
        else "[bold red]The recount does not agree[/]"
    )
    agreeing = sum(check.is_right for check in story.checks)
    console.print(
        f"\n{verdict}: {agreeing} of {len(story.checks)} totals agree, after "
        f"{story.seconds:.0f} seconds."
    )


def _times(story: Story, console: Console) -> None:
    samples = story.samples
    if not samples:
        return
    rates = [(b.handled - a.handled) / max(b.at - a.at, 0.1) for a, b in pairwise(samples)]
    lags = [each.lag_seconds for each in samples if each.lag_seconds is not None]
    lines = {
        "handled/s": (rates, f"up to {max(rates, default=0):,.0f}"),
        "seconds behind": (
            lags,
            f"at most {max(lags):.1f}" if lags else "unknown",
        ),
        "hottest partition": (
            [sample.hottest_share for sample in samples],
            f"up to {max(s.hottest_share for s in samples):.0%}",
        ),
    }
    for name, (values, note) in lines.items():
        console.print(f"  {name:18} [cyan]{blocks(values)}[/] {note}")
    for event in story.events:
        console.print(f"  {event.at:5.1f} s  {event.text}")


def _heat(story: Story, console: Console) -> None:
    if story.spreads:
        console.print(f"\n  {story.refusals}")
    for title, heat in (("hot", story.heat_before), ("spread", story.heat_after)):
        total = sum(heat.values())
        if not total:
            continue
        console.print(f"\n  Feed writes by partition, {title}")
        for name, value in sorted(heat.items(), key=lambda entry: -entry[1])[:6]:
            colour = "red" if name.startswith(HOT) else "cyan"
            console.print(
                f"    {name:18} [{colour}]{'█' * max(1, round(40 * value / total))}[/] "
                f"{value / total:.0%}"
            )


def _summaries(story: Story, console: Console) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    for title in ("provider", "tests", "mean ms", "p50", "p95", "p99"):
        table.add_column(title, justify="left" if title == "provider" else "right")
    for each in story.summaries:
        table.add_row(
            each.isp,
            f"{each.tests:,}",
            f"{each.mean:.1f}",
            f"{each.p50:.0f}",
            f"{each.p95:.0f}",
            f"{each.p99:.0f}",
        )
    console.print("\n  Summaries, as maintained by the workers")
    console.print(table)
