"""``stator new`` makes projects that run as they are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stator.cli.commands import new
from stator.cli.main import main
from tests import warm_python

STATOR = Path(sys.executable).parent / "stator"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [STATOR, *arguments], cwd=folder, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("example", ["shop", "routers", "blank"])
def test_a_new_project_plans_and_passes_its_own_tests(tmp_path: Path, example: str) -> None:
    made = run(tmp_path, "new", "my-thing", "--example", example)
    assert made.returncode == 0, made.stderr
    project = tmp_path / "my-thing"
    assert sorted(file.name for file in project.iterdir()) == [
        "README.md",
        "design.py",
        "test_design.py",
    ]
    assert "NAME" not in "".join(file.read_text() for file in project.iterdir())
    tests = warm_python.run("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=project)
    assert tests.returncode == 0, tests.stdout


def test_an_existing_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "mine.txt").write_text("mine")
    refused = run(tmp_path, "new", "shop")
    assert refused.returncode == 1
    assert "already exists" in refused.stderr
    assert [file.name for file in (tmp_path / "shop").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("name", ["9lives", "a b", "class", "../up", "xy"])
def test_a_name_must_be_one_a_design_can_have(tmp_path: Path, name: str) -> None:
    refused = run(tmp_path, "new", name)
    assert refused.returncode == 1
    assert "hint:" in refused.stderr
    assert not list(tmp_path.iterdir())


def test_json(tmp_path: Path) -> None:
    made = run(tmp_path, "new", "notes", "--example", "blank", "--json")
    assert json.loads(made.stdout) == {
        "folder": "notes",
        "files": ["README.md", "design.py", "test_design.py"],
    }


@pytest.mark.parametrize("example", ["shop", "routers", "blank"])
def test_every_estimate_of_a_new_project_holds(tmp_path: Path, example: str) -> None:
    run(tmp_path, "new", "my-thing", "--example", example)
    done = run(tmp_path / "my-thing", "plan", "--verify", "--most-items", "20000")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("is_installed", [True, False])
def test_a_missing_pytest_is_told(
    is_installed: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(new, "find_spec", lambda name: object() if is_installed else None)
    with pytest.raises(SystemExit):
        main(["new", "shop", "--folder", str(tmp_path / "shop")])
    out = capsys.readouterr().out
    assert "stator plan" in out
    assert ("pip install pytest" in out) is not is_installed
