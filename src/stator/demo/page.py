"""The report as one self-contained HTML page: facts, charts and the results of the recount."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from stator.demo.charts import bar_chart, line_chart
from stator.demo.live import HOT
from stator.demo.story import Story
from stator.design.documents.style import STYLE
from stator.model.quantities import about_dollars, size

_CHARTS: Final = """
svg.chart { display: block; width: 100%; height: auto; background: var(--card); margin: .8rem 0;
  border: 1px solid var(--line); border-radius: 10px; }
svg.chart text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  fill: var(--soft); }
svg.chart .title { font-weight: 600; font-size: 13px; fill: var(--ink); }
svg.chart .grid { stroke: var(--line); }
svg.chart .event { stroke: var(--warn); stroke-dasharray: 4 3; }
svg.chart .event-text { fill: var(--warn); font-size: 11px; }
svg.chart polyline { fill: none; stroke-width: 2.2; stroke-linejoin: round; }
svg.chart .line-0 { stroke: var(--accent); } svg.chart .line-1 { stroke: #c2571a; }
svg.chart .line-2 { stroke: #6a58c4; }
svg.chart .legend-0 { fill: var(--accent); font-weight: 600; }
svg.chart .legend-1 { fill: #c2571a; font-weight: 600; }
svg.chart .column { fill: var(--bar); } svg.chart .column-hot { fill: #d1603d; }
.ok { color: var(--accent); font-weight: 700; } .bad { color: #c0392b; font-weight: 700; }
pre { background: var(--code); border-radius: 10px; padding: 1rem 1.2rem; overflow-x: auto;
  font-size: .84rem; line-height: 1.45; }
.verdict { font-size: 1.15rem; border-left: 4px solid var(--accent); padding: .6rem 1rem;
  background: var(--card); border-radius: 0 10px 10px 0; }
.two { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
@media (max-width: 800px) { .two { grid-template-columns: 1fr; } }
"""


def render(story: Story) -> str:
    body = [
        *_head(story),
        *_design(story),
        *_load(story),
        *_live(story),
        *_heat(story),
        *_summaries(story),
        *_recount(story),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>The router fleet</title><style>{STYLE}{_CHARTS}</style></head><body><main>\n"
        + "\n".join(body)
        + "\n</main></body></html>\n"
    )


def _head(story: Story) -> Iterable[str]:
    verdict = "Nothing is missing" if story.is_whole else "The recount does not agree"
    yield (
        '<header class="top"><h1>The router fleet</h1><p>Home routers test their lines. Stator '
        "designed the tables, loaded a month of tests, streamed and summarised new ones, archived "
        f"expired ones and recounted everything, on this machine, in {story.seconds:.0f} "
        "seconds.</p></header>"
    )
    facts = [
        (f"{story.history_tests:,}", "tests in a month of history"),
        (f"{story.history_tests / max(story.load_seconds, 0.001):,.0f}/s", "loaded from Parquet"),
        (f"{story.samples[-1].written if story.samples else 0:,}", "live tests"),
        (f"{story.alerts:,}", "alerts"),
        (f"{story.archived:,}", "expired into the archive"),
        (
            f"{sum(check.is_right for check in story.checks)} of {len(story.checks)}",
            "totals of the recount agree",
        ),
    ]
    yield (
        '<div class="facts">'
        + "".join(
            f'<div class="fact"><b>{value}</b><span>{text}</span></div>' for value, text in facts
        )
        + "</div>"
    )
    yield (
        f'<p class="verdict">{verdict}: every test was counted again, one by one, and compared '
        "with the views that the workers maintained.</p>"
    )


def _design(story: Story) -> Iterable[str]:
    yield "<h2>Designed from its access patterns</h2>"
    yield (
        "<p>The planner chose one table and its keys. At the declared rates it costs about "
        f"{about_dollars(story.dollars_per_month)} a month on AWS.</p>"
    )
    yield _table(
        [
            "pattern",
            "request",
            "calls",
            "items",
            "ms per call",
            "planned items",
            "planned RCU",
            "measured RCU",
        ],
        [
            [
                p.name,
                p.request,
                f"{p.calls}",
                f"{p.items:,}",
                f"{p.milliseconds:.2f}",
                f"{p.planned_items:,}",
                f"{p.planned_units:g}",
                f"{p.measured_units:g}",
            ]
            for p in story.patterns
        ],
        numbers=range(2, 8),
    )
    if story.findings:
        yield "".join(f'<p class="warning">{escape(finding)}</p>' for finding in story.findings)
    plan = escape("\n".join(story.plan_lines))
    yield f"<details><summary>The plan</summary><pre>{plan}</pre></details>"


def _load(story: Story) -> Iterable[str]:
    yield "<h2>A month of history, loaded</h2>"
    yield (
        f"<p>Loaded {story.history_tests:,} tests of {story.routers:,} routers from "
        f"{size(story.parquet_bytes)} of Parquet in {story.load_seconds:.1f} s "
        f"({story.load_units:,.0f} write units). Built the views by router, and by provider and "
        f"hour, in {story.summary_seconds:.1f} s.</p>"
    )
    if story.hours:
        days: dict[str, float] = {}
        for moment, count, _ in story.hours:
            days[moment[5:10]] = days.get(moment[5:10], 0.0) + count
        yield bar_chart(f"Tests of {HOT} by day, from the summaries", list(days.items()))


def _live(story: Story) -> Iterable[str]:
    yield "<h2>Live: workers share the stream, and one is killed</h2>"
    events = [(event.at, event.text) for event in story.events]
    written = [(sample.at, float(sample.written)) for sample in story.samples]
    handled = [(sample.at, float(sample.handled)) for sample in story.samples]
    yield line_chart(
        "Tests written and changes handled",
        [("written", written), ("handled", handled)],
        events,
    )
    lag = [
        (sample.at, sample.lag_seconds)
        for sample in story.samples
        if sample.lag_seconds is not None
    ]
    yield line_chart("Lag of the slowest worker", [("seconds", lag)], events, unit=" s")


def _heat(story: Story) -> Iterable[str]:
    yield "<h2>One provider turns hot, is throttled, and is spread over shards</h2>"
    shards = ", then ".join(map(str, story.spreads)) or "more"
    reason = story.throttle_reason or "no reason"
    yield (
        f"<p>Each provider has a live feed. When {HOT} took most of the traffic, its partition "
        "reached the 1,000 write units a second that a partition takes. The engine refused its "
        f"writes, as DynamoDB does, and named the reason: <code>{escape(reason)}</code>. The feed "
        f"found the hot key by that reason and spread just this key over {shards} shards, while it "
        f"was written and read: {escape(story.refusals)}.</p>"
    )
    yield '<div class="two">'
    for title, heat in (
        ("Feed writes by partition, hot", story.heat_before),
        ("Spread", story.heat_after),
    ):
        total = sum(heat.values()) or 1
        top = sorted(heat.items(), key=lambda entry: -entry[1])[:12]
        yield bar_chart(
            f"{title} (% of {total:,})",
            [(name.removesuffix(" / 0"), 100 * value / total) for name, value in top],
            "%",
            marked=HOT,
            width=540,
        )
    yield "</div>"
    shares = [(sample.at, 100 * sample.hottest_share) for sample in story.samples]
    yield line_chart(
        "Share of the hottest partition",
        [("percent", shares)],
        [(e.at, e.text) for e in story.events],
        unit="%",
    )


def _summaries(story: Story) -> Iterable[str]:
    yield "<h2>Summaries, as maintained by the workers</h2>"
    yield _table(
        ["provider", "tests", "mean ms", "p50", "p95", "p99"],
        [
            [s.isp, f"{s.tests:,}", f"{s.mean:.1f}", f"{s.p50:.0f}", f"{s.p95:.0f}", f"{s.p99:.0f}"]
            for s in story.summaries
        ],
        numbers=range(1, 6),
    )
    if story.summaries:
        yield bar_chart("Latency, 99th percentile (ms)", [(s.isp, s.p99) for s in story.summaries])


def _recount(story: Story) -> Iterable[str]:
    yield "<h2>The recount</h2><p>At the end the whole table was scanned and counted.</p>"
    yield _table(
        ["what", "expected", "found", ""],
        [
            [
                c.what,
                f"{c.expected:,}",
                f"{c.found:,}",
                '<span class="ok">agrees</span>'
                if c.is_right
                else '<span class="bad">differs</span>',
            ]
            for c in story.checks
        ],
        numbers=(1, 2),
        raw=(3,),
    )


def _table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Iterable[int] = (),
    raw: Iterable[int] = (),
) -> str:
    right, plain = set(numbers), set(raw)

    def cell(tag: str, at: int, text: str) -> str:
        kind = ' class="number"' if at in right else ""
        return f"<{tag}{kind}>{text if at in plain else escape(text)}</{tag}>"

    lines = ["<tr>" + "".join(cell("th", at, text) for at, text in enumerate(head)) + "</tr>"]
    body = [
        "<tr>" + "".join(cell("td", at, text) for at, text in enumerate(row)) + "</tr>"
        for row in rows
    ]
    content = f"<thead>{lines[0]}</thead><tbody>{''.join(body)}</tbody>"
    return f'<div class="scroll"><table>{content}</table></div>'
