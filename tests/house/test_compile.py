"""`make compile`: what the cache depends on, and that nothing is left half installed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "compile.py"
FILES = {
    "pyproject.toml": '[tool.stator]\ncompiled = ["stator/hot/*.py"]\n',
    "requirements.lock": "orjson==3\n",
    "src/stator/__init__.py": "",
    "src/stator/hot/__init__.py": "",
    "src/stator/hot/table.py": "from stator.limits import LARGEST\n",
    "src/stator/limits.py": "import stator.units\nLARGEST = 1\n",
    "src/stator/units.py": "BYTE = 1\n",
    "src/stator/demo.py": "import stator.hot.table\n",
}


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, at work on a small project."""
    spec = importlib.util.spec_from_file_location("compile_script", SCRIPT)
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    root = tmp_path / "project"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    monkeypatch.setattr(script, "ROOT", root)
    monkeypatch.setattr(script, "SOURCES", root / "src")
    monkeypatch.setattr(script, "INSTALLED", root / "src" / "fingerprint")
    monkeypatch.setattr(script, "__file__", str(root / "pyproject.toml"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return script


def compiled(compiler: ModuleType, content: str) -> Path:
    """An entry of the cache, as a compilation leaves it."""
    entry: Path = compiler.cache_folder() / content
    for name in (compiler.LIBRARY, f"stator/hot/table{compiler.SUFFIX}"):
        (entry / name).parent.mkdir(parents=True, exist_ok=True)
        (entry / name).write_text(content)
    return entry


def installed(compiler: ModuleType) -> dict[str, str]:
    found = compiler.SOURCES.rglob(f"*{compiler.SUFFIX}*")
    return {path.name.partition(".")[0]: path.read_text() for path in found}


@pytest.mark.parametrize(
    ("name", "depends"),
    [
        ("src/stator/hot/table.py", True),
        ("src/stator/limits.py", True),
        ("src/stator/units.py", True),
        ("src/stator/__init__.py", True),
        ("requirements.lock", True),
        ("src/stator/demo.py", False),
    ],
)
def test_the_fingerprint_depends_on_all_that_compiled_modules_import(
    compiler: ModuleType, name: str, depends: bool
) -> None:
    before = compiler.fingerprint()
    assert compiler.fingerprint() == before
    path = compiler.ROOT / name
    path.write_text(path.read_text() + "# changed\n")
    assert (compiler.fingerprint() != before) == depends


def test_another_compilation_replaces_the_one_installed(compiler: ModuleType) -> None:
    compiler.install(compiled(compiler, "a1"))
    compiler.install(compiled(compiler, "b2"))
    assert installed(compiler) == {"stator__mypyc": "b2", "table": "b2"}
    compiler.remove()
    assert installed(compiler) == {}


def test_an_installation_that_stops_half_way_leaves_no_library(
    compiler: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler.install(compiled(compiler, "a1"))
    entry, copy = compiled(compiler, "b2"), shutil.copyfile
    copied: list[object] = []

    def copy_one(source: Path, target: Path) -> None:
        if copied:
            raise OSError("no room")
        copied.append(copy(source, target))

    monkeypatch.setattr(compiler.shutil, "copyfile", copy_one)
    with pytest.raises(OSError, match="no room"):
        compiler.install(entry)
    assert installed(compiler) == {"table": "b2"}
    monkeypatch.setattr(compiler.shutil, "copyfile", copy)
    compiler.install(entry)
    assert installed(compiler) == {"stator__mypyc": "b2", "table": "b2"}


def test_extensions_become_newer_than_sources_that_were_only_touched(compiler: ModuleType) -> None:
    entry = compiled(compiler, "a1")
    compiler.install(entry)
    source = compiler.SOURCES / "stator" / "hot" / "table.py"
    source.touch()
    compiler.install(entry)
    extension = source.with_name(f"table{compiler.SUFFIX}")
    assert extension.stat().st_mtime >= source.stat().st_mtime


def test_the_cache_keeps_the_newest_compilations(compiler: ModuleType) -> None:
    entries = [compiled(compiler, f"{number:x}") for number in range(9)]
    for number, entry in enumerate(entries):
        os.utime(entry, (number, number))
    compiler.prune(compiler.cache_folder())
    assert [entry for entry in entries if entry.exists()] == entries[-compiler.KEPT_COMPILATIONS :]


def test_without_a_compilation_of_these_sources_the_demo_runs_interpreted(
    compiler: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    compiler.install(compiled(compiler, "a1"))
    compiler.reuse()
    assert installed(compiler) == {}
    assert "interpreted" in capsys.readouterr().out
    compiled(compiler, compiler.fingerprint())
    compiler.reuse()
    assert set(installed(compiler)) == {"stator__mypyc", "table"}


# -- without a C compiler


@pytest.fixture(params=["no compiler", "no headers"])
def bare(
    request: pytest.FixtureRequest,
    compiler: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> ModuleType:
    """The script on a machine that lacks the compiler, or the headers of Python."""
    if request.param == "no compiler":
        monkeypatch.setenv("CC", str(tmp_path / "no-such-cc"))
    else:
        monkeypatch.setattr(compiler.sysconfig, "get_paths", lambda: {"include": str(tmp_path)})
    return compiler


def test_make_compile_says_that_there_is_no_compiler_and_goes_on(
    bare: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It leaves no compiled module of an earlier build, whose source may have changed since."""
    bare.install(compiled(bare, "older"))
    assert installed(bare)
    monkeypatch.setattr(sys, "argv", ["compile.py"])
    bare.main()
    assert "no C compiler or no Python headers found" in capsys.readouterr().out
    assert not installed(bare)


def test_the_demo_starts_without_a_compiler(
    bare: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["compile.py", "--cached"])
    bare.main()
    assert "everything runs interpreted" in capsys.readouterr().out


def test_a_compiler_may_have_arguments(
    compiler: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cc = tmp_path / "ccache"
    cc.write_text("#!/bin/sh\n")
    cc.chmod(0o755)
    (tmp_path / "Python.h").touch()
    monkeypatch.setattr(compiler.sysconfig, "get_paths", lambda: {"include": str(tmp_path)})
    monkeypatch.setenv("CC", f"{cc} cc -O2")
    assert compiler.has_compiler()
