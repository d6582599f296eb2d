"""Programs in the documentation, the examples and the starters import only what is public."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from docsite.markdown import code_blocks
from docsite.public_api import PUBLIC_MODULES

ROOT = Path(__file__).parents[2]


def programs() -> Iterator[tuple[str, str]]:
    """The name and the source of every program that readers see. The tour is about our own code."""
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "examples/README.md"):
        for block in code_blocks(page.read_text()):
            if block.language in ("python", "py") and page.name != "tour.md":
                yield f"{page.relative_to(ROOT)}:{block.line}", block.code
    for path in (ROOT / "examples").glob("*.py"):
        yield str(path.relative_to(ROOT)), path.read_text()
    for path in (ROOT / "examples").glob("*.ipynb"):
        for at, cell in enumerate(json.loads(path.read_text())["cells"]):
            if cell["cell_type"] == "code":
                yield f"{path.name}, cell {at}", "".join(cell["source"])
    for path in (ROOT / "src/stator/cli/starters").rglob("*.py.txt"):
        yield str(path.relative_to(ROOT)), path.read_text().replace("NAME", "shop")


def not_public(source: str) -> Iterator[str]:
    """The names that a program imports from Stator and that no public module exports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and is_ours(str(node.module)):
            known = import_module(str(node.module)).__all__ if is_public(node.module) else ()
            yield from (f"{node.module}.{each.name}" for each in node.names
                        if each.name not in known
                        and f"{node.module}.{each.name}" not in PUBLIC_MODULES)  # fmt: skip
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names
                        if is_ours(each.name) and not is_public(each.name))  # fmt: skip


def is_ours(module: str) -> bool:
    return re.match(r"stator(\.|$)", module) is not None


def is_public(module: str | None) -> bool:
    return module in PUBLIC_MODULES


@pytest.mark.parametrize(
    ("name", "source"), [pytest.param(*each, id=each[0]) for each in programs()]
)
def test_a_program_imports_only_public_names(name: str, source: str) -> None:
    assert list(not_public(source)) == []


def test_a_name_that_is_not_public_is_found() -> None:
    assert list(not_public("from stator.tables.telemetry import log_calls")) == [
        "stator.tables.telemetry.log_calls"
    ]
    assert list(not_public("from stator import Tree, Entity")) == ["stator.Tree"]
    assert list(not_public("import stator.clock")) == ["stator.clock"]
    assert list(not_public("from stator import patterns\nimport stator.bulk, statore")) == []
