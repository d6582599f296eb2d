"""The documentation is true: examples run, links lead somewhere, every command is documented."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from stator.cli.register import COMMANDS

ROOT = Path(__file__).parent.parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def _examples() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
        found += [
            (f"{page.relative_to(ROOT)}#{number}", block) for number, block in enumerate(blocks, 1)
        ]
    return found


def test_there_are_examples() -> None:
    assert len(_examples()) >= 5


@pytest.mark.parametrize(
    ("name", "code"), _examples(), ids=lambda value: value if "#" in value[:60] else ""
)
def test_an_example_runs(name: str, code: str, tmp_path: Path) -> None:
    file = tmp_path / "test_example.py"
    file.write_text(code)
    runner = ["-m", "pytest", "-q", "-p", "no:cacheprovider"] if "def test_" in code else []
    ran = subprocess.run(
        [sys.executable, *runner, file.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, f"{name}\n{ran.stdout}\n{ran.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_inside_the_project_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_command_is_documented() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    for command in COMMANDS:
        assert f"stator {command.name}" in text


def test_the_compatibility_page_names_every_operation_that_is_missing() -> None:
    from stator.engine.operations import OPERATIONS
    from stator.model.service import service_model

    page = (ROOT / "docs" / "compatibility.md").read_text()
    for operation in service_model().operations:
        if operation not in OPERATIONS:
            assert operation in page, operation


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_prose_ends_at_100_columns(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    wide = [line for line in text.splitlines() if len(line) > 100 and not line.startswith("|")]
    assert wide == []
