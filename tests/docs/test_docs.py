"""The documentation is true: examples run, and every command is documented.

A code block says how it is tested. ``python`` blocks run as programs, or under pytest if they
define tests. ``console`` blocks run in a folder with the starter project ``shop``, and print what
the page shows. In a block's info string,

- ``file="rides.py"`` stores a ``python`` block for the ``console`` blocks of its page,
- ``output="reason"`` says why a command prints something else than the page shows,
- ``not-run="reason"`` says why a block does not run. Its commands must be valid all the same.

``py`` blocks are the designs of docs/lint, which tests/design/lint runs.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from docsite.markdown import CodeBlock, code_blocks, without_code

from stator.cli.main import build_app
from stator.cli.register import COMMANDS
from tests import warm_python

ROOT = Path(__file__).parent.parent.parent
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "examples" / "README.md",
]
LANGUAGES = {"console", "ini", "json", "mermaid", "py", "python", "text", "yaml"}
INFO = {"file", "not-run", "output"}


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def info(block: CodeBlock) -> dict[str, str]:
    """What a block's info string says after the language."""
    said = dict(re.findall(r'([\w-]+)="([^"]+)"', block.info))
    assert said.keys() <= INFO, f"line {block.line}: {block.info}"
    assert " ".join(f'{name}="{value}"' for name, value in said.items()) == block.info
    return said


def blocks(page: Path, *languages: str) -> list[CodeBlock]:
    return [block for block in code_blocks(page.read_text()) if block.language in languages]


def files_of(page: Path) -> dict[str, str]:
    """The files that a page tells its reader to save."""
    return {info(each)["file"]: each.code for each in blocks(page, "python") if "file" in each.info}


EXAMPLES = [
    pytest.param(page, block, id=f"{page_name(page)}:{block.line}")
    for page in PAGES
    for block in blocks(page, "python")
]
CONSOLES = [page for page in PAGES if blocks(page, "console")]


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_block_has_a_language_and_a_reason_if_it_does_not_run(page: Path) -> None:
    for block in code_blocks(page.read_text()):
        assert block.language in LANGUAGES, f"line {block.line}"
        info(block)
        if block.language == "py":
            assert page.parent.name == "lint", f"line {block.line}: python blocks run"


@pytest.mark.parametrize(("page", "block"), EXAMPLES)
def test_an_example_runs(page: Path, block: CodeBlock, tmp_path: Path) -> None:
    for name, code in files_of(page).items():
        (tmp_path / name).write_text(code)
    file = tmp_path / "test_example.py"
    file.write_text(block.code)
    is_test = "def test_" in block.code
    runner = ["-m", "pytest", "-q", "-p", "no:cacheprovider"] if is_test else []
    ran = warm_python.run(*runner, file.name, cwd=tmp_path, timeout=240)
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"


# -- commands


