"""A program that connects starts from the same lock file as the commands."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from stator import Design, Entity, Query, connect, find, ident, read
from stator.design.plan.lock_file import lock_path, write_lock
from tests import warm_python
from tests.cli.design_project import Project

DESIGN = """\
from stator import Design, Entity, Query, find, ident, read


class Reading(Entity):
    device: str = ident()
    at: int = ident()
    site: str
    value: int


@read(rps=50, returns=20)
def of_device(device: str) -> Query[Reading]:
    return find(Reading).where(Reading.device == device).newest_first(Reading.at).limit(20)


@read(rps=50, returns=20)
def of_site(site: str) -> Query[Reading]:
    return find(Reading).where(Reading.site == site).newest_first(Reading.at).limit(20)


@read(rps=500, returns=20)
def by_value(device: str) -> Query[Reading]:
    return find(Reading).where(Reading.device == device).order_by(Reading.value).limit(20)


store = Design("store", [Reading], [of_site], volumes={Reading: 40_000})
"""
GROWN = "[of_site, of_device, by_value]"

PROGRAM = """\
import sys

from design import Reading, store

from stator import connect

with connect(store, sys.argv[1]) as db:
    db.put(Reading(device="d1", at=1, site="s1", value=7))
    print(db.context.schema.plan.to_json() if len(sys.argv) > 2 else "stored")
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.write("design.py", DESIGN)
    made.write("use.py", PROGRAM)
    assert made.run("plan", "--write").returncode == 0
    return made


def run(folder: Path, *arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": f"{os.environ.get('PYTHONPATH', '')}:{path}"}
    return warm_python.run(*arguments, cwd=folder, env=env)


def planned(project: Project, *, fresh: bool = False) -> str:
    """The plan that the commands work with."""
    program = (
        "from stator.cli.design_file import load_design_file\n"
        f"print(load_design_file('design.py', fresh={fresh}).design.plan().to_json())"
    )
    done = run(project.folder, "-c", program)
    assert done.returncode == 0, done.stderr
    return done.stdout


def connected(folder: Path, *program: str, path: str = "") -> str:
    done = run(folder, *(program or ("use.py",)), "memory", "show", path=path)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_grown_design_keeps_its_locked_keys_in_a_program(project: Project) -> None:
    assert run(project.folder, "use.py", "data").returncode == 0
    project.edit("design.py", "[of_site]", GROWN)
    assert planned(project) != planned(project, fresh=True), "the test needs keys that would move"
    assert connected(project.folder) == planned(project)
    again = run(project.folder, "use.py", "data")
    assert again.returncode == 0, again.stderr


def test_the_folder_in_which_a_program_runs_does_not_matter(project: Project) -> None:
    project.edit("design.py", "[of_site]", GROWN)
    elsewhere = project.folder / "elsewhere"
    elsewhere.mkdir()
    shown = connected(elsewhere, str(project.folder / "use.py"))
    assert shown == planned(project)


def test_a_function_that_builds_the_design_elsewhere_changes_nothing(project: Project) -> None:
    """The lock is next to the file that a command names, not next to the function."""
    project.write("lib/__init__.py", "")
    project.write(
        "lib/build.py",
        "from stator import Design\n\n\ndef build(*a, **b):\n    return Design(*a, **b)\n",
    )
    project.edit("design.py", "store = Design(", "from lib.build import build\nstore = build(")
    project.edit("design.py", "[of_site]", GROWN)
    assert connected(project.folder) == planned(project)


def test_a_lock_next_to_a_file_that_only_imports_the_design_is_refused(project: Project) -> None:
    project.write("inner/design.py", DESIGN)
    project.write("design.py", "from inner.design import store\n")
    done = project.run("plan")
    assert done.returncode == 1
    assert "store.design.json is not next to the file that defines store" in done.stderr
    assert f"move it to {project.folder / 'inner'}" in done.stderr
    (project.folder / "store.design.json").rename(project.folder / "inner" / "store.design.json")
    done = project.run("plan")
    assert done.returncode == 0
    assert "inner/store.design.json agrees" in done.stderr


def test_a_worker_finds_the_lock_of_a_design_in_another_folder(project: Project) -> None:
    """Its app's file may be anywhere."""
    project.edit("design.py", "[of_site]", GROWN)
    project.write(
        "apps/work.py",
        "import sys\nfrom pathlib import Path\n"
        "sys.path.insert(0, str(Path(__file__).parent.parent))\n"
        "from design import store\nfrom stator.pipeline import StreamApp\n\n"
        'app = StreamApp(store, "worker")\n',
    )
    program = (
        "from stator.cli.app_file import load_app\n"
        "print(load_app('apps/work.py').design.plan().to_json())"
    )
    done = run(project.folder, "-c", program)
    assert done.returncode == 0, done.stderr
    assert done.stdout == planned(project)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "store.design.json is not a plan"),
        (None, "is a plan of the design other, not of store"),
    ],
)
def test_a_lock_that_does_not_fit_gives_a_program_the_error_of_the_commands(
    project: Project, text: str | None, problem: str
) -> None:
    lock = project.folder / "store.design.json"
    kept = lock.read_text()
    lock.write_text(kept.replace('"name": "store"', '"name": "other"', 1) if text is None else text)
    done = run(project.folder, "use.py", "memory")
    command = project.run("plan")
    assert done.returncode == command.returncode == 1
    assert problem in done.stderr
    assert problem in command.stderr


