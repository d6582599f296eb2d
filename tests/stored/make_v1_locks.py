"""Makes the lock files of version 1, as ``stator plan --write`` writes them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from stator.design.lock import lock_path, write_lock

from .designs import (
    EXAMPLE_NAMES,
    EXAMPLES,
    SMALLER,
    STARTERS,
    known_designs,
    model_design,
)


def make_locks(folder: Path) -> None:
    """Of the designs that the tests import."""
    folder.mkdir()
    for name, design in known_designs():
        write_lock(lock_path(name, folder), design.plan())
    for name, pattern in SMALLER.items():
        smaller = model_design(name).without(pattern)
        write_lock(lock_path(f"{name}-smaller", folder), smaller.plan())


def make_projects(folder: Path) -> None:
    """Folders with a design and its lock: the examples, and what ``stator new`` makes."""
    folder.mkdir()
    for name in EXAMPLE_NAMES:
        (folder / name).mkdir()
        shutil.copyfile(EXAMPLES / f"{name}.py", folder / name / "design.py")
    for name in STARTERS:
        _stator(folder, "new", f"my-{name}", "--example", name)
    for project in folder.iterdir():
        _stator(project, "plan", "--write")
        for file in project.iterdir():
            if file.name != "design.py" and file.suffix != ".json":
                file.unlink() if file.is_file() else shutil.rmtree(file)
        (project / "test_design.py").unlink(missing_ok=True)


def _stator(folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-B", "-m", "stator", *arguments]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