def commands(block: CodeBlock) -> list[str]:
    """The commands of a console block, without their comments."""
    lines = [line for line in block.code.splitlines() if line.startswith("$ ")]
    return [shlex.join(shlex.split(line[2:], comments=True)) for line in lines]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The starter project, its design in ``shop.py``, with the lock file of an earlier version."""
    folder = tmp_path_factory.mktemp("starter")
    stator = str(Path(sys.executable).with_name("stator"))
    subprocess.run([stator, "new", "shop"], cwd=folder, check=True, capture_output=True)
    (folder / "shop" / "design.py").rename(folder / "shop" / "shop.py")
    (folder / "shop" / "test_design.py").unlink()
    write = [stator, "plan", "--write"]
    subprocess.run(write, cwd=folder / "shop", check=True, capture_output=True)
    shutil.copy(folder / "shop" / "shop.design.json", folder / "shop" / "deployed.design.json")
    return folder / "shop"


@pytest.mark.parametrize("page", CONSOLES, ids=page_name)
def test_commands_run_and_print_what_the_page_shows(page: Path, shop: Path, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    shutil.copytree(shop, folder)
    stator = str(Path(sys.executable).with_name("stator"))
    files = files_of(page)
    written = [command for block in blocks(page, "console") for command in commands(block)]
    if files:  # the page has a design of its own
        for file in folder.iterdir():
            file.unlink()
    for name, code in files.items():
        (folder / name).write_text(code)
        if "Design(" in code and not any("--write" in each for each in written):
            write = [stator, "plan", name, "--write"]
            subprocess.run(write, cwd=folder, check=True, capture_output=True)
    path = f"{Path(stator).parent}{os.pathsep}{os.environ['PATH']}"
    for block in blocks(page, "console"):
        said = info(block)
        if "not-run" in said:
            continue
        shown = [line for line in block.code.splitlines() if not line.startswith("$ ")]
        lines = [line[2:] for line in block.code.splitlines() if line.startswith("$ ")]
        ran, printed = shell(lines, folder, {**os.environ, "PATH": path, "COLUMNS": "80"})
        assert ran == 0, f"line {block.line}:\n{printed}"
        if shown and "output" not in said:
            assert [line.rstrip() for line in printed.splitlines()] == shown, printed


def shell(lines: list[str], folder: Path, env: dict[str, str]) -> tuple[int, str]:
    """Run lines until one fails. Return the exit code, and what they print to both outputs.

    If all lines only call stator, without anything that a shell interprets, no shell is needed.
    """
    plain = [shlex.split(line, comments=True) for line in lines]
    if not all(
        line.startswith("stator ") and not set(line) & set("|&;<>$`*?(){}~") for line in lines
    ):
        ran = subprocess.run(
            ["bash", "-euc", "\n".join(lines)],
            cwd=folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return ran.returncode, ran.stdout
    printed = ""
    for words in plain:
        done = warm_python.run(
            "-m", "stator", *words[1:], cwd=folder, env=env, merged=True, timeout=240
        )
        printed += done.stdout
        if done.returncode:
            return done.returncode, printed
    return 0, printed


@pytest.mark.parametrize("page", CONSOLES, ids=page_name)
def test_commands_exist_with_their_options(page: Path) -> None:
    for block in blocks(page, "console"):
        for command in commands(block):
            for words in _stator_calls(shlex.split(command)):
                app: Any = typer.main.get_command(build_app(words))
                app.commands[words[0]].make_context(words[0], words[1:])


def _stator_calls(words: list[str]) -> list[list[str]]:
    """The arguments of each call of stator in a line; ``&&`` separates calls."""
    calls: list[list[str]] = [[]]
    for word in words:
        calls.append([]) if word == "&&" else calls[-1].append(word)
    plain = [list(takewhile(lambda word: word != ">", call)) for call in calls]
    return [call[1:] for call in plain if call[:1] == ["stator"]]


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_data_in_examples_can_be_read(page: Path) -> None:
    for block in blocks(page, "json"):
        json.loads(block.code)
    for block in blocks(page, "ini"):
        configparser.ConfigParser().read_string(block.code)
    for block in blocks(page, "yaml"):
        data = yaml.safe_load(block.code)
        for step in data if isinstance(data, list) else []:  # the steps of a workflow
            for words in _stator_calls(shlex.split(step["run"])):
                app: Any = typer.main.get_command(build_app(words))
                app.commands[words[0]].make_context(words[0], words[1:])


# -- completeness


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


def prose(page: Path) -> str:
    return without_code(page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_a_table_has_its_header_and_its_columns_in_every_row(page: Path) -> None:
    """A blank line within a table makes text of its last rows."""
    for table in re.findall(r"(?:^[ ]*\|.*\n?)+", prose(page), re.MULTILINE):
        rows = [row.strip() for row in table.splitlines()]
        columns = {len(re.findall(r"(?<!\\)\|", row)) for row in rows}
        assert len(rows) > 1 and re.fullmatch(r"[|:\- ]+", rows[1]), f"no header: {rows[0]}"
        assert len(columns) == 1, f"rows of different lengths: {rows[0]}"


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_two_headings_of_a_page_have_different_names(page: Path) -> None:
    """Links could reach only the first."""
    if page.name == "CHANGELOG.md":
        return
    headings = re.findall(r"^##+ +(.+)$", prose(page), re.MULTILINE)
    assert len(headings) == len(set(headings)), sorted(
        each for each in headings if headings.count(each) > 1
    )


def test_nobody_is_told_to_install_from_pypi() -> None:
    """Stator is not there yet, and someone else could take the name."""
    starters = (ROOT / "src" / "stator" / "cli" / "starters").rglob("*.txt")
    for page in (*PAGES, *starters):
        told = re.findall(r"pip install stator\b.*", page.read_text())
        assert not told, f"{page_name(page)}: {told}"


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_prose_ends_at_100_columns(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    wide = [line for line in text.splitlines() if len(line) > 100 and not line.startswith("|")]
    assert wide == []
