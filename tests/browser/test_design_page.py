"""The page of ``stator docs`` in a browser: no errors, everything visible on phone and desktop."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from stator.design.documents import document_of, html
from tests.design import models, shop

ROOT = Path(__file__).parent.parent.parent
BROWSER = ROOT / ".browser"
WIDTHS = (360, 768, 1400)
DESIGNS = {"shop": models.shop(), "social": models.social(), "orders": shop.shop}

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not (BROWSER / "installed").is_file(),
    reason="no browser; scripts/install-browser.sh installs one",
)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The browser's report on each page at each width.

    The environment variable STATOR_SCREENSHOTS names a folder for screenshots.
    """
    folder = tmp_path_factory.mktemp("pages")
    pages = {}
    for name, design in DESIGNS.items():
        pages[name] = str(folder / f"{name}.html")
        Path(pages[name]).write_text(html(document_of(design)), encoding="utf-8")
    wanted = {"pages": pages, "widths": WIDTHS, "shots": os.environ.get("STATOR_SCREENSHOTS")}
    done = subprocess.run(
        ["node", "--input-type=module", "-"],
        input=(Path(__file__).parent / "look.mjs").read_text(encoding="utf-8"),
        cwd=BROWSER,
        env={**os.environ, "LOOK_AT": json.dumps(wanted)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", DESIGNS)
class TestPage:
    def test_the_browser_has_nothing_to_complain_about(
        self, seen: dict[str, Any], name: str, width: int
    ) -> None:
        """No error on the console, nothing that does not load, no request to the network."""
        assert seen[name][str(width)]["complaints"] == []

    def test_tables_and_drawing_can_be_seen(
        self, seen: dict[str, Any], name: str, width: int
    ) -> None:
        page, document = seen[name][str(width)], document_of(DESIGNS[name])
        assert page["title"] == f"{document.name}: design"
        assert page["headings"] == ["Access patterns", "Entities", "Tables", "Example items"]
        shown = [each for each in page["tables"] if each["shown"]]
        assert len(shown) >= 2 + len(document.entities) + len(document.tables)
        assert all(each["width"] > 200 for each in shown)
        hidden = sum(len(each.indexes) for each in document.tables)  # behind their tabs
        assert len(page["tables"]) == len(shown) + hidden
        [drawing] = page["drawings"]
        assert drawing["shown"] and drawing["height"] > 50
        assert page["drawn"] > sum(len(info.fields) for info in document.diagram.boxes)

    def test_a_tab_shows_its_index_alone(self, seen: dict[str, Any], name: str, width: int) -> None:
        for table, tabs in zip(
            document_of(DESIGNS[name]).tables, seen[name][str(width)]["tabs"], strict=True
        ):
            count = 1 + len(table.indexes)
            assert tabs == [[at == other for other in range(count)] for at in range(count)]

    def test_nothing_runs_out_of_the_window(
        self, seen: dict[str, Any], name: str, width: int
    ) -> None:
        """Wide tables and the drawing scroll by themselves; the page does not."""
        page = seen[name][str(width)]
        assert page["pageWidth"] <= page["windowWidth"]
        assert page["outOfReach"] == []
        assert page["letters"] >= 12

    def test_every_link_leads_somewhere(self, seen: dict[str, Any], name: str, width: int) -> None:
        links = seen[name][str(width)]["links"]
        assert len(links) == 4
        assert all(each["there"] and each["shown"] for each in links)
