"""What type checkers accept and refuse of a user's program."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
BIN = Path(sys.executable).parent


def mypy_errors(file: Path) -> set[int]:
    """The lines with an error for a user: strict, without this project's settings for tests."""
    ran = subprocess.run(
        [
            BIN / "mypy",
            "--config-file=",
            "--strict",
            "--warn-unreachable",
            "--no-incremental",
            "--follow-imports=silent",
            str(file.relative_to(ROOT)),
        ],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": "src"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode in (0, 1), ran.stderr
    return {int(line) for line in re.findall(rf"{file.name}:(\d+): error", ran.stdout)}


def pyright_errors(file: Path) -> set[int]:
    ran = subprocess.run(
        [BIN / "pyright", "--outputjson", "--pythonpath", sys.executable, str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(ran.stdout)["generalDiagnostics"]
    return {entry["range"]["start"]["line"] + 1 for entry in found if entry["severity"] == "error"}


@pytest.mark.parametrize("errors", [mypy_errors, pyright_errors])
def test_right_uses_are_accepted(errors: Callable[[Path], set[int]]) -> None:
    assert errors(HERE / "accepted.py") == set()


@pytest.mark.parametrize("errors", [mypy_errors, pyright_errors])
def test_wrong_uses_are_refused(errors: Callable[[Path], set[int]]) -> None:
    file = HERE / "refused.py"
    marked = {
        at
        for at, line in enumerate(file.read_text().splitlines(), 1)
        if "# refused" in line and not line.startswith('"""')
    }
    assert len(marked) >= 14
    assert errors(file) == marked
