"""``stator demo`` at a small scale: nothing is missing after a kill -9; the page is whole."""

from __future__ import annotations

import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console

from stator.demo.charts import bar_chart, blocks, line_chart
from stator.demo.page import render
from stator.demo.story import Checked, Event, Sample, Story
from stator.demo.terminal import show


def test_the_demo_ends_with_nothing_missing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "stator", "demo", "--scale", "10000", "--seconds", "6"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Nothing is missing" in done.stdout
    assert "killed" in done.stdout and "hot" in done.stdout
    assert "differs" not in done.stdout
    assert "TableWriteKeyRangeThroughputExceeded" in done.stdout
    assert "spread over 2 shards" in done.stdout
    refused = re.search(r"refused: ([\d,]+) writes refused in [\d.]+ s until the feed", done.stdout)
    assert refused is not None and int(refused[1].replace(",", "")) > 0
    page = (tmp_path / "fleet-report.html").read_text()
    assert page.count("<svg") >= 7
    assert not re.search(r'(src|href)="', page)  # nothing is fetched from anywhere
    assert [path.name for path in tmp_path.iterdir()] == ["fleet-report.html"]


def test_a_recount_that_differs_is_reported() -> None:
    story = Story(checks=[Checked("tests", 10, 10), Checked("alerts <b>", 5, 4)])
    story.samples = [Sample(0.5, 10, 8, 0.2, 0.5, "a"), Sample(1.0, 20, 20, 0.1, 0.4, "b")]
    story.events = [Event(0.7, "killed")]
    assert not story.is_whole
    page = render(story)
    assert "The recount does not agree" in page
    assert "alerts &lt;b&gt;" in page and "differs" in page
    assert not Story().is_whole  # nothing checked proves nothing


def test_an_unknown_lag_is_no_point_of_the_chart() -> None:
    known = [Sample(1.0, 20, 20, 7.25, 0.4, "b"), Sample(2.0, 30, 30, 5.0, 0.4, "b")]
    story = Story(checks=[Checked("tests", 10, 10)], samples=known)
    with_unknown = Story(checks=story.checks, samples=[Sample(0.5, 10, 8, None, 0.5, "a"), *known])
    assert lag_points(render(story)) == lag_points(render(with_unknown)) == 2
    unknown = Story(samples=[Sample(0.5, 10, 8, None, 0.5, "a")])
    for each, shown in ((with_unknown, "at most 7.2"), (unknown, "unknown")):
        report = StringIO()
        show(each, Console(file=report, width=200))
        assert shown in report.getvalue()


def lag_points(page: str) -> int:
    chart = page[page.index("Lag of the slowest worker") :]
    points = re.search(r'points="([^"]+)"', chart)
    return 0 if points is None else len(points.group(1).split())


def test_charts_draw_every_point_and_bar() -> None:
    chart = line_chart("t", [("a", [(0.0, 0.0), (10.0, 4.0)])], [(5.0, "here")])
    points = re.search(r'points="([^"]+)"', chart)
    assert points is not None and len(points.group(1).split()) == 2
    assert "here" in chart and "10 s" in chart and ">5<" in chart
    bars = bar_chart("t", [("x", 3.0), ("hot y", 6.0)], marked="hot")
    heights = [float(each) for each in re.findall(r'height="([0-9.]+)"><title>', bars)]
    assert heights[1] == 2 * heights[0]
    assert bars.count("column-hot") == 1
    assert blocks([0, 1, 2, 4]) == " ▂▄█"
    assert len(blocks(list(range(1000)))) <= 60
    assert blocks([]) == ""
    assert bar_chart("empty", []) and line_chart("empty", [("a", [])])
