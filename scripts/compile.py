"""`make compile`: compile the hot modules to C extensions with mypyc, beside their sources.

The same Python runs compiled or interpreted; compiled, it answers about twice as many requests per
core. Without a C compiler the script says so and changes nothing. `make interpreted` removes the
extensions. `--link-sources DIR` makes a folder with links to the sources alone: with it first on
PYTHONPATH, everything runs interpreted while the extensions stay where they are.
"""

from __future__ import annotations

import shutil
import sys
import sysconfig
import tempfile
import tomllib
from contextlib import chdir
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src"
SUFFIXES = (".so", ".pyd")


def modules() -> list[Path]:
    """The modules listed in pyproject.toml without ``__init__`` files, relative to the sources."""
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["stator"]["compiled"]
    paths = [path for pattern in patterns for path in sorted(SOURCES.glob(pattern))]
    return [path.relative_to(SOURCES) for path in paths if path.name != "__init__.py"]


def remove() -> None:
    for path in SOURCES.rglob("*"):
        if path.suffix in SUFFIXES:
            path.unlink()


def link_sources(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for path in SOURCES.rglob("*"):
        if path.is_file() and path.suffix not in (*SUFFIXES, ".pyc"):
            link = folder / path.relative_to(SOURCES)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)


def has_compiler() -> bool:
    command = (sysconfig.get_config_var("CC") or "cc").split()[0]
    headers = Path(sysconfig.get_paths()["include"]) / "Python.h"
    return shutil.which(command) is not None and headers.exists()


def build(target: Path) -> list[Path]:
    """Compile into ``target``; returns the new files, relative to it.

    It runs in a temporary folder, because mypyc leaves C files, caches and objects where it runs.
    """
    from mypyc.build import mypycify
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    with tempfile.TemporaryDirectory() as scratch, chdir(scratch):
        shutil.copytree(
            SOURCES / "stator", "stator", ignore=shutil.ignore_patterns("__pycache__", "*.so")
        )
        extensions = mypycify(
            ["--ignore-missing-imports", *map(str, modules())],
            opt_level="3",
            debug_level="0",
            group_name="stator",
        )
        command = build_ext(Distribution({"name": "stator", "ext_modules": extensions}))
        command.inplace = True
        command.ensure_finalized()
        command.run()
        extension_files = [
            path
            for path in Path().rglob("*")
            if path.suffix in SUFFIXES and path.parts[0] != "build"
        ]
        for path in extension_files:
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target / path)
    return extension_files


def main() -> None:
    match sys.argv[1:]:
        case ["--link-sources", folder]:
            link_sources(Path(folder))
            return
        case ["--remove"]:
            remove()
            return
    remove()
    if not has_compiler():
        print(
            "no C compiler or no Python headers found: Stator runs interpreted,"
            " with the same behaviour but slower"
        )
        return
    print(f"compiling {len(modules())} modules with mypyc; this takes a minute or two")
    build(SOURCES)


if __name__ == "__main__":
    main()