def test_an_explicit_plan_and_keep_to_win_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Project(tmp_path).write("shelf.py", DESIGN)
    monkeypatch.syspath_prepend(tmp_path)
    import shelf  # type: ignore[import-not-found]

    try:
        early = shelf.store.plan()
        write_lock(lock_path("store", tmp_path), early)
        grown = Design("store", [shelf.Reading], [shelf.of_site, shelf.by_value])
        assert grown.lock is None, "this file has no lock next to it"
        assert shelf.store.lock == early
        chosen = grown.plan()
        assert connect(shelf.store, plan=chosen).context.schema.plan is chosen
        shelf.store.keep_to(None)
        assert shelf.store.lock is None
    finally:
        del sys.modules["shelf"]


def test_a_lock_that_is_written_later_is_found(project: Project) -> None:
    program = (
        "from design import store\n"
        "from stator.design.plan.lock_file import write_lock\n"
        "lock = store.lock_file.path\n"
        "kept = lock.read_text()\n"
        "lock.unlink()\n"
        "assert store.lock is None\n"
        "lock.write_text(kept)\n"
        "assert store.lock is not None\n"
        "assert store.lock is store.lock, 'plans are cached by their lock'\n"
    )
    done = run(project.folder, "-c", program)
    assert done.returncode == 0, done.stderr


def test_a_design_in_a_zip_archive_or_without_a_file_is_planned(project: Project) -> None:
    archive = project.folder / "app.zip"
    with zipfile.ZipFile(archive, "w") as made:
        for name in ("design.py", "store.design.json"):
            made.write(project.folder / name, name)
    elsewhere = project.folder / "elsewhere"
    elsewhere.mkdir()
    read_it = "from design import store; print(store.lock, len(store.plan().entities))"
    done = run(elsewhere, "-c", read_it, path=str(archive))
    assert (done.returncode, done.stdout) == (0, "None 1\n"), done.stderr
    done = run(project.folder, "-c", f"{DESIGN}\nprint(store.lock_file, store.lock)")
    assert (done.returncode, done.stdout) == (0, "None None\n"), done.stderr


class Note(Entity):
    note_id: str = ident()


@read(rps=1)
def note(note_id: str) -> Query[Note]:
    return find(Note).where(Note.note_id == note_id)


def test_the_file_is_the_one_whose_top_level_code_runs() -> None:
    design = Design("notes", [Note], [note])
    assert design.lock_file is None or design.lock_file.path.parent != Path(__file__).parent
    assert _AT_IMPORT.lock_file is not None
    assert _AT_IMPORT.lock_file.path == Path(__file__).parent / "notes.design.json"


_AT_IMPORT = Design("notes", [Note], [note])
