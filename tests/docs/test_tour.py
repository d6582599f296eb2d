"""The tour's four changes, made on a copy of the tree from the page's own blocks.

Each test follows one section: it takes the code, the file names, the lines for registers and the
test command from docs/tour.md, so that none of them can go out of date.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOUR = (ROOT / "docs" / "tour.md").read_text()


class Section:
    """A section of the tour: its blocks of code, its words in backticks, and its commands."""

    def __init__(self, title: str) -> None:
        found = re.search(
            rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", TOUR, re.MULTILINE | re.DOTALL
        )
        assert found is not None, f"the tour has no section {title}"
        self.text = found[1]
        fence = re.compile(r"^ +```py\n(.*?)^ +```\n", re.MULTILINE | re.DOTALL)
        self.blocks = [textwrap.dedent(block) for block in fence.findall(self.text)]
        words = re.findall(r"`([^`]+)`", fence.sub("", self.text))
        self.named = [" ".join(each.split()) for each in words]

    def naming(self, start: str) -> str:
        """The text in backticks that starts like this."""
        return next(each for each in self.named if each.startswith(start))


class Tree:
    """A copy of the sources, tests and pages, which a change may edit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        found = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
        for name in found.stdout.splitlines():
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, folder / name)
        for name in (".venv", ".servers"):
            if (ROOT / name).exists():
                (folder / name).symlink_to((ROOT / name).resolve())

    def insert(self, path: str, before: str, text: str) -> None:
        """Insert text before the first line of a file that contains ``before``."""
        lines = (self.folder / path).read_text().splitlines(keepends=True)
        at = next(at for at, line in enumerate(lines) if before in line)
        lines[at:at] = [text if text.endswith("\n") else text + "\n"]
        (self.folder / path).write_text("".join(lines))

    def append(self, path: str, text: str) -> None:
        old = (self.folder / path).read_text()
        (self.folder / path).write_text(f"{old}\n\n{text}")

    def replace(self, path: str, old: str, new: str) -> None:
        text = (self.folder / path).read_text()
        assert old in text, f"{path} has no {old}"
        (self.folder / path).write_text(text.replace(old, new))

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run one of the page's test commands in the tree."""
        words = shlex.split(command)
        assert words[0] == ".venv/bin/pytest"
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words[1:]],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder / "src")},
            capture_output=True,
            text=True,
            check=False,
        )

    def passes(self, command: str) -> None:
        done = self.run(command)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
        assert re.search(r"\d+ passed", done.stdout)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_an_error_text_is_changed(tree: Tree) -> None:
    section = Section("1. Change an error text")
    module = section.naming("src/")
    old = "is not a sum of dollars"
    assert [path for path in (tree.folder / "src").rglob("*.py") if old in path.read_text()] == [
        tree.folder / module
    ]
    tree.append("tests/design/lint/test_lint.py", section.blocks[0])
    command = section.naming(".venv/bin/pytest")
    failed = tree.run(command)
    assert failed.returncode == 1 and old in failed.stdout
    tree.replace(module, old, "is negative")
    tree.passes(command)


def test_an_operation_is_added(tree: Tree) -> None:
    section = Section("2. Add an operation")
    module = section.naming("src/stator/engine/operations/control/")
    (tree.folder / module).write_text(section.blocks[0])
    register = section.naming("src/stator/engine/operations/__init__.py")
    tree.insert(register, '"DescribeTable"', f"    {section.naming(chr(34) + 'Describe')}")
    test = section.naming("tests/engine/tables/")
    call = section.naming("engine.call(")
    refused = call.replace("users", "nothing")
    (tree.folder / test).write_text(
        "import pytest\n\n"
        "from stator.engine import Engine\nfrom stator.errors import ResourceNotFound\n\n"
        "from .declare import on_demand\n\n\n"
        "def test_there_are_no_destinations(engine: Engine) -> None:\n"
        '    engine.call("CreateTable", {**on_demand(), "TableName": "users"})\n'
        f'    assert {call}["KinesisDataStreamDestinations"] == []\n'
        "    with pytest.raises(ResourceNotFound):\n"
        f"        {refused}\n"
    )
    tree.insert(
        "tests/engine/__init__.py",
        "operations.control.time_to_live:",
        f"    {section.naming('operations.control.kinesis_destination:')}",
    )
    line = section.naming('"DescribeKinesisStreamingDestination": [music]')
    tree.insert(
        section.naming("tests/fuzz/valid.py"), '"DescribeTable": [music]', f"        {line}"
    )
    tree.replace("docs/compatibility.md", "DescribeKinesisStreamingDestination, ", "")
    tree.passes(section.naming(".venv/bin/pytest"))


def test_a_lint_rule_is_added(tree: Tree) -> None:
    section = Section("3. Add a lint rule")
    tree.append(section.naming("src/stator/design/lint/reads.py"), section.blocks[0])
    entry = section.naming("LintRule(")
    tree.insert(section.naming("src/stator/design/lint/catalogue.py"), '"ST501"', f"    {entry}")
    _, code, title = re.split(r'LintRule\("|", "|", ', entry)[:3]
    page = (tree.folder / section.naming("docs/lint/ST4")).with_name("ST406.md").read_text()
    reads_many = "find(Vote).where(Vote.poll == poll).count()"
    design = re.search(r"## Found in\n```py\n(.*?)```", page, re.DOTALL)
    assert design is not None
    listed = design[1].replace("Count[Vote]", "Query[Vote]").replace("2_000_000", "2_000")
    found = listed.replace(reads_many, "find(Vote).where(Vote.poll == poll).limit(2_000)")
    better = found.replace("2_000)", "100)").replace("returns=2_000", "returns=100")
    written = re.sub(
        r"## Found in.*?## What to do",
        lambda _: (
            f"## Found in\n```py\n{found}```\n\n## Better\n```py\n{better}```\n\n## What to do"
        ),
        page.replace("a call that reads many pages", title).replace("ST406", code),
        flags=re.DOTALL,
    )
    (tree.folder / "docs" / "lint" / f"{code}.md").write_text(written)
    tree.insert(
        section.naming("docs/lint/README.md"), "[ST501]", f"| [{code}]({code}.md) | {title} |"
    )
    for command in [each for each in section.named if each.startswith(".venv/bin/pytest")][:1]:
        tree.passes(command)


def test_a_sink_is_added(tree: Tree) -> None:
    section = Section("4. Add a sink")
    sink, test = section.blocks
    module = section.naming("src/stator/pipeline/sinks/lines.py")
    (tree.folder / module).write_text(sink)
    front = section.naming("src/stator/pipeline/__init__.py")
    tree.insert(
        front,
        "stator.pipeline.sinks.parquet import",
        "    from stator.pipeline.sinks.lines import LinesSink as LinesSink",
    )
    tree.insert(
        front,
        '"stator.pipeline.sinks.parquet":',
        '        "stator.pipeline.sinks.lines": "LinesSink",',
    )
    head = (
        "from __future__ import annotations\n\nimport json\nfrom pathlib import Path\n\n"
        "from stator import Db\nfrom stator.pipeline import LinesSink, StreamApp\n\n"
        "from .worker_steps import WRITTEN, Crashing, first_of_each, totals, work, write_orders\n\n"
    )
    (tree.folder / section.naming("tests/pipeline/sinks/test_lines.py")).write_text(
        f"{head}\n{test}"
    )
    tree.passes(section.naming(".venv/bin/pytest"))
