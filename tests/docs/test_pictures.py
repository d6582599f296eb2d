"""The pictures of the README show what its program gives today; `make pictures` takes them anew."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "scripts" / "pictures.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_terminal_shows_the_plan_of_today(pictures: ModuleType) -> None:
    assert (ROOT / "docs" / "pictures" / "plan.svg").read_text() == pictures.plan_svg()


def test_the_picture_of_the_page_was_taken_of_the_page_of_today(pictures: ModuleType) -> None:
    taken = json.loads((ROOT / "docs" / "pictures" / "page.json").read_text())
    assert taken == {"sha256": pictures.checksum(pictures.page_html())}
    assert (ROOT / "docs" / "pictures" / "page.png").read_bytes().startswith(b"\x89PNG")


def test_pictures_load_nothing_from_other_hosts(pictures: ModuleType) -> None:
    text = pictures.plan_svg()
    assert "url(" not in text.replace("url(#", "") and "@font-face" not in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "").split("</style>")[-1]
