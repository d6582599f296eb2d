"""``stator docs`` as people run it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .design_folder import DESIGN, stator_in


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(DESIGN)
    return tmp_path


def test_markdown_goes_to_stdout(folder: Path) -> None:
    done = stator_in(folder, "docs")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("# shop\n")
    assert "```mermaid\nerDiagram" in done.stdout
    assert "**user_by_id**<br>Who is logged in." in done.stdout
    assert "Somebody who buys." in done.stdout


def test_the_name_of_the_file_says_the_format(folder: Path) -> None:
    done = stator_in(folder, "docs", "shop.py", "--out", "shop.html")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "wrote shop.html\n")
    assert (folder / "shop.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    stator_in(folder, "docs", "--format", "markdown", "--out", "odd.html")
    assert (folder / "odd.html").read_text(encoding="utf-8").startswith("# shop\n")


def test_json_says_what_was_written(folder: Path) -> None:
    done = stator_in(folder, "docs", "--format", "html", "--out", "page", "--json")
    assert json.loads(done.stdout) == {
        "file": "page",
        "format": "html",
        "bytes": (folder / "page").stat().st_size,
    }


def test_what_cannot_be_written_is_explained(folder: Path) -> None:
    done = stator_in(folder, "docs", "--out", "no/such/folder/x.md")
    assert done.returncode == 1
    assert done.stderr.startswith(
        "error: cannot write no/such/folder/x.md: No such file or directory\nhint: "
    )


@pytest.mark.parametrize("arguments", [["--format", "pdf"], ["--json"], ["--out", "."]])
def test_wrong_usage_exits_with_2(folder: Path, arguments: list[str]) -> None:
    done = stator_in(folder, "docs", *arguments)
    assert done.returncode == 2
    assert "Usage: stator docs" in done.stderr


def test_a_design_that_is_wrong_is_explained(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(DESIGN.replace("rps=200", "rps=-1"))
    done = stator_in(tmp_path, "docs")
    assert done.returncode == 1
    assert "shop.py" in done.stderr and "Traceback" not in done.stderr
