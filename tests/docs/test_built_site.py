"""The built site: no broken link, nothing from other hosts, readable on a phone, with a search."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from docsite import build, built_site
from docsite.sources import ROOT, written_pages

BROWSER = ROOT / ".browser"
WIDTHS = (390, 768, 1280)
PAGES = (
    "index.html",
    "start.html",
    "guides/data.html",
    "lint/ST103.html",
    "reference/python/stator/Db.html",
    "reference/python/stator.errors/index.html",
    "reference/commands/load.html",
)
DIAGRAMS = tuple(
    address.replace(".md", ".html")
    for file, address in written_pages().items()
    if "```mermaid" in file.read_text()
)

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("zensical") is None, reason="no generator; make docs installs it"
)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build.build(tmp_path_factory.mktemp("docs"))


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_links_lead_somewhere_and_nothing_comes_from_other_hosts(site: Path) -> None:
    assert built_site.faults(site) == []
    assert (site / "search.json").is_file()


@pytest.mark.skipif(
    shutil.which("node") is None or not (BROWSER / "installed").is_file(),
    reason="no browser; scripts/install-browser.sh installs one",
)
def test_a_browser_shows_every_page_as_it_should(address: str) -> None:
    """The environment variable STATOR_SCREENSHOTS names a folder for screenshots."""
    shots = os.environ.get("STATOR_SCREENSHOTS")
    pages = [*PAGES, *DIAGRAMS]
    wanted = {"site": address, "pages": pages, "widths": WIDTHS, "shots": shots}
    done = subprocess.run(
        ["node", "--input-type=module", "-"],
        input=(Path(__file__).parent / "look.mjs").read_text(encoding="utf-8"),
        cwd=BROWSER,
        env={**os.environ, "LOOK_AT": json.dumps(wanted)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    for page, widths in report["seen"].items():
        for width, seen in widths.items():
            assert seen["pageWidth"] <= seen["windowWidth"], (page, width)
            assert seen["outOfReach"] == [], (page, width)
            if build.MERMAID.is_file():
                assert seen["undrawn"] == 0, (page, width)
                assert bool(seen["drawn"]) == (page in DIAGRAMS), (page, width)
    if build.MERMAID.is_file():
        assert report["complaints"] == []
    red, green, blue = (int(number) for number in re.findall(r"\d+", report["background"])[:3])
    assert max(red, green, blue) < 60, "the dark scheme has a dark background"
    assert "/guides/leaderboard.html" in report["found"]
